"""Sums over events with the same key, computed from the columns of a recording."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plait_profiler._recording import Context, Kind, Recording, Signature
from plait_profiler._tree import Array, Tree, contexts_of, is_any_of, tree_of

BY = ("name", "signature", "module", "line")

CATEGORIES = {
    Kind.OP: "operator",
    Kind.NODE: "backward",
    Kind.BACKWARD: "backward",
    Kind.RANGE: "range",
    Kind.COLLECTIVE: "collective",
    Kind.DATA: "data",
    Kind.STEP: "step",
}

_KINDS = tuple(Kind)

_PACKAGES = "abi|autograd|conformance|core|data|multiprocessing|nn|ops|optim|profiler|torch"
_OF_PLAIT = re.compile(
    rf"[\\/](plait_({_PACKAGES})|((site|dist)-packages|packages[\\/]plait[\\/]src)[\\/]plait)[\\/]"
)


@dataclass(frozen=True)
class Label:
    """What the events of one sum have in common; `apart`: forward events may have a sum too."""

    name: str
    category: str
    backward: bool
    apart: bool
    shapes: list[Any] | None = None
    stack: list[str] = field(default_factory=list)
    module_type: str = ""
    arguments: str = ""


@dataclass(frozen=True)
class Sums:
    """Labels, and for each attribute of `EventAverage` an array with their sums; times in ns."""

    labels: list[Label]
    values: dict[str, Array]


@dataclass(frozen=True)
class Work:
    """For each row the operations on numbers, or bytes: in all, and without those of rows around
    or within that have been counted."""

    total: Array
    own: Array


def numbered(items: Sequence[Any], key: Callable[[Any], Hashable]) -> tuple[Array, list[int]]:
    """Number the keys of items: return each item's number, and the first item of each number."""
    numbers: dict[Hashable, int] = {}
    first: list[int] = []
    result = np.zeros(len(items), np.int64)
    for index, item in enumerate(items):
        number = numbers.setdefault(key(item), len(numbers))
        if number == len(first):
            first.append(index)
        result[index] = number
    return result, first


def frame_text(frame: tuple[str, int, str]) -> str:
    """Return a line of a stack as PyTorch shows it."""
    return f"{frame[0]}({frame[1]}): {frame[2]}"


def line_of(context: Context) -> str:
    """Return the innermost line outside of plait's packages, as text; "" without a stack."""
    for frame in context.stack:
        if not _OF_PLAIT.search(frame[0]):
            return frame_text(frame)
    return frame_text(context.stack[0]) if context.stack else ""


def _arguments(signature: Signature) -> str:
    """Return the text of the arguments: ``(float32[4, 8], float32[8, 2])``; "" without any."""
    return f"({', '.join(map(_argument_text, signature.inputs))})" if signature.inputs else ""


def _name(signature: Signature) -> str:
    """Return the name; that of a step without its number, as PyTorch has it."""
    if signature.kind == Kind.STEP:
        return re.sub(r"#\d+$", "*", signature.name)
    return signature.name


def _argument_text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_argument_text, value))}]"
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str):
        dtype, shape, strides = value
        return f"{dtype}{list(shape)}" + (f" by {list(strides)}" if strides else "")
    return repr(value)


def bytes_by_row(recording: Recording) -> tuple[Array, Array]:
    """Return for each row the bytes that it took of the host's and of devices' memory; a FREE row
    has a negative number."""
    rows, tree = recording.rows, tree_of(recording)
    change = np.zeros(len(tree), np.int64)
    for kind, sign in ((Kind.ALLOC, 1), (Kind.FREE, -1)):
        which = np.flatnonzero(tree.kind == kind)
        change[which] = sign * rows["a"][which].astype(np.int64)
    on_host = rows["device"] >> 8 <= 1
    return np.where(on_host, change, 0), np.where(on_host, 0, change)


