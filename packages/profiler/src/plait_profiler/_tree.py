"""The tree of nested events: parents, sums over descendants, and which call launched which work.

`tree_of` computes it once for a recording; the reports are made from it.
"""

from __future__ import annotations

import weakref
from typing import Any, TypeAlias

import numpy as np

from plait_profiler._recording import Kind, Recording, is_span

Array: TypeAlias = np.ndarray[Any, Any]

_TREES: weakref.WeakKeyDictionary[Recording, Tree] = weakref.WeakKeyDictionary()


def tree_of(recording: Recording) -> Tree:
    """Return the recording's tree, which the first call computes.

    Example:
        >>> import numpy as np
        >>> from plait_profiler._recording import ROW, Kind, Recording, Signature
        >>> from plait_profiler._tree import tree_of
        >>> rows = np.zeros(3, ROW)
        >>> rows["start"], rows["duration"], rows["depth"] = [0, 1, 5], [10, 2, 3], [0, 1, 1]
        >>> rows["kind"] = Kind.RANGE
        >>> tree = tree_of(Recording(rows, [Signature("r", Kind.RANGE)]))
        >>> tree.own_time.tolist()
        [5, 2, 3]
    """
    if recording not in _TREES:
        _TREES[recording] = Tree(recording)
    return _TREES[recording]


def is_any_of(kind: Array, *kinds: Kind) -> Array:
    """Return which rows are of one of these kinds."""
    bits = 0
    for each in kinds:
        bits |= each
    return np.asarray((kind & np.uint16(bits)) != 0)


class Tree:
    """Columns of a recording, and the events around each row.

    Attributes:
        kind, start, link, signature, context, process: as in the rows.
        duration: nanoseconds; 0 for rows without an end.
        span: which rows are events of the host with a begin and an end; STEP is not among them.
        parents: as `Recording.parents`.
        own_time: of a span, its nanoseconds minus those of its children; else 0.
        backward: which rows are part of a backward pass: a NODE, a BACKWARD, or a row within one.
        device_rows, launched_by: the DEVICE rows, and for each the OP row that launched it, or -1.
        device_time: nanoseconds of the accelerator's work that an OP launched itself.
    """

    def __init__(self, recording: Recording) -> None:
        rows = recording.rows
        column = np.ascontiguousarray
        self.kind, self.start = column(rows["kind"]), column(rows["start"]).astype(np.int64)
        self.link, self.process = rows["link"], rows["process"]  # not copied: few are read
        self.signature, self.context = column(rows["signature"]), column(rows["context"])
        self.span = is_span(self.kind)
        timed = self.span | is_any_of(self.kind, Kind.STEP, Kind.DEVICE)
        self.duration = np.where(timed, rows["duration"], 0).astype(np.int64)
        self.parents = recording.parents()
        self._levels = self._rows_by_depth(rows)
        span_time = np.where(self.span, self.duration, 0)
        inner = np.flatnonzero(self.span & (self.parents >= 0))
        within = np.bincount(self.parents[inner], span_time[inner], len(rows))
        self.own_time = span_time - within.astype(np.int64)
        passes = is_any_of(self.kind, Kind.NODE, Kind.BACKWARD)
        self.backward = passes | (self.nearest(passes) >= 0)
        self.device_rows, self.launched_by = self._launches(rows)
        self.device_time = np.zeros(len(rows), np.int64)
        launched = self.launched_by >= 0
        np.add.at(
            self.device_time, self.launched_by[launched], self.duration[self.device_rows[launched]]
        )

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def levels(self) -> list[Array]:
        """The rows without a parent, and then those of each depth that have one."""
        return [np.flatnonzero(self.parents < 0), *self._levels]

    def _rows_by_depth(self, rows: Array) -> list[Array]:
        """Return the rows that have a parent, those of each depth in an array."""
        inner = np.flatnonzero(self.parents >= 0)
        depth = rows["depth"][inner]
        order = np.argsort(depth, kind="stable")
        borders = np.flatnonzero(np.diff(depth[order])) + 1
        return np.split(inner[order], borders) if len(inner) else []

    def _launches(self, rows: Array) -> tuple[Array, Array]:
        """Return the DEVICE rows, and for each the OP row that launched it, or -1."""
        device_rows = np.flatnonzero(self.kind == Kind.DEVICE)
        if not len(device_rows):
            return device_rows, device_rows
        launches = np.flatnonzero((self.kind == Kind.OP) & (rows["a"] != 0))
        launched_by = matching(
            (self.process[launches], rows["a"][launches]),
            (self.process[device_rows], rows["a"][device_rows]),
            launches,
        )
        return device_rows, launched_by

    def totals(self, values: Array, *, known_first: bool = False) -> Array:
        """Return for each row the sum of its value and those of its descendants.

        With `known_first`, a row whose own value is not 0 keeps that value instead of a sum.
        """
        totals = values.copy()
        for rows in reversed(self._levels):
            around = self.parents[rows]  # ascending
            first = np.flatnonzero(np.diff(around, prepend=-1))
            inner = totals[rows]
            if known_first:
                inner = np.where(values[rows] != 0, values[rows], inner)
            totals[around[first]] += np.add.reduceat(inner, first)
        return np.where(values != 0, values, totals) if known_first else totals

    def nearest(self, mask: Array) -> Array:
        """Return for each row its innermost ancestor for which the mask is true, or -1."""
        result = np.full(len(self), -1, np.int64)
        for rows in self._levels:
            around = self.parents[rows]
            result[rows] = np.where(mask[around], around, result[around])
        return result

    def outermost(self, mask: Array) -> Array:
        """Return for each row its outermost ancestor, or itself, with a true mask; else -1."""
        result = np.where(mask, np.arange(len(self)), -1)
        for rows in self._levels:
            further = result[self.parents[rows]]
            result[rows] = np.where(further >= 0, further, result[rows])
        return result

    def has_ancestor_in_group(self, group: Array) -> Array:
        """Return which rows have an ancestor of the same group."""
        within = np.zeros(len(self), bool)
        rows = np.flatnonzero(self.parents >= 0)
        around = self.parents[rows]
        while len(rows):
            same = group[around] == group[rows]
            within[rows[same]] = True
            further = self.parents[around]
            remaining = ~same & (further >= 0)
            rows, around = rows[remaining], further[remaining]
        return within


