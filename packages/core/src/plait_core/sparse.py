"""Functions on sparse tensors; see `plait_core.SparseTensor`."""

from __future__ import annotations

from typing import Any

from plait_core._core import Tensor
from plait_core._namespaces import shown as _shown
from plait_core._sparse import SparseTensor
from plait_core._sparse_functions import log_softmax, softmax

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
    """Return the sum over dimensions, sparse; over all of them a dense 0-d tensor.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.sum(pc.eye(2).to_sparse())
        tensor(2.)
    """
    return _sparse("sparse.sum", "input", input).sum(dim)
