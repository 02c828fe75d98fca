"""Products of inputs and weights, and the table look-up."""

from __future__ import annotations

import math
from typing import Any

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_core._sparse import _gradients as sparse_gradients
from plait_nn import _operators as operators
from plait_nn._all_samples import all_samples
from plait_nn._halves import widened
from plait_nn.functional._checks import require_same_dtype

linear = operators.linear


@unbound
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return int64 rows of 0 with a 1 at the index that each element gives.

    Args:
        tensor: classes, integers of any shape ``(*)``.
        num_classes: the length of the rows; -1: the largest class plus 1.

    Returns:
        Shape ``(*, num_classes)``.

    Raises:
        DTypeError: unless `tensor` holds integers.
        ValueError: for a class below 0 or not below `num_classes`, for a `num_classes` that is
            neither positive nor -1, or for -1 with an empty tensor.

    Example:
        >>> import plait_core as pc
        >>> import plait_nn.functional as F
        >>> F.one_hot(pc.tensor([0, 2]), 3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"one_hot: `tensor` must be a Tensor, got {type(tensor).__name__}")
    if num_classes == 0 or num_classes < -1:
        raise ArgumentError(f"one_hot: `num_classes` must be positive or -1, got {num_classes}")
    if tensor.numel() == 0 and num_classes == -1:
        raise ArgumentError(
            "one_hot: `num_classes` is required for an empty tensor, which shows no classes, got "
            f"shape {tuple(tensor.shape)}"
        )
    rows: Tensor = operators.one_hot(tensor, num_classes)  # checks the dtype
    values = all_samples(tensor)
    try:  # a kernel that checks what it reads, so that a graph can be recorded
        pc.embedding(rows.new_zeros(rows.shape[-1], 1), values.to(pc.int64))
    except IndexError:
        low, high = int(values.min()), int(values.max())
        if low < 0:
            raise ArgumentError(
                f"one_hot: `tensor` must hold no negative classes, got {low}"
            ) from None
        raise ArgumentError(
            f"one_hot: `tensor` must hold classes below `num_classes` {num_classes}, got {high}"
        ) from None
    return rows


@unbound
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Compute :math:`y_k = x_1^T W_k x_2 + b_k`.

    Args:
        input1: Shape ``(*, in1)``.
        input2: Shape ``(*, in2)``, with the same leading dimensions.
        weight: Shape (out, in1, in2).
        bias: Shape (out), or None.

    Returns:
        Shape ``(*, out)``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.functional.bilinear(pc.ones(5, 2), pc.ones(5, 3), pc.ones(4, 2, 3)).shape)
        (5, 4)
    """
    if not input1.ndim or not input2.ndim:
        raise pc.ShapeError("bilinear: the inputs must have at least one dimension; got shape ()")
    if weight.ndim != 3 or weight.shape[1:] != (input1.shape[-1], input2.shape[-1]):
        raise ArgumentError(
            f"bilinear: `weight` must have shape (out, {input1.shape[-1]}, {input2.shape[-1]}) for "
            f"inputs {tuple(input1.shape)} and {tuple(input2.shape)}; got {tuple(weight.shape)}"
        )
    if input1.shape[:-1] != input2.shape[:-1]:
        raise ArgumentError(
            f"bilinear: the inputs must agree in all but the last dimension; "
            f"got {tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    require_same_dtype("bilinear", "input1", input1, input2=input2, weight=weight, bias=bias)
    out, in1, in2 = weight.shape
    leading = tuple(input1.shape[:-1])
    rows = math.prod(leading)
    left = linear(input1.reshape((rows, in1)), weight.permute((0, 2, 1)).reshape((out * in2, in1)))
    products = left.reshape((rows, out, in2)) * input2.reshape((rows, 1, in2))
    result = products.sum(2, dtype=products.dtype).reshape((*leading, out))
    return result if bias is None else result + bias


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look rows of ``weight`` up: ``result[i, ...] = weight[input[i, ...]]``.

    Args:
        input: Integers in [0, rows), any shape.
        weight: Shape (rows, features).
        padding_idx: A row that gets no gradient; negative numbers count from the end.
        max_norm: Rows of ``input`` with a larger norm are scaled down to it first, in place.
        norm_type: p of that norm.
        scale_grad_by_freq: Divide each row's gradient by the number of times that the row is in
            ``input``.
        sparse: Whether the weight's gradient is a `plait.SparseTensor`, with the rows of ``input``
            alone; not with ``scale_grad_by_freq``.

    Returns:
        Shape ``(*input.shape, features)``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> table = pc.tensor([[0.0, 1.0], [2.0, 3.0]])
        >>> nn.functional.embedding(pc.tensor([1, 0, 1]), table).tolist()
        [[2.0, 3.0], [0.0, 1.0], [2.0, 3.0]]
    """
    if weight.ndim != 2:
        raise ArgumentError(
            f"embedding: `weight` must have 2 dimensions; got shape {tuple(weight.shape)}"
        )
    rows = weight.shape[0]
    if max_norm is not None:
        renormalize(input, weight, max_norm, norm_type)
    if sparse:
        return _embedding_with_sparse_gradient(input, weight, padding_idx, scale_grad_by_freq)
    if padding_idx is None:
        return scaled_by_frequency(pc.embedding(weight, input), input, rows, scale_grad_by_freq)
    result = pc.embedding(weight, input, padding_idx=_padding_row(weight, padding_idx))
    return scaled_by_frequency(result, input, rows, scale_grad_by_freq)


def _padding_row(weight: Tensor, padding_idx: int) -> int:
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise ArgumentError(
            f"embedding: `padding_idx` must be in [{-rows}, {rows - 1}] for a weight of shape "
            f"{tuple(weight.shape)}; got {padding_idx}"
        )
    return padding_idx % rows


def _embedding_with_sparse_gradient(
    input: Tensor, weight: Tensor, padding_idx: int | None, scaled: bool
) -> Tensor:
    row = -1 if padding_idx is None else _padding_row(weight, padding_idx)
    return sparse_gradients.embedding(weight, input, row, scaled)


def renormalize(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of ``weight`` with indices in ``input`` down to a norm, in place, without
    recording.
    """
    values = weight.detach()
    used = input.reshape((-1,))  # a row that occurs twice is written twice with the same values
    rows = values.index_select(0, used)
    wide = widened(rows)
    norms = pc.norm(wide, norm_type, 1, True)
    factors = pc.where(norms > max_norm, max_norm / (norms + 1e-7), pc.ones_like(norms))
    values.index_copy_(0, used, (wide * factors).to(rows.dtype))


def scaled_by_frequency(vectors: Tensor, input: Tensor, rows: int, enabled: bool) -> Tensor:
    """Divide the gradients of ``vectors`` by the counts of their rows in ``input``."""
    if enabled and vectors.requires_grad:
        flat = input.reshape((-1,)).to(pc.int64)
        none = pc.zeros(rows, dtype=pc.int64, device=flat.device)
        counts = none.index_add(0, flat, pc.ones_like(flat)).index_select(0, flat)
        factors = counts.reshape((*input.shape, 1))
        result: Any = vectors
        result.register_hook(lambda gradient: gradient / factors.to(gradient.dtype))
    return vectors