def work_of(recording: Recording, amount: Callable[[Signature], int]) -> Work:
    """Return for each row the work that `amount` gives for the signatures of operators.

    A composite operator with the events of others within it has the sum of theirs. Another one has
    its own, and that of the operators within it is not counted again in what is around it.
    """
    tree = tree_of(recording)
    each = np.array([amount(signature) for signature in recording.signatures], np.int64)
    zeros = np.zeros(len(tree), np.int64)
    if not each.any():
        return Work(zeros, zeros)
    composite = np.array([signature.composite for signature in recording.signatures], bool)
    calls = tree.kind == Kind.OP
    inner = tree.parents[calls & (tree.parents >= 0)]
    of_others = np.zeros(len(tree), bool)
    of_others[inner] = True
    of_others &= composite[tree.signature]
    operations = np.where(calls & ~of_others, each[tree.signature], 0)
    own = np.where(tree.nearest(operations != 0) < 0, operations, 0)
    return Work(tree.totals(operations, known_first=True), own)


def sums_of(recording: Recording, by: str, shapes: bool = False, stack: int = 0) -> Sums:
    """Return sums of the events of a recording; see `key_averages` for the arguments."""
    tree = tree_of(recording)
    events = tree.span | (tree.kind == Kind.STEP)
    by_context = by in ("module", "line")
    if by_context:
        events = tree.span
    rows = np.flatnonzero(events)
    group = np.full(len(tree), -1, np.int64)
    if by_context:
        labels, group[rows] = _by_context(recording, rows, by)
    else:
        labels, group[rows] = _by_name(recording, rows, by, shapes, stack)
    values = _columns(recording, rows, group, len(labels))
    if by_context:
        values["count"] = _count(group, tree.kind == Kind.OP, len(labels))
    order = np.argsort(_first_starts(tree, rows, group[rows], len(labels)), kind="stable")
    sums = Sums([labels[i] for i in order], {key: each[order] for key, each in values.items()})
    return _with_modules_within(sums) if by == "module" else sums


def _by_name(
    recording: Recording, rows: Array, by: str, shapes: bool, stack: int
) -> tuple[list[Label], Array]:
    tree = tree_of(recording)
    signatures, contexts = recording.signatures, recording.contexts

    def key_of(signature: Signature) -> Hashable:
        if by == "signature":
            return _name(signature), _arguments(signature)
        return _name(signature), repr(signature.shapes) if shapes else ""

    name, first = numbered(signatures, key_of)
    place, first_place = np.zeros(len(contexts), np.int64), [0]
    if stack:
        place, first_place = numbered(contexts, lambda c: c.stack[:stack])
    kind = tree.kind[rows]
    bit = np.zeros(max(Kind) + 1, np.int64)
    bit[[int(each) for each in _KINDS]] = range(len(_KINDS))
    separate = tree.backward[rows] & ~is_any_of(kind, Kind.NODE, Kind.BACKWARD)
    key = (name[tree.signature[rows]] * len(_KINDS) + bit[kind]) * 2 + separate
    if stack:
        key = key * len(first_place) + place[contexts_of(recording)[rows]]
    present, group = _dense(key)
    labels = []
    for number in present.tolist():
        at = 0
        if stack:
            number, at = divmod(number, len(first_place))
        number, is_apart = divmod(number, 2)
        number, kind_number = divmod(number, len(_KINDS))
        kind_of = _KINDS[kind_number]
        lines = contexts[first_place[at]].stack[:stack] if stack else ()
        signature = signatures[first[number]]
        labels.append(
            Label(
                _name(signature),
                CATEGORIES[kind_of],
                bool(is_apart) or CATEGORIES[kind_of] == "backward",
                bool(is_apart),
                signature.shapes if shapes else None,
                [frame_text(line) for line in lines],
                arguments=_arguments(signature) if by == "signature" else "",
            )
        )
    return labels, group


