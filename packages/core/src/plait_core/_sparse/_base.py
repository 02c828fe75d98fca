"""The common part of all sparse tensors: properties of the stored values, and arithmetic on
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from plait_abi import OutOfRangeError, binding
from plait_abi.binding import operator
from plait_core._core import Size, Tensor, is_tensor
from plait_core._sparse._items import item
from plait_core._tensor import _repr
from plait_core._tensor._memory_formats import sparse_coo, sparse_csr

_Self = TypeVar("_Self", bound="SparseBase")


def is_number(value: Any) -> bool:
    """Return whether a value is a number, or a tensor without dimensions."""
    return isinstance(value, (bool, int, float, complex)) or (is_tensor(value) and value.ndim == 0)


def wrap_dim(name: str, dim: int, ndim: int) -> int:
    """Return a dimension counted from the front.

    Raises:
        IndexError: if there is no such dimension.
    """
    if not -ndim <= dim < ndim:
        raise OutOfRangeError(
            f"{name}: `dim` must be in [{-ndim}, {ndim - 1}], got {dim}. Dimension out of range"
        )
    return dim % ndim


def text_of(self: Any, parts: dict[str, Tensor], separate: bool) -> str:
    """Return the text of a sparse tensor: its parts, then its other properties; `separate`: these
    are on a line of their own.
    """
    lines = []
    for name, part in parts.items():
        start = f"{name}=tensor("
        meta = part.device.type == "meta"
        body = "..." if meta else _repr.text_of_elements(part.detach(), 7 + len(start))
        size = f", size={tuple(part.shape)}" if meta or part.numel() == 0 else ""
        lines.append(f"{start}{body}{size})")
    text = "tensor(" + ",\n       ".join(lines)
    notes = [f"size={tuple(self.shape)}", f"nnz={self.nnz()}", f"layout={self.layout!r}"]
    values = parts["values"]
    if not _repr.is_plain(values.dtype):
        notes.insert(2, _repr.note_of_dtype(values.dtype))
    if values.device.type != "cpu":
        notes.insert(0, f"device='{values.device}'")
    if values.grad_fn is not None:
        notes.append(f"grad_fn=<{values.grad_fn.name()}>")
    elif values.requires_grad:
        notes.append("requires_grad=True")
    last = len(text) - text.rfind("\n") + 1
    for note in notes:
        if separate or last + len(note) + 2 > _repr.linewidth():
            text, last, separate = f"{text},\n       {note}", 7 + len(note), False
        else:
            text, last = f"{text}, {note}", last + len(note) + 2
    return text + ")"


def _shown_class(self: Any) -> type[Tensor]:
    """Return `Tensor`: so ``isinstance(x, Tensor)`` is true of sparse tensors, as in PyTorch,
    though their type is another. What needs a dense tensor asks `is_tensor`.
    """
    return Tensor


class SparseBase:
    """The members of sparse tensors that do not depend on the layout.

    A class of sparse tensors has the slots `_stored`, the values, and `_shape`, and the methods
    that these members call.
    """

    __slots__ = ()

    _stored: Tensor
    _shape: Size

    __class__ = property(_shown_class)

    def _with(self: _Self, stored: Tensor) -> _Self:
        """Return a tensor with other values at the same indices."""
        raise NotImplementedError

    def _summed(self: _Self) -> _Self:
        """Return the tensor with one value for each index."""
        return self

    def to(self: _Self, *args: Any, **kwargs: Any) -> _Self:
        """Return the tensor in another dtype or on another device; see `Tensor.to`."""
        raise NotImplementedError

    def transpose(self: _Self, dim0: int, dim1: int) -> _Self:
        """Return the tensor with two dimensions exchanged."""
        raise NotImplementedError

    def t(self: _Self) -> _Self:
        """Return the transposed matrix."""
        raise NotImplementedError

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def dtype(self) -> binding.dtype:
        """The dtype of the elements."""
        return self._stored.dtype

    @property
    def device(self) -> binding.device:
        """The device of the elements."""
        return self._stored.device

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is `sparse_coo`, as in PyTorch."""
        return bool(self.layout == sparse_coo)

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is `sparse_csr`."""
        return bool(self.layout == sparse_csr)

    @property
    def requires_grad(self) -> bool:
        """Whether operators on the values are recorded."""
        return self._stored.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def grad(self: _Self) -> _Self | None:
        """The gradient with respect to the stored elements, at their indices; or None."""
        gradient = self._stored.grad
        return None if gradient is None else self._with(gradient)

    @grad.setter
    def grad(self: _Self, value: _Self | None) -> None:
        self._stored.grad = None if value is None else value._stored

    @property
    def data(self: _Self) -> _Self:
        """The tensor without history, on the same elements."""
        return self.detach()

    @property
    def T(self: _Self) -> _Self:  # noqa: N802
        """The transposed matrix."""
        return self.t()

    @property
    def mT(self: _Self) -> _Self:  # noqa: N802
        """The tensor with its last two dimensions exchanged."""
        return self.transpose(-2, -1)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self._shape if dim is None else self._shape[dim]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements, including zeros."""
        return self._shape.numel()

    nelement = numel

    def nnz(self) -> int:
        """Return the number of stored elements, or blocks."""
        return self._stored.shape[0]

    _nnz = nnz

    def is_same_size(self, other: Any) -> bool:
        """Return whether another tensor has the same shape."""
        return tuple(self.shape) == tuple(other.shape)

    def cpu(self: _Self) -> _Self:
        """Return the tensor on the CPU."""
        return self.to(device="cpu")

    def type(self, dtype: Any = None) -> Any:
        """Return the name of the dtype, or the tensor in another dtype."""
        return self._stored.type() if dtype is None else self.to(dtype)

    def detach(self: _Self) -> _Self:
        """Return the tensor without history."""
        return self._with(self._stored.detach())

    def requires_grad_(self: _Self, requires_grad: bool = True) -> _Self:
        """Set whether operators on the values are recorded."""
        self._stored.requires_grad_(requires_grad)
        return self

    def unbind(self, dim: int = 0) -> tuple[Any, ...]:
        """Return the slices along a dimension; see `select`."""
        at = wrap_dim("unbind", dim, self.ndim)
        here = self.to_sparse_coo()
        return tuple(here.select(at, i) for i in range(self._shape[at]))

    def __len__(self) -> int:
        return self._shape[0]

    def __bool__(self) -> bool:
        raise RuntimeError("bool: a sparse tensor is neither true nor false; call to_dense() first")

    def __getitem__(self, index: Any) -> Any:
        return item(self, index)

    def __getattr__(self, name: str) -> Any:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        known = hasattr(Tensor, name) and not name.startswith("_")
        raise AttributeError(f"{text}; call to_dense() first" if known else text)

    def __neg__(self: _Self) -> _Self:
        return self._with(-self._stored)

    def __add__(self, other: Any) -> Any:
        return self.add(other)

    __radd__ = __add__

    def sub(self, other: Any, *, alpha: float = 1) -> Any:
        """Return ``self - alpha * other``; see `add`."""
        return self.add(other, alpha=-alpha)

    def __sub__(self, other: Any) -> Any:
        return self.add(other, alpha=-1)

    def __rsub__(self, other: Any) -> Any:
        return (-self).add(other)

    def __mul__(self, other: Any) -> Any:
        return self.mul(other)

    __rmul__ = __mul__

    def div(self, other: Any) -> Any:
        """Return the quotient by a number."""
        return self._with(self._stored / other) if is_number(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return self.div(other)

    def __abs__(self: _Self) -> _Self:
        here = self._summed()
        return here._with(operator("abs")(here._stored))


_ATTRIBUTES = (
    "grad_fn",
    "is_cpu",
    "is_cuda",
    "is_leaf",
    "is_meta",
    "is_mkldnn",
    "is_mps",
    "is_nested",
    "is_quantized",
    "is_xpu",
    "itemsize",
    "retains_grad",
)
_QUERIES = (
    "element_size",
    "get_device",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_inference",
    "is_neg",
    "is_pinned",
    "is_signed",
)
_CASTS = (
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
)


def _attribute(name: str) -> property:
    return property(lambda self: getattr(self._stored, name), doc=f"What ``values().{name}`` is.")


def _add_method(name: str, doc: str, method: Callable[..., Any]) -> None:
    method.__name__, method.__qualname__, method.__doc__ = name, f"SparseBase.{name}", doc
    setattr(SparseBase, name, method)


def _add_query(name: str) -> None:
    def method(self: Any) -> Any:
        return getattr(self._stored, name)()

    _add_method(name, f"Return what ``values().{name}()`` gives.", method)


def _add_cast(name: str) -> None:
    def method(self: Any) -> Any:
        return self._with(getattr(self._stored, name)())

    _add_method(name, f"Return the tensor with the elements of ``values().{name}()``.", method)


for _name in _ATTRIBUTES:
    setattr(SparseBase, _name, _attribute(_name))
for _name in _QUERIES:
    _add_query(_name)
for _name in _CASTS:
    _add_cast(_name)


def zero_preserving() -> list[str]:
    """Return the methods of tensors whose value at 0 is 0: they run on the stored elements."""
    rows = binding.operators_with("zero_preserving")
    return [name for name, variants in rows if "method" in variants and "." not in name]


def _add_elementwise(name: str) -> None:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        here = self._summed()  # f(a + b) is not f(a) + f(b)
        return here._with(operator(name)(here._stored, *args, **kwargs))

    doc = f"""Return the tensor of the elements that `{name}` gives; 0 stays 0.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(1, 2).to_sparse().{name}().to_dense().any().item()
        False
    """
    _add_method(name, doc, method)


def bind() -> None:
    """Make the functions that keep zeros methods, once operators are defined."""
    for name in zero_preserving():
        _add_elementwise(name)
