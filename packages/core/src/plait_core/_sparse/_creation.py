"""Sparse tensors from indices and values, from a size, and from dense tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import DTypeError, OutOfRangeError, ShapeError
from plait_abi.binding import operator
from plait_core._core import Tensor, is_tensor
from plait_core._creation import as_tensor
from plait_core._sparse._coordinates import SparseTensor


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: tuple[int, ...] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Make a sparse tensor from indices and values, or an empty one of a size.

    Args:
        indices: integers of shape ``(sparse_dim, nnz)``, a tensor or data for one.
        values: the elements, of shape ``(nnz, ...)`` with the dense dimensions, if there are any; a
            number is the value of all elements. Without `indices` and `values` the tensor has no
            stored elements; `size` may then be the first argument.
        size: the shape; None: the smallest that contains all indices.
        dtype: the dtype of the elements.
        device: where they are.
        requires_grad: whether operators on the values are recorded.
        check_invariants: accepted; the arguments are checked in any case.
        is_coalesced: whether the indices are known to be sorted and to occur once.

    Raises:
        ShapeError: if the shapes do not fit each other.
        IndexError: if an index lies outside `size`.
        DTypeError: if `indices` are not integers.

    Example:
        >>> import plait_core as pc
        >>> edges = pc.tensor([[0, 1, 1], [1, 0, 2]])
        >>> graph = pc.sparse_coo_tensor(edges, pc.ones(3), (3, 3))
        >>> graph @ pc.tensor([[1.0], [2.0], [4.0]])
        tensor([[2.],
                [5.],
                [0.]])
    """
    if values is None:
        if indices is not None and size is None and not is_tensor(indices):
            indices, size = None, indices
        if indices is not None or size is None:
            raise TypeError("sparse_coo_tensor: `indices` and `values`, or `size` are required")
        indices, values = operator("empty")((len(size), 0), dtype="int64"), []
    positions = as_tensor(indices, device=device)
    if positions.numel() == 0 and positions.dtype.is_floating_point:
        positions = positions.to("int64")
    if (
        positions.dtype.is_floating_point
        or positions.dtype.is_complex
        or positions.dtype.name == "bool"
    ):
        raise DTypeError(
            f"sparse_coo_tensor: `indices` must be integers, got {positions.dtype.name}"
        )
    if positions.ndim != 2:
        raise ShapeError(
            "sparse_coo_tensor: `indices` must have shape (sparse_dim, nnz), got "
            f"{tuple(positions.shape)}"
        )
    positions = positions.to("int64")
    stored = as_tensor(values, dtype=dtype, device=device)
    if stored.ndim == 0:
        stored = stored.expand((positions.shape[1],)).clone()
    if stored.shape[0] != positions.shape[1]:
        raise ShapeError(
            f"sparse_coo_tensor: `values` must have shape ({positions.shape[1]}, ...), as many as "
            f"`indices` has columns, got {tuple(stored.shape)}"
        )
    shape = _checked_shape(positions, stored, size)
    if requires_grad:
        stored = stored.detach().requires_grad_()
    is_known = positions.shape[1] < 2 if is_coalesced is None else is_coalesced
    return SparseTensor(positions, stored, shape, is_known)


def _checked_shape(
    positions: Tensor, stored: Tensor, size: tuple[int, ...] | None
) -> tuple[int, ...]:
    (ndim, nnz), block = positions.shape, tuple(stored.shape[1:])
    if size is not None and len(size) != ndim + len(block):
        raise ShapeError(
            f"sparse_coo_tensor: `size` must have {ndim + len(block)} entries, as `indices` has "
            f"{ndim} rows and `values` has {len(block)} dense dimensions, got {tuple(size)}"
        )
    if size is not None and tuple(size[ndim:]) != block:
        raise ShapeError(
            f"sparse_coo_tensor: `size` must end with the dense dimensions {block} of `values`, "
            f"got {tuple(size)}"
        )
    if not nnz:
        return (*(0,) * ndim, *block) if size is None else tuple(size)
    low, high = positions.amin(1).tolist(), positions.amax(1).tolist()
    shape = (*(top + 1 for top in high), *block) if size is None else tuple(size)
    for i in range(ndim):
        if low[i] < 0 or high[i] >= shape[i]:
            raise OutOfRangeError(
                f"sparse_coo_tensor: `indices` must be in [0, {shape[i] - 1}] in dimension {i} of "
                f"size {shape}, got {low[i] if low[i] < 0 else high[i]}"
            )
    return shape


def to_coordinates(self: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """Return the sparse tensor of the elements, or of the blocks of them, that are not 0."""
    n = self.ndim if sparse_dim is None else sparse_dim
    if self.ndim == 0:
        raise ShapeError("to_sparse: at least one dimension is required, got shape ()")
    if not 1 <= n <= self.ndim:
        raise ShapeError(f"to_sparse: `sparse_dim` must be in [1, {self.ndim}], got {n}")
    block = tuple(self.shape[n:])
    if not self.numel():
        stored = self.reshape((0, *block))
        positions = operator("empty")((n, 0), dtype="int64", device=self.device)
        return SparseTensor(positions, stored, tuple(self.shape), True)
    dense = self.detach()
    if block:
        dense = (dense != 0).reshape((*self.shape[:n], -1)).any(-1)
    positions = operator("nonzero")(dense).t().contiguous()
    flat = SparseTensor(positions, positions[0], tuple(self.shape[:n]))._flat()
    stored = self.reshape((-1, *block)).index_select(0, flat)
    return SparseTensor(positions, stored, tuple(self.shape), True)


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool = True) -> Tensor:
    """Return the tensor itself, which is dense, or one of another dtype.

    Args:
        dtype: The dtype; None keeps it.
        masked_grad: Accepted as PyTorch has it.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1, 2]).to_dense()
        tensor([1, 2])
    """
    return self if dtype is None else self.to(dtype)


def sparse_mask(self: Tensor, mask: SparseTensor) -> SparseTensor:
    """Return the elements of a dense tensor at the indices of a sparse one, as a sparse tensor.

    Args:
        mask: The sparse tensor whose places are taken.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> import plait_core as pc
        >>> pc.full((2, 2), 3.0).sparse_mask(pc.eye(2).to_sparse()).to_dense()
        tensor([[3., 0.],
                [0., 3.]])
    """
    if not isinstance(mask, SparseTensor):
        raise TypeError(f"sparse_mask: `mask` must be SparseTensor, got {type(mask).__name__}")
    if tuple(self.shape) != tuple(mask.shape):
        raise ShapeError(
            f"sparse_mask: equal shapes are required, got {tuple(self.shape)} and "
            f"{tuple(mask.shape)}"
        )
    here = mask.coalesce()
    return here._with(here._listed(self).index_select(0, here._flat()))


METHODS: dict[str, Callable[..., Any]] = {"sparse_mask": sparse_mask, "to_dense": to_dense}
