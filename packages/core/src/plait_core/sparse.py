"""Functions on sparse tensors; see `plait.SparseTensor`."""

from __future__ import annotations

from typing import Any

from plait_abi import ArgumentError, DTypeError, ShapeError
from plait_abi.binding import operator as _operator
from plait_core._core import Tensor, is_tensor
from plait_core._namespaces import shown as _shown
from plait_core._sparse._base import wrap_dim as _wrap_dim
from plait_core._sparse._compressed import CompressedTensor
from plait_core._sparse._coordinates import SparseTensor
from plait_core._tensor._memory_formats import sparse_csr

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]

__dir__ = _shown(globals())


def _sparse(name: str, argument: str, value: Any) -> SparseTensor:
    if not isinstance(value, SparseTensor):
        raise TypeError(f"{name}: `{argument}` must be SparseTensor, got {type(value).__name__}")
    return value


def _matrix(name: str, argument: str, value: Any) -> Any:
    if not isinstance(value, (SparseTensor, CompressedTensor)):
        raise TypeError(
            f"{name}: `{argument}` must be SparseTensor or CompressedTensor, got "
            f"{type(value).__name__}"
        )
    return value


_REDUCTIONS = ("mean", "amax", "amin")


def mm(sparse: Any, dense: Any, reduce: str = "sum") -> Any:
    """Return the product of a sparse matrix and another: dense, or sparse if both are.

    Gradients go to the values of sparse factors, ``sparse.grad`` with their indices, and to dense
    ones.

    Args:
        sparse: the sparse matrix; the other one may be it instead, or none, for a sum.
        dense: the other matrix.
        reduce: what is made of the products for an element of the result: their ``"sum"``,
            ``"mean"``, ``"amax"`` or ``"amin"``, over the elements that a row of `sparse` stores. A
            row without elements gives 0.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.mm(pc.eye(2).to_sparse(), pc.ones(2, 2))
        tensor([[1., 1.],
                [1., 1.]])
    """
    if not isinstance(reduce, str):
        raise TypeError(f"sparse.mm: `reduce` must be a str, got {type(reduce).__name__}")
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)  # PyTorch's other names
    if reduce != "sum":
        return _reduced(sparse, dense, reduce)
    if is_tensor(sparse) and is_tensor(dense):
        return sparse.mm(dense)
    if is_tensor(sparse):
        return _matrix("sparse.mm", "dense", dense).__rmatmul__(sparse)
    return _matrix("sparse.mm", "sparse", sparse).mm(dense)


def _reduced(sparse: Any, dense: Any, reduce: str) -> Any:
    if reduce not in _REDUCTIONS:
        raise ArgumentError(f"sparse.mm: `reduce` must be sum, mean, amax or amin; got {reduce!r}")
    here = _matrix("sparse.mm", "sparse", sparse).to_sparse_coo().coalesce()
    if not is_tensor(dense) or dense.ndim != 2 or len(here.shape) != 2:
        raise ShapeError(
            f"sparse.mm: with `reduce` {reduce!r} a sparse and a dense matrix are required; got "
            f"shapes {tuple(here.shape)} and {tuple(dense.shape)}"
        )
    if here.shape[1] != dense.shape[0]:
        raise ShapeError(
            f"sparse.mm: `sparse` of shape {tuple(here.shape)} must have as many columns as "
            f"`dense` of shape {tuple(dense.shape)} has rows"
        )
    rows, columns = here.indices()
    products = dense[columns] * here.values().unsqueeze(1)
    start = products.new_zeros((here.shape[0], dense.shape[1]))
    return start.index_reduce(0, rows, products, reduce, include_self=False)


