"""Products of matrices in groups, and the cross entropy of a linear layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor, engine
from plait_nn.functional._linear import linear
from plait_nn.functional._loss import cross_entropy


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Multiply groups of rows, columns or matrices, as a mixture of experts does.

    ========== ========== ======================================= =================
    ``mat_a``  ``mat_b``  group g                                 result
    ========== ========== ======================================= =================
    (M, K)     (G, K, N)  rows ``offs[g-1]:offs[g]`` of a         (M, N)
    (G, M, K)  (K, N)     columns ``offs[g-1]:offs[g]`` of b      (M, N)
    (M, K)     (K, N)     columns of a and rows of b              (G, M, N)
    (G, M, K)  (G, K, N)  matrix g of both, without ``offs``      (G, M, N)
    ========== ========== ======================================= =================

    Args:
        mat_a: Two or three dimensions.
        mat_b: Two or three dimensions.
        offs: The end of each group, integers (G); rows or columns after the last end give 0.
        bias: Not supported, as in PyTorch; None.
        out_dtype: The result's dtype.

    Raises:
        ShapeError: The shapes don't fit together, or ``offs`` does not have one dimension.
        DTypeError: ``offs`` are not integers.
        ValueError: ``offs`` is missing, given for two batches, or does not rise.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> experts = pc.tensor([[[1.0]], [[10.0]]])
        >>> ends = pc.tensor([1, 3])
        >>> F.grouped_mm(pc.tensor([[1.0], [2.0], [3.0]]), experts, offs=ends).flatten().tolist()
        [1.0, 20.0, 30.0]
    """
    if bias is not None:
        raise NotImplementedError("grouped_mm: `bias` must be None")
    if not {mat_a.ndim, mat_b.ndim} <= {2, 3} or mat_a.shape[-1] != mat_b.shape[-2]:
        raise pc.ShapeError(
            f"grouped_mm: `mat_a` must be (*, M, K) and `mat_b` (*, K, N) of 2 or 3 dimensions; "
            f"got shapes {tuple(mat_a.shape)} and {tuple(mat_b.shape)}"
        )
    if mat_a.ndim == mat_b.ndim == 3:
        if offs is not None:
            raise ArgumentError("grouped_mm: `offs` must be None for two batches of matrices")
        result = mat_a @ mat_b
    else:
        result = _grouped(mat_a, mat_b, _ends(mat_a, mat_b, offs))
    return result if out_dtype is None else result.to(out_dtype)


def _ends(mat_a: Tensor, mat_b: Tensor, offs: Tensor | None) -> list[int]:
    if offs is None:
        raise ArgumentError("grouped_mm: `offs` must be given where a matrix has two dimensions")
    if not isinstance(offs, Tensor):
        raise TypeError(f"grouped_mm: `offs` must be a Tensor, got {type(offs).__name__}")
    if offs.dtype.is_floating_point or offs.dtype.is_complex or offs.dtype == pc.bool:
        raise pc.DTypeError(f"grouped_mm: `offs` must have an integer dtype, got {offs.dtype}")
    if offs.ndim != 1:
        raise pc.ShapeError(
            f"grouped_mm: `offs` must have one dimension, got shape {tuple(offs.shape)}"
        )
    ends: list[int] = offs.tolist()
    limit = mat_b.shape[1] if mat_a.ndim == 3 else mat_a.shape[1 if mat_b.ndim == 2 else 0]
    groups = mat_a.shape[0] if mat_a.ndim == 3 else mat_b.shape[0] if mat_b.ndim == 3 else len(ends)
    if (
        len(ends) != groups
        or ends != sorted(ends)
        or (ends and not 0 <= ends[0] <= ends[-1] <= limit)
    ):
        raise ArgumentError(
            f"grouped_mm: `offs` must be {groups} ends that rise to at most {limit}; got {ends}"
        )
    return ends