def matching(keys: tuple[Array, Array], searched: tuple[Array, Array], values: Array) -> Array:
    """Return the value of the first key that is equal to each searched pair, or -1."""
    if not len(values):
        return np.full(len(searched[0]), -1, np.int64)
    both = [np.concatenate(pair) for pair in zip(keys, searched, strict=True)]
    order = np.lexsort((both[1], both[0]))  # stable: keys come before what is searched
    first, second = both[0][order], both[1][order]
    new = np.ones(len(order), bool)
    new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    head = order[np.flatnonzero(new)][np.cumsum(new) - 1]
    result = np.full(len(order), -1, np.int64)
    inside = head < len(values)
    result[order[inside]] = values[head[inside]]
    return result[len(values) :]


def contexts_of(recording: Recording) -> Array:
    """Return for each row the index of its context; in a backward pass that of the forward call.

    A NODE has the context of the operator that recorded it (their `link` is the same number), and
    all events within the NODE have it too. A node that an operator of a backward pass recorded has
    the context of that operator, so that gradients of gradients lead to the same line. Other rows,
    and nodes whose operator was not recorded, have their own.

    Example:
        >>> import numpy as np
        >>> from plait_profiler._recording import ROW, Context, Kind, Recording, Signature
        >>> from plait_profiler._tree import contexts_of
        >>> rows = np.zeros(3, ROW)
        >>> rows["kind"] = Kind.OP, Kind.NODE, Kind.OP
        >>> rows["start"], rows["duration"], rows["depth"] = [0, 5, 6], [3, 4, 1], [0, 0, 1]
        >>> rows["link"], rows["context"] = [7, 7, 0], [1, 0, 0]
        >>> signatures = [Signature("mul", Kind.OP)]
        >>> contexts_of(Recording(rows, signatures, [Context(), Context("Net")])).tolist()
        [1, 1, 1]
    """
    tree = tree_of(recording)
    nodes = np.flatnonzero(tree.kind == Kind.NODE)
    if not len(nodes):
        return tree.context
    calls = np.flatnonzero((tree.kind == Kind.OP) & (tree.link != 0))
    recorded_by = matching(
        (tree.process[calls], tree.link[calls]), (tree.process[nodes], tree.link[nodes]), calls
    )
    source = tree.nearest(tree.kind == Kind.NODE)
    source = np.where(source >= 0, source, np.arange(len(tree)))
    source[nodes] = np.where(recorded_by >= 0, recorded_by, nodes)
    unknown = nodes[recorded_by < 0]
    source[unknown] = unknown
    for _ in range(64):  # each step doubles the distance; the limit ends cycles of links
        further = source[source]
        if np.array_equal(further, source):
            break
        source = further
    return tree.context[source]
