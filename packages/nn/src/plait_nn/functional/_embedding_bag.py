"""Sums, means and maxima of embeddings."""

from __future__ import annotations

from itertools import pairwise

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor
from plait_nn.functional._checks import require_floating
from plait_nn.functional._linear import embedding, renormalize


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
        sparse: Whether the weight's gradient is a `plait.SparseTensor`, with the rows of ``input``
            alone; not with mode "max", and not with ``scale_grad_by_freq``.
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
    require_floating("embedding_bag", "weight", weight)
    if sparse and mode == "max":
        raise ArgumentError("embedding_bag: max mode does not support sparse weights")
    if scale_grad_by_freq and mode == "max":
        raise ArgumentError("embedding_bag: `scale_grad_by_freq` must be False for mode max")
    if mode not in ("mean", "sum", "max"):
        raise ArgumentError(f"embedding_bag: `mode` must be mean, sum or max; got {mode!r}")
    if per_sample_weights is not None and (
        mode != "sum" or tuple(per_sample_weights.shape) != tuple(input.shape)
    ):
        raise ArgumentError(
            f"embedding_bag: `per_sample_weights` must have the shape of `input` "
            f"{tuple(input.shape)}, for mode sum; got {tuple(per_sample_weights.shape)} for {mode}"
        )
    flat = input.reshape((-1,))
    owner, bags = _owners(input, offsets, include_last_offset)
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise ArgumentError(
            f"embedding_bag: `padding_idx` must be in [{-rows}, {rows - 1}]; got {padding_idx}"
        )
    if max_norm is not None:
        renormalize(flat, weight, max_norm, norm_type)
    skipped = padding_idx if sparse else None  # a dense gradient has zeros there anyway
    vectors = embedding(flat, weight, skipped, None, norm_type, scale_grad_by_freq, sparse)
    factors = None if per_sample_weights is None else per_sample_weights.reshape((-1, 1))
    ones = pc.ones_like(owner)
    none = pc.zeros(bags, dtype=pc.int64, device=input.device)
    sizes = counts = none.index_add(0, owner, ones)
    if padding_idx is not None:
        padding = (flat == padding_idx % rows).unsqueeze(1)
        counts = none.index_add(0, owner, ones.masked_fill(padding.squeeze(1), 0))
        vectors = vectors.masked_fill(padding, float("-inf") if mode == "max" else 0)
        factors = None if factors is None else factors.masked_fill(padding, 0)
    if mode == "max":
        longest = input.shape[1] if input.ndim == 2 else int(sizes.max()) if bags else 0
        return _maxima(vectors, owner, sizes, longest).masked_fill((counts == 0).unsqueeze(1), 0)
    if factors is not None:
        vectors = vectors * factors
    blank = pc.zeros((bags, weight.shape[1]), dtype=weight.dtype, device=input.device)
    total = blank.index_add(0, owner, vectors)
    if mode == "sum":
        return total
    return total / counts.clamp(min=1).to(weight.dtype).unsqueeze(1)


def _owners(input: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[Tensor, int]:
    """Return the bag of each element, and the number of bags."""
    device = input.device
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentError(
                f"embedding_bag: `offsets` must be None for input {tuple(input.shape)}"
            )
        bags, length = input.shape
        return pc.arange(bags, device=device).repeat_interleave(length), bags
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise ArgumentError(
            f"embedding_bag: `input` must be (B, L), or (N) with `offsets` (B); "
            f"got shape {tuple(input.shape)}"
        )
    if offsets.device.type == "cpu":  # elsewhere the host would have to wait for them
        _check_offsets(offsets.tolist(), input.shape[0], include_last)
    starts = offsets.to(device)
    if include_last:
        starts = starts[:-1]
    bags = starts.shape[0]
    # an element is in the last of the bags that begin at it or before; those before are empty
    positions = pc.arange(input.shape[0], dtype=starts.dtype, device=device)
    return pc.searchsorted(starts, positions, right=True) - 1, bags


def _check_offsets(offsets: list[int], elements: int, include_last: bool) -> None:
    falls = any(b < a for a, b in pairwise(offsets))
    if falls or offsets[:1] not in ([], [0]) or max(offsets, default=0) > elements:
        raise ArgumentError(
            f"embedding_bag: `offsets` must begin with 0 and rise to at most {elements}; "
            f"got {offsets}"
        )
    if include_last and offsets[-1:] not in ([], [elements]):
        raise ArgumentError(
            f"embedding_bag: the last of `offsets` must be {elements} with "
            f"`include_last_offset`; got {offsets}"
        )


def _maxima(vectors: Tensor, owner: Tensor, sizes: Tensor, longest: int) -> Tensor:
    """Return each bag's maxima: bags are padded with minus infinity."""
    bags = sizes.shape[0]
    if longest == 0:
        # through which gradients go to the weight
        return vectors.new_zeros((bags, vectors.shape[1])) + vectors.sum(0)
    starts = sizes.cumsum(0) - sizes
    offset = pc.arange(owner.shape[0], device=owner.device) - starts.index_select(0, owner)
    shape = (bags * longest, vectors.shape[1])
    blank = pc.full(shape, float("-inf"), dtype=vectors.dtype, device=vectors.device)
    padded = blank.index_copy(0, owner * longest + offset, vectors)
    best: Tensor = padded.reshape((bags, longest, vectors.shape[1])).max(1)[0]
    return best
