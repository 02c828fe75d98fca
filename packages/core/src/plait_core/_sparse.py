"""Sparse tensors in coordinate format (COO), made of operators on dense tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from plait_abi import DTypeError, ShapeError, _binding
from plait_core._core import Size, Tensor, is_tensor
from plait_core._memory_formats import layout, sparse_coo

__all__ = ["KEEPING_ZERO", "SparseTensor", "cat"]

KEEPING_ZERO = [
    "abs",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "deg2rad",
    "erf",
    "erfinv",
    "expm1",
    "floor",
    "log1p",
    "nan_to_num",
    "neg",
    "rad2deg",
    "relu",
    "round",
    "sgn",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
"""Unary operators whose value at 0 is 0: they run on the stored elements."""


def _operator(name: str) -> Any:
    return _binding.operator(name)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) or (is_tensor(value) and value.ndim == 0)


def _dim(name: str, dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(f"{name}: `dim` must be in [{-ndim}, {ndim - 1}], got {dim}")
    return dim % ndim


class SparseTensor:
    """A tensor that stores only some elements and their indices; all others are 0.

    Made by `sparse_coo_tensor` and ``Tensor.to_sparse()``. It is not a Tensor: it has the
    operations that graph neural networks use. Each runs as operators on its `values`, so gradients
    flow through the values and through dense factors. An index that occurs several times stands for
    the sum of its values; `coalesce` adds them up.

    Example:
        >>> import plait_core as pc
        >>> x = pc.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
        >>> x.nnz(), x @ pc.tensor([[1.0], [10.0]])
        (2, tensor([[20.],
                [ 3.]]))
    """

    __slots__ = ("_coalesced", "_places", "_shape", "_stored")

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
        """The dtype of the elements."""
        return self._stored.dtype

    @property
    def device(self) -> _binding.device:
        """The device of the elements."""
        return self._stored.device

    @property
    def layout(self) -> layout:
        """The layout, which is `sparse_coo` for every sparse tensor."""
        return sparse_coo

    @property
    def is_sparse(self) -> bool:
        """Whether this is a sparse tensor: True."""
        return True

    @property
    def requires_grad(self) -> bool:
        """Whether operators on the values are recorded."""
        return self._stored.requires_grad

    @property
    def T(self) -> SparseTensor:  # noqa: N802
        """The transposed matrix."""
        return self.t()

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self._shape if dim is None else self._shape[dim]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.ndim

    def sparse_dim(self) -> int:
        """Return the number of sparse dimensions, which is `ndim`."""
        return self.ndim

    def dense_dim(self) -> int:
        """Return the number of dense dimensions, which is 0."""
        return 0

    def numel(self) -> int:
        """Return the number of elements, including zeros."""
        return self._shape.numel()

    def nnz(self) -> int:
        """Return the number of stored elements."""
        return self._stored.shape[0]

    _nnz = nnz

    def is_coalesced(self) -> bool:
        """Return whether the indices are sorted and occur once."""
        return self._coalesced

    def _ordered(self, name: str) -> SparseTensor:
        if not self._coalesced:
            raise RuntimeError(
                f"{name}: a coalesced tensor is required, in which no index occurs twice; call "
                "coalesce() first"
            )
        return self

    def indices(self) -> Tensor:
        """Return the indices of the stored elements, int64 of shape ``(ndim, nnz)``.

        Raises:
            RuntimeError: if the tensor is not coalesced.
        """
        return self._ordered("indices")._places

    def values(self) -> Tensor:
        """Return the stored elements, of shape ``(nnz,)``.

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

    def __len__(self) -> int:
        return self._shape[0]

    def __bool__(self) -> bool:
        raise RuntimeError("bool: a sparse tensor is neither true nor false; call to_dense() first")

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("indexing: a sparse tensor cannot be indexed; call to_dense() first")

    def __getattr__(self, name: str) -> Any:
        text = f"'SparseTensor' object has no attribute {name!r}"
        known = hasattr(Tensor, name) and not name.startswith("_")
        raise AttributeError(f"{text}; call to_dense() first" if known else text)

    def __plait_function__(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Run the function for an operator, if sparse tensors have one."""
        return _run(operator, args, kwargs)

    # ---- other forms of it
    def _with(self, stored: Tensor, coalesced: bool | None = None) -> SparseTensor:
        kept = self._coalesced if coalesced is None else coalesced
        return SparseTensor(self._places, stored, self._shape, kept)

    def _flat(self) -> Tensor:
        """Return the indices as positions in the flattened tensor."""
        if math.prod(self._shape) >= 2**63:
            raise ShapeError(f"sparse: fewer than 2**63 elements are required, got {self._shape}")
        flat = _operator("zeros")(self.nnz(), dtype="int64", device=self.device)
        for i, size in enumerate(self._shape):
            flat = flat * size + self._places[i]
        return flat  # type: ignore[no-any-return]

    def coalesce(self) -> SparseTensor:
        """Return the tensor with sorted indices that occur once; itself if it is coalesced."""
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
        """Return the dense tensor."""
        zeros = _operator("zeros")(self.numel(), dtype=self.dtype, device=self.device)
        return zeros.index_add(0, self._flat(), self._stored).reshape(tuple(self._shape))  # type: ignore[no-any-return]

    def to_sparse(self) -> SparseTensor:
        """Return the tensor itself."""
        return self

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Return the tensor in another dtype or on another device; see `Tensor.to`."""
        stored = self._stored.to(*args, **kwargs)
        positions = self._places.to(device=stored.device)
        return SparseTensor(positions, stored, self._shape, self._coalesced)

    def cpu(self) -> SparseTensor:
        """Return the tensor on the CPU."""
        return self.to(device="cpu")

    def type(self, dtype: Any = None) -> Any:
        """Return the name of the dtype, or the tensor in another dtype."""
        return self._stored.type() if dtype is None else self.to(dtype)

    def clone(self) -> SparseTensor:
        """Return a copy."""
        return SparseTensor(
            self._places.clone(), self._stored.clone(), self._shape, self._coalesced
        )

    def detach(self) -> SparseTensor:
        """Return the tensor without history."""
        return self._with(self._stored.detach())

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Set whether operators on the values are recorded."""
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
        positions = _operator("stack")([self._places[i] for i in order], 0)
        shape = tuple(self._shape[i] for i in order)
        return SparseTensor(positions, self._stored, shape, self._coalesced and self.ndim < 2)

    def t(self) -> SparseTensor:
        """Return the transposed matrix."""
        if self.ndim > 2:
            raise ShapeError(f"t: a matrix is required, got shape {tuple(self._shape)}")
        return self.transpose(0, 1) if self.ndim == 2 else self

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
        at = _dim("index_select", dim, self.ndim)
        size, n = self.shape[at], index.numel()
        if n and not (int(index.min()) >= 0 and int(index.max()) < size):
            raise IndexError(f"index_select: `index` must hold numbers from 0 to {size - 1}")
        positions, order = _operator("sort")(self._indices()[at])
        wanted = index.reshape(-1).contiguous()
        first = _operator("searchsorted")(positions, wanted)
        counts = _operator("searchsorted")(positions, wanted, right=True) - first
        row = _operator("arange")(n, device=index.device).repeat_interleave(counts)
        begun = (counts.cumsum(0) - counts).index_select(0, row)
        step = _operator("arange")(row.shape[0], device=index.device) - begun
        source = order.index_select(0, first.index_select(0, row) + step)
        picked = [row if i == at else each[source] for i, each in enumerate(self._indices())]
        shape = tuple(n if i == at else each for i, each in enumerate(self.shape))
        stored = self._values().index_select(0, source)
        return SparseTensor(_operator("stack")(picked, 0), stored, shape)

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
        """Return ``self + alpha * other``: sparse if `other` is sparse, else dense.

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
        positions = _operator("cat")([self._places, other._places], 1)
        return SparseTensor(positions, stored, self._shape).coalesce()

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
        """Return the sum over dimensions, a sparse tensor; over all of them a dense 0-d tensor."""
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
        positions = _operator("stack")([self._places[i] for i in kept], 0)
        shape = tuple(self._shape[i] for i in kept)
        return SparseTensor(positions, self._stored, shape).coalesce()

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
            raise ValueError(
                "pow: `exponent` must be a number above 0 for a sparse tensor, whose zeros would "
                f"not stay; got {exponent!r}"
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
        return _operator("linalg_vector_norm")(values, 2 if p == "fro" else p)  # type: ignore[no-any-return]


def _cast(name: str) -> Callable[[SparseTensor], SparseTensor]:
    def method(self: SparseTensor) -> SparseTensor:
        return self._with(getattr(self._stored, name)())

    method.__name__, method.__qualname__ = name, f"SparseTensor.{name}"
    method.__doc__ = f"Return the tensor with the elements that ``values().{name}()`` gives."
    return method


for _name in [
    "bfloat16",
    "bool",
    "byte",
    "cdouble",
    "cfloat",
    "char",
    "double",
    "float",
    "half",
    "int",
    "long",
    "short",
]:
    setattr(SparseTensor, _name, _cast(_name))


# ---- unary functions


def _elementwise(name: str) -> Callable[..., SparseTensor]:
    def method(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        here = self.coalesce()  # f(a + b) is not f(a) + f(b)
        return here._with(_operator(name)(here._values(), *args, **kwargs))

    method.__name__, method.__qualname__ = name, f"SparseTensor.{name}"
    method.__doc__ = f"""Return the tensor of the elements that `{name}` gives; 0 stays 0.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(1, 2).to_sparse().{name}().to_dense()
        tensor([[0., 0.]])
    """
    return method


for _name in KEEPING_ZERO:
    setattr(SparseTensor, _name, _elementwise(_name))
SparseTensor.__abs__ = _elementwise("abs")  # type: ignore[attr-defined]


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
    at = _dim("cat", dim, tensors[0].ndim)
    shape, positions, before = list(tensors[0].shape), [], 0
    for each in tensors:
        if [*each.shape[:at], *each.shape[at + 1 :]] != [*shape[:at], *shape[at + 1 :]]:
            raise ShapeError(
                f"cat: shapes must be equal but for dimension {at}, got {tuple(shape)} and "
                f"{tuple(each.shape)}"
            )
        moved = [row + before if i == at else row for i, row in enumerate(each._indices())]
        positions.append(_operator("stack")(moved, 0))
        before += each.shape[at]
    shape[at] = before
    stored = _operator("cat")([each._values() for each in tensors], 0)
    return SparseTensor(_operator("cat")(positions, 1), stored, tuple(shape))


def _run(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the function for an operator.

    Raises:
        TypeError: if there is none.
    """
    name = operator.__name__
    known = _CALLS.get(name)
    if known is None:
        raise TypeError(f"{name}: sparse tensors do not have this operator; call to_dense() first")
    try:
        result = known(*args, **kwargs)
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


def _div(input: Any, other: Any) -> Any:
    return input.div(other) if isinstance(input, SparseTensor) else NotImplemented


def _sum(input: SparseTensor, dim: Any = None) -> Any:
    return input.sum(dim)


def _index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    return input.index_select(dim, index)


def _method(name: str) -> Callable[..., Any]:
    def function(input: SparseTensor, *args: Any) -> Any:
        return getattr(input, name)(*args)

    return function


_CALLS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "addmm": _addmm,
    "div": _div,
    "divide": _div,
    "matmul": _matmul,
    "mm": _mm,
    "mul": _mul,
    "multiply": _mul,
    "sub": _sub,
    "subtract": _sub,
    "sum": _sum,
    "true_divide": _div,
    "cat": cat,
    "index_select": _index_select,
    **{
        name: _method(name)
        for name in ("clone", "detach", "mv", "norm", "pow", "t", "transpose", *KEEPING_ZERO)
    },
}
