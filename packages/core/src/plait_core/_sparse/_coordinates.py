"""Sparse tensors in coordinate format (COO), made of operators on dense tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import plait_core._core as _core
from plait_abi import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from plait_abi.binding import operator
from plait_core._core import Size, Tensor, is_tensor
from plait_core._functions._lists import broadcast_shapes
from plait_core._sparse import _indexing
from plait_core._sparse._base import SparseBase, is_number, text_of, wrap_dim, zero_preserving
from plait_core._tensor._memory_formats import layout, sparse_coo


def _joined(start: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return, for the ranges from `start` with `counts` members one after the other, the range and
    the member of each place.
    """
    ranges = operator("arange")(counts.shape[0], device=counts.device).repeat_interleave(counts)
    starts = (counts.cumsum(0) - counts).index_select(0, ranges)
    step = operator("arange")(ranges.shape[0], device=counts.device) - starts
    return ranges, start.index_select(0, ranges) + step


class SparseTensor(SparseBase, _core._Sparse):
    """A tensor that stores only some elements and their indices; all others are 0.

    Made by `sparse_coo_tensor` and ``Tensor.to_sparse()``, and what the gradients of
    ``Embedding(sparse=True)`` are. The first `sparse_dim` dimensions have indices; the `dense_dim`
    others are those of the values: a stored element is then a tensor itself, such as a row. It is
    an instance of `Tensor` to `isinstance`, not to `is_tensor`: it has the operations of graph
    neural networks and of optimizers. Each runs as operators on its `values`, so gradients flow
    through the values and through dense factors. An index that occurs several times stands for the
    sum of its values; `coalesce` adds them up.

    Args:
        positions: Indices of the stored elements: shape (dimensions, n).
        stored: The stored elements.
        shape: Shape of the whole.
        coalesced: Whether no index stands twice.

    Example:
        >>> import plait_core as pc
        >>> x = pc.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
        >>> x.nnz(), x @ pc.tensor([[1.0], [10.0]])
        (2, tensor([[20.],
                [ 3.]]))
        >>> pc.tensor([[0.0, 0.0], [3.0, 0.0]]).to_sparse(1).values()
        tensor([[3., 0.]])
    """

    __slots__ = ("__weakref__", "_coalesced", "_places", "_shape", "_stored")

    def __init__(
        self, positions: Tensor, stored: Tensor, shape: tuple[int, ...], coalesced: bool = False
    ) -> None:
        """Take arguments that `sparse_coo_tensor` has checked."""
        self._places, self._stored = positions, stored
        self._shape, self._coalesced = Size(shape), coalesced

    def __plait_parts__(self) -> tuple[tuple[Tensor, Tensor], Any]:
        """The tensors of this one, and a function that makes a sparse tensor of such: for
        `save_for_backward`.
        """
        shape, coalesced = self._shape, self._coalesced
        return (self._places, self._stored), lambda positions, stored: SparseTensor(
            positions, stored, shape, coalesced
        )

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self._places, self._stored, tuple(self._shape), self._coalesced)
        return SparseTensor, parts

    def _parts(self) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...], bool]:
        """Return what C++ makes a handle of; the third is its only element."""
        number = math.nan if self.dtype.is_floating_point or self.dtype.is_complex else 0
        blank = operator("full")([], number, dtype=self.dtype, device=self.device)
        return self._places, self._stored, blank, self._shape, self._coalesced

    def _become(self, other: SparseTensor) -> SparseTensor:
        """Take the elements of another tensor of this shape."""
        self._places, self._stored = other._places, other._stored
        self._coalesced = other._coalesced
        _core._sparse_changed(self)
        return self

    @property
    def layout(self) -> layout:
        """The layout, which is `sparse_coo`."""
        return sparse_coo

    def sparse_dim(self) -> int:
        """Return the number of dimensions that have indices."""
        return self._places.shape[0]

    def dense_dim(self) -> int:
        """Return the number of dimensions that a stored element has."""
        return self._stored.ndim - 1

    def is_coalesced(self) -> bool:
        """Return whether the indices are sorted and occur once."""
        return self._coalesced

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        self._coalesced = coalesced
        return self._become(self)

    def _ordered(self, name: str) -> SparseTensor:
        if not self._coalesced:
            raise RuntimeError(
                f"{name}: a coalesced tensor is required, in which no index occurs twice; call "
                "coalesce() first"
            )
        return self

    def indices(self) -> Tensor:
        """Return the indices of the stored elements, int64 of shape ``(sparse_dim, nnz)``.

        Raises:
            RuntimeError: if the tensor is not coalesced.
        """
        return self._ordered("indices")._places

    def values(self) -> Tensor:
        """Return the stored elements, of shape ``(nnz, ...)`` with the dense dimensions.

        Raises:
            RuntimeError: if the tensor is not coalesced.
        """
        return self._ordered("values")._stored

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._stored

    def __repr__(self) -> str:
        return text_of(self, {"indices": self._places, "values": self._stored}, True)

    def __plait_function__(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Run the function for an operator, if sparse tensors have one."""
        return _run(operator, args, kwargs)

    # ---- other forms of it
    def _with(self, stored: Tensor) -> SparseTensor:
        shape = (*self._shape[: self.sparse_dim()], *stored.shape[1:])
        return SparseTensor(self._places, stored, shape, self._coalesced)

    def _summed(self) -> SparseTensor:
        return self.coalesce()

    def _block(self) -> tuple[int, ...]:
        """Return the shape of a stored element."""
        return tuple(self._stored.shape[1:])

    def _count(self) -> int:
        """Return how many indices there may be."""
        return math.prod(self._shape[: self.sparse_dim()])

    def _flat(self) -> Tensor:
        """Return the indices as positions among all that there may be."""
        if self._count() >= 2**63:
            raise ShapeError(f"sparse: fewer than 2**63 elements are required, got {self._shape}")
        if self.sparse_dim() == 1:
            return self._places[0]
        flat = operator("zeros")(self.nnz(), dtype="int64", device=self.device)
        for i, size in enumerate(self._shape[: self.sparse_dim()]):
            flat = flat * size + self._places[i]
        return flat  # type: ignore[no-any-return]

    def _listed(self, dense: Tensor) -> Tensor:
        """Return a dense tensor of this shape as one with a place for each index."""
        if self.sparse_dim() == 1:
            return dense
        return dense.reshape((self._count(), *self._block()))

    def coalesce(self) -> SparseTensor:
        """Return the tensor with sorted indices that occur once; itself if it is coalesced."""
        if self._coalesced:
            return self
        flat = self._flat()
        n = flat.shape[0]
        ordered, order = operator("sort")(flat, 0, False, True)
        first = operator("ones")(n, dtype="bool", device=self.device)
        if n > 1:
            first[1:] = ordered[1:] != ordered[:-1]
        group = operator("cumsum")(first.to("int64"), 0) - 1
        count = int(group[-1]) + 1 if n else 0
        starts = order[operator("nonzero")(first).reshape(-1)]
        zeros = operator("zeros")((count, *self._block()), dtype=self.dtype, device=self.device)
        summed = zeros.index_add(0, group, self._stored.index_select(0, order))
        return SparseTensor(self._places.index_select(1, starts), summed, self._shape, True)

    def to_dense(self, dtype: Any = None) -> Tensor:
        """Return the dense tensor, in another dtype if one is given."""
        shape = (self._count(), *self._block())
        zeros = operator("zeros")(shape, dtype=self.dtype, device=self.device)
        dense = zeros.index_add(0, self._flat(), self._stored).reshape(tuple(self._shape))
        return dense if dtype is None else dense.to(dtype)  # type: ignore[no-any-return]

    def to_sparse_coo(self) -> SparseTensor:
        """Return the tensor itself."""
        return self

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Return the tensor in another dtype or on another device; see `Tensor.to`."""
        stored = self._stored.to(*args, **kwargs)
        positions = self._places.to(device=stored.device)
        return SparseTensor(positions, stored, self._shape, self._coalesced)

    def clone(self) -> SparseTensor:
        """Return a copy."""
        return SparseTensor(
            self._places.clone(), self._stored.clone(), self._shape, self._coalesced
        )

    def detach_(self) -> SparseTensor:
        """Forget the history of the values, and return the tensor."""
        return self._become(self.detach())

    def sparse_mask(self, mask: SparseTensor) -> SparseTensor:
        """Return the elements at the indices of another sparse tensor; see `Tensor.sparse_mask`."""
        return self.to_dense().sparse_mask(mask)  # type: ignore[no-any-return]

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Return the tensor with two dimensions exchanged, both sparse or both dense.

        Raises:
            IndexError: for a dimension out of range.
            ShapeError: for a sparse and a dense dimension.
        """
        n = self.sparse_dim()
        a, b = sorted(wrap_dim("transpose", dim, self.ndim) for dim in (dim0, dim1))
        if a < n <= b:
            raise ShapeError(
                f"transpose: two sparse or two dense dimensions are required, got {dim0} and "
                f"{dim1} of {n} sparse and {self.dense_dim()} dense ones"
            )
        if a >= n:
            return self._with(self._stored.transpose(a - n + 1, b - n + 1))
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        positions = operator("stack")([self._places[i] for i in order[:n]], 0)
        shape = tuple(self._shape[i] for i in order)
        return SparseTensor(positions, self._stored, shape, self._coalesced and a == b)

    def t(self) -> SparseTensor:
        """Return the transposed matrix."""
        if self.ndim > 2:
            raise ShapeError(f"t: a matrix is required, got shape {tuple(self._shape)}")
        return self.transpose(0, 1) if self.ndim == 2 else self

    def select(self, dim: int, index: int) -> Any:
        """Return the slice at an index of a dimension, dense if that is the only sparse one.

        Raises:
            IndexError: for a `dim` or an index out of range.

        Example:
            >>> import plait_core as pc
            >>> pc.eye(2).to_sparse().select(0, 1).to_dense()
            tensor([0., 1.])
        """
        return _indexing.select(self, dim, index)

    def narrow_copy(self, dim: int, start: int, length: int) -> SparseTensor:
        """Return a copy of the part of a dimension that has `length` indices from `start` on.

        Raises:
            IndexError: for a `dim` out of range.
            ValueError: for a part that is not in the dimension.

        Example:
            >>> import plait_core as pc
            >>> pc.eye(3).to_sparse().narrow_copy(0, 1, 2).to_dense()
            tensor([[0., 1., 0.],
                    [0., 0., 1.]])
        """
        result: SparseTensor = _indexing.narrow_copy(self, dim, start, length)
        return result

    def unsqueeze(self, dim: int) -> SparseTensor:
        """Return the tensor with a new dimension of size 1."""
        result: SparseTensor = _indexing.unsqueeze(self, dim)
        return result

    def index_select(self, dim: int, index: Tensor) -> SparseTensor:
        """Return the slices that `index` names along a dimension.

        Raises:
            IndexError: for a `dim` or an index out of range.

        Example:
            >>> import plait_core as pc
            >>> pc.eye(2).to_sparse().index_select(0, pc.tensor([1, 1])).to_dense()
            tensor([[0., 1.],
                    [0., 1.]])
        """
        at = wrap_dim("index_select", dim, self.ndim)
        size, n = self.shape[at], index.numel()
        if n and not (int(index.min()) >= 0 and int(index.max()) < size):
            raise OutOfRangeError(
                f"index_select: `index` must hold numbers from 0 to {size - 1}. index out of range"
            )
        if at >= self.sparse_dim():
            inner = at - self.sparse_dim() + 1
            return self._with(self._stored.index_select(inner, index.reshape(-1)))
        positions, order = operator("sort")(self._indices()[at])
        required = index.reshape(-1).contiguous()
        first = operator("searchsorted")(positions, required)
        counts = operator("searchsorted")(positions, required, right=True) - first
        row, member = _joined(first, counts)
        source = order.index_select(0, member)
        picked = [row if i == at else each[source] for i, each in enumerate(self._indices())]
        shape = tuple(n if i == at else each for i, each in enumerate(self.shape))
        stored = self._values().index_select(0, source)
        return SparseTensor(operator("stack")(picked, 0), stored, shape)

    # ---- arithmetic
    def _same_shape(self, name: str, other: SparseTensor | Tensor) -> None:
        if tuple(other.shape) != tuple(self._shape):
            raise ShapeError(
                f"{name}: equal shapes are required, got {tuple(self._shape)} and "
                f"{tuple(other.shape)}"
            )

    def add(self, other: Any, *, alpha: float = 1) -> Any:
        """Return ``self + alpha * other``: sparse if `other` is sparse, else dense.

        Raises:
            ShapeError: if the shapes, or the numbers of sparse dimensions, differ.
        """
        if is_tensor(other) and other.ndim:
            self._same_shape("add", other)
            listed = self._listed(other * alpha if alpha != 1 else other)
            dtype = operator("add")(self._stored[:0], listed[:0]).dtype
            added = listed.to(dtype).index_add(0, self._flat(), self._stored.to(dtype))
            return added.reshape(tuple(self._shape))
        if not isinstance(other, SparseTensor):
            return NotImplemented
        self._same_shape("add", other)
        if self.sparse_dim() != other.sparse_dim():
            raise ShapeError(
                "add: equal numbers of sparse dimensions are required, got "
                f"{self.sparse_dim()} and {other.sparse_dim()}"
            )
        dtype = operator("add")(self._stored[:0], other._stored[:0]).dtype
        theirs = other._stored * alpha if alpha != 1 else other._stored
        stored = operator("cat")([self._stored.to(dtype), theirs.to(dtype)], 0)
        positions = operator("cat")([self._places, other._places], 1)
        joined = SparseTensor(positions, stored, self._shape)
        return joined.coalesce() if self._coalesced and other._coalesced else joined

    def mul(self, other: Any) -> Any:
        """Return the product with a number, or element by element with a tensor, whose shape
        broadcasts to this one.
        """
        if is_number(other):
            return self._with(self._stored * other)
        if isinstance(other, SparseTensor):
            return self.mul(other.to_dense())
        if not is_tensor(other):
            return NotImplemented
        if tuple(other.shape) != tuple(self._shape):
            if tuple(broadcast_shapes(other.shape, self._shape)) != tuple(self._shape):
                self._same_shape("mul", other)
            other = other.expand(tuple(self._shape))
        here = self.coalesce()
        return here._with(here._stored * here._listed(other).index_select(0, here._flat()))

    def zero_(self) -> SparseTensor:
        """Remove all elements, and return the tensor."""
        none = SparseTensor(self._places[:, :0], self._stored.detach()[:0], self._shape, True)
        return self._become(none)

    def copy_(self, other: SparseTensor) -> SparseTensor:
        """Take the elements of another sparse tensor of this shape, and return the tensor."""
        if not isinstance(other, SparseTensor):
            raise TypeError(f"copy_: `other` must be SparseTensor, got {type(other).__name__}")
        self._same_shape("copy_", other)
        return self._become(other.to(dtype=self.dtype, device=self.device, copy=True))

    def sum(self, dim: int | tuple[int, ...] | None = None, dtype: Any = None) -> Any:
        """Return the sum over dimensions: sparse while sparse dimensions are left, else dense."""
        if dtype is not None:
            return self.to(dtype).sum(dim)
        dims = range(self.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
        n, sum_dims = self.sparse_dim(), {wrap_dim("sum", each, self.ndim) for each in dims}
        left = [i for i in range(n) if i not in sum_dims]
        dense = [i - n + 1 for i in sum_dims if i >= n]
        if not left:
            return self._stored.sum([0, *dense])
        stored = self._stored.sum(dense) if dense else self._stored
        if len(left) == n:
            return self._with(stored)
        positions = operator("stack")([self._places[i] for i in left], 0)
        shape = (*(self._shape[i] for i in left), *stored.shape[1:])
        return SparseTensor(positions, stored, shape).coalesce()

    def _matrices(self, mat2: Any) -> None:
        flat = self.dense_dim() == 0 and getattr(mat2, "dense_dim", lambda: 0)() == 0
        if not flat or self.ndim != 2 or mat2.ndim != 2 or self._shape[1] != mat2.shape[0]:
            raise ShapeError(
                f"mm: matrices (m, k) and (k, n) are required, got {tuple(self._shape)} and "
                f"{tuple(mat2.shape)}" + ("" if flat else " with dense dimensions")
            )
        if self.dtype is not mat2.dtype:
            raise DTypeError(
                f"mm: equal dtypes are required, got {self.dtype.name} and {mat2.dtype.name}"
            )

    def mm(self, mat2: Any) -> Any:
        """Return the product with a matrix, dense or sparse as that is.

        Raises:
            ShapeError: if the shapes do not fit.
            DTypeError: if the dtypes differ.
        """
        if not (is_tensor(mat2) or isinstance(mat2, SparseTensor)):
            raise TypeError(f"mm: `mat2` must be a Tensor, got {type(mat2).__name__}")
        self._matrices(mat2)
        rows, columns = self._places[0], self._places[1]
        if isinstance(mat2, SparseTensor):
            return self._sparse_product(mat2.coalesce())
        terms = mat2.index_select(0, columns) * self._stored.unsqueeze(1)
        shape = (self._shape[0], mat2.shape[1])
        zeros = operator("zeros")(shape, dtype=self.dtype, device=self.device)
        return zeros.index_add(0, rows, terms)

    def _sparse_product(self, right: SparseTensor) -> SparseTensor:
        """Return the product of matrices whose terms are a stored element of each."""
        rows, columns = self._places[0], self._places[1].contiguous()
        theirs = right._places[0].contiguous()  # sorted, as it is coalesced
        first = operator("searchsorted")(theirs, columns)
        counts = operator("searchsorted")(theirs, columns, right=True) - first
        source, other = _joined(first, counts)
        terms = self._stored.index_select(0, source) * right._stored.index_select(0, other)
        positions = [rows.index_select(0, source), right._places[1].index_select(0, other)]
        shape = (self._shape[0], right.shape[1])
        return SparseTensor(operator("stack")(positions, 0), terms, shape).coalesce()

    def mv(self, vec: Tensor) -> Any:
        """Return the product with a dense vector."""
        if not is_tensor(vec) or vec.ndim != 1:
            raise TypeError(f"mv: `vec` must be a Tensor with 1 dimension, got {vec!r}")
        return self @ vec

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

    def pow(self, exponent: float) -> SparseTensor:
        """Return the tensor with every element raised to a positive power.

        Raises:
            ValueError: unless `exponent` is a number above 0: other powers of 0 are not 0.

        Example:
            >>> import plait_core as pc
            >>> pc.tensor([0.0, 3.0]).to_sparse().pow(2).to_dense()
            tensor([0., 9.])
        """
        if not isinstance(exponent, (int, float)) or not exponent > 0:
            raise ArgumentError(
                "pow: `exponent` must be a number above 0 for a sparse tensor, as its zeros must "
                f"remain zeros; got {exponent!r}"
            )
        here = self.coalesce()
        return here._with(here._values() ** exponent)

    __pow__ = pow

    def norm(self, p: Any = "fro") -> Tensor:
        """Return the norm of all elements.

        Example:
            >>> import plait_core as pc
            >>> pc.tensor([0.0, 3.0, 4.0]).to_sparse().norm()
            tensor(5.)
        """
        values = self.coalesce()._values()
        return operator("linalg_vector_norm")(values, 2 if p == "fro" else p)  # type: ignore[no-any-return]


def _in_place(name: str) -> Callable[..., SparseTensor]:
    def method(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        result = getattr(self, name)(*args, **kwargs)
        if not isinstance(result, SparseTensor):
            raise TypeError(f"{name}_: a number or a sparse tensor is required")
        return self._become(result.to(dtype=self.dtype))

    method.__name__, method.__qualname__ = f"{name}_", f"SparseTensor.{name}_"
    method.__doc__ = f"Take the elements that `{name}` gives, and return the tensor."
    return method


for _name in ("add", "sub", "mul", "div"):
    setattr(SparseTensor, f"{_name}_", _in_place(_name))
for _name, _slot in (("add", "iadd"), ("sub", "isub"), ("mul", "imul"), ("div", "itruediv")):
    setattr(SparseTensor, f"__{_slot}__", getattr(SparseTensor, f"{_name}_"))


# ---- unary functions


def bind() -> None:
    """Add the functions that keep zeros, once operators are defined."""
    for name in zero_preserving():
        setattr(SparseTensor, f"{name}_", _in_place(name))
        _CALLS[name] = _method(name)


# ---- operators on sparse tensors: ``mm(S, x)`` and so on


def cat(tensors: Sequence[SparseTensor], dim: int = 0) -> SparseTensor:
    """Concatenate sparse tensors along a dimension.

    Raises:
        ShapeError: if they differ in another dimension.
        TypeError: unless all are sparse.

    Example:
        >>> import plait_core as pc
        >>> pc.cat([pc.eye(2).to_sparse(), pc.eye(2).to_sparse()], 1).to_dense()
        tensor([[1., 0., 1., 0.],
                [0., 1., 0., 1.]])
    """
    if not tensors or not all(isinstance(each, SparseTensor) for each in tensors):
        raise TypeError("cat: `tensors` must all be sparse; call to_dense() or to_sparse() first")
    at = wrap_dim("cat", dim, tensors[0].ndim)
    shape, positions, before = list(tensors[0].shape), [], 0
    for each in tensors:
        if [*each.shape[:at], *each.shape[at + 1 :]] != [*shape[:at], *shape[at + 1 :]]:
            raise ShapeError(
                f"cat: shapes must be equal but for dimension {at}, got {tuple(shape)} and "
                f"{tuple(each.shape)}"
            )
        if each.sparse_dim() != tensors[0].sparse_dim() or at >= each.sparse_dim():
            raise ShapeError(
                "cat: equal numbers of sparse dimensions are required, and `dim` must be one of "
                f"them; got {tensors[0].sparse_dim()} and {each.sparse_dim()}, and {at}"
            )
        moved = [row + before if i == at else row for i, row in enumerate(each._indices())]
        positions.append(operator("stack")(moved, 0))
        before += each.shape[at]
    shape[at] = before
    stored = operator("cat")([each._values() for each in tensors], 0)
    return SparseTensor(operator("cat")(positions, 1), stored, tuple(shape))


def _run(called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the function for an operator.

    Raises:
        TypeError: if there is none.
    """
    name = called.__name__
    function = _CALLS.get(name)
    if function is None:
        raise TypeError(f"{name}: sparse tensors do not have this operator; call to_dense() first")
    try:
        result = function(*args, **kwargs)
    except TypeError as error:
        # Python's error text for wrong arguments does not have the function's public name
        if "positional argument" in str(error) or "keyword argument" in str(error):
            raise TypeError(f"{name}: on sparse tensors, {error}") from None
        raise
    if result is NotImplemented:
        kinds = ", ".join(type(value).__name__ for value in args)
        raise TypeError(f"{name}: sparse tensors do not have this operator for {kinds}")
    return result


def _mm(input: Any, mat2: Any) -> Any:
    if isinstance(input, SparseTensor):
        return input.mm(mat2)
    return mat2.t().mm(input.t()).t()


def _matmul(input: Any, other: Any) -> Any:
    if isinstance(input, SparseTensor):
        return input.__matmul__(other)
    return other.__rmatmul__(input)


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    result = _mm(input, weight.t())
    return result if bias is None else result + bias


def _addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    return beta * input + alpha * _mm(mat1, mat2)


def _add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    if isinstance(input, SparseTensor):
        return input.add(other, alpha=alpha)
    return (other.mul(alpha)).add(input)


def _sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    return _add(input, other, alpha=-alpha)


def _mul(input: Any, other: Any) -> Any:
    return input.mul(other) if isinstance(input, SparseTensor) else other.mul(input)


def _method(name: str) -> Callable[..., Any]:
    def function(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, SparseTensor):
            return NotImplemented
        return getattr(input, name)(*args, **kwargs)

    return function


def _add_(input: Any, other: Any, *, alpha: float = 1) -> Any:
    if isinstance(input, SparseTensor):
        return input.add_(other, alpha=alpha)
    return _listed_sum(input, other, alpha, True)


def _sub_(input: Any, other: Any, *, alpha: float = 1) -> Any:
    return _add_(input, other, alpha=-alpha)


_SAME_NAMES = ["clone", "detach", "index_select", "mv", "norm", "pow", "sum", "t", "transpose"]
_CALLS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "add_": _add_,
    "sub_": _sub_,
    "addmm": _addmm,
    "div": _method("div"),
    "divide": _method("div"),
    "linear": _linear,
    "matmul": _matmul,
    "mm": _mm,
    "mul": _mul,
    "multiply": _mul,
    "sub": _sub,
    "subtract": _sub,
    "true_divide": _method("div"),
    "cat": cat,
    **{name: _method(name) for name in _SAME_NAMES},
}


