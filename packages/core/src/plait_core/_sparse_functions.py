"""Functions of the elements of sparse tensors that leave 0 at 0, and a few along dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_abi import ShapeError
from plait_core._core import Tensor
from plait_core._sparse import SparseTensor, _operator

__all__ = ["cat", "index_select", "log_softmax", "softmax", "sparse_mask"]

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
"""Unary operators whose value at 0 is 0: they run on the elements that are held."""


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


def _pow(self: SparseTensor, exponent: float) -> SparseTensor:
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
            f"pow: `exponent` must be a number above 0 for a sparse tensor, whose zeros would not "
            f"stay; got {exponent!r}"
        )
    here = self.coalesce()
    return here._with(here._values() ** exponent)


def _norm(self: SparseTensor, p: Any = "fro") -> Tensor:
    """Return the norm of all elements.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([0.0, 3.0, 4.0]).to_sparse().norm()
        tensor(5.)
    """
    values = self.coalesce()._values()
    return _operator("linalg_vector_norm")(values, 2 if p == "fro" else p)  # type: ignore[no-any-return]


def sparse_dim(self: SparseTensor) -> int:
    """Return the number of dimensions: all are sparse."""
    return self.ndim


def dense_dim(self: SparseTensor) -> int:
    """Return 0: the elements are numbers."""
    return 0


def _dim(name: str, dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(f"{name}: `dim` must be in [{-ndim}, {ndim - 1}], got {dim}")
    return dim % ndim


def _lines(input: SparseTensor, dim: int) -> tuple[Tensor, int]:
    """Return on which line along `dim` each element lies, and how many lines there are."""
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
    """Return the logarithm of `softmax`, of the elements that are held.

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
    """Return ``exp(x) / sum(exp(x))`` along a dimension, of the elements that are held.

    Places that hold nothing count as -inf, as the attention of graph programs wants it.

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


def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """Return the slices that `index` names along a dimension.

    Raises:
        IndexError: for a `dim` or an index out of range.

    Example:
        >>> import plait_core as pc
        >>> pc.eye(2).to_sparse().index_select(0, pc.tensor([1, 1])).to_dense()
        tensor([[0., 1.],
                [0., 1.]])
    """
    at = _dim("index_select", dim, input.ndim)
    size, n = input.shape[at], index.numel()
    if n and not (int(index.min()) >= 0 and int(index.max()) < size):
        raise IndexError(f"index_select: `index` must hold numbers from 0 to {size - 1}")
    places, order = _operator("sort")(input._indices()[at])
    wanted = index.reshape(-1).contiguous()
    first = _operator("searchsorted")(places, wanted)
    counts = _operator("searchsorted")(places, wanted, right=True) - first
    row = _operator("arange")(n, device=index.device).repeat_interleave(counts)
    begun = (counts.cumsum(0) - counts).index_select(0, row)
    step = _operator("arange")(row.shape[0], device=index.device) - begun
    source = order.index_select(0, first.index_select(0, row) + step)
    picked = [row if i == at else each[source] for i, each in enumerate(input._indices())]
    shape = tuple(n if i == at else each for i, each in enumerate(input.shape))
    stored = input._values().index_select(0, source)
    return SparseTensor(_operator("stack")(picked, 0), stored, shape)


def cat(tensors: Sequence[SparseTensor], dim: int = 0) -> SparseTensor:
    """Return sparse tensors one after another along a dimension.

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
    shape, places, before = list(tensors[0].shape), [], 0
    for each in tensors:
        if [*each.shape[:at], *each.shape[at + 1 :]] != [*shape[:at], *shape[at + 1 :]]:
            raise ShapeError(
                f"cat: shapes must be equal but for dimension {at}, got {tuple(shape)} and "
                f"{tuple(each.shape)}"
            )
        moved = [row + before if i == at else row for i, row in enumerate(each._indices())]
        places.append(_operator("stack")(moved, 0))
        before += each.shape[at]
    shape[at] = before
    stored = _operator("cat")([each._values() for each in tensors], 0)
    return SparseTensor(_operator("cat")(places, 1), stored, tuple(shape))


def sparse_mask(self: Tensor, mask: SparseTensor) -> SparseTensor:
    """Return the elements of a dense tensor at the places that a sparse one holds.

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
    return here._with(self.reshape(-1).index_select(0, here._flat()))


METHODS: dict[str, Callable[..., Any]] = {"sparse_mask": sparse_mask}

for _name in KEEPING_ZERO:
    setattr(SparseTensor, _name, _elementwise(_name))
for _name, _member in {
    "dense_dim": dense_dim,
    "index_select": index_select,
    "norm": _norm,
    "pow": _pow,
    "__pow__": _pow,
    "__abs__": _elementwise("abs"),
    "sparse_dim": sparse_dim,
}.items():
    setattr(SparseTensor, _name, _member)
