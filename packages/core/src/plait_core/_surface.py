"""What a tensor answers about itself, and what re-points it: methods that are no operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from plait_abi import _binding
from plait_core._core import Tensor
from plait_core._memory_formats import contiguous_format, layout, strided
from plait_core._storages import UntypedStorage, storage_of

__all__ = ["METHODS", "PROPERTIES"]


def _tensor(name: str, argument: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: `{argument}` must be Tensor, got {type(value).__name__}")
    return value


# ---- questions -----------------------------------------------------------------------------------
def dim_order(self: Tensor) -> tuple[int, ...]:
    """Return the dimensions in the order in which they lie in memory, the outermost first.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(1, 2, 3, 4).contiguous(memory_format=pc.channels_last).dim_order()
        (0, 2, 3, 1)
    """
    strides = self.stride()
    return tuple(sorted(range(self.ndim), key=lambda i: (-abs(strides[i]), i)))


def get_device(self: Tensor) -> int:
    """Return the number of the device; -1 for the CPU."""
    index = self.device.index
    return -1 if self.device.type in ("cpu", "meta") or index is None else index


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Tell whether both have the same shape."""
    return self.shape == _tensor("is_same_size", "other", other).shape


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Tell whether both are the same elements: one storage, one offset, one shape, one stride."""
    _tensor("is_set_to", "tensor", tensor)
    return (
        self._storage_place() == tensor._storage_place()
        and self.data_ptr() == tensor.data_ptr()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
        and self.dtype is tensor.dtype
    )


def is_nonzero(self: Tensor) -> bool:
    """Tell whether the only element is not zero."""
    return bool(self)


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Tell whether the memory is page-locked; no device of plait's own asks for that yet."""
    return False


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Return the tensor itself: without a device to copy to, there is nothing to pin memory for.

    Raises:
        RuntimeError: if the tensor is not on the CPU.
    """
    if self.device.type != "cpu":
        raise RuntimeError(f"pin_memory: a tensor on the CPU is required, got one on {self.device}")
    return self


def same(self: Tensor) -> Tensor:
    """Return the tensor itself: plait conjugates and negates at once, never lazily."""
    return self


def is_lazy(self: Tensor) -> bool:
    """Return False: plait conjugates and negates at once, and tensors have no modes."""
    return False


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the bytes that this tensor and its views share."""
    return storage_of(self)


def __reversed__(self: Tensor) -> Iterator[Tensor]:  # noqa: N807
    if self.ndim == 0:
        raise TypeError("reversed: a 0-d tensor cannot be iterated over")
    return iter(self.flip(0))


