"""Anomaly mode: errors of a backward pass name the line of the forward call."""

from __future__ import annotations

import traceback
import warnings
from types import CodeType, TracebackType
from typing import Any, NamedTuple

from plait_autograd import _autograd, _saved
from plait_autograd._autograd import Node

__all__ = [
    "NanOrigin",
    "detect_anomaly",
    "find_nan",
    "forward_traceback",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "set_detect_anomaly",
]

_OURS = tuple(f"/plait_{name}/" for name in ("abi", "ops", "core", "autograd", "nn", "optim"))


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Turn anomaly mode on or off: at once, and until the end of a ``with``.

    While it is on, for all threads, every recorded call keeps the lines it was made from (code
    objects and instruction offsets, never frames), and every write its own. Then

    - an error in a backward pass is preceded by a warning with the traceback of the forward call;
    - the error about a saved value that was overwritten names both lines;
    - with ``check_nan``, a node that returns NaN is an error. It names the operator, its line, its
      module, and the first operator of the forward pass that made a NaN (`find_nan` finds that one
      without a backward pass).

    It slows programs down; it is for finding mistakes.

    Args:
        mode: on or off.
        check_nan: look for NaN.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> with pa.set_detect_anomaly(True):
        ...     pa.is_anomaly_enabled()
        True
        >>> pa.is_anomaly_enabled()
        False
    """

    __slots__ = ("_before",)

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _autograd.anomaly_mode()
        _autograd.set_anomaly(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _autograd.set_anomaly(bool(self._before), self._before != 1)


class detect_anomaly:  # noqa: N801
    """Anomaly mode for the time of a ``with``; see `set_detect_anomaly`.

    Args:
        check_nan: look for NaN.

    Example:
        >>> import plait_core as pc, plait_autograd as pa, warnings
        >>> x = pc.zeros(1, requires_grad=True)
        >>> with pa.detect_anomaly(), warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     try:
        ...         (x.sqrt() * 0).sum().backward()
        ...     except RuntimeError as error:
        ...         print(str(error)[:31])
        SqrtBackward: it returned NaN a
    """

    __slots__ = ("_before", "_check_nan")

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = bool(check_nan)
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(_autograd.anomaly_mode())
        _autograd.set_anomaly(True, self._check_nan)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        before = self._before.pop()
        _autograd.set_anomaly(bool(before), before != 1)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on.

    Example:
        >>> import plait_autograd as pa
        >>> pa.is_anomaly_enabled()
        False
    """
    return bool(_autograd.anomaly_mode())


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode would look for NaN: what the last call asked for, or True.

    Example:
        >>> import plait_autograd as pa
        >>> with pa.detect_anomaly(check_nan=False):
        ...     pa.is_anomaly_check_nan_enabled()
        False
    """
    return _autograd.anomaly_mode() != 1


class NanOrigin(NamedTuple):
    """The first call of a forward pass that gave NaN, as `find_nan` returns it.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.tensor([-1.0], requires_grad=True)
        >>> with pa.detect_anomaly():
        ...     y = x.sqrt() + 1
        >>> origin = pa.find_nan(y)
        >>> origin.operator, origin.module
        ('SqrtBackward', '')
    """

    operator: str
    """The name of its node, as ``LogBackward``."""
    argument: str
    """The argument that brought the NaN in from outside the graph; empty if the call made it."""
    module: str
    """The path of the module that it ran in, as ``Net.head.fc``; empty if there was none."""
    traceback: str
    """The lines of the call, as Python prints them."""


def find_nan(tensor: Any) -> NanOrigin | None:
    """Return the first recorded call in a tensor's history whose result had a NaN, or None.

    Only calls that were recorded in anomaly mode with ``check_nan`` are known.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.tensor([-1.0, 1.0], requires_grad=True)
        >>> with pa.detect_anomaly():
        ...     loss = (x.log() * 2).sum()
        >>> pa.find_nan(loss).operator
        'LogBackward'
    """
    first: Node | None = None
    node, _ = _autograd.place(tensor)
    waiting = [node]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if _autograd.node_nan(node)[0] and (first is None or node.sequence < first.sequence):
            first = node
        waiting += [to for to, _ in node.next_functions]
    if first is None:
        return None
    site = _autograd.node_site(first)
    module = site[0] if site else ""
    return NanOrigin(first.name(), _autograd.node_nan(first)[1], module, forward_traceback(first))


def forward_traceback(node: Node) -> str:
    """Return the lines that a node was recorded from, outermost first; empty outside anomaly mode.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.forward_traceback((2 * pc.ones(1, requires_grad=True)).grad_fn)
        ''
    """
    return _text(_autograd.node_site(node))


def _line(code: CodeType, offset: int) -> int:
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def _text(site: Any) -> str:
    if not site:
        return ""
    frames = [
        traceback.FrameSummary(code.co_filename, _line(code, offset), code.co_name)
        for code, offset in reversed(site[1])
        if not any(ours in code.co_filename for ours in _OURS)
    ]
    return "".join(traceback.format_list(frames))


def _failed(name: str, site: Any) -> None:
    """Tell of an error in a node; the engine calls it before the error is raised."""
    where = _text(site)
    if where:
        text = f"Error detected in {name}. Traceback of the forward call that caused it:\n{where}"
    else:
        text = f"Error detected in {name}. It was recorded before anomaly mode was turned on."
    warnings.warn(text, RuntimeWarning, stacklevel=2)


_autograd.set_callbacks(_saved.pack, _failed)
