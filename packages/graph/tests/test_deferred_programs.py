"""Random programs whose operator calls wait: what they leave is what eager calls leave, also where
Python reads, keeps or changes values between the calls.
"""

from __future__ import annotations

import random
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
from test_random_programs import check, content

CALLS = 7


class Side:
    """A program that runs eagerly or deferred, with captured tensors of its own.

    Each line is followed by a call of `look`, which reads, keeps or changes a value in some calls
    of the program.
    """

    def __init__(self, program: Program, *, is_compiled: bool) -> None:
        self.program = program
        numbers = np.random.default_rng(program.seed)
        self.captured = random_programs.tensors(program.captured, numbers)
        n = len(program.arguments)
        for i in program.differentiable:
            if i >= n:
                self.captured[i - n].requires_grad_()
        lines = []
        for i, line in enumerate(program.lines):
            target = line.partition(" = ")[0].split(",")[0]
            lines.append(line)
            if target.isidentifier():
                lines.append(f"{target} = look({i}, {target})")
        text = Program(
            program.seed, program.arguments, program.captured, lines, program.result
        ).text()
        space: dict[str, Any] = {"pc": pc, "look": self.look}
        space |= {f"c{i}": tensor for i, tensor in enumerate(self.captured)}
        exec(text, space)
        self.body = space["f"]
        self.function = compile(self.whole) if is_compiled else self.whole
        self.k = 0
        self.log: list[Any] = []

    def look(self, i: int, value: Any) -> Any:
        draw = random.Random(f"{self.program.seed} {self.k} {i}")
        if self.k in (0, 1, 2, 4) or draw.random() < 0.7 or not isinstance(value, pc.Tensor):
            return value
        kind = draw.randrange(6)
        if kind == 0:
            self.log.append(repr(value))
        elif kind == 1:
            self.log.append(value)
        elif kind == 2 and value.is_floating_point():
            return value * draw.random()
        elif kind == 3:
            self.log.append(str(value.detach().contiguous().view(-1)[:1].tolist()))
        elif kind == 4:
            self.log.append((value._version, value.data_ptr() % 2, pc.get_rng_state()))
        elif kind == 5:
            pc.manual_seed(i)
        return value

    def whole(self, *arguments: Any) -> Any:
        """Call the program, and differentiate it if it has gradients."""
        result = self.body(*arguments)
        tensors = [*arguments, *self.captured]
        sources = [tensors[i] for i in self.program.differentiable]
        able = [t for t in tree_leaves(result) if t.requires_grad and t.is_floating_point()]
        if not able or not sources or self.program.seed % 2:
            return result, ()
        given = [pc.ones_like(t) for t in able]
        return result, plait_autograd.grad(able, sources, given, allow_unused=True)

    def call(self, k: int) -> list[Any]:
        """Call it with values of their own for `k`; return what a caller sees of it."""
        self.k = k
        numbers = np.random.default_rng((self.program.seed, k))
        arguments = random_programs.tensors(self.program.arguments, numbers)
        for i in self.program.differentiable:
            if i < len(arguments):
                arguments[i].requires_grad_()
        tensors = [*arguments, *self.captured]
        before = [t._version for t in tensors]
        pc.manual_seed(k)
        result, inner_grads = self.function(*arguments)
        results = tree_leaves(result)
        counts = [t._version - n for t, n in zip(tensors, before, strict=True)]
        counts += [t._version for t in results]
        results += [g for g in inner_grads if g is not None]
        seen: list[Any] = [counts, pc.rand(1).item(), bits(self.log)]
        seen.append([content(t) for t in (*results, *tensors)])
        seen.append([t.is_leaf for t in results])
        seen.append([[r is t for t in arguments] for r in results])
        self.log.clear()
        sources = [tensors[i] for i in self.program.differentiable]
        able = [t for t in results if t.requires_grad]
        if able and sources and self.program.seed % 2:
            given = [pc.ones_like(t) for t in able]
            grads = plait_autograd.grad(able, sources, given, allow_unused=True)
            seen.append([bits(g) for g in grads if g is not None])
        if not self.program.differentiable:  # a write to one of them is seen through the others
            for i, tensor in enumerate((*results, *tensors)):
                try:
                    tensor.fill_(i % 2)
                except RuntimeError as error:  # memory that overlaps itself
                    seen.append(type(error).__name__)
                seen.append([content(t) for t in (*results, *tensors)])
        return seen


@pytest.mark.parametrize("seed", range(100))
def test_random_programs(seed: int) -> None:
    check(draw_program(seed), CALLS, Side)


@pytest.mark.parametrize("seed", range(100))
def test_random_gradients(seed: int) -> None:
    check(draw_program(seed, gradients=True), CALLS, Side)