# ---- sparse tensors among the arguments of operators in C++: gradients that an engine adds up


def _listed_sum(target: Tensor, added: SparseTensor, alpha: float, in_place: bool) -> Any:
    """Return a dense tensor plus a sparse one."""
    if tuple(target.shape) != tuple(added.shape) or target.dtype is not added.dtype:
        return NotImplemented
    listed = target
    if added.sparse_dim() != 1:
        if in_place and not target.is_contiguous():
            return NotImplemented
        listed = added._listed(target)
    at, values = added._flat(), added._stored
    if in_place:
        # index_add_ would compute in a copy of the whole tensor
        terms = values if alpha == 1 else values * alpha
        listed.index_put_((at,), terms, accumulate=True)
        return target
    return listed.index_add(0, at, values, alpha=alpha).reshape(tuple(target.shape))


def _box_sum(in_place: bool, left: Any, right: Any, alpha: float = 1) -> Any:
    if is_tensor(left) and isinstance(right, SparseTensor):
        return _listed_sum(left, right, alpha, in_place)
    if in_place or not isinstance(left, SparseTensor):
        return NotImplemented
    if isinstance(right, SparseTensor):
        alike = left.sparse_dim() == right.sparse_dim() and left.shape == right.shape
        return left.add(right, alpha=alpha) if alike else NotImplemented
    if alpha != 1 or not is_tensor(right):
        return NotImplemented
    return _listed_sum(right, left, 1, False)


