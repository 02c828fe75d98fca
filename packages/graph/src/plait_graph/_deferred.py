"""Compiled functions whose Python runs at every call, and whose operator calls wait."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

from plait_graph import _graph
from plait_graph._capture import is_recording
from plait_graph._computation_graph import Graph
from plait_graph._frozen import Compiled

_FIRST_TRIAL = 32  # calls before a trial: those that add to the trie, and make programs, are slow
_TRIALS = 8  # calls of each kind, in turns; the fastest of each are compared
_SLOWER = 1.05
_clock = time.perf_counter_ns


class _Trial:
    """Whether the calls of a function are faster if they do not wait."""

    __slots__ = ("calls", "times")

    def __init__(self) -> None:
        self.calls = 0
        self.times: tuple[list[int], list[int]] = ([], [])  # of deferred calls, and of eager ones

    def is_eager_turn(self) -> bool:
        """Return whether the next call does not wait."""
        return self.calls > _FIRST_TRIAL and self.calls % 2 == 1

    def note(self, nanoseconds: int) -> bool | None:
        """Note a call; at the end of the trial, return whether all others are to be eager."""
        if self.calls <= _FIRST_TRIAL:
            return None
        self.times[self.calls % 2].append(nanoseconds)
        deferred, eager = self.times
        if min(len(deferred), len(eager)) < _TRIALS:
            return None
        return min(deferred) > _SLOWER * min(eager)


class Deferred(Compiled):
    """A function whose operator calls wait and run together: what `compile` returns.

    Python runs at every call. Operator calls that an earlier call of the function made, too, wait
    until somebody needs their elements, and then run as one program. After some calls of a
    function it is measured whether it is faster if they do not wait, as where tensors are small:
    then they wait no more. Its attributes are those of the function, also when they are set.

    Args:
        function: The function.

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
        self._trial: _Trial | None = _Trial()
        self._is_eager = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Deferred:
        return type(self)(copy.deepcopy(self._orig_mod, memo))

    def __reduce__(self) -> Any:
        return type(self), (self._orig_mod,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        calls = self._calls
        if self._is_eager or is_recording() or not calls.begin():
            return self._orig_mod(*args, **kwargs)
        if self._trial is not None:
            return self._try(self._trial, args, kwargs)
        try:
            return self._orig_mod(*args, **kwargs)
        finally:
            calls.end()

    def _try(self, trial: _Trial, args: Any, kwargs: Any) -> Any:
        """Make a call that has begun, and note the time that it takes."""
        trial.calls += 1
        begin = _clock()
        if trial.is_eager_turn():
            self._calls.end()
            result = self._orig_mod(*args, **kwargs)
        else:
            try:
                result = self._orig_mod(*args, **kwargs)
            finally:
                self._calls.end()
        is_eager = trial.note(_clock() - begin)
        if is_eager is not None:
            self._is_eager, self._trial = is_eager, None
        return result

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
