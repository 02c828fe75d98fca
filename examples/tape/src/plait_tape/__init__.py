"""A second engine for plait, small enough to be read: docs/tutorial/second-engine explains it.

Importing this package puts its engine in force. Programs choose it by name, before anything
requires grad: ``plait.use(autograd="plait_tape")``, or ``PLAIT_COMPONENTS=autograd=plait_tape``.

    >>> import plait_core as pc, plait_tape
    >>> x = pc.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import plait_abi

plait_abi.load(plait_abi.paths(__name__)["libplait_tape.so"])

__all__ = [
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "release",
    "set_grad_enabled",
]

__version__ = "0.1.0"

RETAIN, CREATE, ALLOW_UNUSED = 1, 2, 4


def release() -> None:
    """Remove the engine: the one before it, if there was one, is in force again."""
    plait_abi.detach("plait_tape")


def is_grad_enabled() -> bool:
    """Return whether this thread records operators."""
    before = plait_abi.set_grad_enabled(True)
    plait_abi.set_grad_enabled(before)
    return before


class set_grad_enabled(contextlib.ContextDecorator):  # noqa: N801 - PyTorch's name
    """Switch recording on or off: at once, and until the end of a ``with`` block."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before = [plait_abi.set_grad_enabled(mode)]

    def __enter__(self) -> None:
        plait_abi.set_grad_enabled(self._mode)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        plait_abi.set_grad_enabled(self._before[-1])


class _Mode(set_grad_enabled):
    """A mode that begins with its ``with`` block; blocks may be nested."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(plait_abi.set_grad_enabled(self._mode))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        plait_abi.set_grad_enabled(self._before.pop())


class no_grad(_Mode):  # noqa: N801
    """Within it operators on this thread are not recorded; a context and a decorator.

    >>> import plait_core as pc, plait_tape
    >>> x = pc.ones(2, requires_grad=True)
    >>> with plait_tape.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_Mode):  # noqa: N801
    """Within it operators on this thread are recorded."""

    def __init__(self) -> None:
        super().__init__(True)


inference_mode = no_grad


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the derivatives of `tensors` to the ``.grad`` of the leaves that they depend on.

    Arguments are those of `plait_autograd.backward`.
    """
    gradients = None if grad_tensors is None else _tuple(grad_tensors)
    plait_abi.run_backward(_tuple(tensors), gradients, None, _flags(retain_graph, create_graph))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Any, ...]:
    """Return the derivatives of `outputs` with respect to `inputs`; no ``.grad`` changes.

    Arguments are those of `plait_autograd.grad`.

    >>> import plait_core as pc, plait_tape
    >>> x = pc.tensor(3.0, requires_grad=True)
    >>> (first,) = plait_tape.grad(x * x * x, x, create_graph=True)
    >>> (second,) = plait_tape.grad(first, x)
    >>> first.item(), second.item()
    (27.0, 18.0)
    """
    gradients = None if grad_outputs is None else _tuple(grad_outputs)
    flags = _flags(retain_graph, create_graph) | (ALLOW_UNUSED if allow_unused else 0)
    return plait_abi.run_backward(_tuple(outputs), gradients, _tuple(inputs), flags)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Sequence) else (value,)


def _flags(retain_graph: bool | None, create_graph: bool) -> int:
    retain = create_graph if retain_graph is None else retain_graph
    return (RETAIN if retain else 0) | (CREATE if create_graph else 0)
