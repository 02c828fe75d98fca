"""Compiled functions whose Python runs at every call, and whose operator calls wait."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from plait_graph import _graph
from plait_graph._capture import is_recording
from plait_graph._computation_graph import Graph
from plait_graph._frozen import Compiled


class Deferred(Compiled):
    """A function whose operator calls wait and run together: what `compile` returns.

    Python runs at every call. Operator calls that an earlier call of the function made, too, wait
    until somebody needs their elements, and then run as one program. Its attributes are those of
    the function, also when they are set.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import compile
        >>> square = compile(lambda x: x * x + 1)
        >>> [square(pc.tensor([2.0])).item() for _ in range(3)]
        [5.0, 5.0, 5.0]
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = getattr(function, "__qualname__", type(function).__qualname__)
        self._calls = _graph.Calls(str(name))

    def __deepcopy__(self, memo: dict[int, Any]) -> Deferred:
        return type(self)(copy.deepcopy(self._orig_mod, memo))

    def __reduce__(self) -> Any:
        return type(self), (self._orig_mod,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        calls = self._calls
        if is_recording() or not calls.begin():
            return self._orig_mod(*args, **kwargs)
        try:
            return self._orig_mod(*args, **kwargs)
        finally:
            calls.end()

    def graphs(self) -> list[Graph]:
        """Return the graphs of operator calls that ran together so far.

        Example:
            >>> import plait_core as pc
            >>> from plait_graph import compile
            >>> double = compile(lambda x: (x + x).relu())
            >>> for _ in range(3):
            ...     y = double(pc.ones(2))
            >>> [[node.op for node in graph.nodes] for graph in double.graphs()]
            [['add', 'relu']]
        """
        return [Graph.from_json(text) for text in self._calls.graphs()]
