"""Random programs, eagerly and compiled: the same bits, writes, strides, versions and aliases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_func.pytree import tree_leaves
from plait_graph import compile

sys.path.insert(0, str(Path(__file__).parent))

import random_programs
from random_programs import Program, draw_program


def content(tensor: Any) -> Any:
    """Return what must be the same of two tensors."""
    bits = tensor.detach().contiguous().clone()  # memory that NumPy has had is no longer ours
    if bits.dtype == pc.bfloat16:
        bits = bits.view(pc.int16)
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    stride = [s for n, s in pairs if n > 1] if tensor.numel() else None
    state = (tensor.requires_grad, tensor.storage_offset() if tensor.numel() else 0)
    return (str(tensor.dtype), tuple(tensor.shape), stride, state, bits.numpy().tobytes())


class Side:
    """A program that runs eagerly or compiled, with captured tensors of its own."""

    def __init__(self, program: Program, *, is_compiled: bool) -> None:
        self.program = program
        numbers = np.random.default_rng(program.seed)
        self.captured = random_programs.tensors(program.captured, numbers)
        self.function = program.function(self.captured)
        if is_compiled:
            self.function = compile(self.function, frozen=True)

    def call(self, k: int) -> list[Any]:
        """Call it with values of their own for `k`; return what a caller sees of it."""
        numbers = np.random.default_rng((self.program.seed, k))
        arguments = random_programs.tensors(self.program.arguments, numbers)
        before = [t._version for t in (*arguments, *self.captured)]
        pc.manual_seed(k)
        result = self.function(*arguments)
        results = tree_leaves(result)
        tensors = [*results, *arguments, *self.captured]
        counts = [t._version - n for t, n in zip((*arguments, *self.captured), before, strict=True)]
        seen: list[Any] = [type(result), len(results), counts, pc.rand(1).item()]
        seen.append([content(t) for t in tensors])
        layouts = [kind[2] for kind in self.program.arguments]
        if not {"alias", "part"}.intersection(layouts):
            seen.append([[r is t for t in arguments] for r in results])
        # a write to one of them is seen through the others
        for i, tensor in enumerate(tensors):
            try:
                tensor.fill_(i % 2)
            except RuntimeError as error:  # memory that overlaps itself
                seen.append(type(error).__name__)
            seen.append([content(t) for t in tensors])
        return seen


def check(program: Program, calls: int = 4, kind: Any = Side) -> None:
    """Call a program several times, both ways, and compare what is seen."""
    eager, compiled = kind(program, is_compiled=False), kind(program, is_compiled=True)
    for k in range(calls):
        try:
            expected = eager.call(k)
        except (RuntimeError, IndexError, ValueError) as error:  # depends on values
            with pytest.raises(type(error)):
                compiled.call(k)
            return
        got = compiled.call(k)
        for part, (x, y) in enumerate(zip(expected, got, strict=True)):
            assert x == y, (program.seed, k, part, program.text(), program)


@pytest.mark.parametrize("seed", range(300))
def test_random_programs(seed: int) -> None:
    check(draw_program(seed))
