"""Inputs that torch's operator database says are wrong: plait refuses them too.

`accepted_inputs.txt` lists those that plait accepts, with the reason of each; an entry that is
refused meanwhile is a failure, too.
"""

from __future__ import annotations

import pathlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from torch_database import INPLACE, convert, full_name, ours_of


def read_accepted() -> dict[str, set[int]]:
    """The numbers of the inputs that plait accepts, by operator."""
    table: dict[str, set[int]] = {}
    text = (pathlib.Path(__file__).parent / "accepted_inputs.txt").read_text()
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, numbers, _reason = line.split(None, 2)
            table.setdefault(name, set()).update(map(int, numbers.split(",")))
    return table


ACCEPTED = read_accepted()


def wrong_inputs(info: Any) -> Iterator[tuple[int, Any]]:
    """The inputs that torch refuses indeed, with their numbers."""
    variant = info.inplace_variant if full_name(info) in INPLACE else info.op
    for i, each in enumerate(info.error_inputs("cpu")):
        sample = each.sample_input
        try:
            variant(sample.input, *sample.args, **sample.kwargs)
        except Exception:
            yield i, each


def accepted(info: Any) -> dict[int, str]:
    """The inputs that plait accepts, with torch's errors."""
    function = ours_of(info)
    assert function is not None
    found = {}
    for i, each in wrong_inputs(info):
        sample = each.sample_input
        try:
            arguments = convert((sample.input, *sample.args)), convert(sample.kwargs)
            function(*arguments[0], **arguments[1])
        except Exception:
            continue
        found[i] = f"{sample.summary()}: {each.error_regex}"
    return found


@pytest.mark.parametrize(
    "info",
    [
        pytest.param(info, id=full_name(info))
        for info in op_db
        if info.error_inputs_func is not None and ours_of(info) is not None
    ],
)
def test_wrong_inputs_are_refused(info: Any) -> None:
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        found = accepted(info)
    listed = ACCEPTED.get(full_name(info), set())
    unexpected = {i: text for i, text in found.items() if i not in listed}
    assert not unexpected, f"accepted: {unexpected}"
    assert listed <= set(found), f"refused by now: {sorted(listed - set(found))}"
