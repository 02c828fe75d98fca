"""Sums, means and maxima of embeddings."""

from __future__ import annotations

import plait_core as pc
from plait_core import Tensor
from plait_nn.functional._linear import embedding, renormalize

__all__ = ["embedding_bag"]


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Look rows of ``weight`` up and reduce those of each bag to one.

    Args:
        input: Integers, (B, L): B bags of L each, or (N): bags one after the other.
        weight: Shape (rows, features).
        offsets: For input (N): the beginnings of the bags, (B).
        max_norm: Rows of ``input`` with a larger norm are scaled down to it first, in place.
        norm_type: p of that norm.
        scale_grad_by_freq: Divide each row's gradient by the number of times that the row is in
            ``input``; not with mode "max".
        mode: "mean", "sum" or "max". An empty bag gives 0.
        sparse: Not supported; False: gradients are dense.
        per_sample_weights: Factors of the input's shape, for mode "sum".
        include_last_offset: Whether offsets end with the end of the last bag.
        padding_idx: A row that is ignored.

    Returns:
        Shape (B, features).

    Raises:
        ValueError: The arguments don't fit together.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> table = pc.tensor([[0.0], [1.0], [2.0]])
        >>> F.embedding_bag(pc.tensor([1, 2, 2, 0]), table, pc.tensor([0, 3]), mode="sum").tolist()
        [[5.0], [0.0]]
    """
    if sparse:
        raise NotImplementedError("embedding_bag: `sparse` must be False: gradients are dense")
    if scale_grad_by_freq and mode == "max":
        raise ValueError("embedding_bag: `scale_grad_by_freq` must be False for mode max")
    if mode not in ("mean", "sum", "max"):
        raise ValueError(f"embedding_bag: `mode` must be mean, sum or max; got {mode!r}")
    if per_sample_weights is not None and (
        mode != "sum" or tuple(per_sample_weights.shape) != tuple(input.shape)
    ):
        raise ValueError(
            f"embedding_bag: `per_sample_weights` must have the shape of `input` "
            f"{tuple(input.shape)}, for mode sum; got {tuple(per_sample_weights.shape)} for {mode}"
        )
    lengths = _lengths(input, offsets, include_last_offset)
    flat, bags = input.reshape((-1,)), len(lengths)
    device = input.device
    counted = pc.tensor(lengths, dtype=pc.int64, device=device)
    owner = pc.arange(bags, device=device).repeat_interleave(counted)
    rows = weight.shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ValueError(
                f"embedding_bag: `padding_idx` must be in [{-rows}, {rows - 1}]; got {padding_idx}"
            )
        kept = (flat != padding_idx % rows).nonzero().reshape((-1,))
        flat, owner = flat.index_select(0, kept), owner.index_select(0, kept)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape((-1,)).index_select(0, kept)
    if max_norm is not None:
        renormalize(flat, weight, max_norm, norm_type)
    found = embedding(flat, weight, scale_grad_by_freq=scale_grad_by_freq)
    if per_sample_weights is not None:
        found = found * per_sample_weights.reshape((-1, 1))
    counts = pc.zeros(bags, dtype=pc.int64, device=device).index_add(0, owner, pc.ones_like(owner))
    if mode == "max":
        return _maxima(found, owner, counts)
    blank = pc.zeros((bags, weight.shape[1]), dtype=weight.dtype, device=device)
    total = blank.index_add(0, owner, found)
    if mode == "sum":
        return total
    return total / counts.clamp(min=1).to(weight.dtype).unsqueeze(1)


def _lengths(input: Tensor, offsets: Tensor | None, include_last: bool) -> list[int]:
    """Return the number of elements of each bag."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                f"embedding_bag: `offsets` must be None for input {tuple(input.shape)}"
            )
        return [input.shape[1]] * input.shape[0]
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise ValueError(
            f"embedding_bag: `input` must be (B, L), or (N) with `offsets` (B); "
            f"got shape {tuple(input.shape)}"
        )
    starts = [int(n) for n in offsets.tolist()]
    first, ends = starts[:1], [*starts[1:], input.shape[0]]
    last = starts[-1:]
    if include_last or not starts:
        starts, ends = starts[:-1], ends[:-1]
    falls = any(e < s for s, e in zip(starts, ends, strict=True))
    if falls or first not in ([], [0]) or (ends and ends[-1] > input.shape[0]):
        raise ValueError(
            f"embedding_bag: `offsets` must begin with 0 and rise to at most {input.shape[0]}; "
            f"got {offsets.tolist()}"
        )
    if include_last and last not in ([], [input.shape[0]]):
        raise ValueError(
            f"embedding_bag: the last of `offsets` must be {input.shape[0]} with "
            f"`include_last_offset`; got {offsets.tolist()}"
        )
    return [e - s for s, e in zip(starts, ends, strict=True)]


def _maxima(found: Tensor, owner: Tensor, counts: Tensor) -> Tensor:
    """Return each bag's maxima: bags are padded with minus infinity."""
    bags, longest = counts.shape[0], int(counts.max()) if counts.numel() else 0
    if longest == 0:
        # through which gradients go to the weight
        return found.new_zeros((bags, found.shape[1])) + found.sum(0)
    starts = counts.cumsum(0) - counts
    offset = pc.arange(owner.shape[0], device=owner.device) - starts.index_select(0, owner)
    padded = pc.full(
        (bags * longest, found.shape[1]), float("-inf"), dtype=found.dtype, device=found.device
    ).index_copy(0, owner * longest + offset, found)
    best = padded.reshape((bags, longest, found.shape[1])).max(1)[0]
    return best.masked_fill((counts == 0).unsqueeze(1), 0)
