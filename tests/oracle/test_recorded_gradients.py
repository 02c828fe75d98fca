"""Where torch differentiates a gradient once more, plait does, over torch's operator database.

Each sample of float64 gives for each pair of inputs the derivative of one's recorded gradient with
respect to the other. Torch gives a value, zeros, or an error ("does not require grad", "not
used"), as it happens to compute the first derivative; plait gives a value or zeros wherever the
first derivative is not None. That both have the same values is shown by `test_gradients.py`.
"""

from __future__ import annotations

import copy
import itertools
import pathlib
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import plait_autograd as pa
import plait_core as pc

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_gradients import SMALL, differentiable, tensors, wrapped
from torch_database import DRAWS, INPLACE, convert, full_name, ours_of, samples_of

SAMPLES = 3  # of each operator


def first(function: Any, sample: Any, arguments: Any, library: Any, drawn: bool) -> Any:
    """Return the inputs that require grad and their recorded gradients, or None."""
    args, kwargs = arguments
    leaves = [x for x in tensors(arguments) if x.requires_grad]
    results = function(*args, **kwargs)
    if sample.output_process_fn_grad is not None:
        results = sample.output_process_fn_grad(results)
    roots = [y for y in tensors(results) if differentiable(y) and y.requires_grad]
    if not roots or not leaves:
        return None
    seeds = [library.ones_like(y.detach()).requires_grad_(drawn) for y in roots]
    grad: Any = pa.grad if library is pc else torch.autograd.grad
    return leaves, grad(roots, leaves, seeds, create_graph=True, allow_unused=True)


def second(gradient: Any, leaf: Any, library: Any) -> Any:
    grad: Any = pa.grad if library is pc else torch.autograd.grad
    number = (gradient.real if gradient.is_complex() else gradient).sum()
    return grad(number, leaf, retain_graph=True)[0]


def is_known(value: Any) -> bool:
    """Return whether torch has the derivative of its gradient."""
    try:
        second(*value, torch)
    except RuntimeError:  # and NotImplementedError
        return False
    return True


def disagreements(info: Any, drawn: bool) -> Iterator[str]:
    for i, sample in itertools.islice(samples_of(info, "float64", requires_grad=True), SAMPLES):
        values = ((sample.input, *sample.args), sample.kwargs)
        if sum(x.numel() for x in tensors(values)) > SMALL:
            continue
        arguments = convert(values)
        for theirs, own in zip(tensors(values), tensors(arguments), strict=True):
            own.requires_grad_(theirs.requires_grad)
        theirs = values[0], copy.copy(values[1])
        try:
            expected = first(wrapped(info, info.op), sample, theirs, torch, drawn)
        except Exception:  # what torch refuses tells nothing
            continue
        try:
            got = first(wrapped(info, ours_of(info)), sample, arguments, pc, drawn)
        except Exception:  # a first derivative is for `test_gradients.py`
            continue
        if expected is None or got is None:  # a result of what does not vary
            continue
        pairs = itertools.product(range(len(expected[0])), repeat=2)
        for k, j in pairs:
            g, target = got[1][k], expected[1][k]
            if target is None or not is_known((target, expected[0][j])):
                continue
            where = f"sample {i}, {sample.summary()}: gradient of input {k} by input {j}"
            if g is None:
                yield f"{where}: there is no gradient of input {k}"
                continue
            try:
                second(g, got[0][j], pc)
            except Exception as error:
                yield f"{where}: {type(error).__name__}: {error}"[:600]


def cases() -> Iterator[Any]:
    for info in op_db:
        name = full_name(info)
        without = name in DRAWS or name in INPLACE or name == "zero_" or ours_of(info) is None
        if without or not info.supports_autograd:
            continue
        if torch.float64 in info.supported_backward_dtypes("cpu"):
            yield pytest.param(info, id=name)


@pytest.mark.parametrize("drawn", [False, True], ids=["constant", "variable"])
@pytest.mark.parametrize("info", list(cases()))
def test_no_error_where_torch_has_a_value(info: Any, drawn: bool) -> None:
    torch.manual_seed(0)
    random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = list(disagreements(info, drawn))
    assert not lines, f"{len(lines)} pairs differ\n" + "\n".join(lines[:3])
