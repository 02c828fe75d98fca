"""The methods of `Tensor` that only PyTorch's programs ask for, bound while `torch` means plait."""

from __future__ import annotations

from typing import Any

__all__ = ["bind", "unbind"]

_MISSING = object()
_before: dict[str, Any] = {}


def type_(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Return the name of the tensor's type, or the tensor in another one.

    Example:
        >>> import plait, plait.torch
        >>> with plait.torch.installed():
        ...     plait.zeros(2).type(), plait.zeros(2).type("torch.LongTensor")
        ('torch.FloatTensor', tensor([0, 0]))
    """
    from plait.torch._tensor_types import dtype_of, name_of

    return name_of(self) if dtype is None else self.to(dtype_of(dtype, "type"))


def new(self: Any, *args: Any, device: Any = None) -> Any:
    """Return a tensor of this one's dtype: of sizes without values, or of a sequence's values.

    Example:
        >>> import plait, plait.torch
        >>> with plait.torch.installed():
        ...     plait.zeros(2, dtype=plait.int64).new([3, 4])
        tensor([3, 4])
    """
    import plait

    sizes = args[0] if len(args) == 1 and isinstance(args[0], plait.Size) else args
    if all(isinstance(size, int) for size in sizes):
        return plait.empty(sizes or (0,), dtype=self.dtype)
    if len(args) != 1:
        raise TypeError("new: sizes, or one sequence or tensor is required")
    if isinstance(args[0], plait.Tensor):
        return args[0].detach().to(self.dtype)
    return plait.tensor(args[0], dtype=self.dtype)


_METHODS = {"new": new, "type": type_}


def bind() -> None:
    """Bind the methods to plait's `Tensor`."""
    import plait

    for name, method in _METHODS.items():
        _before[name] = plait.Tensor.__dict__.get(name, _MISSING)
        setattr(plait.Tensor, name, method)


def unbind() -> None:
    """Put back what was there before `bind`."""
    import plait

    for name, method in _before.items():
        if method is _MISSING:
            delattr(plait.Tensor, name)
        else:
            setattr(plait.Tensor, name, method)
    _before.clear()
