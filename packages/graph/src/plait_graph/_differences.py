"""What differs between two recordings of one function, which a graph cannot have."""

from __future__ import annotations

import math
from typing import Any

import plait_autograd
import plait_core as pc
from plait_graph import _graph
from plait_graph._capture import Json, Recording

_MOST_RECORDINGS = 5


class Recordings:
    """Recordings of calls of one kind, until two in succession are the same.

    Args:
        caller: whose name errors have.
    """

    def __init__(self, caller: str) -> None:
        self._caller = caller
        self._last: Recording | None = None
        self._count = 0

    def agree(self, recording: Recording) -> Recording | None:
        """Return the recording before this one if it is the same, else None.

        Raises: RuntimeError if five recordings differ.
        """
        before, self._last = self._last, recording
        self._count += 1
        problem = None if before is None else difference(before, recording)
        if problem is None:
            return before
        if self._count >= _MOST_RECORDINGS:
            raise RuntimeError(f"{self._caller}: the function cannot be frozen: {problem}")
        return None


def difference(a: Recording, b: Recording) -> str | None:
    """Return a text about the first difference that matters, or None."""
    problem = difference_of_nodes(a.nodes, b.nodes)
    return difference_besides_nodes(a, b) if problem is None else problem


def difference_besides_nodes(a: Recording, b: Recording) -> str | None:
    """Return a text about what differs in results and in tensors that no call made, or None."""
    if (a.structure, a.grads) != (b.structure, b.grads) or not _same_leaves(a.leaves, b.leaves):
        return "the results differ in structure, or are other values"
    given = {name for name in a.tangents if name}
    for name, tensor in a.outside.items():
        other_tensor = b.outside.get(name)
        if name in given:
            continue
        if other_tensor is not None and a.capture and a.capture.find(other_tensor) in a.made:
            return (
                f"{_reader(b, name)} reads a tensor that an earlier call computed, and that is no "
                "argument: pass it as an argument, and return it"
            )
        if other_tensor is None or not _same(tensor, other_tensor):
            return (
                f"a tensor {tensor.dtype}{list(tensor.shape)} that no operator made, and that is "
                f"no argument, is another one at each call: it is read by {_reader(a, name)}"
            )
    return None


def difference_of_nodes(a: list[Json], b: list[Json]) -> str | None:
    """Return a text about the first operator call that differs, or None."""
    for i, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return _of_nodes(i, one, other)
    if len(a) != len(b):
        node = max((a, b), key=len)[min(len(a), len(b))]
        return f"one call makes {len(a)} operator calls, the next {len(b)}: {node['op']}"
    return None


def same_tensors(a: dict[str, pc.Tensor], b: dict[str, pc.Tensor]) -> bool:
    """Return whether tensors that no operator made are the same ones, or have the same values."""
    return a.keys() == b.keys() and all(_same(tensor, b[name]) for name, tensor in a.items())


def made_anew(a: Recording, b: Recording) -> set[str]:
    """Return the names of tensors that no operator made and that are others in each call:
    constants from Python data.
    """
    return {
        name
        for name, tensor in a.outside.items()
        if name in b.outside and b.outside[name].data_ptr() != tensor.data_ptr()
    }


def _same_leaves(a: list[Any], b: list[Any]) -> bool:
    for x, y in zip(a, b, strict=True):
        if type(x) is not type(y) or not (isinstance(x, (str, int, float, type(None))) or x is y):
            return False
        if isinstance(x, (str, int, float)) and repr(x) != repr(y):
            return False
    return True


def _of_nodes(i: int, one: Json, other: Json) -> str:
    if one["op"] != other["op"]:
        return f"operator call {i} is {one['op']} in one call and {other['op']} in the next"
    arguments = _graph.argument_names(one["op"])
    for argument, x, y in zip(arguments, one["in"], other["in"], strict=True):
        if x != y:
            return (
                f"{one['op']} (operator call {i}): `{argument}` is {_text(x)} in one call and "
                f"{_text(y)} in the next; a graph has one number for all calls"
            )
    for number, (x, y) in enumerate(
        zip(one.get("regions", ()), other.get("regions", ()), strict=True)
    ):
        problem = difference_of_nodes(x["nodes"], y["nodes"])
        if problem is not None:
            return f"{one['op']} (operator call {i}), region {number}: {problem}"
    return f"{one['op']} (operator call {i}): its results differ"


def _text(value: Any) -> str:
    text = str(value)
    return text if len(text) < 60 else text[:57] + "..."


def _same(a: pc.Tensor, b: pc.Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape or a.device != b.device:
        return False
    if not (_graph.has_own_elements(a) and _graph.has_own_elements(b)):
        return a is b
    return (a.data_ptr() == b.data_ptr() and a.stride() == b.stride()) or same_elements(a, b)


def _reader(recording: Recording, name: str) -> str:
    for node in recording.nodes:
        if f"%{name}" in str(node["in"]):
            return str(node["op"])
    return "no operator"


def same_elements(a: pc.Tensor, b: pc.Tensor) -> bool:
    """Return whether two tensors of one shape have the same elements; nan is nan."""
    with plait_autograd.no_grad():
        return bool(_equal(a, b).all())


def difference_of_elements(got: pc.Tensor, expected: pc.Tensor) -> str | None:
    """Return a text about how a value differs from another one, or None.

    Floating point numbers may differ by the square root of their dtype's epsilon, in proportion to
    the largest one: a program may compute them in another order.
    """
    types = [f"{t.dtype}{list(t.shape)} on {t.device}" for t in (got, expected)]
    if types[0] != types[1]:
        return f"is {types[0]} instead of {types[1]}"
    with plait_autograd.no_grad():
        equal = _equal(got, expected)
        if bool(equal.all()):
            return None
        wide = pc.complex128 if got.dtype.is_complex else pc.float64
        a, b = (t.detach().to("cpu", wide) for t in (got, expected))
        distance = (a - b).abs()
        finite = b.abs()[b.isfinite()]
        largest = float(finite.max()) if finite.numel() else 0.0
        is_exact = not (got.dtype.is_floating_point or got.dtype.is_complex)
        tolerance = 0.0 if is_exact else pc.finfo(got.dtype).eps ** 0.5 * largest
        is_far = ~equal.to("cpu") & ~(distance <= tolerance)  # also where one of them is nan
        n = int(is_far.sum())
        if not n:
            return None
        distance = distance.nan_to_num(math.inf, math.inf).where(is_far, -1.0)
        at = int(distance.argmax())
        place = [int(i) for i in pc.unravel_index(pc.tensor(at), tuple(got.shape))]
        values = [t.reshape(-1)[at].item() for t in (a, b)]
    return (
        f"{types[1]} differs in {n} of {got.numel()} elements, most at {place}: "
        f"{values[0]} instead of {values[1]}"
    )


def _equal(a: pc.Tensor, b: pc.Tensor) -> pc.Tensor:
    equal: pc.Tensor = (a == b) | ((a != a) & (b != b))
    return equal
