"""Sparse matrices in compressed layouts: CSR, CSC, and those of blocks, BSR and BSC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_abi import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from plait_abi.binding import operator
from plait_core._core import Size, Tensor, is_tensor
from plait_core._creation import as_tensor
from plait_core._sparse._base import SparseBase, is_number, text_of, zero_preserving
from plait_core._sparse._coordinates import SparseTensor
from plait_core._sparse._creation import to_coordinates
from plait_core._tensor._memory_formats import (
    layout,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)

_BY_ROWS = (sparse_csr, sparse_bsr)
_BLOCKED = (sparse_bsr, sparse_bsc)
_LAYOUTS = (*_BY_ROWS, sparse_csc, sparse_bsc)


class CompressedTensor(SparseBase):
    """A matrix that stores some elements, or some blocks of elements, row by row or column by
    column.

    `sparse_csr_tensor` and similar functions make it, and ``to_sparse_csr()`` and similar methods
    of dense and sparse tensors. In the layout `sparse_csr` the elements of row i are
    ``values()[a:b]`` in the columns ``col_indices()[a:b]``, with a and b the numbers i and i + 1 of
    `crow_indices`; `sparse_csc` has columns for rows. In `sparse_bsr` and `sparse_bsc` rows and
    columns are those of blocks, and each value is a block. It is an instance of `Tensor` to
    `isinstance`, not to `is_tensor`: it has the operations of a matrix, which run on its values or
    on its coordinates, and gradients flow through the values and through dense factors.

    Args:
        bounds: Where each row or column begins.
        places: Column or row of each element.
        stored: The stored elements.
        shape: Shape of the whole.
        kind: The layout.

    Example:
        >>> import plait_core as pc
        >>> x = pc.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csr()
        >>> x.crow_indices(), x.col_indices()
        (tensor([0, 1, 3]), tensor([1, 0, 1]))
        >>> x @ pc.tensor([[1.0], [10.0]])
        tensor([[20.],
                [43.]])
    """

    __slots__ = ("__weakref__", "_bounds", "_layout", "_places", "_shape", "_stored")

    def __init__(
        self, bounds: Tensor, places: Tensor, stored: Tensor, shape: Sequence[int], kind: layout
    ) -> None:
        """Take arguments that `sparse_compressed_tensor` has checked."""
        self._bounds, self._places, self._stored = bounds, places, stored
        self._shape, self._layout = Size(shape), kind

    def __plait_parts__(self) -> tuple[tuple[Tensor, Tensor, Tensor], Any]:
        """The tensors of this one, and a function that makes such a tensor of them: for
        `save_for_backward`.
        """
        shape, kind = self._shape, self._layout
        return (
            self._bounds,
            self._places,
            self._stored,
        ), lambda bounds, places, stored: CompressedTensor(bounds, places, stored, shape, kind)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self._bounds, self._places, self._stored, tuple(self._shape), self._layout)
        return CompressedTensor, parts

    @property
    def layout(self) -> layout:
        """The layout: `sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`."""
        return self._layout

    def sparse_dim(self) -> int:
        """Return the number of dimensions that have indices: 2."""
        return 2

    def dense_dim(self) -> int:
        """Return the number of dimensions that a stored element, or one of a block, has."""
        return self.ndim - 2

    def values(self) -> Tensor:
        """Return the stored elements, ``(nnz, ...)``, or blocks, ``(nnz, high, wide, ...)``."""
        return self._stored

    def _part(self, name: str, part: Tensor, by_rows: bool) -> Tensor:
        if (self._layout in _BY_ROWS) != by_rows:
            required = "sparse_csr or sparse_bsr" if by_rows else "sparse_csc or sparse_bsc"
            raise RuntimeError(f"{name}: the layout {required} is required, got {self._layout}")
        return part

    def crow_indices(self) -> Tensor:
        """Return where each row begins among the values, and the end; of CSR and BSR.

        Raises:
            RuntimeError: for another layout.
        """
        return self._part("crow_indices", self._bounds, True)

    def col_indices(self) -> Tensor:
        """Return the column of each value; of CSR and BSR.

        Raises:
            RuntimeError: for another layout.
        """
        return self._part("col_indices", self._places, True)

    def ccol_indices(self) -> Tensor:
        """Return where each column begins among the values, and the end; of CSC and BSC.

        Raises:
            RuntimeError: for another layout.
        """
        return self._part("ccol_indices", self._bounds, False)

    def row_indices(self) -> Tensor:
        """Return the row of each value; of CSC and BSC.

        Raises:
            RuntimeError: for another layout.
        """
        return self._part("row_indices", self._places, False)

    def _block(self) -> tuple[int, int]:
        """Return the sizes of a block, (1, 1) without blocks."""
        if self._layout in _BLOCKED:
            return (self._stored.shape[1], self._stored.shape[2])
        return (1, 1)

    def __repr__(self) -> str:
        names = _names(self._layout)
        parts = dict(zip(names, (self._bounds, self._places, self._stored), strict=True))
        return text_of(self, parts, False)

    def __plait_function__(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator, if compressed tensors have it."""
        return _run(operator.__name__, args, kwargs)

    # ---- other forms of it
    def _with(self, stored: Tensor) -> CompressedTensor:
        return CompressedTensor(self._bounds, self._places, stored, self._shape, self._layout)

    def to_sparse_coo(self) -> SparseTensor:
        """Return the tensor with coordinates; the elements of blocks that are 0 stay stored."""
        n = self._bounds.shape[0] - 1
        counts = (self._bounds[1:] - self._bounds[:-1]).to("int64")
        lines = operator("arange")(n, device=self.device).repeat_interleave(counts)
        row, column = lines, self._places.to("int64")
        if self._layout not in _BY_ROWS:
            row, column = column, row
        stored = self._stored
        if self._layout in _BLOCKED:
            high, wide = self._block()
            inner = [operator("arange")(each, device=self.device) for each in (high, wide)]
            shape = (self.nnz(), high, wide)
            row = (row.reshape((-1, 1, 1)) * high + inner[0].reshape((1, -1, 1))).expand(shape)
            column = (column.reshape((-1, 1, 1)) * wide + inner[1]).expand(shape)
            row, column = row.reshape(-1), column.reshape(-1)
            stored = stored.reshape((-1, *stored.shape[3:]))
        positions = operator("stack")([row, column], 0)
        result = SparseTensor(positions, stored, self._shape, self._layout == sparse_csr)
        return result.coalesce()

    def to_sparse(
        self, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None
    ) -> Any:
        """Return the tensor with coordinates, or in another layout."""
        if layout is None or layout == sparse_coo:
            return self.to_sparse_coo()
        if layout == self._layout and blocksize in (None, self._block()):
            return self
        return compress(self, layout, blocksize)

    def to_dense(self, dtype: Any = None) -> Tensor:
        """Return the dense tensor, in another dtype if one is given."""
        return self.to_sparse_coo().to_dense(dtype)

    def to(self, *args: Any, **kwargs: Any) -> CompressedTensor:
        """Return the tensor in another dtype or on another device; see `Tensor.to`."""
        result = self._with(self._stored.to(*args, **kwargs))
        result._bounds = self._bounds.to(device=result.device)
        result._places = self._places.to(device=result.device)
        return result

    def clone(self) -> CompressedTensor:
        """Return a copy."""
        result = self._with(self._stored.clone())
        result._bounds, result._places = self._bounds.clone(), self._places.clone()
        return result

    def transpose(self, dim0: int, dim1: int) -> CompressedTensor:
        """Return the transposed matrix: rows become columns, in the layout of columns."""
        if {dim0 % self.ndim, dim1 % self.ndim} != {0, 1}:
            raise OutOfRangeError(
                f"transpose: the dimensions 0 and 1 are required, got {dim0}, {dim1}"
            )
        turned = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc}
        kind = turned.get(self._layout, sparse_bsr)
        stored = self._stored.transpose(1, 2) if self._layout in _BLOCKED else self._stored
        shape = (self._shape[1], self._shape[0], *self._shape[2:])
        return CompressedTensor(self._bounds, self._places, stored, shape, kind)

    def t(self) -> CompressedTensor:
        """Return the transposed matrix."""
        return self.transpose(0, 1)

    # ---- arithmetic
    def _again(self, result: SparseTensor) -> CompressedTensor:
        """Return the result of an operation on coordinates in this layout."""
        return compress(result, self._layout, self._block() if self._layout in _BLOCKED else None)

    def add(self, other: Any, *, alpha: float = 1) -> Any:
        """Return ``self + alpha * other``: in this layout if `other` is sparse, else dense."""
        if is_tensor(other):
            return self.to_sparse_coo().add(other, alpha=alpha)
        if not isinstance(other, (CompressedTensor, SparseTensor)):
            return NotImplemented
        return self._again(self.to_sparse_coo().add(other.to_sparse_coo(), alpha=alpha))

    def mul(self, other: Any) -> Any:
        """Return the product with a number, or element by element with a matrix."""
        if is_number(other):
            return self._with(self._stored * other)
        if isinstance(other, (CompressedTensor, SparseTensor)):
            other = other.to_dense()
        return self._again(self.to_sparse_coo().mul(other)) if is_tensor(other) else NotImplemented

    def sum(self, dim: Any = None, dtype: Any = None) -> Any:
        """Return the sum of all elements, or over a dimension, as coordinates give it."""
        if dim is None:
            return self._stored.sum() if dtype is None else self._stored.sum(dtype=dtype)
        return self.to_sparse_coo().sum(dim, dtype)

    def mm(self, mat2: Any) -> Any:
        """Return the product with a matrix: dense, or in this layout if `mat2` is sparse."""
        here = self.to_sparse_coo()
        if isinstance(mat2, (CompressedTensor, SparseTensor)):
            return self._again(here.mm(mat2.to_sparse_coo()))
        return here.mm(mat2)

    def mv(self, vec: Tensor) -> Any:
        """Return the product with a dense vector."""
        return self.to_sparse_coo().mv(vec)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, (CompressedTensor, SparseTensor)):
            return self.mm(other)
        return self.to_sparse_coo().__matmul__(other)

    matmul = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        if isinstance(other, SparseTensor):
            return other.mm(self.to_sparse_coo())
        return self.to_sparse_coo().__rmatmul__(other)


