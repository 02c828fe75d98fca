"""Load all test data of the operators, and draw the calls of one operator."""

from __future__ import annotations

import functools
import importlib
import pathlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from plait_ops import specs
from plait_ops.samples import pointwise_samples, reduction_samples
from plait_ops.sampling import Sample, Sampler
from plait_ops.spec import ErrorFact, Operator, Pointwise, Reduction

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["draw", "error_facts", "joints", "load"]

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


def joints(operator: Operator, seed: int = 0) -> Iterator[Sample]:
    """Yield the calls of `operator` at points where a function made of pieces may have joints.

    They are its own calls with other numbers: halves, which are ties and the usual bounds; -1, 0
    and 1, which are more ties; zeros; and the numbers among the arguments and their opposites, as
    those are bounds. Of pointwise operators also the calls with numbers that are special, whose
    derivative is not checked elsewhere.
    """
    import numpy as np

    for sample in draw(operator, seed):
        if not sample.gradient:
            special = sample.ordinary() if isinstance(operator, Pointwise) else None
            if special is not None:
                yield special
            continue
        moves: list[Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = [
            lambda x: np.round(x * 2) / 2,
            lambda x: np.round(np.clip(x, -1, 1)),
            np.zeros_like,
        ]
        numbers = sorted({sign * x for x in sample.numbers() for sign in (1.0, -1.0)})
        if numbers:
            moves.append(lambda x, n=numbers: np.resize(n, x.shape))
        for move in moves:
            yield sample.mapped(lambda x, m=move: _moved(x, m))


def _moved(
    x: npt.NDArray[Any], move: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    import numpy as np

    return np.asarray(move(x), x.dtype) if x.dtype.kind == "f" else x


def error_facts(operator: Operator) -> list[ErrorFact]:
    """Return the calls of `operator` that must fail."""
    load()
    of_kind: list[ErrorFact] = []
    if isinstance(operator, Pointwise):
        of_kind = pointwise_samples.error_facts(operator)
    if isinstance(operator, Reduction):
        of_kind = reduction_samples.error_facts(operator)
    return [*of_kind, *operator.errors]