def _by_context(recording: Recording, rows: Array, by: str) -> tuple[list[Label], Array]:
    tree, contexts = tree_of(recording), recording.contexts

    def text(context: Context) -> str:
        return context.module if by == "module" else line_of(context)

    place, first = numbered(contexts, text)
    key = place[contexts_of(recording)[rows]] * 2 + tree.backward[rows]
    present, group = _dense(key)
    labels = []
    for number in present.tolist():
        at, backward = divmod(number, 2)
        context = contexts[first[at]]
        kind = context.module_type if by == "module" else ""
        name = text(context) or "(none)"
        labels.append(Label(name, by, bool(backward), bool(backward), module_type=kind))
    return labels, group


def _dense(keys: Array) -> tuple[Array, Array]:
    """Return the keys that there are, ascending, and for each row the index of its key."""
    if not len(keys):
        return keys, keys
    most = int(keys.max())
    if most > 4 * len(keys) + 1024:
        present, index = np.unique(keys, return_inverse=True)
        return present, index.reshape(-1)
    there = np.zeros(most + 1, bool)
    there[keys] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[keys]


def _first_starts(tree: Tree, rows: Array, group: Array, groups: int) -> Array:
    first = np.full(groups, np.iinfo(np.int64).max)
    np.minimum.at(first, group, tree.start[rows])
    return first


def _count(group: Array, which: Array, groups: int) -> Array:
    return np.bincount(group[which & (group >= 0)], minlength=groups)


def _columns(recording: Recording, rows: Array, group: Array, groups: int) -> dict[str, Array]:
    tree = tree_of(recording)
    outer = rows[~tree.has_ancestor_in_group(group)[rows]]

    def add(values: Array, which: Array) -> Array:
        if not values.any():
            return np.zeros(groups, np.int64)
        return np.bincount(group[which], values[which], groups).astype(np.int64)

    operations = work_of(recording, lambda signature: signature.operations)
    traffic = work_of(recording, lambda signature: signature.read + signature.written)
    values = {
        "count": _count(group, np.ones(len(tree), bool), groups),
        "cpu_time_total": add(tree.duration, outer),
        "self_cpu_time_total": add(tree.own_time, rows),
        "device_time_total": add(_totals(tree, tree.device_time), outer),
        "self_device_time_total": add(tree.device_time, rows),
        "flops": add(operations.total, outer),
        "self_flops": add(operations.own, rows),
        "bytes": add(traffic.total, outer),
        "self_bytes": add(traffic.own, rows),
        "failures": _count(group, recording.rows["status"] < 0, groups),
        "top_level": _count(group, tree.parents < 0, groups),
    }
    for name, change in zip(("cpu", "device"), bytes_by_row(recording), strict=True):
        values[f"{name}_memory_usage"] = add(_totals(tree, change), outer)
        inner = np.flatnonzero((change != 0) & (tree.parents >= 0))
        own = np.bincount(tree.parents[inner], change[inner], len(tree))
        values[f"self_{name}_memory_usage"] = add(own, rows)
    return values


def _totals(tree: Tree, values: Array) -> Array:
    return tree.totals(values) if values.any() else values


def _with_modules_within(sums: Sums) -> Sums:
    """Return the totals of each module, including the modules within it."""
    at = {(label.name, label.apart): i for i, label in enumerate(sums.labels)}
    labels = list(sums.labels)
    for label in sums.labels:
        for name in _modules_around(label.name):
            if (name, label.apart) not in at:
                at[name, label.apart] = len(labels)
                labels.append(Label(name, "module", label.backward, label.apart))
    extra = len(labels) - len(sums.labels)
    values = {
        key: np.concatenate([each, np.zeros(extra, each.dtype)])
        for key, each in sums.values.items()
    }
    for key in [key for key in values if f"self_{key}" in values]:
        values[key] = values[f"self_{key}"].copy()
        for i, label in enumerate(sums.labels):
            for name in _modules_around(label.name):
                values[key][at[name, label.apart]] += values[f"self_{key}"][i]
    return Sums(labels, values)


def _modules_around(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]
