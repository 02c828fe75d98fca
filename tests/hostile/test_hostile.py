"""Hostile calls of every operator: results or exceptions, never a signal.

`PLAIT_HOSTILE_CALLS` sets how many calls each operator gets; `nox -s sanitize` runs 500 under ASan
and UBSan. The last call that was started stands in the file that `PLAIT_HOSTILE_LOG` names, for
when the process dies.
"""

from __future__ import annotations

import os
import pathlib
import resource
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_ops import hostile, specs
from plait_ops.spec import Operator

CALLS = int(os.environ.get("PLAIT_HOSTILE_CALLS", "40"))
LOG = os.environ.get("PLAIT_HOSTILE_LOG")
EXPECTED = (
    ValueError,
    TypeError,
    IndexError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    BufferError,
)
READABLE = 1 << 20
# A sanitizer, whose own memory counts, gets more.
ROOM = (8 if "ASAN_OPTIONS" in os.environ else 1) << 30


@pytest.fixture(autouse=True, scope="module")
def little_room() -> Iterator[None]:
    """Leave little memory, so that calls asking for gigabytes fail instead of filling them."""
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def tensors(value: Any) -> Any:
    """Arrays become tensors over the same bytes; what cannot become one stays what it is."""
    if isinstance(value, np.ndarray):
        try:
            return pc.from_numpy(value)
        except EXPECTED:
            return value
    if isinstance(value, (list, tuple)):
        return type(value)(tensors(item) for item in value)
    return value


def touch(result: Any) -> None:
    """Read every byte that a result claims to have."""
    if isinstance(result, (tuple, list)):
        for item in result:
            touch(item)
    elif (
        isinstance(result, pc.Tensor) and result.device.type == "cpu" and result.numel() < READABLE
    ):
        repr(result)
        if result.dtype.name != "bfloat16":
            np.array(result.detach().numpy(), copy=True)


def note(call: hostile.HostileCall) -> None:
    if LOG:
        with open(LOG, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{call.operator.name}{call.form} {call.args!r} {call.kwargs!r}\n")


def run(call: hostile.HostileCall) -> bool:
    """Make the call; True if it gave a result."""
    base, _, overload = call.operator.name.partition(".")
    name = base + call.form + (f".{overload}" if overload and not call.form else "")
    from plait_abi import operator

    args = tensors(call.args)
    kwargs = {key: tensors(value) for key, value in call.kwargs.items()}
    try:
        touch(operator(name)(*args, **kwargs))
    except EXPECTED as error:
        assert str(error), f"{name}: an error without a text: {error!r}"
        return False
    return True


@pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)
def test_hostile_calls(spec: Operator) -> None:
    outcomes = []
    for call in hostile.calls(spec, seed=20261121, n=CALLS):
        note(call)
        outcomes.append(run(call))
    assert len(outcomes) == CALLS


def test_the_calls_are_the_same_every_time() -> None:
    spec = specs.find("add")
    first, second = (list(map(repr, hostile.calls(spec, seed=1, n=50))) for _ in range(2))
    assert [text.split(" at 0x")[0] for text in first] == [
        text.split(" at 0x")[0] for text in second
    ]


def test_some_calls_work_and_some_do_not() -> None:
    outcomes = [run(call) for call in hostile.calls(specs.find("mul"), seed=5, n=200)]
    assert 10 < sum(outcomes) < 190