def _grouped(mat_a: Tensor, mat_b: Tensor, ends: list[int]) -> Tensor:
    starts = [0, *ends[:-1]]
    spans = [(s, e - s) for s, e in zip(starts, ends, strict=True)]
    if mat_b.ndim == 3:
        parts = [mat_a.narrow(0, s, n) @ mat_b[g] for g, (s, n) in enumerate(spans)]
        rest = mat_a.shape[0] - (ends[-1] if ends else 0)
        return pc.cat([*parts, mat_a.new_zeros((rest, mat_b.shape[2]))], 0)
    if mat_a.ndim == 3:
        parts = [mat_a[g] @ mat_b.narrow(1, s, n) for g, (s, n) in enumerate(spans)]
        rest = mat_b.shape[1] - (ends[-1] if ends else 0)
        return pc.cat([*parts, mat_a.new_zeros((mat_a.shape[1], rest))], 1)
    return pc.stack([mat_a.narrow(1, s, n) @ mat_b.narrow(0, s, n) for s, n in spans])


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Options of `linear_cross_entropy` to compute the logits of a part of the batch at a time.

    Args:
        allow_retain_graph: For programs written for PyTorch; a second pass is always possible.
        batch_chunk_size: The number of samples at a time; None: a number for which the logits have
            about the size of the input.
        chunking_method: For programs written for PyTorch; unused.
        acc_policy: For programs written for PyTorch; unused.
        acc_dtype: For programs written for PyTorch; unused, as sums are those of `cross_entropy`.

    Example:
        >>> import plait_nn as nn
        >>> nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ArgumentError(
                f"LinearCrossEntropyOptions: `batch_chunk_size` must be positive or None; "
                f"got {size}"
            )


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """Compute ``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    With ``options`` and a batch of class indices the logits are made for a part of the batch at a
    time, and again in the backward pass: memory for ``batch_chunk_size`` times classes numbers
    instead of batch times classes.

    Args:
        input: Shape (N, features) or (features).
        linear_weight: Shape (C, features), or (C, d1, ..., features) for a loss with dimensions.
        target: Class indices (N), (N, d1, ...) or (), or probabilities (N, C, d1, ...) or (C).
        linear_bias: Shape (C) or (C, d1, ...).
        weight: A factor for each class, (C).
        reduction: "mean", "sum" or "none".
        ignore_index: A class that is ignored; None: -100 for class indices.
        label_smoothing: The part of the target that is spread over all classes.
        options: None computes all logits at once.

    Returns:
        A number, or with "none" the shape of the indices.

    Raises:
        ShapeError: The shapes don't fit together.

    Example:
        >>> import math
        >>> import plait_core as pc, plait_nn.functional as F
        >>> target = pc.zeros(4, dtype=pc.int64)
        >>> loss = F.linear_cross_entropy(pc.ones(4, 3), pc.zeros(8, 3), target)
        >>> abs(loss.item() - math.log(8)) < 1e-6
        True
    """
    common: dict[str, Any] = {
        "weight": weight,
        "ignore_index": -100 if ignore_index is None else ignore_index,
        "label_smoothing": label_smoothing,
    }
    indices = not (target.is_floating_point() or target.is_complex())
    chunked = options is not None and indices and input.ndim == 2 and linear_weight.ndim == 2
    if options is None or not chunked or reduction == "none" or input.shape[0] == 0:
        logits = _logits(input, linear_weight, linear_bias)
        return cross_entropy(logits, target, reduction=reduction, **common)
    samples, classes = input.shape[0], linear_weight.shape[0]
    size = options.batch_chunk_size or math.ceil(samples * input.shape[1] / max(classes, 1))

    def part(rows: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(
            linear(rows, linear_weight, linear_bias), labels, reduction="sum", **common
        )

    recorded = any(
        each is not None and each.requires_grad for each in (input, linear_weight, linear_bias)
    )
    run = engine.part("checkpoint") if recorded else None
    total: Any = 0
    for start in range(0, samples, size):
        n = min(size, samples - start)
        pair = input.narrow(0, start, n), target.narrow(0, start, n)
        total = total + (part(*pair) if run is None else run(part, *pair, use_reentrant=False))
    if reduction == "sum":
        return total  # type: ignore[no-any-return]
    counts_in_loss = target != common["ignore_index"]
    if weight is None:
        return total / counts_in_loss.sum()  # type: ignore[no-any-return]
    counted = weight.index_select(0, target.masked_fill(~counts_in_loss, 0)) * counts_in_loss
    return total / counted.sum()  # type: ignore[no-any-return]


def _logits(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the logits (N, C, d1, ...) for a weight (C, d1, ..., features)."""
    if weight.ndim <= 2:
        return linear(input, weight, bias)
    if input.ndim != 2:
        raise pc.ShapeError(
            f"linear_cross_entropy: `input` must be (N, features) for `linear_weight` of shape "
            f"{tuple(weight.shape)}; got shape {tuple(input.shape)}"
        )
    flat = weight.reshape((-1, weight.shape[-1]))
    logits = linear(input, flat, None if bias is None else bias.reshape((-1,)))
    return logits.reshape((input.shape[0], *weight.shape[:-1]))
