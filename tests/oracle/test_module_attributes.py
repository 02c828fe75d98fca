"""Attributes of modules against torch's: random classes, random statements, the same outcomes.

``PLAIT_MODULE_PROGRAMS`` says how many programs (24,000 take eight minutes), ``PLAIT_MODULE_SEED``
the number of the first. What differs on purpose, and is not in the programs, or
in one of some thousands:

- Loading a state compares all of it before it writes anything.
- A cycle of modules, which torch loads until its stack is full.
- `register_parametrization` raises before it changes the class where ``delattr`` leaves the name.
- `weight_norm` leaves a frozen parameter frozen, and refuses what is no parameter by a ValueError.
- `functional_call` refuses names that are no parameters or buffers.
- ``__init__`` writes into ``__dict__`` without asking a ``__setattr__`` behind Module in the MRO.
- A recorded result has no pickle: a converted parameter as a buffer, the weight of a weight norm.
"""

from __future__ import annotations

import os
import pathlib
import random
import sys
from types import SimpleNamespace

import torch

import plait_autograd  # noqa: F401 - the engine
import plait_core as pc
import plait_nn as nn

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from module_program_runs import run
from module_programs import generate

PROGRAMS = int(os.environ.get("PLAIT_MODULE_PROGRAMS", "1000"))
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
    result = filter(None, map(difference, range(FIRST, FIRST + PROGRAMS)))
    assert next(result, "") == ""
