"""Compiled functions with free sizes: recordings at several sizes that became one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import plait_core as pc
from plait_graph import _graph
from plait_graph._capture import Recording
from plait_graph._free_sizes import FreeSizes
from plait_graph._optimizers import OptimizerNumbers
from plait_graph._reach import Reach
from plait_graph._templates import NoTemplate, Sample, Template, mismatch, spans

__all__ = ["Families", "Family"]

_MOST_SAMPLES = 8  # recordings of a family that are compared
# programs for sizes of one family that are kept, and at most while their memory is small
_KEPT_INSTANCES, _MOST_INSTANCES = 8, 64
_SMALL_BYTES = 64 << 20


class Family:
    """Recordings at several sizes that are the same but for numbers.

    Args:
        names: of the free dimensions of each tensor argument; None: those that differ.
    """

    def __init__(self, names: list[dict[int, str]] | None) -> None:
        self._names = names
        self._given: list[dict[int, str]] = []  # the names that the template has
        self._samples: list[tuple[list[tuple[int, ...]], Sample]] = []
        self.template: Template | None = None
        self.problem = ""
        self._instances: list[tuple[Any, Any]] = []  # keys and programs, the last behind
        self.numbers: OptimizerNumbers
        self.reach: Reach
        self.grads: list[tuple[pc.Tensor, bool]]
        self.constants: set[str] = set()
        self.arguments: Any
        self._guard: Any = None

    def holds(self) -> bool:
        """Return whether all is as it was behind the last recording, apart from arguments."""
        return bool(self._guard.holds(()))

    def admits(self, sample: Sample) -> bool:
        """Return whether a recording is one of the family."""
        return not self._samples or mismatch(self._samples[-1][1], sample) is None

    def add(self, tensors: Sequence[pc.Tensor], sample: Sample) -> None:
        """Add a recording, and make a template if there are enough sizes."""
        shapes = [tuple(int(n) for n in tensor.shape) for tensor in tensors]
        recording = sample.recording
        if self._samples:
            before = self._samples[-1][1].recording
            self.constants |= {
                name
                for name, tensor in recording.outside.items()
                if name in before.outside and before.outside[name].data_ptr() != tensor.data_ptr()
            }
            before.capture = None  # which holds the memory of its values
        self._samples = [each for each in self._samples if each[0] != shapes]
        self._samples = [*self._samples[-_MOST_SAMPLES + 1 :], (shapes, sample)]
        read = {name for node in recording.nodes for name in _names(node["in"])}
        kept = [tensor for name, tensor in recording.outside.items() if name in read]
        self._guard = _graph.Guard((), kept, self.grads, self.reach.entries)
        self._make_template()

    def _make_template(self) -> None:
        self.template, self.problem = None, ""
        given = self._differing() if self._names is None else self._names
        samples = []
        for shapes, sample in self._samples:
            sizes = _sizes_of(shapes, given)
            if sizes is not None:
                samples.append(Sample(sample.recording, sample.reads, sizes))
        samples = [
            each
            for i, each in enumerate(samples)
            if each.sizes not in [other.sizes for other in samples[:i]]
        ]
        if not samples or not samples[0].sizes or not spans([each.sizes for each in samples]):
            return
        self._given = given
        try:
            self.template = Template(samples)
        except NoTemplate as error:
            self.problem = str(error)

    def _differing(self) -> list[dict[int, str]]:
        """Return names of the dimensions that differ: one for those that are always equal."""
        columns: dict[tuple[int, ...], str] = {}
        result: list[dict[int, str]] = []
        for each in zip(*(shapes for shapes, _ in self._samples), strict=True):
            dims: dict[int, str] = {}
            for at, column in enumerate(zip(*each, strict=True)):
                if len(set(column)) > 1:
                    dims[at] = columns.setdefault(column, f"s{len(columns)}")
            result.append(dims)
        return result

    def recording(self, tensors: Sequence[pc.Tensor], ranges: Mapping[str, Any]) -> Any:
        """Return the sizes and the recording for arguments; None if the template has none."""
        if self.template is None:
            return None
        sizes = _sizes_of([tuple(tensor.shape) for tensor in tensors], self._given)
        if sizes is None or not self.template.admits(sizes):
            return None
        for name, size in sizes.items():
            dim = ranges.get(name)
            least = 2 if dim is None or dim.min is None else dim.min
            if size < least or (dim is not None and size > dim.max):
                return None
        recording = self.template.recording(sizes, tensors)
        return None if recording is None else (sizes, recording)

    def agrees(self, sizes: Mapping[str, int], parts: Sequence[Any], recording: Recording) -> bool:
        """Return whether programs have the shapes that the template expects at sizes."""
        for name, shape in itertools.chain(*(part.program.shapes() for part in parts)):
            expected = recording.types[name]["shape"]
            if any(e not in (None, n) for e, n in zip(expected, shape, strict=True)):
                self.template = None
                self.problem = (
                    f"%{name} has the shape {shape} at {dict(sizes)}; {expected} fits the others"
                )
                return False
        return True

    def keep(self, key: Any, frozen: Any, programs: dict[Any, list[Any]]) -> None:
        """Keep the program of an instance; of too many the oldest leave `programs`."""
        self._instances.append((key, frozen))
        while len(self._instances) > _KEPT_INSTANCES and (
            len(self._instances) > _MOST_INSTANCES or self._planned_bytes() > _SMALL_BYTES
        ):
            oldest, program = self._instances.pop(0)
            programs[oldest] = [each for each in programs[oldest] if each is not program]
            if not programs[oldest]:
                del programs[oldest]

    def _planned_bytes(self) -> int:
        parts = (part for _, frozen in self._instances for part in frozen.parts)
        return sum(part.program.planned_bytes for part in parts)


class Families:
    """The families of a compiled function.

    Args:
        dynamic: which sizes are free.
    """

    def __init__(self, dynamic: FreeSizes) -> None:
        self._dynamic = dynamic
        self._families: dict[Any, list[Family]] = {}

    def _key(
        self, function: Callable[..., Any], args: Any, kwargs: Any, key: Any, leaves: Sequence[Any]
    ) -> tuple[Any, list[dict[int, str]] | None]:
        """Return the key of the families of a call, and the names of free dimensions."""
        names = None
        if not self._dynamic.is_found_by_calls:
            found = self._dynamic.of(function, args, kwargs)
            names = [found.get(id(t), {}) for t in leaves if isinstance(t, pc.Tensor)]
        rest = iter(names or ())
        structure, entries = key
        parts = []
        for leaf, entry in zip(leaves, entries, strict=True):
            if not isinstance(leaf, pc.Tensor):
                parts.append(entry)
                continue
            place, dtype, shape, strides, device, requires_grad = entry
            free: Any = range(leaf.ndim) if names is None else next(rest)
            sizes = tuple(-1 if at in free else n for at, n in enumerate(shape))
            if leaf.is_contiguous() or sizes != shape:
                strides = leaf.is_contiguous()
            parts.append((place, dtype, sizes, strides, device, requires_grad))
        return (structure, tuple(parts)), names

    def of(
        self, function: Callable[..., Any], args: Any, kwargs: Any, key: Any, leaves: Sequence[Any]
    ) -> tuple[list[Family], list[Family], list[dict[int, str]] | None]:
        """Return all families of a call, those that hold now, and the names of free dimensions."""
        family_key, names = self._key(function, args, kwargs, key, leaves)
        families = self._families.setdefault(family_key, [])
        return families, [family for family in families if family.holds()], names

    @property
    def ranges(self) -> Mapping[str, Any]:
        """The ranges of the free sizes, by name."""
        return self._dynamic.dims

    def problems(self) -> list[str]:
        """Return why there is no template for some recordings."""
        return [f.problem for each in self._families.values() for f in each if f.problem]


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value[1:]]
    return [name for item in value for name in _names(item)] if isinstance(value, list) else []


def _sizes_of(
    shapes: Sequence[tuple[int, ...]], names: Sequence[Mapping[int, str]]
) -> dict[str, int] | None:
    """Return the free sizes; None if one name stands for different numbers."""
    result: dict[str, int] = {}
    for shape, dims in zip(shapes, names, strict=True):
        for at, name in dims.items():
            if result.setdefault(name, shape[at]) != shape[at]:
                return None
    return result
