"""Attributes of modules against torch's: random classes, random statements, the same outcomes."""

from __future__ import annotations

import os
import random
from types import SimpleNamespace

import torch
from module_program_runs import run
from module_programs import generate

import plait_autograd  # noqa: F401 - the engine
import plait_core as pc
import plait_nn as nn

PROGRAMS = int(os.environ.get("PLAIT_MODULE_PROGRAMS", "2000"))
FIRST = int(os.environ.get("PLAIT_MODULE_SEED", "0"))

OURS = SimpleNamespace(
    nn=nn, tensor=pc.tensor, tensor_type=pc.Tensor, functional_call=nn.functional_call
)
THEIRS = SimpleNamespace(
    nn=torch.nn,
    tensor=torch.tensor,
    tensor_type=torch.Tensor,
    functional_call=torch.func.functional_call,
)


def difference(seed: int) -> str:
    """What a program shows otherwise than with torch, or nothing."""
    program = generate(random.Random(seed))
    ours, theirs = run(program, OURS), run(program, THEIRS)
    if ours == theirs:
        return ""
    n = next(
        (i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), -1
    )
    return (
        f"PLAIT_MODULE_SEED={seed} PLAIT_MODULE_PROGRAMS=1: shown {ours[n]!r}; by torch "
        f"{theirs[n]!r}, after {ours[max(0, n - 3) : n]}\n{program}"
    )


def test_the_same_outcomes() -> None:
    found = filter(None, map(difference, range(FIRST, FIRST + PROGRAMS)))
    assert next(found, "") == ""
