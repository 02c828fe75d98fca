"""Load all test data of the operators, and draw the calls of one operator."""

from __future__ import annotations

import functools
import importlib
import pathlib
import pkgutil
from collections.abc import Iterator

from plait_ops import specs
from plait_ops.samples import pointwise_samples, reduction_samples
from plait_ops.sampling import Sample, Sampler
from plait_ops.spec import ErrorFact, Operator, Pointwise, Reduction

__all__ = ["draw", "error_facts", "load"]

_FOLDER = str(pathlib.Path(__file__).parent)


@functools.cache
def load() -> None:
    """Give all operators of `plait_ops.specs` their references, samples and errors."""
    specs.load()
    for info in pkgutil.walk_packages([_FOLDER], f"{__package__}."):
        importlib.import_module(info.name)


def draw(operator: Operator, seed: int = 0) -> Iterator[Sample]:
    """Yield the calls of `operator` that must work, the same ones for the same seed."""
    load()
    if isinstance(operator, Pointwise):
        yield from pointwise_samples.samples(operator, Sampler(seed))
    if isinstance(operator, Reduction):
        yield from reduction_samples.samples(operator, Sampler(seed))
    if operator.sample_function is not None:
        yield from operator.sample_function(Sampler(seed))


def error_facts(operator: Operator) -> list[ErrorFact]:
    """Return the calls of `operator` that must fail."""
    load()
    of_kind: list[ErrorFact] = []
    if isinstance(operator, Pointwise):
        of_kind = pointwise_samples.error_facts(operator)
    if isinstance(operator, Reduction):
        of_kind = reduction_samples.error_facts(operator)
    return [*of_kind, *operator.errors]