def addmm(mat: Tensor, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * mat + alpha * (mat1 @ mat2)`` with a sparse `mat1`.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.addmm(pc.ones(2, 2), pc.eye(2).to_sparse(), pc.ones(2, 2), beta=2)
        tensor([[3., 3.],
                [3., 3.]])
    """
    product = mm(_matrix("sparse.addmm", "mat1", mat1), mat2)
    result: Tensor = beta * mat + alpha * product
    return result


def sampled_addmm(
    input: CompressedTensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> CompressedTensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)`` at the places where `input` has elements.

    Only these elements of the product are computed.

    Args:
        input: a matrix in the layout `sparse_csr`, (m, n).
        mat1: a dense matrix, (m, k).
        mat2: a dense matrix, (k, n).
        beta: the factor of `input`.
        alpha: the factor of the product.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if the dtypes differ.
        TypeError: for another layout.

    Example:
        >>> import plait_core as pc
        >>> pattern = pc.eye(2).to_sparse_csr()
        >>> pc.sparse.sampled_addmm(pattern, pc.ones(2, 3), pc.ones(3, 2)).to_dense()
        tensor([[4., 0.],
                [0., 4.]])
    """
    if not isinstance(input, CompressedTensor) or input.layout != sparse_csr:
        raise TypeError(
            "sparse.sampled_addmm: `input` must have the layout sparse_csr, got "
            f"{getattr(input, 'layout', type(input).__name__)}"
        )
    shapes = [tuple(each.shape) for each in (input, mat1, mat2)]
    if any(len(shape) != 2 for shape in shapes) or (
        (shapes[1][0], shapes[2][1]) != shapes[0] or shapes[1][1] != shapes[2][0]
    ):
        raise ShapeError(
            "sparse.sampled_addmm: matrices (m, n), (m, k) and (k, n) are required, got "
            f"{shapes[0]}, {shapes[1]} and {shapes[2]}"
        )
    if not input.dtype is mat1.dtype is mat2.dtype:
        raise DTypeError(
            "sparse.sampled_addmm: equal dtypes are required, got "
            f"{input.dtype.name}, {mat1.dtype.name} and {mat2.dtype.name}"
        )
    rows, columns = input.to_sparse_coo()._indices()
    products = mat1.index_select(0, rows) * mat2.t().index_select(0, columns)
    return input._with(input.values() * beta + products.sum(1) * alpha)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Any:
    """Return the sparse matrix with the rows of a matrix as its diagonals.

    The element ``diagonals[i, j]`` lies in column j of the diagonal ``offsets[i]``, which is above
    the main one if positive; what falls outside of the matrix is left out.

    Args:
        diagonals: a matrix with a row for each diagonal, or one diagonal.
        offsets: the numbers of the diagonals, a vector of different integers, or one.
        shape: the two sizes of the result.
        layout: that of the result; None: `sparse_coo`.

    Raises:
        ShapeError: if there is not one diagonal for each offset, or `shape` is not that of a
            matrix.
        ValueError: if an offset occurs twice.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.spdiags(pc.tensor([[1, 2], [3, 4]]), pc.tensor([0, 1]), (2, 2)).to_dense()
        tensor([[1, 4],
                [0, 2]])
    """
    lines, numbers = diagonals, offsets
    lines = lines.unsqueeze(0) if lines.ndim == 1 else lines
    numbers = numbers.unsqueeze(0) if numbers.ndim == 0 else numbers
    if lines.ndim != 2 or numbers.ndim != 1 or lines.shape[0] != numbers.shape[0]:
        raise ShapeError(
            "sparse.spdiags: a row of `diagonals` for each of `offsets` is required, got shapes "
            f"{tuple(diagonals.shape)} and {tuple(offsets.shape)}"
        )
    if len(shape) != 2:
        raise ShapeError(f"sparse.spdiags: `shape` must have 2 entries, got {tuple(shape)}")
    if len(set(numbers.tolist())) != numbers.shape[0]:
        raise ValueError(f"sparse.spdiags: `offsets` must differ, got {numbers.tolist()}")
    width = lines.shape[1]
    columns = _operator("arange")(width, device=lines.device).expand((lines.shape[0], width))
    rows = columns - numbers.to("int64").unsqueeze(1)
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    used = _operator("nonzero")(inside.reshape(-1)).reshape(-1)
    parts = [each.reshape(-1).index_select(0, used) for each in (rows, columns, lines)]
    positions = _operator("stack")(parts[:2], 0)
    result = SparseTensor(positions, parts[2], tuple(shape))
    return result if layout is None else result.coalesce().to_sparse(layout=layout)


def sum(input: Any, dim: int | tuple[int, ...] | None = None, dtype: Any = None) -> Any:
    """Return the sum over dimensions as a sparse tensor; over all sparse ones it is dense.

    Args:
        input: A sparse tensor.
        dim: The dimension, or for sums the dimensions.
        dtype: The dtype to which the input is cast first; or None.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.sum(pc.eye(2).to_sparse())
        tensor(2.)
    """
    return _matrix("sparse.sum", "input", input).sum(dim, dtype)


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

    Args:
        input: A sparse tensor.
        dim: The dimension, or for sums the dimensions.
        dtype: The dtype to which the input is cast first; or None.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.log_softmax(pc.eye(2).to_sparse(), 1).to_dense()
        tensor([[0., 0.],
                [0., 0.]])
    """
    input = input if dtype is None else input.to(dtype)
    here, result = _log_sums(input, _wrap_dim("log_softmax", dim, input.ndim))
    return here._with(result)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return ``exp(x) / sum(exp(x))`` of the stored elements, along a dimension.

    Elements that are not stored count as -inf, as graph attention needs it.

    Args:
        input: a sparse tensor.
        dim: the dimension.
        dtype: the dtype to which the elements are first cast.

    Raises:
        IndexError: for a `dim` out of range.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse.softmax(pc.tensor([[0.0, 2.0], [3.0, 3.0]]).to_sparse(), 1).to_dense()
        tensor([[0.0000, 1.0000],
                [0.5000, 0.5000]])
    """
    result = log_softmax(input, dim, dtype=dtype)
    return result._with(result._values().exp())
