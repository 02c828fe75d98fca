"""Random programs with gradients, eagerly and compiled: results and gradients, bit by bit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_autograd
import plait_core as pc
from plait_func.pytree import tree_leaves
from plait_graph import compile

sys.path.insert(0, str(Path(__file__).parent))

import random_programs
from random_programs import Program, draw_program
from same_bits import bits
from test_random_programs import content

REFUSALS = (
    "writes to an argument and changes its history",
    "two results share memory",
    "a view was made that no operator made",
)


class Side:
    """A program that runs eagerly or compiled, with captured tensors of its own."""

    def __init__(self, program: Program, *, is_compiled: bool) -> None:
        self.program = program
        numbers = np.random.default_rng(program.seed)
        self.captured = random_programs.tensors(program.captured, numbers)
        n = len(program.arguments)
        for i in program.differentiable:
            if i >= n:
                self.captured[i - n].requires_grad_()
        self.function = program.function(self.captured)
        if is_compiled:
            self.function = compile(self.function, frozen=True)

    def call(self, k: int) -> list[Any]:
        """Call it with values of their own for `k`; return its results and gradients."""
        numbers = np.random.default_rng((self.program.seed, k))
        arguments = random_programs.tensors(self.program.arguments, numbers)
        for i in self.program.differentiable:
            if i < len(arguments):
                arguments[i].requires_grad_()
        tensors = [*arguments, *self.captured]
        sources = [tensors[i] for i in self.program.differentiable]
        pc.manual_seed(k)
        results = tree_leaves(self.function(*arguments))
        seen: list[Any] = [[content(t) for t in (*results, *tensors)]]
        seen.append([t.is_leaf for t in results])
        able = [t for t in results if t.requires_grad]
        if not able:
            return seen
        given = [random_programs.values("float32", t.shape, numbers).to(t.dtype) for t in able]
        try:
            grads = plait_autograd.grad(able, sources, given, allow_unused=True)
        except RuntimeError as error:
            # such results do not need to say that they require grad
            return [type(error).__name__]
        seen.append([bits(g) if g is not None and g.numel() else None for g in grads])
        return seen


def check(program: Program, calls: int = 4) -> None:
    """Call a program several times, both ways, and compare what is seen."""
    eager, compiled = Side(program, is_compiled=False), Side(program, is_compiled=True)
    for k in range(calls):
        try:
            expected = eager.call(k)
        except (RuntimeError, IndexError, ValueError) as error:  # depends on values
            with pytest.raises(type(error)):
                compiled.call(k)
            return
        if len(expected) == 1 and isinstance(expected[0], str):
            return  # the derivative reads what was written since
        try:
            got = compiled.call(k)
        except NotImplementedError as error:
            assert any(text in str(error) for text in REFUSALS), (program.seed, k)
            return
        assert len(expected) == len(got), (program.seed, k, 9, program.text(), program)
        for part, (x, y) in enumerate(zip(expected, got, strict=True)):
            assert x == y, (program.seed, k, part, program.text(), program)


@pytest.mark.parametrize("seed", range(300))
def test_random_gradients(seed: int) -> None:
    check(draw_program(seed, gradients=True))
