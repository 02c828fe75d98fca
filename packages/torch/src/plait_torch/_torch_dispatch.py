"""``__torch_dispatch__``: modes and classes derived from Tensor that see the operators below
derivatives, those of backward passes too.

Plait's core calls `called` as a layer (`plait_core.overrides`): for each operator of a thread with
a mode, and for each one on an instance of a class with ``__torch_dispatch__``.
"""

from __future__ import annotations

import threading
from typing import Any

import plait
from plait_core import overrides

# operators that arrive as those of which plait can make them, as in PyTorch
_TAKEN_APART = frozenset({"linear"})


class _Thread(threading.local):
    def __init__(self) -> None:
        self.modes: list[Any] = []


_thread = _Thread()


def modes() -> list[Any]:
    """Return the modes of this thread, the innermost last."""
    return _thread.modes


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Return the result of the call, which no class sees; as a class's ``__torch_dispatch__`` it
    says that the class sees no calls.
    """
    return overrides.unseen(func, *args, **(kwargs or {}))


def _with_dispatch(values: Any) -> list[Any]:
    """Return one instance of each class that sees calls, subclasses first."""
    tensor = plait.Tensor
    results: list[Any] = []
    todo = list(values)
    while todo:
        value = todo.pop(0)
        if isinstance(value, (tuple, list)):
            todo[:0] = value
        elif isinstance(value, tensor) and type(value) is not tensor:
            kind = type(value)
            seen = getattr(kind, "__torch_dispatch__", disabled)
            if seen is disabled or any(type(each) is kind for each in results):
                continue
            at = next((i for i, each in enumerate(results) if issubclass(kind, type(each))), None)
            results.insert(len(results) if at is None else at, value)
    return results


def ask(func: Any, args: Any, kwargs: Any) -> Any:
    """Return what the innermost mode, or a class, makes of a call; NotImplemented if there is
    none.
    """
    watch = overrides.watch_thread
    request = _with_dispatch([*args, *kwargs.values()])
    types = tuple(type(each) for each in request)
    stack = modes()
    if stack:
        mode = stack.pop()
        watch(bool(stack))
        try:
            answer = mode.__torch_dispatch__(func, types, args, kwargs)
        finally:
            stack.append(mode)
        if answer is not NotImplemented:
            return answer
    watch(bool(stack))
    for each in request:
        answer = type(each).__torch_dispatch__(func, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    if request or stack:
        raise TypeError(
            f"{func}: no implementation found on types that implement __torch_dispatch__: "
            f"{[kind.__qualname__ for kind in types] or [type(stack[-1]).__qualname__]}"
        )
    return NotImplemented


def called(name: str, form: int, args: Any, targets: Any) -> Any:
    """Serve a call that plait's core sees: the layer's function."""
    if name in _TAKEN_APART and form == 0:
        return Ellipsis
    from plait_torch import _aten

    func, short, kwargs = _aten.of_call(name, form, args, targets)
    return ask(func, short, kwargs)


def read(tensor: Any) -> Any:
    """Return the number in an instance of a class that sees calls."""
    if not getattr(tensor, "_is_wrapper", False):
        return NotImplemented
    from plait_torch import _aten

    func = _aten.packet("_local_scalar_dense").default
    return type(tensor).__torch_dispatch__(func, (type(tensor),), (tensor,), {})


class TorchDispatchMode:
    """A context that sees the operators of its thread, below derivatives.

    Example:
        >>> import plait, plait_torch
        >>> from plait_torch._torch_dispatch import TorchDispatchMode
        >>> class Log(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> x = plait.ones(2, requires_grad=True)
        >>> with plait_torch.installed(), Log():
        ...     y = (x * 2).sum()
        aten.mul.Tensor
        aten.sum.default
    """

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError(
                "plait_torch: TorchDispatchMode: keys of modes are not supported"
            )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        push(self)
        return self

    def __exit__(self, *exception: object) -> None:
        pop()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a new mode; an older name of the call."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return False."""
        return False


_bound = False


def push(mode: Any) -> None:
    """Add a mode to those of this thread."""
    _register()
    modes().append(mode)
    overrides.watch_thread(True)


def pop() -> Any:
    """Remove the innermost mode of this thread, and return it."""
    mode = modes().pop()
    overrides.watch_thread(bool(modes()))
    return mode


def _register() -> None:
    global _bound
    if not _bound:
        overrides.set_layer(called, "__torch_dispatch__", disabled, read)
        _bound = True


def _make_wrapper_subclass(
    cls: Any, size: Any, strides: Any = None, storage_offset: Any = None, memory_format: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, dispatch_sizes_strides_policy: Any = None,
    dispatch_device: bool = False, dispatch_layout: bool = False, **others: Any,
) -> Any:  # fmt: skip
    """Return an instance of a class derived from Tensor that has a shape, a dtype and a device, and
    whose elements only its ``__torch_dispatch__`` knows.

    Args:
        cls: the class.
        size, strides, dtype, device, requires_grad: what the instance shows.
        storage_offset, memory_format, layout, pin_memory: have no effect.
        dispatch_sizes_strides_policy, dispatch_device, dispatch_layout: have no effect; properties
            of the class come first in any case.
    """
    if getattr(cls, "__torch_dispatch__", disabled) is disabled:
        raise RuntimeError(
            f"_make_wrapper_subclass: {cls.__name__} has no __torch_dispatch__, so its elements "
            "cannot be found"
        )
    _register()
    size = tuple(int(each) for each in size)
    options = {"dtype": dtype, "device": device}
    with overrides.asked(overrides.NOBODY):
        make = plait.empty if strides is None else plait.empty_strided
        more = () if strides is None else (tuple(int(each) for each in strides),)
        data = overrides.unseen(make, size, *more, **options)
        result = plait.Tensor._make_subclass(cls, data, requires_grad)
        plait.Tensor.__setattr__(result, "_is_wrapper", True)
    return result


_METHODS = {
    "__torch_dispatch__": staticmethod(disabled),
    "_make_wrapper_subclass": staticmethod(_make_wrapper_subclass),
}


def bind() -> None:
    """Let classes with ``__torch_dispatch__`` see calls from now on."""
    for name, method in _METHODS.items():
        setattr(plait.Tensor, name, method)


def composed(function: Any, args: tuple[Any, ...]) -> Any:
    """Return what a call of a function is made of, where that takes shapes which the function
    refuses: the product of two matrices arrives as `mm`, whatever their shapes.
    """
    if len(args) != 2 or getattr(function, "__name__", "") not in ("matmul", "__matmul__"):
        return function
    matrices = all(isinstance(each, plait.Tensor) and each.ndim == 2 for each in args)
    return plait.mm if matrices and _with_dispatch(args) else function


def sees_calls(cls: Any) -> bool:
    """Return whether a class has ``__torch_dispatch__``."""
    return getattr(cls, "__torch_dispatch__", disabled) is not disabled


def watch(cls: Any) -> None:
    """Begin with calls on instances of a class, if it has ``__torch_dispatch__``."""
    if not sees_calls(cls):
        return
    _register()


def unbind() -> None:
    """Restore what was before `bind`."""
    global _bound
    if _bound:
        overrides.set_layer(None, "__torch_dispatch__", disabled)
        _bound = False
    for name in _METHODS:
        delattr(plait.Tensor, name)
