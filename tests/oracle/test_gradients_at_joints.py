"""Agreement with torch on gradients where functions have joints: ties, zeros and round numbers.

Every sample of torch's operator database is moved to such points: its numbers become halves, or one
of -1, 0 and 1, or zeros. There the derivative is a matter of choice for whatever is defined by
pieces (extremes, clamps, activations, pooling, losses, norms, interpolation), and plait's choice
must be torch's. `joint_differences.txt` lists what is not the same, with the reason of each; an
entry that agrees meanwhile is a failure, too.
"""

from __future__ import annotations

import copy
import itertools
import pathlib
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import test_gradients as gradients
from torch_database import DRAWS, INPLACE, full_name, ours_of, samples_of

POINTS: dict[str, Callable[[Any], Any]] = {
    "halves": lambda x: (x * 2).round() / 2 + 0.0,  # no -0.0
    "signs": lambda x: x.clamp(-1, 1).round() + 0.0,
    "zeros": torch.zeros_like,
}
"""What becomes of the numbers of a sample."""


def moved(value: Any, point: Callable[[Any], Any]) -> Any:
    """The arguments of a call, with the tensors that require grad moved to a joint."""
    if isinstance(value, torch.Tensor):
        if not value.requires_grad or value.layout != torch.strided:
            return value
        return point(value.detach()).requires_grad_()
    if isinstance(value, dict):
        return {key: moved(each, point) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(moved(each, point) for each in value)
    return value


def at_joint(sample: Any, point: Callable[[Any], Any]) -> Any:
    result = copy.copy(sample)
    result.input, result.args, result.kwargs = (
        moved(each, point) for each in (sample.input, sample.args, sample.kwargs)
    )
    return result


def read_differences() -> dict[str, str]:
    """The table: an operator and the reason."""
    table = {}
    for line in (pathlib.Path(__file__).parent / "joint_differences.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, reason = line.split(None, 1)
            table[name] = reason
    return table


DIFFERENCES = read_differences()
MOST = 60  # samples of an operator
NEAR, POLE = 1e-7, 1e5


def is_pole(info: Any, argument: Any) -> bool:
    """Return whether derivatives are huge beside a point, as at singular matrices: no joint."""

    def neighbours(x: Any) -> Any:
        return x + NEAR * torch.from_numpy(np.random.default_rng(x.numel()).uniform(-1, 1, x.shape))

    try:
        _, result, _ = gradients.theirs(info, at_joint(argument, neighbours), 1)
    except Exception:  # outside of the domain
        return False
    dense = [x for x in result if x is not None and x.layout == torch.strided]
    return any(bool((x.abs() > POLE).any()) for x in dense)


def disagreements(info: Any, point: str) -> Iterator[str]:
    for i, sample in itertools.islice(samples_of(info, "float64", requires_grad=True), MOST):
        everything = (sample.input, sample.args, sample.kwargs)
        if sum(x.numel() for x in gradients.tensors(everything)) > gradients.SMALL:
            continue
        try:
            argument = at_joint(sample, POINTS[point])
            target, expected, _ = gradients.theirs(info, copy.copy(argument), 1)
        except Exception:  # what torch refuses tells nothing
            continue
        try:
            got = gradients.ours(info, argument, 1, target)
            for own, other in zip(got, expected, strict=True):
                gradients.compare(own, other)
        except Exception as error:
            if is_pole(info, argument):
                continue
            text = " ".join(f"{type(error).__name__}: {error}".split())
            yield f"sample {i}, {sample.summary()}: {text}"[:700]


def cases() -> Iterator[Any]:
    for info in op_db:
        name = full_name(info)
        if (
            name in DRAWS
            or name in INPLACE
            or name == "zero_"
            or ours_of(info) is None
            or not info.supports_autograd
            or torch.float64 not in info.supported_backward_dtypes("cpu")
        ):
            continue
        yield pytest.param(info, id=name)


@pytest.mark.parametrize("info", list(cases()))
def test_agreement(info: Any) -> None:
    torch.manual_seed(0)
    random.seed(0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        lines = [f"{point}: {line}" for point in POINTS for line in disagreements(info, point)]
    reason = DIFFERENCES.get(full_name(info))
    if reason is None:
        assert not lines, f"{len(lines)} samples differ\n" + "\n".join(lines[:3])
    else:
        assert lines, f"joint_differences.txt says {reason!r}, but all samples agree"
