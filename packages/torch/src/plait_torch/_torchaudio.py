"""The operators that torchaudio ships as C++ for PyTorch, under the names of its binaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait
from plait_abi import operator

_NEVER = -1e30  # stands for the logarithm of 0, with finite sums and gradients


def _is_align_available() -> bool:
    return True


def _cuda_version() -> None:
    return None


# ---- filters
def _lfilter_core_loop(windows: Any, flipped: Any, padded: Any) -> Any:
    """Fill `padded` with the recursive filter of `windows` by factors in the order of time."""
    if windows.ndim != 3 or padded.shape[2] != windows.shape[2] + flipped.shape[1] - 1:
        raise RuntimeError(
            "torchaudio::_lfilter_core_loop: the output must be longer than the input by the order "
            f"of the filter; got shapes {tuple(windows.shape)}, {tuple(flipped.shape)} and "
            f"{tuple(padded.shape)}"
        )
    order = flipped.shape[1] - 1
    with plait.no_grad():
        past, signal = padded[:, :, :order], windows
        if bool((past != 0).any()):
            signal = windows.clone()
            for t in range(min(order, signal.shape[2])):
                signal[:, :, t] -= (flipped[:, : order - t] * past[:, :, t:]).sum(-1)
        factors = flipped[:, :order].flip(1)
        padded[:, :, order:] = operator("all_pole_filter")(signal, factors)
    return padded


def _overdrive_core_loop(waveform: Any, temp: Any, last_in: Any, last_out: Any, output: Any) -> Any:
    """Fill `output` with half the waveform and a high-pass filter of `temp`."""
    with plait.no_grad():
        if temp.shape[1] == 0:
            return last_in, last_out, output
        terms = temp - plait.cat([last_in[:, None], temp[:, :-1]], 1)
        terms[:, 0] += 0.995 * last_out
        factors = plait.full_like(terms, 0.995)
        passed = operator("linear_recurrence")(factors, terms, 1, False)
        output.copy_(waveform * 0.5 + passed * 0.75)
        last_in.copy_(temp[:, -1])
        last_out.copy_(passed[:, -1])
    return last_in, last_out, output


# ---- the loss of a transducer (Graves 2012)
def _diagonals(values: Any, steps: int) -> Any:
    """Return ``made[b, d, u] = values[b, d - u, u]``, where there is no such element never."""
    batch, times, places = values.shape
    at = plait.arange(steps)[:, None] - plait.arange(places)
    inside = (at >= 0) & (at < times)
    index = at.clamp(0, times - 1).expand((batch, steps, places))
    return values.gather(1, index).masked_fill(~inside, _NEVER)


def _transducer_costs(scores: Any, targets: Any, times: Any, places: Any, blank: int) -> Any:
    """Return minus the logarithm of the probability of each target, from log-probabilities."""
    batch, longest, width, _ = scores.shape
    steps = longest + width - 1
    stay = scores[..., blank]
    required = targets.to(plait.int64).clamp(min=0)[:, None, :, None]
    emit = scores[:, :, :-1].gather(3, required.expand((batch, longest, width - 1, 1)))[..., 0]
    never = plait.full((batch, 1), _NEVER, dtype=scores.dtype)
    stay_by, emit_by = _diagonals(stay, steps), _diagonals(emit, steps)
    row = plait.cat([plait.zeros_like(never), never.expand((batch, width - 1))], 1)
    rows = [row]
    for d in range(1, steps):
        # at place u after step d - 1 the time is d - 1 - u: a blank takes a step of time, a label
        # one of place
        on = plait.cat([never, row[:, :-1] + emit_by[:, d - 1]], 1)
        row = plait.logaddexp(row + stay_by[:, d - 1], on).clamp(min=_NEVER)
        rows.append(row)
    each, end = plait.arange(batch), times - 1 + places
    last = plait.stack(rows, 1)[each, end, places]
    return -(last + stay[each, times - 1, places])


def _rnnt_loss_forward(
    logits: Any,
    targets: Any,
    logit_lengths: Any,
    target_lengths: Any,
    blank: int,
    clamp: float,
    fused_log_softmax: bool,
) -> Any:
    """Return the loss of each sequence, and its derivative by `logits`."""
    times, places = logit_lengths.to(plait.int64), target_lengths.to(plait.int64)
    if (
        logits.ndim != 4
        or targets.shape != (logits.shape[0], logits.shape[2] - 1)
        or times.shape != logits.shape[:1]
        or places.shape != logits.shape[:1]
        or int(times.max()) != logits.shape[1]
        or int(places.max()) + 1 != logits.shape[2]
        or not 0 <= blank < logits.shape[3]
    ):
        raise RuntimeError(
            "torchaudio::rnnt_loss: `logits` must have shape (batch, longest input, longest target "
            f"+ 1, classes) and `blank` be a class; got {tuple(logits.shape)} for targets of shape "
            f"{tuple(targets.shape)}, inputs of {times.tolist()} steps, targets of "
            f"{places.tolist()}, blank {blank}"
        )
    leaf = logits.detach().requires_grad_()
    with plait.enable_grad():
        scores = leaf.to(plait.float64)
        scores = plait.log_softmax(scores, -1) if fused_log_softmax else scores
        costs = _transducer_costs(scores, targets, times, places, blank)
        (gradient,) = plait.autograd.grad(costs.sum(), leaf)
    if clamp > 0:
        gradient = gradient.clamp(-clamp, clamp)
    return costs.detach().to(logits.dtype), gradient


# ---- the most probable alignment of CTC
def _forced_align(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int
) -> Any:
    """Return the class at each step of the most probable path, and `log_probs`."""
    if log_probs.ndim != 3 or targets.ndim != 2 or log_probs.shape[0] != 1 or len(targets) != 1:
        raise RuntimeError(
            "torchaudio::forced_align: `log_probs` must have shape (1, time, classes) and "
            f"`targets` (1, length); got {tuple(log_probs.shape)} and {tuple(targets.shape)}"
        )
    classes, labels = log_probs.shape[2], targets[0].to(plait.int64)
    steps, length = log_probs.shape[1], len(labels)
    if not 0 <= blank < classes or any(not 0 <= k < classes for k in labels.tolist()):
        raise RuntimeError(
            f"torchaudio::forced_align: `blank` and `targets` must be in [0, {classes}); got "
            f"{blank} and {targets.tolist()}"
        )
    if int(input_lengths.max()) != steps or int(target_lengths.max()) != length:
        raise RuntimeError(
            f"torchaudio::forced_align: the lengths must be those of `log_probs`, {steps}, and "
            f"`targets`, {length}; got {input_lengths.tolist()} and {target_lengths.tolist()}"
        )
    repeats = int((labels[1:] == labels[:-1]).sum())
    if steps < length + repeats:
        raise RuntimeError(
            f"torchaudio::forced_align: targets of length {length} with {repeats} repeats are too "
            f"long for {steps} steps of `log_probs`"
        )
    with plait.no_grad():
        path = _best_path(log_probs[0].detach(), labels, blank)
    return plait.tensor([path], dtype=targets.dtype), log_probs


def _best_path(log_probs: Any, labels: Any, blank: int) -> list[int]:
    steps, states = log_probs.shape[0], 2 * len(labels) + 1
    required = plait.full((states,), blank, dtype=plait.int64)
    required[1::2] = labels
    # a label may follow the label before the blank before it, if that is another one
    skips = plait.zeros(states, dtype=plait.bool)
    skips[3::2] = labels[1:] != labels[:-1]
    scores = log_probs.float() if log_probs.itemsize < 4 else log_probs
    scores = scores[:, required]
    never = plait.full((2,), -float("inf"), dtype=scores.dtype)
    best = plait.cat([scores[0, :2], never[:1].expand((max(states - 2, 0),))])
    back = []
    for t in range(1, steps):
        one = plait.cat([never[:1], best[:-1]])
        two = plait.cat([never, best[:-2]])[:states].masked_fill(~skips, -float("inf"))
        from_two, from_one = (two > one) & (two > best), one > best
        back.append(plait.where(from_two, 2, plait.where(from_one, 1, 0)).tolist())
        best = scores[t] + plait.where(from_two, two, plait.where(from_one, one, best))
    state = states - 1
    if states > 1 and not float(best[-1]) > float(best[-2]):
        state -= 1
    path = [state]
    for came in reversed(back):
        state -= came[state]
        path.append(state)
    classes = required.tolist()
    return [classes[each] for each in reversed(path)]


OPERATORS: dict[str, Callable[..., Any]] = {
    "_torchaudio::is_align_available": _is_align_available,
    "_torchaudio::cuda_version": _cuda_version,
    "torchaudio::_lfilter_core_loop": _lfilter_core_loop,
    "torchaudio::_overdrive_core_loop": _overdrive_core_loop,
    "torchaudio::rnnt_loss_forward": _rnnt_loss_forward,
    "torchaudio::forced_align": _forced_align,
}
