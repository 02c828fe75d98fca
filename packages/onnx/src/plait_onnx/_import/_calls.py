"""Programs that a node calls: branches, bodies of loops, functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from plait_onnx._import._program import Program

__all__ = ["Call", "with_captured"]


class Call:
    """A program with the values that it reads from the graph around it."""

    def __init__(self, program: Program, slots: list[int]) -> None:
        self.program = program
        self.slots = slots

    @property
    def input_count(self) -> int:
        return len(self.program.inputs)

    @property
    def output_count(self) -> int:
        return len(self.program.outputs)

    def function(self, count: int) -> Callable[..., Any]:
        """Return a function of inputs and captured values."""
        program = self.program
        padding = [None] * (len(program.inputs) - count)

        def run(*args: Any) -> Any:
            return tuple(program.run([*args[:count], *padding], args[count:]))

        return run


def with_captured(
    function: Callable[..., Any], count: int, calls: list[Call]
) -> Callable[..., Any]:
    """Return a function that gets captured values after its inputs, and gives them to `function`.

    Its first argument is a list with the captured values of each program.
    """
    ends = [count]
    for call in calls:
        ends.append(ends[-1] + len(call.slots))

    def run(*args: Any) -> Any:
        captured = [args[i:j] for i, j in itertools.pairwise(ends)]
        return function(captured, *args[:count])

    return run
