"""Let classes and modes make calls in the place of plait (docs/design/0033).

Plait's own protocol is ``__plait_function__``: an operator calls the function of its arguments'
classes. A package that brings another protocol names its attribute here, once, with one function
that answers for it. From then on operators, attributes and methods of tensors ask arguments whose
class has the attribute; those whose class is `Tensor` itself are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plait_abi import binding
from plait_core import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "EVERYBODY",
    "MODES",
    "NOBODY",
    "ask",
    "asked",
    "asking",
    "count_modes",
    "set_layer",
    "set_protocol",
    "switch_off",
    "unseen",
    "watch_thread",
]

EVERYBODY, MODES, NOBODY = 0, 1, 2


def set_protocol(
    name: str | None, handler: Callable[..., Any] | None = None, disabled: Any = None
) -> None:
    """Ask arguments whose class has an attribute, by way of one handler.

    Args:
        name: the attribute; None ends it.
        handler: a function of ``(function, asking, args, kwargs)``, where `asking` is a tuple of
            the arguments to ask, one of each class, subclasses before their bases, else from left
            to right. Its result is the call's; NotImplemented lets plait make the call.
        disabled: the attribute's value in classes that see no calls.

    Example:
        >>> import plait_core as pc
        >>> from plait_core import overrides
        >>> class Shout:
        ...     __shout__ = True
        >>> overrides.set_protocol("__shout__", lambda f, *rest: f.__name__.upper())
        >>> pc.relu(Shout()), pc.ones(2) + Shout()
        ('RELU', 'ADD')
        >>> overrides.set_protocol(None)
    """
    binding.set_protocol(name, handler, disabled)


def count_modes(change: int) -> int:
    """Change the number of modes, and return it; while it is above 0 the handler is asked about
    every call of every thread.

    Args:
        change: 1 or -1.

    Example:
        >>> from plait_core import overrides
        >>> overrides.count_modes(0)
        0
    """
    return _core._count_modes(change)


def switch_off(level: int) -> int:
    """Choose which handlers see this thread's calls: `EVERYBODY`, `MODES` or `NOBODY`; return the
    old choice.

    Args:
        level: The level.

    Example:
        >>> from plait_core import overrides
        >>> before = overrides.switch_off(overrides.NOBODY)
        >>> overrides.switch_off(before) == overrides.NOBODY
        True
    """
    return binding.switch_off(level)


@contextmanager
def asked(level: int) -> Iterator[None]:
    """A context in which at most the handlers of `level` see calls, in this thread.

    Example:
        >>> from plait_core import overrides
        >>> with overrides.asked(overrides.NOBODY):
        ...     pass
    """
    before = binding.switch_off(level)
    binding.switch_off(max(before, level))
    try:
        yield
    finally:
        binding.switch_off(before)


def ask(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the handler's answer to a call, or NotImplemented: for functions written in Python.

    Args:
        function: The function that was called.
        args: Its positional arguments.
        kwargs: Its keyword arguments.

    Example:
        >>> from plait_core import overrides
        >>> overrides.ask(len, ([1],), {})
        NotImplemented
    """
    return binding.ask(function, args, kwargs)


def asking(arguments: Iterable[Any]) -> tuple[Any, ...]:
    """Return the arguments whose classes would see the call, in their order.

    Args:
        arguments: The arguments of a call.

    Example:
        >>> import plait_core as pc
        >>> from plait_core import overrides
        >>> overrides.asking([pc.ones(2), 3])
        ()
    """
    return binding.asking(arguments)


def set_layer(
    function: Callable[..., Any] | None,
    attribute: str,
    disabled: Any = None,
    read: Callable[..., Any] | None = None,
) -> None:
    """Let a function serve calls below the one that records derivatives.

    It sees the calls on instances, made from now on, of classes derived from Tensor that have an
    attribute, and every call of threads that `watch_thread` marks; backward passes too.

    Args:
        function: a function of ``(name, form, args, targets)``: the operator with its overload; 0
            for the function, 1 for the in-place form, 2 for ``out=``; all arguments, in the order
            of the schema; and the tensors that the other forms write to. It returns the results,
            NotImplemented to let the call go on, or Ellipsis to let the operator's decomposition
            run, whose parts the function sees.
        attribute: the attribute by which classes are chosen.
        disabled: the attribute's value in classes that are not chosen.
        read: a function that returns the number in an instance of a chosen class, for ``item()``
            and similar methods, or NotImplemented.

    Example:
        >>> import plait_core as pc
        >>> from plait_core import overrides
        >>> overrides.set_layer(lambda name, *rest: print(name) or NotImplemented, "__seen__")
        >>> before = overrides.watch_thread(True)
        >>> y = pc.ones(2) * 3
        ones
        mul
        >>> before = overrides.watch_thread(False)
        >>> overrides.set_layer(None, "__seen__")
    """
    _core._watch_classes(attribute, disabled, binding.set_layer(function), read)


def watch_thread(on: bool) -> bool:
    """Let the layer see every call of this thread, or no longer; return whether it did.

    Args:
        on: Whether to watch.

    Example:
        >>> from plait_core import overrides
        >>> overrides.watch_thread(False)
        False
    """
    return binding.watch_thread(on)


def unseen(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function whose calls of operators the layer does not see.

    Args:
        function: The function that was called.
        *args: Its positional arguments.
        **kwargs: Its keyword arguments.

    Example:
        >>> from plait_core import overrides
        >>> overrides.unseen(abs, -3)
        3
    """
    return binding.unwatched(function, args, kwargs)
