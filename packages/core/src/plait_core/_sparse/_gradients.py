"""Operators that read some elements of a tensor, and whose gradient is then sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core._core as _core
from plait_abi import binding
from plait_abi.binding import operator
from plait_core._core import Tensor
from plait_core._sparse._coordinates import SparseTensor


def _recorded(
    name: str,
    run: Callable[[], Tensor],
    input: Tensor,
    index: Tensor,
    gradient: Callable[[Tensor], SparseTensor],
) -> Tensor:
    """Return the result of an operator whose gradient `gradient` computes."""
    expected = input.requires_grad
    before = binding.set_grad_enabled(False)
    try:
        result = run()
    finally:
        binding.set_grad_enabled(before)
    if not (before and expected and result.dtype.is_floating_point):
        return result
    version = index._version

    def backward(grad: Tensor) -> SparseTensor:
        if index._version != version:
            raise RuntimeError(
                f"{name}: the index was overwritten by an in-place operator after the call: it is "
                f"at version {index._version}, saved at version {version}; clone() it first"
            )
        return gradient(grad)

    backward.__name__ = f"{name.capitalize()}Backward"
    _core._record(backward.__name__, backward, input, result)
    return result


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scaled: bool = False
) -> Tensor:
    """Return rows of a weight, whose gradient is sparse: a row for each index.

    Args:
        weight: shape (rows, features).
        indices: integers, any shape.
        padding_idx: a row without a gradient; -1: none.
        scaled: whether the gradient was to be divided by the counts of the rows, which is an error.
    """

    def gradient(grad: Tensor) -> SparseTensor:
        if scaled:
            raise RuntimeError(
                "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
            )
        flat = indices.reshape(-1).to("int64")
        rows = grad.reshape((flat.shape[0], shape[1]))
        if padding_idx >= 0:
            used = operator("nonzero")(flat != padding_idx).reshape(-1)
            flat, rows = flat.index_select(0, used), rows.index_select(0, used)
        return SparseTensor(flat.unsqueeze(0), rows, shape, flat.shape[0] < 2)

    shape = tuple(weight.shape)
    run = lambda: operator("embedding")(weight, indices, padding_idx)  # noqa: E731
    return _recorded("embedding", run, weight, indices, gradient)


def gather(
    input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Any = None
) -> Tensor:
    """Run `gather` with PyTorch's keyword: whether the gradient is sparse."""
    run = operator("gather")
    if out is not None:
        return run(input, dim, index, out=out)  # type: ignore[no-any-return]
    if not sparse_grad or input.ndim == 0:
        return run(input, dim, index)  # type: ignore[no-any-return]
    shape = tuple(input.shape)

    def gradient(grad: Tensor) -> SparseTensor:
        places = []
        for i, size in enumerate(index.shape):
            if i == dim % len(shape):
                places.append(index.to("int64").reshape(-1))
                continue
            line = operator("arange")(size, device=index.device)
            line = line.reshape([-1 if k == i else 1 for k in range(index.ndim)])
            places.append(line.expand(tuple(index.shape)).reshape(-1))
        positions = operator("stack")(places, 0)
        return SparseTensor(positions, grad.reshape(-1), shape, positions.shape[1] < 2)

    return _recorded("gather", lambda: run(input, dim, index), input, index, gradient)


def register() -> None:
    """Let `gather` take ``sparse_grad``."""
    binding.extend("gather", "sparse_grad", gather)
