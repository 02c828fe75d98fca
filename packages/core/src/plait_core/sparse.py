"""Functions on sparse tensors; see `plait_core.SparseTensor`."""

from __future__ import annotations

from typing import Any

from plait_core._core import Tensor
from plait_core._namespaces import shown as _shown
from plait_core._sparse import SparseTensor, _dim, _operator

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sum"]

__dir__ = _shown(globals())


def _sparse(name: str, argument: str, value: Any) -> SparseTensor:
    if not isinstance(value, SparseTensor):
        raise TypeError(f"{name}: `{argument}` must be SparseTensor, got {type(value).__name__}")
    return value


def mm(sparse: SparseTensor, dense: Tensor) -> Tensor:
    """Return the product of a sparse and a dense matrix.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.mm(pc.eye(2).to_sparse(), pc.ones(2, 2))
        tensor([[1., 1.],
                [1., 1.]])
    """
    result: Tensor = _sparse("sparse.mm", "sparse", sparse).mm(dense)
    return result


def addmm(
    mat: Tensor, mat1: SparseTensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """Return ``beta * mat + alpha * (mat1 @ mat2)`` with a sparse `mat1`.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.addmm(pc.ones(2, 2), pc.eye(2).to_sparse(), pc.ones(2, 2), beta=2)
        tensor([[3., 3.],
                [3., 3.]])
    """
    product = mm(_sparse("sparse.addmm", "mat1", mat1), mat2)
    result: Tensor = beta * mat + alpha * product
    return result


def sum(input: SparseTensor, dim: int | tuple[int, ...] | None = None) -> Any:
    """Return the sum over dimensions as a sparse tensor; over all of them a dense 0-d tensor.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.sum(pc.eye(2).to_sparse())
        tensor(2.)
    """
    return _sparse("sparse.sum", "input", input).sum(dim)


def _lines(input: SparseTensor, dim: int) -> tuple[Tensor, int]:
    """Return the line along `dim` of each stored element, and the number of lines."""
    line, count = input._indices()[0] * 0, 1
    for i, size in enumerate(input.shape):
        if i != dim:
            line, count = line * size + input._indices()[i], count * size
    return line, count


def _log_sums(input: SparseTensor, dim: int) -> tuple[SparseTensor, Tensor]:
    """Return the tensor, and each element without the logarithm of its line's sum."""
    here = input.coalesce()
    line, count = _lines(here, dim)
    values = here._values()
    lowest = _operator("full")([count], float("-inf"), dtype=values.dtype, device=values.device)
    most = _operator("scatter_reduce")(lowest, 0, line, values.detach(), "amax")
    moved = values - most.index_select(0, line)
    total = _operator("zeros_like")(most).index_add(0, line, moved.exp())
    return here, moved - total.index_select(0, line).log()


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return the logarithm of `softmax` of the stored elements.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.log_softmax(pc.eye(2).to_sparse(), 1).to_dense()
        tensor([[0., 0.],
                [0., 0.]])
    """
    input = input if dtype is None else input.to(dtype)
    here, made = _log_sums(input, _dim("log_softmax", dim, input.ndim))
    return here._with(made)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return ``exp(x) / sum(exp(x))`` of the stored elements, along a dimension.

    Elements that are not stored count as -inf, as graph attention needs it.

    Args:
        input: a sparse tensor.
        dim: the dimension.
        dtype: the dtype that is cast to first.

    Raises:
        IndexError: for a `dim` out of range.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.softmax(pc.tensor([[0.0, 2.0], [3.0, 3.0]]).to_sparse(), 1).to_dense()
        tensor([[0.0000, 1.0000],
                [0.5000, 0.5000]])
    """
    made = log_softmax(input, dim, dtype=dtype)
    return made._with(made._values().exp())
