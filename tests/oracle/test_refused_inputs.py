"""What torch's operators refuse: the inputs of its own database that must give errors.

Each of them is given to plait's operator of that name. It must refuse too, with an error that a
program which expects torch's catches. `refusals.txt` lists what plait accepts, or refuses by
another kind of error, with the reason of each; an entry that agrees meanwhile is a failure. The
reverse, what torch accepts and plait refuses, is part of test_operator_database.py.
"""

from __future__ import annotations

import pathlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import plait_core as pc

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from torch_database import INPLACE, convert, full_name, ours_of


def read_refusals() -> dict[str, str]:
    """The table: an operator, and the reason."""
    table = {}
    for line in (pathlib.Path(__file__).parent / "refusals.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, reason = line.split(None, 1)
            table[name] = reason
    return table


REFUSALS = read_refusals()


def refused(call: Callable[[], Any], expected: Any) -> str:
    """Why a call is not refused as torch refuses it, or an empty text."""
    kinds = expected if isinstance(expected, tuple) else (expected,)
    try:
        call()
    except Exception as error:
        if isinstance(error, kinds):
            return ""
        target = " or ".join(kind.__name__ for kind in kinds)
        return f"{type(error).__name__} instead of {target}: {' '.join(str(error).split())[:160]}"
    return "accepted"


def disagreements(info: Any) -> Iterator[str]:
    """One line for each input that torch refuses and plait does not."""
    function = ours_of(info)
    assert function is not None
    theirs = info.inplace_variant if full_name(info) in INPLACE else info.op
    for i, error in enumerate(info.error_inputs("cpu")):
        sample = error.sample_input
        if "layout" in sample.kwargs:  # plait's functions have no such argument
            continue
        try:
            arguments, options = (
                convert((sample.input, *sample.args)),
                convert(sample.kwargs),
            )
        except Exception:  # a layout or an object that plait does not have
            continue
        if refused(lambda s=sample: theirs(s.input, *s.args, **s.kwargs), Exception):
            continue  # torch itself accepts it
        result = refused(lambda f=function, a=arguments, k=options: f(*a, **k), error.error_type)
        if result:
            yield f"input {i}, {sample.summary()}: {result}; torch: {error.error_regex}"[:500]


def cases() -> Iterator[Any]:
    for info in op_db:
        if info.error_inputs_func is not None and ours_of(info) is not None:
            yield pytest.param(info, id=full_name(info))


@pytest.mark.parametrize("info", list(cases()))
def test_refusal(info: Any) -> None:
    torch.manual_seed(0)
    pc.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = list(disagreements(info))
    reason = REFUSALS.get(full_name(info))
    if reason is None:
        assert not lines, f"{len(lines)} inputs are not refused\n" + "\n".join(lines[:3])
    else:
        assert lines, f"refusals.txt says {reason!r}, but all inputs are refused"