def bind() -> None:
    """Add the functions that keep zeros, once operators are defined."""
    for name in zero_preserving():
        _METHODS[name] = name


def _run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the function for an operator.

    Raises:
        TypeError: if there is none.
    """
    kinds = ", ".join(type(value).__name__ for value in args)
    text = f"{name}: compressed tensors do not have this operator for {kinds}"
    if name in ("mm", "matmul", "mv") and isinstance(args[0], CompressedTensor):
        return getattr(args[0], name)(*args[1:], **kwargs)
    if name in ("mm", "matmul"):
        result = args[1].__rmatmul__(args[0])
    elif name == "addmm":
        beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
        result = beta * args[0] + alpha * (args[1] @ args[2])
    elif name in ("add", "mul", "multiply") and not isinstance(args[0], CompressedTensor):
        if kwargs.get("alpha", 1) != 1:
            raise TypeError(text)
        result = getattr(args[1], name)(args[0])
    elif name in _METHODS and isinstance(args[0], CompressedTensor):
        result = getattr(args[0], _METHODS[name])(*args[1:], **kwargs)
    else:
        raise TypeError(text + "; call to_dense() first")
    if result is NotImplemented:
        raise TypeError(text)
    return result


_METHODS = {
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    **{name: name for name in ("add", "mul", "div", "sum", "t", "transpose", "clone", "detach")},
}


# ---- conversion


def compress(input: Any, kind: Any, blocksize: Any = None) -> CompressedTensor:
    """Return a matrix in a compressed layout.

    Raises:
        ShapeError: if it has fewer than two dimensions, or if blocks do not divide it.
        ValueError: for another layout, or without the size that blocks need.
    """
    name = f"to_{kind}"
    if kind not in _LAYOUTS:
        raise ArgumentError(f"to_sparse: `layout` must be one of {', '.join(_LAYOUTS)}, got {kind}")
    if input.ndim < 2:
        raise ShapeError(f"{name}: a matrix is required, got shape {tuple(input.shape)}")
    sparse = to_coordinates(input, 2) if is_tensor(input) else input.to_sparse_coo()
    coordinates = sparse.coalesce()
    if coordinates.sparse_dim() != 2:
        raise ShapeError(
            f"{name}: 2 sparse dimensions are required, got {coordinates.sparse_dim()}"
        )
    if (kind in _BLOCKED) != (blocksize is not None):
        needs = "is required" if kind in _BLOCKED else "must be None"
        raise ArgumentError(f"{name}: `blocksize` {needs} for the layout {kind}, got {blocksize}")
    rows, columns = coordinates._places[0], coordinates._places[1]
    stored = coordinates._stored
    shape = tuple(coordinates.shape)
    if kind in _BLOCKED:
        rows, columns, stored = _blocks(name, rows, columns, stored, shape, tuple(blocksize))
        shape = (shape[0] // blocksize[0], shape[1] // blocksize[1])
    lines, places, count = (rows, columns, shape[0])
    if kind not in _BY_ROWS:
        order = operator("sort")(columns, 0, False, True)[1]
        lines, places, count = columns.index_select(0, order), rows.index_select(0, order), shape[1]
        stored = stored.index_select(0, order)
    edges = operator("arange")(count + 1, device=lines.device)
    bounds = operator("searchsorted")(lines.contiguous(), edges)
    return CompressedTensor(bounds, places.contiguous(), stored, coordinates.shape, kind)


def _blocks(
    name: str,
    rows: Tensor,
    columns: Tensor,
    stored: Tensor,
    shape: tuple[int, ...],
    block: tuple[int, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows and columns of the blocks that have elements, sorted, and the blocks."""
    if len(block) != 2 or min(block) < 1 or shape[0] % block[0] or shape[1] % block[1]:
        raise ShapeError(
            f"{name}: `blocksize` must be two sizes that divide {shape[:2]}, got {block}"
        )
    high, wide = block
    across = max(shape[1] // wide, 1)
    number = _divided(rows, high) * across + _divided(columns, wide)
    numbers, which = number.unique(return_inverse=True)
    inner = (rows % high) * wide + columns % wide
    size = (numbers.shape[0] * high * wide, *stored.shape[1:])
    zeros = operator("zeros")(size, dtype=stored.dtype, device=stored.device)
    filled = zeros.index_add(0, which * (high * wide) + inner, stored)
    blocks = filled.reshape((numbers.shape[0], high, wide, *stored.shape[1:]))
    return _divided(numbers, across), numbers % across, blocks


def _divided(numbers: Tensor, by: int) -> Tensor:
    return operator("floor_divide")(numbers, by)  # type: ignore[no-any-return]


def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None
) -> Any:
    """Return the sparse tensor of the elements that are not 0.

    Args:
        sparse_dim: the number of dimensions that have indices, from the first one; the elements
            along the others are stored together unless all of them are 0. None: all.
        layout: `sparse_coo`, or a compressed layout; None: `sparse_coo`.
        blocksize: for the layouts of blocks.

    Raises:
        ShapeError: for a tensor without dimensions, or a `sparse_dim` that it does not have.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse().nnz()
        1
        >>> pc.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse(1).values()
        tensor([[0., 2.]])
    """
    if layout is None or layout == sparse_coo:
        return to_coordinates(self, sparse_dim)
    return compress(self, layout, blocksize)


