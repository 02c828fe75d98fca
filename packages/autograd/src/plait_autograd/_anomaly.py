"""Anomaly mode: errors of a backward pass name the line of the forward call."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from types import CodeType
from typing import Any, NamedTuple

from plait_abi.frames import warn
from plait_autograd import _autograd, _saved
from plait_autograd._autograd import Node


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Turn anomaly mode on or off: at once, and until the end of a ``with``.

    While it is on, for all threads, every recorded call and every write keeps the source lines that
    it was made from (code objects and instruction offsets, never frames). Then

    - an error in a backward pass is preceded by a warning with the traceback of the forward call;
    - the error about a saved value that was overwritten names both lines;
    - with ``check_nan``, a node that returns NaN is an error. It names the operator, its line, its
      module, and the first operator of the forward pass that made a NaN (`find_nan` finds that one
      without a backward pass).

    Programs run slower in anomaly mode; it is for finding mistakes.

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

    def __exit__(self, *_: object) -> None:
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

    def __exit__(self, *_: object) -> None:
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
    """Return whether anomaly mode looks for NaN when it is on: the last `check_nan`, or True.

    Example:
        >>> import plait_autograd as pa
        >>> with pa.detect_anomaly(check_nan=False):
        ...     pa.is_anomaly_check_nan_enabled()
        False
    """
    return _autograd.anomaly_mode() != 1


class NanOrigin(NamedTuple):
    """The origin of the first NaN in a tensor's history, as `find_nan` returns it.

    Args:
        operator: Name of the node that made the NaN.
        argument: Name of the input that it came with, or an empty string.
        module: Dotted name of the module that was running, or an empty string.
        traceback: Where the forward operator was called.
        leaf: Name of the leaf that has the NaN, or an empty string.
        shape: Shape of the tensor, or None.

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
    """The name of the node that made the NaN, or used it first, such as ``LogBackward``."""
    argument: str
    """The argument that had the NaN: a leaf, or a tensor outside of the graph. It is empty if the
    call made the NaN, or if it was not recorded in anomaly mode.
    """
    module: str
    """The path of the module that made the call, such as ``Net.head.fc``; empty if there was none.
    """
    traceback: str
    """The lines of the call, as Python prints them."""
    leaf: str = ""
    """The name of the leaf that has the NaN, if `find_nan` was given names."""
    shape: tuple[int, ...] | None = None
    """The shape of the leaf that has the NaN; None if it is not in a leaf that requires grad."""


_UNKNOWN, _NONE, _TOOK = 0, 1, 3  # extra.hpp: Nan


def find_nan(
    tensor: Any, named_leaves: Iterable[tuple[str, Any]] | Mapping[str, Any] = ()
) -> NanOrigin | None:
    """Return the origin of the first NaN in a tensor's history, or None if there is none.

    Leaves are checked as well: a parameter that a diverging optimizer made NaN is an origin, and is
    reported with the operator that used it first. Calls must have been recorded in anomaly mode
    with ``check_nan``; of other calls only the leaves in ``named_leaves`` are checked, with their
    present values. None means that every call was checked, and that none made or read a NaN.

    Args:
        tensor: the tensor, for example a loss.
        named_leaves: pairs of name and tensor, such as ``model.named_parameters()``.

    Raises:
        RuntimeError: no NaN was found, but some or all calls were not checked.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.tensor([-1.0, 1.0], requires_grad=True)
        >>> with pa.detect_anomaly():
        ...     loss = (x.log() * 2).sum()
        >>> pa.find_nan(loss).operator
        'LogBackward'
        >>> w = pc.tensor([float("nan"), 1.0], requires_grad=True)
        >>> origin = pa.find_nan((w * 2).sum(), {"w": w})
        >>> origin.operator, origin.leaf, origin.shape
        ('MulBackward', 'w', (2,))
    """
    nodes = _history(tensor)
    named = dict(named_leaves)
    first = min((n for n in nodes if _nan(n) > _NONE), key=_sequence, default=None)
    by_leaf = _use_of_leaf(nodes, named)
    if by_leaf is not None and (first is None or by_leaf[0].sequence < first.sequence):
        node, name = by_leaf
        return _origin(node, "", name, tuple(named[name].shape))
    if first is not None:
        kind, argument, number, edge, shape = _autograd.node_nan(first)
        if kind == _TOOK and not argument:
            argument = f"input {number}"
        edges = _autograd.edges(first)
        leaf = edges[edge][0] if kind == _TOOK and edge < len(edges) else None
        return _origin(first, argument, _name_of(leaf, named), shape)
    if _is_leaf(tensor):
        own = next((name for name, each in named.items() if each is tensor), "")
        return NanOrigin("", "", "", "", own, tuple(tensor.shape)) if _has_nan(tensor) else None
    unknown = sum(_nan(node) == _UNKNOWN for node in nodes)
    if unknown or not nodes:
        raise RuntimeError(_not_known(unknown, len(nodes), bool(named)))
    return None


