"""Methods that give a tensor another storage or shape, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import binding
from plait_core._core import Tensor
from plait_core._docstrings import example as shown
from plait_core._tensor._memory_formats import contiguous_format
from plait_core._tensor._storages import UntypedStorage, refuse_batched, storage_of
from plait_core.engine import loaded_part


def _may_move(self: Tensor, name: str) -> None:
    if self.requires_grad:
        raise RuntimeError(
            f"{name}: the tensor must not require grad; call detach() first, or assign to its .data"
        )


def set_(
    self: Tensor,
    source: Tensor | UntypedStorage | None = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Make the tensor a view of the storage of another one.

    Args:
        source: a tensor or a storage; None: an empty storage.
        storage_offset: offset of the first element, in elements.
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
        self.data = binding.operator("empty")(0, dtype=self.dtype, device=self.device)
        return self
    if hasattr(source, "untyped"):  # storages with a dtype too
        source = source.untyped()
    if not isinstance(source, (Tensor, UntypedStorage)):
        raise TypeError(f"set_: `source` must be a Tensor or storage, got {type(source).__name__}")
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise binding.DTypeError(
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
    empty = binding.operator("empty")
    return empty(shape, device="meta", memory_format=memory_format).stride()  # type: ignore[no-any-return]


def resize_(
    self: Tensor, *sizes: Any, size: Any = None, memory_format: str = contiguous_format
) -> Tensor:
    """Give the tensor another shape. Elements keep their order in memory; new ones are not
    initialised.

    Args:
        sizes: the new shape.
        size: the new shape, in place of `sizes`.
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
    refuse_batched(self, "resize_")
    if size is not None and sizes:
        raise TypeError("resize_: sizes are required, or `size`, not both")
    sizes = sizes if size is None else (size,)
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return self._resize(shape, _dense(shape, memory_format))


def resize_as_(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """Give the tensor the shape of another one; see `resize_`.

    Args:
        the_template: The tensor whose shape is taken.
        memory_format: A memory format; None keeps the order of dimensions.

    Example:
        >>> import plait_core as pc
        >>> pc.arange(4).resize_as_(pc.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    if not isinstance(the_template, Tensor):
        raise TypeError(
            f"resize_as_: `the_template` must be a Tensor, got {type(the_template).__name__}"
        )
    shape = tuple(the_template.shape)
    return resize_(self, shape, memory_format=memory_format or contiguous_format)


def _in_place_view(name: str, operator: str, example: str) -> Callable[..., Tensor]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        def view(of: Tensor) -> Tensor:
            return getattr(of, operator)(*args, **kwargs)  # type: ignore[no-any-return]

        become = loaded_part("_view_in_place")
        if become is not None:
            become(self, name, view)
            return self
        if self.requires_grad:  # with another engine
            raise RuntimeError(
                f"{name}: the tensor must not require grad; use "
                f"x = x.{operator}(...), which makes a view"
            )
        self.data = view(self.detach())
        return self

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = (
        f"Give the tensor itself the shape and strides of ``self.{operator}(...)``.\n\n"
        f"Raises:\n    RuntimeError: if it is a leaf that requires grad, outside of no_grad().\n\n"
        f"{shown(example)}"
    )
    return method


METHODS: dict[str, Callable[..., Any]] = {
    "resize_": resize_,
    "resize_as_": resize_as_,
    "set_": set_,
}
# methods that are used if no operator has their name
FALLBACKS: dict[str, Callable[..., Any]] = {
    f"{name}_": _in_place_view(f"{name}_", name, example)
    for name, example in {
        "as_strided": ">>> pc.arange(4).as_strided_((2, 2), (1, 1)).tolist()\n[[0, 1], [1, 2]]",
        "squeeze": ">>> pc.zeros(2, 1, 3).squeeze_(1).shape\nplait.Size([2, 3])",
        "swapaxes": ">>> pc.zeros(2, 3).swapaxes_(0, 1).shape\nplait.Size([3, 2])",
        "swapdims": ">>> pc.zeros(2, 3).swapdims_(0, 1).shape\nplait.Size([3, 2])",
        "t": ">>> pc.zeros(2, 3).t_().shape\nplait.Size([3, 2])",
        "transpose": ">>> pc.zeros(2, 3).transpose_(0, 1).shape\nplait.Size([3, 2])",
        "unsqueeze": ">>> pc.zeros(2, 3).unsqueeze_(0).shape\nplait.Size([1, 2, 3])",
    }.items()
}