def to_sparse_coo(self: Tensor) -> SparseTensor:
    """Return the elements that are not 0, with their coordinates.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([0.0, 2.0]).to_sparse_coo().indices()
        tensor([[1]])
    """
    return to_coordinates(self)


def to_sparse_csr(self: Any, dense_dim: int | None = None) -> CompressedTensor:
    """Return the elements that are not 0, row by row: in the layout `sparse_csr`.

    Raises:
        ShapeError: for fewer than two dimensions, or another `dense_dim` than the tensor has beyond
            two.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csr().crow_indices()
        tensor([0, 1, 3])
    """
    return _plain(self, sparse_csr, dense_dim)


def to_sparse_csc(self: Any, dense_dim: int | None = None) -> CompressedTensor:
    """Return the elements that are not 0, column by column: in the layout `sparse_csc`.

    Raises:
        ShapeError: for fewer than two dimensions, or another `dense_dim` than the tensor has beyond
            two.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csc().row_indices()
        tensor([1, 0, 1])
    """
    return _plain(self, sparse_csc, dense_dim)


def to_sparse_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> CompressedTensor:
    """Return the blocks that are not all 0, row by row: in the layout `sparse_bsr`.

    Args:
        blocksize: The numbers of rows and columns of a block.
        dense_dim: The number of last dimensions that stay dense.

    Raises:
        ShapeError: for fewer than two dimensions, or blocks that do not divide them.

    Example:
        >>> import plait_core as pc
        >>> pc.eye(4).to_sparse_bsr((2, 2)).values().shape
        plait.Size([2, 2, 2])
    """
    return _plain(self, sparse_bsr, dense_dim, blocksize)


