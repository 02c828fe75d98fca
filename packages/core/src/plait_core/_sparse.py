"""Sparse tensors in coordinates: what graph programs need, made of operators on dense tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from plait_abi import DTypeError, ShapeError, _binding
from plait_core._core import Size, Tensor, is_tensor
from plait_core._creation import as_tensor
from plait_core._memory_formats import layout, sparse_coo

__all__ = ["SparseTensor", "sparse_coo_tensor", "to_sparse"]


def _operator(name: str) -> Any:
    return _binding.operator(name)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) or (is_tensor(value) and value.ndim == 0)


class SparseTensor:
    """A tensor that holds the elements that are not 0, and where they are.

    Made by `sparse_coo_tensor` and ``Tensor.to_sparse()``. It is no Tensor: it has the operations
    that graph programs use, and each runs as operators on its `values`, so gradients flow through
    the values and through dense factors. An element that occurs several times counts as the sum;
    `coalesce` adds them up.

    Example:
        >>> import plait_core as pc
        >>> x = pc.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
        >>> x.nnz(), x @ pc.tensor([[1.0], [10.0]])
        (2, tensor([[20.],
                [ 3.]]))
    """

    __slots__ = ("_coalesced", "_places", "_shape", "_stored")

    def __init__(
        self, places: Tensor, stored: Tensor, shape: tuple[int, ...], coalesced: bool = False
    ) -> None:
        """Take what `sparse_coo_tensor` has checked."""
        self._places, self._stored = places, stored
        self._shape, self._coalesced = Size(shape), coalesced

    # ---- what it is
    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def dtype(self) -> _binding.dtype:
        """What the elements are."""
        return self._stored.dtype

    @property
    def device(self) -> _binding.device:
        """Where the elements are."""
        return self._stored.device

    @property
    def layout(self) -> layout:
        """sparse_coo."""
        return sparse_coo

    @property
    def is_sparse(self) -> bool:
        """True."""
        return True

    @property
    def requires_grad(self) -> bool:
        """Whether operators on the values are recorded."""
        return self._stored.requires_grad

    @property
    def T(self) -> SparseTensor:  # noqa: N802
        """The matrix transposed."""
        return self.t()

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self._shape if dim is None else self._shape[dim]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """Return the number of elements, those that are 0 counted."""
        return self._shape.numel()

    def nnz(self) -> int:
        """Return how many elements are held."""
        return self._stored.shape[0]

    _nnz = nnz

    def is_coalesced(self) -> bool:
        """Tell whether every place occurs once, in order."""
        return self._coalesced

    def _ordered(self, name: str) -> SparseTensor:
        if not self._coalesced:
            raise RuntimeError(
                f"{name}: a coalesced tensor is required, in which no place occurs twice; call "
                "coalesce() first"
            )
        return self

    def indices(self) -> Tensor:
        """Return the places, of shape ``(ndim, nnz)``.

        Raises:
            RuntimeError: if the tensor is not coalesced.
        """
        return self._ordered("indices")._places

    def values(self) -> Tensor:
        """Return the elements, of shape ``(nnz,)``.

        Raises:
            RuntimeError: if the tensor is not coalesced.
        """
        return self._ordered("values")._stored

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._stored

    def __repr__(self) -> str:
        lines = [f"indices={self._places!r}", f"values={self._stored!r}"]
        facts = f"size={tuple(self._shape)}, nnz={self.nnz()}, layout={self.layout!r}"
        text = ",\n".join(lines).replace("\n", "\n       ")
        return f"tensor({text},\n       {facts})"

    # ---- other forms of it
    def _with(self, stored: Tensor, coalesced: bool | None = None) -> SparseTensor:
        kept = self._coalesced if coalesced is None else coalesced
        return SparseTensor(self._places, stored, self._shape, kept)

    def _flat(self) -> Tensor:
        """Return the places as positions in the flat tensor."""
        if math.prod(self._shape) >= 2**63:
            raise ShapeError(f"sparse: fewer than 2**63 elements are required, got {self._shape}")
        flat = _operator("zeros")(self.nnz(), dtype="int64", device=self.device)
        for i, size in enumerate(self._shape):
            flat = flat * size + self._places[i]
        return flat  # type: ignore[no-any-return]

    def coalesce(self) -> SparseTensor:
        """Return the tensor with every place once, in order; itself if it is that already."""
        if self._coalesced:
            return self
        flat = self._flat()
        n = flat.shape[0]
        ordered, order = _operator("sort")(flat, 0, False, True)
        first = _operator("ones")(n, dtype="bool", device=self.device)
        if n > 1:
            first[1:] = ordered[1:] != ordered[:-1]
        group = _operator("cumsum")(first.to("int64"), 0) - 1
        count = int(group[-1]) + 1 if n else 0
        starts = order[_operator("nonzero")(first).reshape(-1)]
        zeros = _operator("zeros")(count, dtype=self.dtype, device=self.device)
        summed = zeros.index_add(0, group, self._stored.index_select(0, order))
        return SparseTensor(self._places.index_select(1, starts), summed, self._shape, True)

    def to_dense(self) -> Tensor:
        """Return the tensor with all its elements."""
        zeros = _operator("zeros")(self.numel(), dtype=self.dtype, device=self.device)
        return zeros.index_add(0, self._flat(), self._stored).reshape(tuple(self._shape))  # type: ignore[no-any-return]

    def to_sparse(self) -> SparseTensor:
        """Return the tensor itself."""
        return self

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Return the tensor in another dtype or on another device; see `Tensor.to`."""
        stored = self._stored.to(*args, **kwargs)
        places = self._places.to(device=stored.device)
        return SparseTensor(places, stored, self._shape, self._coalesced)

    def clone(self) -> SparseTensor:
        """Return a copy."""
        return SparseTensor(
            self._places.clone(), self._stored.clone(), self._shape, self._coalesced
        )

    def detach(self) -> SparseTensor:
        """Return the tensor without history."""
        return self._with(self._stored.detach())

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Record operators on the values, or not."""
        self._stored.requires_grad_(requires_grad)
        return self

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Return the tensor with two dimensions exchanged."""
        order = list(range(self.ndim))
        for dim in (dim0, dim1):
            if not -self.ndim <= dim < self.ndim:
                raise IndexError(
                    f"transpose: dimensions in [{-self.ndim}, {self.ndim - 1}] are required, got "
                    f"{dim}"
                )
        order[dim0], order[dim1] = order[dim1], order[dim0]
        places = _operator("stack")([self._places[i] for i in order], 0)
        shape = tuple(self._shape[i] for i in order)
        return SparseTensor(places, self._stored, shape, self._coalesced and self.ndim < 2)

    def t(self) -> SparseTensor:
        """Return the matrix transposed."""
        if self.ndim > 2:
            raise ShapeError(f"t: a matrix is required, got shape {tuple(self._shape)}")
        return self.transpose(0, 1) if self.ndim == 2 else self

    # ---- arithmetic
    def _same_shape(self, name: str, other: SparseTensor | Tensor) -> None:
        if tuple(other.shape) != tuple(self._shape):
            raise ShapeError(
                f"{name}: equal shapes are required, got {tuple(self._shape)} and "
                f"{tuple(other.shape)}"
            )

    def __neg__(self) -> SparseTensor:
        return self._with(-self._stored)

    def add(self, other: Any, *, alpha: float = 1) -> Any:
        """Return ``self + alpha * other``: sparse with a sparse one, dense with a dense one.

        Raises:
            ShapeError: if the shapes differ.
        """
        if is_tensor(other) and other.ndim:
            self._same_shape("add", other)
            flat = (other * alpha).reshape(-1)
            dtype = _operator("add")(self._stored[:0], flat[:0]).dtype
            added = flat.to(dtype).index_add(0, self._flat(), self._stored.to(dtype))
            return added.reshape(tuple(self._shape))
        if not isinstance(other, SparseTensor):
            return NotImplemented
        self._same_shape("add", other)
        dtype = _operator("add")(self._stored[:0], other._stored[:0]).dtype
        theirs = other._stored * alpha if alpha != 1 else other._stored
        stored = _operator("cat")([self._stored.to(dtype), theirs.to(dtype)], 0)
        places = _operator("cat")([self._places, other._places], 1)
        return SparseTensor(places, stored, self._shape).coalesce()

    def __add__(self, other: Any) -> Any:
        return self.add(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.add(other, alpha=-1)

    def __rsub__(self, other: Any) -> Any:
        return (-self).add(other)

    def mul(self, other: Any) -> Any:
        """Return the product with a number, or element by element with a tensor of this shape."""
        if _is_number(other):
            return self._with(self._stored * other)
        if isinstance(other, SparseTensor):
            return self.mul(other.to_dense())
        if not is_tensor(other):
            return NotImplemented
        self._same_shape("mul", other)
        here = self.coalesce()
        return here._with(here._stored * other.reshape(-1).index_select(0, here._flat()))

    def __mul__(self, other: Any) -> Any:
        return self.mul(other)

    __rmul__ = __mul__

    def div(self, other: Any) -> Any:
        """Return the quotient by a number."""
        return self._with(self._stored / other) if _is_number(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return self.div(other)

    def sum(self, dim: int | tuple[int, ...] | None = None) -> Any:
        """Return the sum over dimensions, sparse; over all of them a dense 0-d tensor."""
        dims = range(self.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
        for each in dims:
            if not -self.ndim <= each < self.ndim:
                raise IndexError(
                    f"sum: `dim` must be in [{-self.ndim}, {self.ndim - 1}], got {each}"
                )
        gone = {each % self.ndim for each in dims}
        kept = [i for i in range(self.ndim) if i not in gone]
        if not kept:
            return self._stored.sum()
        places = _operator("stack")([self._places[i] for i in kept], 0)
        shape = tuple(self._shape[i] for i in kept)
        return SparseTensor(places, self._stored, shape).coalesce()

    def mm(self, mat2: Any) -> Any:
        """Return the product with a dense matrix, which is dense.

        Raises:
            ShapeError: if the shapes do not fit.
            DTypeError: if the dtypes differ.
        """
        if isinstance(mat2, SparseTensor):
            mat2 = mat2.to_dense()
        if not is_tensor(mat2):
            raise TypeError(f"mm: `mat2` must be Tensor, got {type(mat2).__name__}")
        if self.ndim != 2 or mat2.ndim != 2 or self._shape[1] != mat2.shape[0]:
            raise ShapeError(
                f"mm: matrices (m, k) and (k, n) are required, got {tuple(self._shape)} and "
                f"{tuple(mat2.shape)}"
            )
        if self.dtype is not mat2.dtype:
            raise DTypeError(
                f"mm: equal dtypes are required, got {self.dtype.name} and {mat2.dtype.name}"
            )
        rows, columns = self._places[0], self._places[1]
        terms = mat2.index_select(0, columns) * self._stored.unsqueeze(1)
        shape = (self._shape[0], mat2.shape[1])
        zeros = _operator("zeros")(shape, dtype=self.dtype, device=self.device)
        return zeros.index_add(0, rows, terms)

    def __matmul__(self, other: Any) -> Any:
        if is_tensor(other) and other.ndim == 1:
            return self.mm(other.unsqueeze(1)).squeeze(1)
        if isinstance(other, SparseTensor) or is_tensor(other):
            return self.mm(other)
        return NotImplemented

    matmul = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        if not is_tensor(other):
            return NotImplemented
        if other.ndim == 1:
            return self.t() @ other
        return self.t().mm(other.t()).t()


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    size: tuple[int, ...] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Make a sparse tensor from the places and values of its elements.

    Args:
        indices: integers of shape ``(ndim, nnz)``, a tensor or data for one.
        values: the elements, of shape ``(nnz,)``; a number stands for all of them.
        size: the shape; None: the smallest that holds all places.
        dtype: the dtype of the elements.
        device: where they are.
        requires_grad: whether operators on the values are recorded.
        is_coalesced: whether you know that every place occurs once, in order.

    Raises:
        ShapeError: if the shapes do not fit each other.
        IndexError: if a place lies outside `size`.
        DTypeError: if `indices` are no integers.

    Example:
        >>> import plait_core as pc
        >>> edges = pc.tensor([[0, 1, 1], [1, 0, 2]])
        >>> graph = pc.sparse_coo_tensor(edges, pc.ones(3), (3, 3))
        >>> graph @ pc.tensor([[1.0], [2.0], [4.0]])
        tensor([[2.],
                [5.],
                [0.]])
    """
    places = as_tensor(indices, device=device)
    if places.numel() == 0 and places.dtype.is_floating_point:
        places = places.to("int64")
    if places.dtype.is_floating_point or places.dtype.is_complex or places.dtype.name == "bool":
        raise DTypeError(f"sparse_coo_tensor: `indices` must be integers, got {places.dtype.name}")
    if places.ndim != 2:
        raise ShapeError(
            f"sparse_coo_tensor: `indices` must have shape (ndim, nnz), got {tuple(places.shape)}"
        )
    places = places.to("int64")
    stored = as_tensor(values, dtype=dtype, device=device)
    if stored.ndim == 0:
        stored = stored.expand((places.shape[1],)).clone()
    if tuple(stored.shape) != (places.shape[1],):
        raise ShapeError(
            f"sparse_coo_tensor: `values` must have shape ({places.shape[1]},), as many as "
            f"`indices` has columns, got {tuple(stored.shape)}"
        )
    shape = _checked_shape(places, size)
    if requires_grad:
        stored = stored.detach().requires_grad_()
    known = places.shape[1] < 2 if is_coalesced is None else is_coalesced
    return SparseTensor(places, stored, shape, known)


def _checked_shape(places: Tensor, size: tuple[int, ...] | None) -> tuple[int, ...]:
    ndim, nnz = places.shape
    if size is not None and len(size) != ndim:
        raise ShapeError(
            f"sparse_coo_tensor: `size` must have {ndim} entries, as `indices` has rows, got "
            f"{tuple(size)}"
        )
    if not nnz:
        return (0,) * ndim if size is None else tuple(size)
    low, high = places.amin(1).tolist(), places.amax(1).tolist()
    shape = tuple(top + 1 for top in high) if size is None else tuple(size)
    for i in range(ndim):
        if low[i] < 0 or high[i] >= shape[i]:
            raise IndexError(
                f"sparse_coo_tensor: `indices` must be in [0, {shape[i] - 1}] in dimension {i} of "
                f"size {shape}, got {low[i] if low[i] < 0 else high[i]}"
            )
    return shape


def to_sparse(self: Tensor) -> SparseTensor:
    """Return the tensor with only the elements that are not 0.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse().nnz()
        1
    """
    if self.ndim == 0:
        raise ShapeError("to_sparse: at least one dimension is required, got shape ()")
    places = _operator("nonzero")(self.detach()).t().contiguous()
    flat = SparseTensor(places, places[0], tuple(self.shape))._flat()
    stored = self.reshape(-1).index_select(0, flat)
    return SparseTensor(places, stored, tuple(self.shape), True)


def to_dense(self: Tensor) -> Tensor:
    """Return the tensor itself, which holds all its elements.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1, 2]).to_dense()
        tensor([1, 2])
    """
    return self


METHODS: dict[str, Callable[..., Any]] = {
    "to_dense": to_dense,
    "to_sparse": to_sparse,
    "to_sparse_coo": to_sparse,
}
