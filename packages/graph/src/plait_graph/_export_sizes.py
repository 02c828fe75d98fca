"""Exported functions with free sizes: one recording of calls at several sizes."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plait_graph._capture import Recording
from plait_graph._resized_calls import ResizedCalls, restored
from plait_graph._size_expressions import Relation
from plait_graph._templates import NoTemplate, Sample, Template, mismatch, spans
from plait_graph._values import SizeRange

__all__ = ["FreeRecording", "below_largest", "moved_sizes", "record_at_sizes"]

_STEPS = (1, -1, 2, -2, 3, 4, -4, 8, -8, 16, 32)  # from a size to the next that the function has
# of all sizes at once: in these steps, and to these parts of the sizes
_JOINT = ((2, 1, 3), (3, 5, 1), (5, 2, 7), (7, 11, 5))
_PARTS = ((0.5, 0.7, 0.6), (0.8, 0.5, 0.7), (0.65, 0.6, 0.5))


@dataclasses.dataclass(frozen=True)
class FreeRecording:
    """The recording of a function for all values of some sizes.

    Args:
        template: the recording.
        sizes: the ranges of the sizes.
        calls: what calls the function at other sizes.
        steps: in which the function has each size.
        base: the recording at the sizes of the arguments, and the names of what it writes to.
        operator_guards: relations of sizes that operators found, and that must stay.
    """

    template: Template
    sizes: dict[str, SizeRange]
    calls: ResizedCalls
    steps: dict[str, int]
    base: tuple[Recording, Sequence[str]]
    operator_guards: list[Relation]

    @property
    def guards(self) -> list[Relation]:
        """What the sizes must fulfil."""
        return [*self.template.guards, *self.operator_guards]


def record_at_sizes(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    training: bool,
    dynamic: Any,
    base: tuple[Recording, Sequence[str]],
) -> FreeRecording:
    """Return the recording of a function for all values of some sizes.

    Args:
        function: as `export` gets it.
        args: its arguments.
        kwargs: its named arguments.
        training: whether to record with gradients.
        dynamic: which sizes are free.
        base: its recording at the sizes of the arguments, and what it writes to.

    Raises:
        RuntimeError: if there is none; the text says why.
    """
    calls = ResizedCalls(function, args, kwargs, training, dynamic)
    if not calls.base:
        raise ValueError("export: `dynamic` names no dimension of a tensor argument")
    with restored(*base):
        samples = [calls.sample(dict(calls.base))]
        problem = mismatch(Sample(base[0], samples[0].reads), samples[0])
        if problem is not None:
            raise RuntimeError(f"export: the function cannot be frozen: {problem}")
        steps = {name: _add_step(calls, samples, name) for name in calls.base}
        for factors in (*_JOINT, *_PARTS):
            _try_sample(calls, samples, moved_sizes(calls.base, steps, factors))
        if not spans([sample.sizes for sample in samples]):
            raise RuntimeError(
                "export: the function runs at too few sizes around those of the arguments"
            )
        try:
            template = Template(samples)
        except NoTemplate as error:
            raise RuntimeError(f"export: sizes cannot be free: {error}") from None
    for name, step in steps.items():
        if abs(step) > 1:
            value = calls.base[name] % abs(step)
            template.guards.append(("==", ("%", name, abs(step)), value))
    ranges = {
        name: SizeRange(min(2, size), calls.dims[name].max, size)
        for name, size in calls.base.items()
    }
    return FreeRecording(template, ranges, calls, steps, base, template.operator_guards)


def below_largest(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    training: bool,
    dynamic: Any,
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return arguments whose free sizes are smaller by one where they are the largest of their
    ranges; None if none is.
    """
    calls = ResizedCalls(function, args, kwargs, training, dynamic)
    sizes = {
        name: size - 1 if size == calls.dims[name].max and size > 2 else size
        for name, size in calls.base.items()
    }
    if sizes == calls.base or not calls.is_in_range(sizes):
        return None
    return calls.arguments(sizes)


def moved_sizes(
    base: Mapping[str, int], steps: Mapping[str, int], factors: Sequence[int | float]
) -> dict[str, int]:
    """Return other sizes, in steps that the function has; a float is a part of the size."""
    result = {}
    for (name, size), factor in zip(base.items(), itertools.cycle(factors), strict=False):
        step = steps[name]
        count = factor if isinstance(factor, int) else int(size * (factor - 1) / step)
        result[name] = size + step * count
    return result


def _try_sample(
    calls: ResizedCalls, samples: list[Sample], moved: dict[str, int]
) -> Exception | None:
    """Add a recording at sizes; return why there is none."""
    if moved in [sample.sizes for sample in samples]:
        return None
    if not calls.is_in_range(moved):
        return ValueError("it is out of its range")
    try:
        sample = calls.sample(moved)
    except Exception as error:  # of the function, at sizes for which it may not be written
        return error
    problem = mismatch(samples[0], sample)
    if problem is not None:
        return RuntimeError(problem)
    samples.append(sample)
    return None


def _add_step(calls: ResizedCalls, samples: list[Sample], name: str) -> int:
    """Add a recording at which one size differs, and return by how much."""
    first: tuple[int, Exception] | None = None
    for step in _STEPS:
        moved = {**calls.base, name: calls.base[name] + step}
        if not calls.is_in_range(moved):
            continue
        error = _try_sample(calls, samples, moved)
        if error is None:
            return step
        first = first or (moved[name], error)
    if first is None:
        raise RuntimeError(f"export: the range of the size {name} has no other value")
    raise RuntimeError(
        f"export: the size {name} cannot be free: at {first[0]} in the place of "
        f"{calls.base[name]} the calls are others: {first[1]}; if {name} has a largest value, "
        f"write Dim({name!r}, max=...)"
    )