def _box_difference(in_place: bool, left: Any, right: Any, alpha: float = 1) -> Any:
    return _box_sum(in_place, left, right, -alpha)


def _scaled(name: str) -> Callable[..., Any]:
    def run(in_place: bool, left: Any, right: Any, *rest: Any) -> Any:
        usual = isinstance(left, SparseTensor) and is_number(right) and not in_place
        if not usual or any(each is not None for each in rest):
            return NotImplemented
        return left._with(operator(name)(left._stored, right))

    return run


def _box_cast(in_place: bool, input: Any, dtype: Any) -> Any:
    return input.to(dtype)


_ON_BOXES: dict[str, Callable[..., Any]] = {
    "add": _box_sum,
    "sub": _box_difference,
    "mul": _scaled("mul"),
    "div": _scaled("div"),
    "neg": lambda in_place, input: NotImplemented if in_place else -input,
    "clone": lambda in_place, input, *rest: input.clone(),
    "detach": lambda in_place, input: input.detach(),
    "cast": _box_cast,
}


def _operate(name: str, in_place: bool, *args: Any) -> Any:
    """Run an operator of which a sparse tensor is an argument, if it can stay sparse."""
    function = _ON_BOXES.get(name)
    return NotImplemented if function is None else function(in_place, *args)


_core._set_sparse(SparseTensor, SparseTensor.to_dense, _operate)