def to_sparse_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> CompressedTensor:
    """Return the blocks that are not all 0, column by column: in the layout `sparse_bsc`.

    Args:
        blocksize: The numbers of rows and columns of a block.
        dense_dim: The number of last dimensions that stay dense.

    Raises:
        ShapeError: for fewer than two dimensions, or blocks that do not divide them.

    Example:
        >>> import plait_core as pc
        >>> pc.eye(4).to_sparse_bsc((2, 2)).ccol_indices()
        tensor([0, 1, 2])
    """
    return _plain(self, sparse_bsc, dense_dim, blocksize)


def _plain(
    input: Any, kind: layout, dense_dim: int | None, blocksize: Any = None
) -> CompressedTensor:
    if dense_dim is not None and dense_dim != input.ndim - 2:
        raise ShapeError(
            f"to_{kind}: dense dimensions are not supported here: `dense_dim` must be "
            f"{input.ndim - 2} for shape {tuple(input.shape)}, got {dense_dim}"
        )
    if dense_dim is None and input.ndim > 2 and is_tensor(input):
        raise ShapeError(
            f"to_{kind}: batches of matrices are not supported: a matrix, or `dense_dim`, is "
            f"required, got shape {tuple(input.shape)}"
        )
    return input.to_sparse(layout=kind, blocksize=blocksize)  # type: ignore[no-any-return]


