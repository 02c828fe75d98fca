"""Connectionist temporal classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor
from plait_nn._all_samples import all_samples, holds_for_all
from plait_nn.functional._checks import require_floating
from plait_nn.functional._loss import reduced

_NEVER = -1e30  # stands for the logarithm of 0, with finite sums and gradients


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    r"""Compute :math:`-\log P(y | x)`, summed over all alignments of y with x (Graves et al. 2006).

    An alignment names a class or the blank at every step; repeats merge, then blanks vanish. The
    gradient is the part of the derivative that keeps the sum of the probabilities of a step, as
    behind `log_softmax`.

    Args:
        log_probs: Log-probabilities, (T, N, C) or (T, C).
        targets: Class numbers, (N, S), or all sequences one after the other, (sum of lengths).
        input_lengths: Steps of each sequence, (N) or ().
        target_lengths: Lengths of the targets, (N) or ().
        blank: The class that means "no output".
        reduction: "mean" (each loss is divided by its target's length first), "sum" or "none".
        zero_infinity: Return 0 for targets that are too long for their input, instead of infinity.

    Raises:
        ValueError: Shapes or lengths don't fit together.
        DTypeError: The log-probabilities are no floating-point numbers.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.full((2, 1, 2), 0.5).log()  # "a", "-a" and "a-" are 3 of 4 sequences
        >>> F.ctc_loss(x, pc.tensor([[1]]), [2], [1]).exp()
        tensor(1.3333)
    """
    require_floating("ctc_loss", "log_probs", log_probs)
    single = log_probs.ndim == 2
    if log_probs.ndim not in (2, 3):
        raise ArgumentError(
            f"ctc_loss: `log_probs` must be (T, N, C) or (T, C); got {tuple(log_probs.shape)}"
        )
    steps = log_probs.unsqueeze(1) if single else log_probs
    times, batch, classes = steps.shape
    if not 0 <= blank < classes:
        raise ArgumentError(f"ctc_loss: `blank` must be in [0, {classes - 1}]; got {blank}")
    inputs = _Lengths(input_lengths, batch, times, "input_lengths", steps.device)
    label_counts = _Lengths(target_lengths, batch, None, "target_lengths", steps.device)
    labels = _padded(targets, label_counts, blank, classes)
    losses = _losses(_along_probabilities(steps), labels, inputs.there, label_counts.there, blank)
    if zero_infinity:
        losses = losses.masked_fill(losses.detach() == float("inf"), 0)
    if reduction == "mean":
        return (losses / label_counts.there.clamp(min=1).to(losses.dtype)).mean()
    return reduced(losses[0] if single and reduction == "none" else losses, reduction, "ctc_loss")


def _along_probabilities(steps: Tensor) -> Tensor:
    """Return the logarithms with the gradient g - p sum(g), that of `log_softmax` at its result."""
    total = steps.exp().sum(2, keepdim=True)
    value = total.detach()
    return steps - (total - value).masked_fill(value == float("inf"), 0)


class _Lengths:
    """Lengths on a device, and as numbers if the host knows them without a wait."""

    def __init__(
        self, source: Any, batch: int, most: int | None, name: str, device: pc.device
    ) -> None:
        self._known: list[int] | None = None
        if isinstance(source, Tensor) and source.device == device and device.type != "cpu":
            self.there = source.detach().reshape((-1,)).to(pc.int64)
            if self.there.shape[0] != batch:
                raise ArgumentError(
                    f"ctc_loss: `{name}` must hold {batch} lengths; got shape {tuple(source.shape)}"
                )
            return
        values = source.reshape((-1,)).tolist() if isinstance(source, Tensor) else source
        lengths = [int(values)] if isinstance(values, int) else [int(v) for v in values]
        if len(lengths) != batch or min(lengths, default=0) < 0:
            raise ArgumentError(
                f"ctc_loss: `{name}` must hold {batch} lengths that are not negative; got {lengths}"
            )
        if most is not None and max(lengths, default=0) > most:
            raise ArgumentError(
                f"ctc_loss: `{name}` must not exceed the {most} steps of `log_probs`; got {lengths}"
            )
        self._known = lengths
        self.there = pc.tensor(lengths, dtype=pc.int64, device=device)

    @property
    def is_known(self) -> bool:
        """Whether `numbers` waits for nothing."""
        return self._known is not None

    @property
    def numbers(self) -> list[int]:
        """The lengths, which may have to be read from the device."""
        if self._known is None:
            self._known = [int(n) for n in self.there.tolist()]
        return self._known


def _padded(targets: Tensor, lengths: _Lengths, blank: int, classes: int) -> Tensor:
    """Return the targets as (N, S) where the lengths are, filled with the blank."""
    device, batch = lengths.there.device, lengths.there.shape[0]
    flat = targets.detach()
    if flat.ndim == 1 and batch == 1 and not lengths.is_known:
        flat = flat.unsqueeze(0)
    if flat.ndim == 2:
        # rows of targets have room for them all, so that unknown lengths need not be read
        longest = max(lengths.numbers, default=0) if lengths.is_known else flat.shape[1]
        if flat.shape[0] != batch or flat.shape[1] < longest:
            raise ArgumentError(
                f"ctc_loss: `targets` must be ({batch}, {longest} or more); got {tuple(flat.shape)}"
            )
        labels = flat[:, :longest].to(device=device, dtype=pc.int64)
    else:
        longest, total = max(lengths.numbers, default=0), sum(lengths.numbers)
        if flat.ndim != 1 or flat.shape[0] < total:
            raise ArgumentError(
                f"ctc_loss: `targets` must hold {total} classes; got {tuple(flat.shape)}"
            )
        starts = (lengths.there.cumsum(0) - lengths.there).unsqueeze(1)
        positions = (starts + pc.arange(longest, device=device)).clamp(max=flat.shape[0] - 1)
        labels = flat.to(device=device, dtype=pc.int64).index_select(0, positions.reshape((-1,)))
        labels = labels.reshape((batch, longest))
    within = pc.arange(longest, device=device) < lengths.there.unsqueeze(1)
    labels = labels.masked_fill(~within, blank)
    if device.type == "cpu":  # elsewhere the device finds them, without a wait
        fit = (labels >= 0) & (labels < classes)
        if not holds_for_all(fit):
            wrong = all_samples(labels)[~all_samples(fit)]
            raise ArgumentError(
                f"ctc_loss: `targets` must be in [0, {classes - 1}]; got {wrong[0].item()}"
            )
    return labels


def _losses(
    steps: Tensor, labels: Tensor, inputs: Tensor, target_lengths: Tensor, blank: int
) -> Tensor:
    """Run the forward recursion over blank, y1, blank, y2, ..., blank for the whole batch."""
    times, batch, _ = steps.shape
    states_count = 2 * labels.shape[1] + 1
    device = steps.device
    states = pc.full((batch, states_count), blank, dtype=pc.int64, device=device)
    if labels.shape[1]:
        states[:, 1::2] = labels
    scores = steps.gather(2, states.unsqueeze(0).expand((times, batch, states_count)))
    never = pc.full((batch, states_count), _NEVER, dtype=steps.dtype, device=device)
    # a path may skip a blank between different classes
    skips = pc.zeros((batch, states_count), dtype=pc.bool, device=device)
    if states_count > 2:
        skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    start = pc.arange(states_count, device=device).unsqueeze(0) < 2
    lengths = inputs.unsqueeze(1)
    alpha = pc.where(start, pc.zeros_like(never), never)  # the first step may start in two states
    for t in range(times):
        if t == 0:
            moved = alpha + scores[0]
        else:
            one = pc.cat([never[:, :1], alpha[:, :-1]], 1)
            two = pc.cat([never[:, :2], alpha[:, :-2]], 1)[:, :states_count]
            two = pc.where(skips, two, never)
            moved = pc.logsumexp(pc.stack([alpha, one, two]), 0) + scores[t]
        # a floor, so that impossible paths stay impossible after any number of steps
        alpha = pc.where(lengths > t, moved.clamp(min=_NEVER), alpha)
    last = 2 * target_lengths.unsqueeze(1)
    ends = alpha.gather(1, last)
    before = alpha.gather(1, (last - 1).clamp(min=0))
    before = pc.where(last > 0, before, never[:, :1])
    totals = -pc.logsumexp(pc.cat([ends, before], 1), 1)
    empty = (inputs == 0) & (last.squeeze(1) == 0)
    totals = totals.masked_fill(empty, 0)
    return totals.masked_fill(totals.detach() > -_NEVER / 2, float("inf"))
