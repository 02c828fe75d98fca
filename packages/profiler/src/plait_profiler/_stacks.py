"""Stacks with their times: a file for tools that draw flame graphs, and a flame graph."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from plait_profiler._recording import Recording
from plait_profiler._tables import time_text
from plait_profiler._tree import Array, Tree, contexts_of, tree_of

METRICS = (
    "self_cpu_time_total",
    "self_device_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)
_MARKS = str.maketrans(" ;\t\n", "____")  # these mean something in the file


def folded_stacks(
    recording: Recording, metric: str = "self_cpu_time_total", *, names: bool = False
) -> dict[tuple[str, ...], float]:
    """Return the time of each stack, outermost line first, in microseconds.

    Args:
        recording: of a profile.
        metric: ``self_cpu_time_total`` or ``self_device_time_total``.
        names: put the names of the events behind the lines, outermost first.

    Returns:
        Times above 0 by stack. A recording without stacks has the names of the events in place of
        lines. In a backward pass the stack is that of the forward call.

    Raises:
        ValueError: if `metric` is none of these.

    Example:
        >>> from plait_profiler import profile, record_function
        >>> from plait_profiler._stacks import folded_stacks
        >>> with profile() as prof, record_function("a"), record_function("b"):
        ...     total = sum(range(1000))
        >>> sorted(folded_stacks(prof.recording()))
        [('a',), ('a', 'b')]
    """
    if metric not in METRICS:
        raise ValueError(
            f"export_stacks: `metric` must be one of {', '.join(METRICS)}; got {metric!r}"
        )
    tree = tree_of(recording)
    value = tree.own_time if metric == "self_cpu_time_total" else tree.device_time
    lines = [
        tuple(f"{file}({line}): {function}" for file, line, function in reversed(context.stack))
        for context in recording.contexts
    ]
    with_lines = any(lines)
    context = contexts_of(recording) if with_lines else np.zeros(len(tree), np.int64)
    chain = np.zeros(len(tree), np.int64)
    chains: list[tuple[str, ...]] = [()]
    if names or not with_lines:
        chain, chains = _chains(recording, tree)
    rows = np.flatnonzero(value > 0)
    key = context[rows].astype(np.int64) * len(chains) + chain[rows]
    present, index = np.unique(key, return_inverse=True)
    sums = np.bincount(index.reshape(-1), value[rows], len(present)) / 1e3
    totals: dict[tuple[str, ...], float] = {}
    for number, time in zip(present.tolist(), sums.tolist(), strict=True):
        at, events = divmod(number, len(chains))
        stack = (lines[at] if with_lines else ()) + chains[events]
        if stack:
            totals[stack] = totals.get(stack, 0.0) + time
    return totals


def _chains(recording: Recording, tree: Tree) -> tuple[Array, list[tuple[str, ...]]]:
    """Return for each row the number of its chain of names, outermost first, and the chains."""
    names = {name: i for i, name in enumerate(dict.fromkeys(s.name for s in recording.signatures))}
    texts = list(names)
    name = np.array([names[s.name] for s in recording.signatures], np.int64)[tree.signature]
    chain = np.zeros(len(tree), np.int64)
    chains: list[tuple[str, ...]] = [()]
    for rows in tree.levels:
        outer = np.where(tree.parents[rows] >= 0, chain[tree.parents[rows]], 0)
        key = outer * len(texts) + name[rows]
        present, index = np.unique(key, return_inverse=True)
        chain[rows] = len(chains) + index.reshape(-1)
        for number in present.tolist():
            around, last = divmod(number, len(texts))
            chains.append((*chains[around], texts[last]))
    return chain, chains


def export_stacks(
    recording: Recording, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
) -> None:
    """Write a line for each stack: its frames, outermost first, and its microseconds.

    Tools that draw flame graphs read this format: ``outer;inner 42``. Spaces and semicolons in
    frames become underscores, and times below a microsecond are left out, as PyTorch does it.
    Equal stacks are one line. `folded_stacks` tells what the frames are.

    Args:
        recording: of a profile.
        path: of the file.
        metric: ``self_cpu_time_total`` or ``self_device_time_total``, also with ``cuda``, ``xpu``
            or ``privateuse1`` for ``device``.

    Raises:
        ValueError: if `metric` is none of these.

    Example:
        >>> import pathlib
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof, record_function("load data"):
        ...     total = sum(range(100000))
        >>> prof.events().export_stacks("stacks.txt")
        >>> pathlib.Path("stacks.txt").read_text().split()[0]
        'load_data'
    """
    stacks = folded_stacks(recording, metric)
    with open(path, "w", encoding="utf-8") as file:
        for stack, time in stacks.items():
            if int(time) > 0:
                text = ";".join(frame.translate(_MARKS) for frame in stack)
                file.write(f"{text} {int(time)}\n")


@dataclass
class _Frame:
    """A frame of the graph: the time of all stacks that begin with it, and the frames above it."""

    name: str
    time: float = 0.0
    inner: dict[str, _Frame] = field(default_factory=dict)


_HEIGHT = 17  # of a frame, in pixels
_WIDTH = 1200


def export_flame_graph(
    recording: Recording, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
) -> None:
    """Write an HTML page with a flame graph: lines of the program, and events above them.

    The width of a frame is the share of the time that it and the frames above it took; the order
    from left to right is that of the names. The page needs nothing else.

    Args:
        recording: of a profile.
        path: of the page.
        metric: as for `export_stacks`.

    Example:
        >>> import pathlib
        >>> from plait_profiler import profile, record_function
        >>> with profile() as prof, record_function("load"):
        ...     total = sum(range(1000))
        >>> prof.export_flame_graph("flames.html")
        >>> "load" in pathlib.Path("flames.html").read_text()
        True
    """
    root = _Frame("all")
    for stack, time in folded_stacks(recording, metric, names=True).items():
        root.time += time
        at = root
        for name in stack:
            at = at.inner.setdefault(name, _Frame(name))
            at.time += time
    shapes = list(_shapes(root))
    depth = 1 + max(level for level, _ in shapes)
    height = depth * _HEIGHT
    drawn = "".join(text for _, text in shapes)
    page = (
        '<!DOCTYPE html><html><head><meta charset="utf-8"><title>Flame graph</title><style>'
        "body{font:13px sans-serif} text{font:11px monospace} rect{stroke:#fff;stroke-width:.5}"
        f"</style></head><body><p>{html.escape(metric)}: {time_text(root.time)}</p>"
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}">'
        f'<g transform="translate(0,{height})">{drawn}</g></svg></body></html>'
    )
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def _shapes(root: _Frame) -> Iterator[tuple[int, str]]:
    """Yield the level and the drawing of a frame and of those above it, without tiny ones."""
    whole = root.time or 1.0
    scale = _WIDTH / whole
    todo = [(root, 0.0, 0)]
    while todo:
        frame, left, level = todo.pop()
        width = frame.time * scale
        if width < 0.3 and level:
            continue
        title = f"{frame.name}: {time_text(frame.time)}, {100 * frame.time / whole:.1f}%"
        letters = int(width / 6.7)
        name = (
            frame.name if len(frame.name) <= letters else frame.name[: max(letters - 2, 0)] + ".."
        )
        top = -(level + 1) * _HEIGHT
        label = f'<text x="{left * scale + 3:.1f}" y="{top + 12}">{html.escape(name)}</text>'
        yield (
            level,
            f"<g><title>{html.escape(title)}</title>"
            f'<rect x="{left * scale:.1f}" y="{top}" width="{width:.1f}" height="{_HEIGHT}"'
            f' fill="hsl({_hue(frame.name)},75%,68%)"/>{label if letters > 2 else ""}</g>',
        )
        for name in sorted(frame.inner):
            todo.append((frame.inner[name], left, level + 1))
            left += frame.inner[name].time


def _hue(name: str) -> int:
    """Return a warm colour that is the same for a name in every graph."""
    return sum(map(ord, name)) * 7 % 55