_CONVERSIONS: dict[str, Callable[..., Any]] = {
    "to_sparse_bsc": to_sparse_bsc,
    "to_sparse_bsr": to_sparse_bsr,
    "to_sparse_csc": to_sparse_csc,
    "to_sparse_csr": to_sparse_csr,
}
METHODS: dict[str, Callable[..., Any]] = {
    "to_sparse": to_sparse,
    "to_sparse_coo": to_sparse_coo,
    **_CONVERSIONS,
}


def _coordinates_to_sparse(
    self: SparseTensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None
) -> Any:
    """Return the tensor itself, or in a compressed layout."""
    if layout is None or layout == sparse_coo:
        if sparse_dim not in (None, self.sparse_dim()):
            raise ShapeError(
                f"to_sparse: `sparse_dim` must be {self.sparse_dim()} for a sparse tensor that has "
                f"as many, got {sparse_dim}"
            )
        return self
    return compress(self, layout, blocksize)


_coordinates_to_sparse.__name__ = "to_sparse"
SparseTensor.to_sparse = _coordinates_to_sparse  # type: ignore[attr-defined]
for _name, _conversion in _CONVERSIONS.items():
    setattr(SparseTensor, _name, _conversion)
    setattr(CompressedTensor, _name, _conversion)


# ---- construction


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> CompressedTensor:
    """Make a matrix in a compressed layout.

    Args:
        compressed_indices: where each row (column in CSC and BSC) begins among the values, and the
            end: one more than there are rows, of blocks in BSR and BSC.
        plain_indices: the column (row) of each value, rising within a row (column).
        values: the elements, of shape ``(nnz, ...)``; blocks are ``(nnz, high, wide, ...)``.
        size: the shape; None: the smallest that contains all indices.
        dtype: the dtype of the elements.
        layout: `sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`.
        device: where they are.
        pin_memory: must be False.
        requires_grad: whether operators on the values are recorded.
        check_invariants: accepted; the arguments are checked in any case.

    Raises:
        ShapeError: if the shapes do not fit each other.
        ValueError: if the compressed indices do not begin with 0, do not rise to the number of
            values, or the plain ones do not rise.
        IndexError: if a plain index lies outside `size`.
        DTypeError: unless the indices are int32 or int64.

    Example:
        >>> import plait_core as pc
        >>> x = pc.sparse_compressed_tensor([0, 1, 2], [1, 0], [5.0, 6.0], layout=pc.sparse_csr)
        >>> x.to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    kind = layout
    if kind not in _LAYOUTS:
        raise ArgumentError(
            f"sparse_compressed_tensor: `layout` must be one of {', '.join(_LAYOUTS)}, got {kind}"
        )
    if pin_memory:
        raise NotImplementedError(f"{kind}_tensor: `pin_memory` must be False")
    stored = as_tensor(values, dtype=dtype, device=device)
    bounds = as_tensor(compressed_indices, device=stored.device)
    places = as_tensor(plain_indices, device=stored.device)
    shape = _checked(kind, bounds, places, stored, size)
    if requires_grad:
        stored = stored.detach().requires_grad_()
    return CompressedTensor(bounds, places, stored, shape, kind)


def _names(kind: layout) -> tuple[str, str, str]:
    if kind in _BY_ROWS:
        return ("crow_indices", "col_indices", "values")
    return ("ccol_indices", "row_indices", "values")


def _checked(
    kind: layout, bounds: Tensor, places: Tensor, stored: Tensor, size: Sequence[int] | None
) -> tuple[int, ...]:
    """Check the parts of a compressed tensor, and return its shape."""
    compressed, plain, _ = _names(kind)
    for name, part in ((compressed, bounds), (plain, places)):
        if part.dtype.name not in ("int32", "int64"):
            raise DTypeError(
                f"{kind}_tensor: `{name}` must be int32 or int64, got {part.dtype.name}"
            )
        if part.ndim != 1:
            raise ShapeError(
                f"{kind}_tensor: `{name}` must have 1 dimension (batches are not supported), got "
                f"shape {tuple(part.shape)}"
            )
    first = 3 if kind in _BLOCKED else 1
    if stored.ndim < first or stored.shape[0] != places.shape[0] or bounds.shape[0] < 1:
        raise ShapeError(
            f"{kind}_tensor: `values` must have shape ({places.shape[0]}, "
            f"{'high, wide, ' if first == 3 else ''}...), as many as `{plain}`, and `{compressed}` "
            f"at least one element; got {tuple(stored.shape)} and {tuple(bounds.shape)}"
        )
    if bounds.device.type == "meta":
        if size is None:
            raise ArgumentError(f"{kind}_tensor: `size` is required on the device meta")
        return tuple(size)
    _check_rise(kind, compressed, bounds, places)
    block = tuple(stored.shape[1:3]) if first == 3 else (1, 1)
    top = int(places.max()) + 1 if places.shape[0] else 0
    lines = bounds.shape[0] - 1
    by_rows = kind in _BY_ROWS
    if size is None:
        rows, columns = (lines, top) if by_rows else (top, lines)
        return (rows * block[0], columns * block[1], *stored.shape[first:])
    shape = tuple(size)
    if len(shape) != 2 + stored.ndim - first or shape[2:] != tuple(stored.shape[first:]):
        raise ShapeError(
            f"{kind}_tensor: `size` must be two sizes and the dense ones of `values`, "
            f"{tuple(stored.shape[first:])}; got {shape}"
        )
    across, along = (0, 1) if by_rows else (1, 0)
    if shape[across] != lines * block[across] or shape[along] % block[along]:
        raise ShapeError(
            f"{kind}_tensor: `{compressed}` must have {shape[across] // block[across] + 1} "
            f"elements for size {shape} and blocks of {block}, got {lines + 1}"
        )
    low = int(places.min()) if places.shape[0] else 0
    if low < 0 or top * block[along] > shape[along]:
        raise OutOfRangeError(
            f"{kind}_tensor: `{plain}` must be in [0, {shape[along] // block[along] - 1}], got "
            f"{low if low < 0 else top - 1}"
        )
    return shape


def _check_rise(kind: layout, compressed: str, bounds: Tensor, places: Tensor) -> None:
    """Check that the bounds rise from 0 to the end, and the places within each line."""
    n = places.shape[0]
    steps = bounds[1:] - bounds[:-1]
    if int(bounds[0]) != 0 or int(bounds[-1]) != n or bool((steps < 0).any()):
        raise ArgumentError(
            f"{kind}_tensor: `{compressed}` must begin with 0 and rise to the number of values, "
            f"{n}; got {bounds.tolist() if bounds.shape[0] < 10 else 'others'}"
        )
    if n < 2:
        return
    begins = operator("zeros")(n + 1, dtype="bool", device=places.device)
    begins[bounds.to("int64")] = True
    falls = (places[1:] <= places[:-1]) & ~begins[1:-1]
    if bool(falls.any()):
        raise ArgumentError(
            f"{kind}_tensor: `{_names(kind)[1]}` must rise within each "
            f"{'row' if kind in _BY_ROWS else 'column'}"
        )


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    **options: Any,
) -> CompressedTensor:
    """Make a matrix in the layout `sparse_csr`; see `sparse_compressed_tensor`.

    Args:
        crow_indices: Where each row begins in `col_indices`.
        col_indices: Column of each value or block.
        values: The values or blocks.
        size: Shape of the whole; None: the smallest that has all indices.
        **options: `dtype`, `device`, `requires_grad` and `check_invariants`, as of
            `sparse_coo_tensor`.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse_csr_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2)).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    return _of(sparse_csr, crow_indices, col_indices, values, size, options)


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    **options: Any,
) -> CompressedTensor:
    """Make a matrix in the layout `sparse_csc`; see `sparse_compressed_tensor`.

    Args:
        ccol_indices: Where each column begins in `row_indices`.
        row_indices: Row of each value or block.
        values: The values or blocks.
        size: Shape of the whole; None: the smallest that has all indices.
        **options: `dtype`, `device`, `requires_grad` and `check_invariants`, as of
            `sparse_coo_tensor`.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse_csc_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2)).to_dense()
        tensor([[0., 6.],
                [5., 0.]])
    """
    return _of(sparse_csc, ccol_indices, row_indices, values, size, options)


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    **options: Any,
) -> CompressedTensor:
    """Make a matrix in the layout `sparse_bsr`; see `sparse_compressed_tensor`.

    Args:
        crow_indices: Where each row begins in `col_indices`.
        col_indices: Column of each value or block.
        values: The values or blocks.
        size: Shape of the whole; None: the smallest that has all indices.
        **options: `dtype`, `device`, `requires_grad` and `check_invariants`, as of
            `sparse_coo_tensor`.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse_bsr_tensor([0, 1], [1], [[[5.0, 6.0]]], (1, 4)).to_dense()
        tensor([[0., 0., 5., 6.]])
    """
    return _of(sparse_bsr, crow_indices, col_indices, values, size, options)


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    **options: Any,
) -> CompressedTensor:
    """Make a matrix in the layout `sparse_bsc`; see `sparse_compressed_tensor`.

    Args:
        ccol_indices: Where each column begins in `row_indices`.
        row_indices: Row of each value or block.
        values: The values or blocks.
        size: Shape of the whole; None: the smallest that has all indices.
        **options: `dtype`, `device`, `requires_grad` and `check_invariants`, as of
            `sparse_coo_tensor`.

    Example:
        >>> import plait_core as pc
        >>> pc.sparse_bsc_tensor([0, 1], [1], [[[5.0], [6.0]]], (4, 1)).to_dense()
        tensor([[0.],
                [0.],
                [5.],
                [6.]])
    """
    return _of(sparse_bsc, ccol_indices, row_indices, values, size, options)


def _of(
    kind: layout,
    compressed: Any,
    plain: Any,
    values: Any,
    size: Sequence[int] | None,
    options: dict[str, Any],
) -> CompressedTensor:
    choice = options.pop("layout", kind)
    if choice not in (None, kind, strided) or choice == strided:
        raise ArgumentError(f"{kind}_tensor: `layout` must be {kind}, got {choice}")
    return sparse_compressed_tensor(compressed, plain, values, size, layout=kind, **options)