def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> Any:  # noqa: N807
    """Return the module whose functions follow the Python array API standard, 2024.12.

    Raises:
        ValueError: for a version of the standard that is not supported.
    """
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(
            f"__array_namespace__: `api_version` must be 2024.12 or an older one, got {api_version}"
        )
    from plait_core import array_api

    return array_api


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on a device; `stream` must be None, as the CPU has none.

    Raises:
        ValueError: if a stream is given.
    """
    if stream is not None:
        raise ValueError(f"to_device: `stream` must be None, got {stream!r}")
    return self.to(device)


# ---- other shapes of the same --------------------------------------------------------------------
def _like(name: str, operator: str) -> Callable[[Tensor, Tensor], Tensor]:
    def method(self: Tensor, other: Tensor) -> Tensor:
        return getattr(self, operator)(tuple(_tensor(name, "other", other).shape))  # type: ignore[no-any-return]

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"Return ``self.{operator}(other.shape)``."
    return method


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return ``where(condition, self, other)``: the elements of `self` where `condition` holds."""
    return _binding.operator("where")(condition, self, other)  # type: ignore[no-any-return]


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum over the dimensions along which a tensor of `size` would be expanded to this shape.

    Raises:
        ShapeError: if `size` does not broadcast to the shape of `self`.

    Example:
        >>> import plait_core as pc
        >>> pc.ones(2, 3).sum_to_size(1, 3)
        tensor([[2., 2., 2.]])
    """
    wanted = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    extra = self.ndim - len(wanted)
    fits = extra >= 0 and all(
        n in (1, m) for n, m in zip(wanted, tuple(self.shape)[max(extra, 0) :], strict=False)
    )
    if not fits:
        raise _binding.ShapeError(
            f"sum_to_size: `size` must broadcast to the shape {tuple(self.shape)}, got {wanted}"
        )
    inner = [i + extra for i, n in enumerate(wanted) if n == 1 and self.shape[i + extra] != 1]
    dims = [*range(extra), *inner]
    return self.sum(dims, keepdim=True).reshape(wanted) if dims else self


def _in_place_view(name: str, operator: str) -> Callable[..., Tensor]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.requires_grad:
            raise RuntimeError(
                f"{name}: a tensor that requires no grad is required; use "
                f"x = x.{operator}(...), which makes a view"
            )
        self.data = getattr(self.detach(), operator)(*args, **kwargs)
        return self

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"Give the tensor itself the shape and strides of ``self.{operator}(...)``."
    return method


# ---- re-pointing ---------------------------------------------------------------------------------
def _may_move(self: Tensor, name: str) -> None:
    if self.requires_grad:
        raise RuntimeError(
            f"{name}: a tensor that requires no grad is required; detach() it first, or assign to "
            "its .data"
        )


def set_(
    self: Tensor,
    source: Tensor | UntypedStorage | None = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Point the tensor at the storage of another one.

    Args:
        source: a tensor or a storage; None: an empty storage.
        storage_offset: where the first element lies, counted in elements.
        size: the new shape; None: that of `source`, or all elements of a storage.
        stride: steps between neighbours in elements; None: C order.

    Raises:
        ShapeError: if the elements would lie outside the storage.
        RuntimeError: if `self` requires grad.

    Example:
        >>> import plait_core as pc
        >>> pc.empty(0).set_(pc.arange(6.0), 1, (2, 2))
        tensor([[1., 2.],
                [3., 4.]])
    """
    _may_move(self, "set_")
    if source is None:
        self.data = _binding.operator("empty")(0, dtype=self.dtype, device=self.device)
        return self
    if not isinstance(source, (Tensor, UntypedStorage)):
        raise TypeError(f"set_: `source` must be Tensor or storage, got {type(source).__name__}")
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise _binding.DTypeError(
                f"set_: `source` must have the dtype {self.dtype.name}, got {source.dtype.name}"
            )
        if size is None and not storage_offset:
            self.data = source.detach()
            return self
    storage = storage_of(source) if isinstance(source, Tensor) else source
    if size is None:
        size = ((storage.nbytes() // self.dtype.itemsize) - storage_offset,)
    shape = (size,) if isinstance(size, int) else tuple(size)
    steps = _dense(shape, contiguous_format) if stride is None else tuple(stride)
    self.data = storage.tensor(self.dtype, storage_offset, shape, steps)
    return self


def _dense(shape: tuple[int, ...], memory_format: str) -> tuple[int, ...]:
    empty = _binding.operator("empty")
    return empty(shape, device="meta", memory_format=memory_format).stride()  # type: ignore[no-any-return]


def resize_(self: Tensor, *sizes: Any, memory_format: str = contiguous_format) -> Tensor:
    """Give the tensor another shape; elements stay in the order of memory, new ones are not set.

    Args:
        sizes: the new shape.
        memory_format: the order of its dimensions in memory.

    Raises:
        RuntimeError: if more bytes are needed while other tensors share the storage, or if `self`
            requires grad.

    Example:
        >>> import plait_core as pc
        >>> pc.arange(4).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    _may_move(self, "resize_")
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return self._resize(shape, _dense(shape, memory_format))


def resize_as_(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """Give the tensor the shape of another one; see `resize_`."""
    shape = tuple(_tensor("resize_as_", "the_template", the_template).shape)
    return resize_(self, shape, memory_format=memory_format or contiguous_format)


# ---- functions of Python, one element after the other --------------------------------------------
def _numbers(self: Tensor) -> list[Any]:
    return self.detach().reshape(-1).tolist()  # type: ignore[no-any-return]


def _write(self: Tensor, values: list[Any]) -> Tensor:
    from plait_core._creation import tensor

    made = tensor(values, dtype=self.dtype)
    return self.copy_(made.reshape(tuple(self.shape)))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it; slow, and only on the CPU.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1, 2]).apply_(lambda x: 10 * x)
        tensor([10, 20])
    """
    return _write(self, [callable(value) for value in _numbers(self)])


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it and of `tensor`'s; slow."""
    other = _tensor("map_", "tensor", tensor).expand(tuple(self.shape))
    pairs = zip(_numbers(self), _numbers(other), strict=True)
    return _write(self, [callable(a, b) for a, b in pairs])


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace each element by what a Python function makes of it and of two others; slow."""
    both = _tensor("map2_", "x", x), _tensor("map2_", "y", y)
    others = [_numbers(other.expand(tuple(self.shape))) for other in both]
    return _write(self, [callable(*three) for three in zip(_numbers(self), *others, strict=True)])


def as_subclass(self: Tensor, cls: Any) -> Tensor:
    """Return the same elements as an instance of a class derived from Tensor."""
    result: Tensor = Tensor._make_subclass(cls, self, self.requires_grad and self.is_leaf)
    return result


METHODS: dict[str, Callable[..., Any]] = {
    "__array_namespace__": __array_namespace__,
    "__reversed__": __reversed__,
    "apply_": apply_,
    "as_subclass": as_subclass,
    "dim_order": dim_order,
    "get_device": get_device,
    "is_conj": is_lazy,
    "is_inference": is_lazy,
    "is_neg": is_lazy,
    "is_nonzero": is_nonzero,
    "is_pinned": is_pinned,
    "is_same_size": is_same_size,
    "is_set_to": is_set_to,
    "map2_": map2_,
    "map_": map_,
    "pin_memory": pin_memory,
    "resize_": resize_,
    "resize_as_": resize_as_,
    "resolve_conj": same,
    "resolve_neg": same,
    "set_": set_,
    "to_device": to_device,
    "untyped_storage": untyped_storage,
}
# where no operator has the name
FALLBACKS: dict[str, Callable[..., Any]] = {
    "expand_as": _like("expand_as", "expand"),
    "reshape_as": _like("reshape_as", "reshape"),
    "sum_to_size": sum_to_size,
    "view_as": _like("view_as", "view"),
    "where": where,
    **{
        f"{name}_": _in_place_view(f"{name}_", name)
        for name in ("squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze", "as_strided")
    },
}

# second names of operators, where they are no operators of their own
SECOND_NAMES = {
    name + form: first + form
    for form in ("", "_")
    for name, first in {
        "greater": "gt",
        "greater_equal": "ge",
        "less": "lt",
        "less_equal": "le",
        "not_equal": "ne",
    }.items()
}


def _is_on(kind: str) -> property:
    return property(lambda self: self.device.type == kind, doc=f"Whether the device is {kind}.")


def _never(what: str) -> property:
    return property(lambda self: False, doc=f"False: plait has no {what} tensors of this class.")


def _layout(self: Tensor) -> layout:
    return strided


def _adjoint(self: Tensor) -> Tensor:
    turned = self.mT
    return turned.conj() if self.is_complex() else turned


def _hermitian(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        raise _binding.ShapeError(
            f"H: a matrix is required, got shape {tuple(self.shape)}; use .mH for batches"
        )
    return _adjoint(self) if self.ndim else self


PROPERTIES: dict[str, property] = {
    "H": property(_hermitian, doc="The conjugate transpose of a matrix."),
    "mH": property(_adjoint, doc="The last two dimensions exchanged, conjugated."),
    "is_cpu": _is_on("cpu"),
    "is_cuda": _is_on("cuda"),
    "is_meta": _is_on("meta"),
    "is_mps": _is_on("mps"),
    "is_xpu": _is_on("xpu"),
    "is_mkldnn": _never("opaque"),
    "is_nested": _never("nested"),
    "is_quantized": _never("quantized"),
    "is_sparse": _never("sparse"),
    "is_sparse_csr": _never("compressed"),
    "layout": property(_layout, doc="strided: elements are reached by steps."),
}
