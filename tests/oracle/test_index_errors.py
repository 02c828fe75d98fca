"""Dimensions and indices out of range: what torch raises, a program for it can catch from plait.

The calls are generated: each operator's own samples with another dimension or index, and with
tensors that have no dimensions or no elements.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import plait_core as pc
from plait_abi import operator as named
from plait_ops import samples, specs

NAMES = ("dim", "dims", "dim0", "dim1", "start_dim", "end_dim", "source", "destination", "index")
NAMES += ("indices", "start", "end", "k", "diagonal")
# where torch raises IndexError for another fault of the same call, which plait finds first
OTHER_FAULTS = {
    "fft_fftshift": "a repeated dimension",
    "fft_ifftshift": "a repeated dimension",
    "index_copy": "the shape of `source`",
    "index_copy_": "the shape of `source`",
    "linalg_tensorsolve": "a repeated dimension",
    "repeat_interleave": "the size of the result",
}


def _outside(value: Any) -> Iterator[Any]:
    """Values like an argument's, of which one is out of range."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield from (7, -9)
    elif isinstance(value, (tuple, list)) and value and all(isinstance(v, int) for v in value):
        yield from ([*value[:-1], 7], [*value[:-1], -9])
    elif isinstance(value, np.ndarray) and value.dtype.kind == "i" and value.size:
        for number in (100, -100):
            changed = value.copy()
            changed.flat[-1] = number
            yield changed


def calls(op: Any) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Some calls of an operator that a dimension or an index makes wrong."""
    arguments = op.schema.arguments
    has_dim = any(a.name in ("dim", "dims") for a in arguments)
    for sample in [sample for sample, _ in zip(samples.draw(op), range(12), strict=False)]:
        args = list(sample.args)
        for i, (argument, value) in enumerate(zip(arguments, args, strict=False)):
            if argument.name in NAMES and not argument.keyword_only:
                for wrong in _outside(value):
                    yield [*args[:i], wrong, *args[i + 1 :]], sample.kwargs
        if has_dim and args and isinstance(args[0], np.ndarray):
            for shape in ((), (0, 3)):
                yield [np.zeros(shape, args[0].dtype), *args[1:]], sample.kwargs


def torch_function(name: str) -> Callable[..., Any] | None:
    """PyTorch's function of an operator's name."""
    for prefix in ("linalg_", "fft_", "special_"):
        if name.startswith(prefix):
            found = getattr(getattr(torch, prefix[:-1]), name[len(prefix) :], None)
            return found if callable(found) else None
    found = getattr(torch, name, None) or getattr(torch.Tensor, name, None)
    return found if callable(found) else None


def _raised(make: Callable[[Any], Any], function: Any, args: Any, kwargs: Any) -> Any:
    def convert(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return make(value)
        if isinstance(value, (list, tuple)):
            return type(value)(convert(each) for each in value)
        return value

    try:
        function(*convert(list(args)), **{name: convert(value) for name, value in kwargs.items()})
    except Exception as error:
        return error
    return None


def cases() -> Iterator[Any]:
    for op in specs.all():
        plain = not op.internal and {"function", "method"} & set(op.variants)
        wanted = plain and any(a.name in NAMES for a in op.schema.arguments)
        known = torch_function(op.schema.base) is not None and op.schema.base not in OTHER_FAULTS
        if wanted and known:
            yield pytest.param(op, id=op.schema.name)


@pytest.mark.parametrize("op", list(cases()))
def test_what_torch_raises_can_be_caught(op: Any) -> None:
    theirs, ours = torch_function(op.schema.base), named(op.schema.name)
    for args, kwargs in calls(op):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = _raised(torch.tensor, theirs, args, kwargs)
            if not isinstance(expected, (IndexError, RuntimeError)):
                continue
            got = _raised(pc.tensor, ours, args, kwargs)
        kind = IndexError if isinstance(expected, IndexError) else RuntimeError
        assert got is None or isinstance(got, kind), (args, kwargs, expected, got)
