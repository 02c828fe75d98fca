"""Grad mode: whether operators of a thread are recorded."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from plait_autograd._autograd import set_enabled

F = TypeVar("F", bound=Callable[..., Any])


class _Mode:
    """A context manager and decorator that sets the mode and restores the old one."""

    __slots__ = ("_before", "_on")

    def __init__(self, on: bool) -> None:
        self._on = on
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(set_enabled(self._on))

    def __exit__(self, *_: object) -> None:
        set_enabled(self._before.pop())

    def __call__(self, function: F) -> F:
        """Return a function that runs in this mode; so does every step of a generator function."""
        return _decorate(function, self._on)


def _decorate(function: F, on: bool) -> F:
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Any:
            return (yield from _steps(function(*args, **kwargs), on))

        return steps  # type: ignore[return-value]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = set_enabled(on)
        try:
            return function(*args, **kwargs)
        finally:
            set_enabled(before)

    return call  # type: ignore[return-value]


def _steps(generator: Any, on: bool) -> Any:
    """Yield what `generator` yields; the mode is in force only while `generator` runs."""
    resume: Callable[..., Any] = generator.send
    argument: Any = None
    try:
        while True:
            before = set_enabled(on)
            try:
                item = resume(argument)
            except StopIteration as end:
                return end.value
            finally:
                set_enabled(before)
            try:
                argument = yield item
                resume = generator.send
            except GeneratorExit:
                raise
            except BaseException as error:
                argument, resume = error, generator.throw
    finally:
        before = set_enabled(on)
        try:
            generator.close()
        finally:
            set_enabled(before)


class _FixedMode(_Mode):
    """A mode of a class, which may also be used as a decorator without a call."""

    __slots__ = ()
    _mode: bool

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else _decorate(function, cls._mode)

    def __init__(self, function: Any = None) -> None:
        super().__init__(self._mode)


class no_grad(_FixedMode):  # noqa: N801 - PyTorch's name
    """A context manager in which operators of this thread are not recorded.

    Results do not require grad, and leaves may be written in place. Views that are made in it are
    not tracked: a write to such a view changes its base but not the base's history. The version
    counter still counts the write, so values that were saved for a derivative are protected.

    Use it with ``with``, or as a decorator of functions and generators.

    Args:
        function: A function to decorate, or None.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> w = pc.ones(2, requires_grad=True)
        >>> with pa.no_grad():
        ...     y = w * 2
        >>> y.requires_grad
        False
    """

    __slots__ = ()
    _mode = False


class enable_grad(_FixedMode):  # noqa: N801
    """A context manager in which operators of this thread are recorded, also inside of `no_grad`.

    Args:
        function: A function to decorate, or None.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(2, requires_grad=True)
        >>> with pa.no_grad(), pa.enable_grad():
        ...     (x * 2).requires_grad
        True
    """

    __slots__ = ()
    _mode = True


class set_grad_enabled(_Mode):  # noqa: N801
    """Set whether operators on this thread are recorded: at once, and until the end of a ``with``.

    Args:
        mode: whether they are.

    Example:
        >>> import plait_autograd as pa
        >>> with pa.set_grad_enabled(False):
        ...     pa.is_grad_enabled()
        False
    """

    __slots__ = ()

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._before.append(set_enabled(self._on))

    def __enter__(self) -> None:
        set_enabled(self._on)

    def __exit__(self, *_: object) -> None:
        set_enabled(self._before[0])

    def __call__(self, function: F) -> F:
        set_enabled(self._before[0])
        return _decorate(function, self._on)


class inference_mode(_Mode):  # noqa: N801
    """Recording off, as in `no_grad`; ``inference_mode(False)`` turns it on, as in PyTorch.

    PyTorch's inference mode also omits version counters. Plait keeps them, so tensors made in this
    mode may be used in recorded operators afterwards.

    Args:
        mode: Whether recording is off.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> @pa.inference_mode()
        ... def predict(w):
        ...     return w * 2
        >>> predict(pc.ones(1, requires_grad=True)).requires_grad
        False
    """

    __slots__ = ("_outer",)

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):
            return cls(True)(mode)
        return super().__new__(cls)

    def __init__(self, mode: Any = True) -> None:
        super().__init__(not mode)
        self._outer: list[bool] = []

    def __enter__(self) -> None:
        self._outer.append(_inference.on)
        _inference.on = not self._on
        super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__(*_)
        _inference.on = self._outer.pop()

    def __call__(self, function: F) -> F:
        function = super().__call__(function)
        if inspect.isgeneratorfunction(function):
            return function  # between its steps the mode would be that of others

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            before, _inference.on = _inference.on, not self._on
            try:
                return function(*args, **kwargs)
            finally:
                _inference.on = before

        return call  # type: ignore[return-value]


class _Inference(threading.local):
    """Whether the innermost `inference_mode` of a thread is on."""

    on = False


_inference = _Inference()


def is_inference_mode_enabled() -> bool:
    """Return whether `inference_mode` is on.

    Example:
        >>> import plait_autograd as pa
        >>> with pa.inference_mode():
        ...     pa.is_inference_mode_enabled()
        True
    """
    return _inference.on
