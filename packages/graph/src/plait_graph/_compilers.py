"""Programs of graphs: plait-graph's own, or those of another compiler (``plait/compiler.h``)."""

from __future__ import annotations

from typing import Any, cast

from plait_graph import _graph


class CompiledProgram:
    """A program of another compiler; what is known of the graph comes from plait-graph's own."""

    def __init__(self, own: _graph.Program, compiled: _graph.CompiledProgram) -> None:
        self._own, self._compiled = own, compiled
        self.bind, self.run, self.compiler = compiled.bind, compiled.run, compiled.compiler
        self._kinds = {name: type(value) for name, value in own.numbers.items()}
        self._places = {name: i for i, name in enumerate(self._kinds)}

    def __getattr__(self, name: str) -> Any:
        if name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)

    @property
    def numbers(self) -> dict[str, int | float]:
        """The values of the graph's numbers in the next run."""
        values = {name: self._compiled.number(i) for name, i in self._places.items()}
        return {name: self._kinds[name](value) for name, value in values.items()}

    def set_number(self, name: str, value: float) -> None:
        """Set the value of a number in the next run."""
        self._compiled.set_number(self._places[name], value)


def new_program(text: str) -> _graph.Program:
    """Return a program of a graph: of the compiler that fills the role, if it takes the graph."""
    own = _graph.Program(text)
    compiled = _graph.compile(text, len(own.outputs))
    if compiled is None:
        return own
    return cast("_graph.Program", CompiledProgram(own, compiled))  # it has the same methods