def _history(tensor: Any) -> list[Node]:
    """Return the nodes of a tensor's history, leaves included."""
    waiting = [_autograd.gradient_edge(tensor)[0]]
    visited: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in visited:
            visited.add(node)
            waiting += [to for to, _ in _autograd.edges(node)]
    return list(visited)


def _nan(node: Node) -> int:
    return _autograd.node_nan(node)[0]


def _sequence(node: Node) -> int:
    return node.sequence


def _is_leaf(tensor: Any) -> bool:
    return _autograd.requires_grad(tensor) and _autograd.grad_fn(tensor) is None


def _has_nan(tensor: Any) -> bool:
    values = tensor.detach()
    return bool((values != values).any())


def _name_of(leaf: Node | None, named: dict[str, Any]) -> str:
    if leaf is None:
        return ""
    return next((name for name, t in named.items() if _autograd.gradient_edge(t)[0] == leaf), "")


def _use_of_leaf(nodes: list[Node], named: dict[str, Any]) -> tuple[Node, str] | None:
    """Return the first unchecked call that used a leaf with a NaN, and the name of the leaf."""
    names: dict[Node | None, str] = {}
    for name, tensor in named.items():
        if _is_leaf(tensor) and _has_nan(tensor):
            names.setdefault(_autograd.gradient_edge(tensor)[0], name)
    uses = [
        (node, names[to])
        for node in nodes
        if _nan(node) == _UNKNOWN
        for to, _ in _autograd.edges(node)
        if to in names
    ]
    return min(uses, key=lambda use: use[0].sequence, default=None)


def _origin(node: Node, argument: str, leaf: str, shape: tuple[int, ...] | None) -> NanOrigin:
    site = _autograd.node_site(node)
    module = site[0] if site else ""
    return NanOrigin(node.name(), argument, module, forward_traceback(node), leaf, shape)


def _not_known(unknown: int, nodes: int, named: bool) -> str:
    if nodes:
        reason = f"{unknown} recorded calls were not looked at for NaN"
    else:
        reason = "the tensor has no recorded history"
    leaves = "the given leaves have no NaN" if named else "give `named_leaves` to look at leaves"
    return (
        f"find_nan: {reason}; run the forward pass within detect_anomaly() (check_nan=True) and "
        f"with a gradient to record; {leaves}"
    )


def forward_traceback(node: Node) -> str:
    """Return the lines that a node was recorded from, outermost first; empty outside anomaly mode.

    Args:
        node: A node of the graph.

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
    ]
    return "".join(traceback.format_list(frames))


def _failed(name: str, site: Any) -> None:
    """Warn of an error in a node; the engine calls this function before it raises the error."""
    where = _text(site)
    if where:
        text = f"Error detected in {name}. Traceback of the forward call that caused it:\n{where}"
    else:
        text = f"Error detected in {name}. It was recorded before anomaly mode was turned on."
    warn(text, RuntimeWarning)


_autograd.set_callbacks(_saved.pack, _failed)
