"""Compiled functions whose Python runs at every call, and whose operator calls wait."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import time
from collections.abc import Callable
from typing import Any, ClassVar

from plait_graph import _graph
from plait_graph._capture import is_recording
from plait_graph._computation_graph import Graph
from plait_graph._frozen import Compiled

_FIRST = 6  # calls before a trial: those that add to the trie, and make programs, are slow
_PAIRS = 7  # calls of each kind in a trial, in turns; the fastest of each are compared
_CALLS_BETWEEN = 1000  # trials, as long as calls wait: later arguments may be smaller
_clock = time.perf_counter_ns


class _Trial:
    """Whether the calls of a function are faster if they do not wait."""

    __slots__ = ("calls", "times")

    def __init__(self, first: int) -> None:
        self.calls = -first
        self.times: tuple[list[int], list[int]] = ([], [])  # of deferred calls, and of eager ones

    def is_eager_turn(self) -> bool:
        """Return whether the call that began last does not wait."""
        return self.calls > 0 and self.calls % 2 == 0

    def note(self, nanoseconds: int) -> bool | None:
        """Note a call; at the end of the trial, return whether all others are to be eager."""
        if self.calls <= 0:
            return None
        self.times[self.is_eager_turn()].append(nanoseconds)
        if self.calls < 2 * _PAIRS:
            return None
        deferred, eager = self.times
        return not deferred or not eager or min(deferred) > min(eager)


@functools.cache
def _eager_class(kind: type[Deferred]) -> type[Deferred]:
    """Return the class of compiled functions whose calls wait no more.

    `__call__` is the function itself, so that no code of Python runs between.
    """
    members = {
        "__call__": property(operator.attrgetter("_orig_mod")),
        "__signature__": property(lambda self: inspect.signature(self._orig_mod)),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "_is_eager": True,
        "_kind": kind,
    }
    return type(kind.__name__, (kind,), members)


class Deferred(Compiled):
    """A function whose operator calls wait and run together: what `compile` returns.

    Python runs at every call. Operator calls that an earlier call of the function made, too, wait
    until somebody needs their elements, and then run as one program. In calls 7 to 20, and again
    after each 1000, it is measured whether the function is faster if they do not wait, as where
    tensors are small: then they wait no more. Its attributes are those of the function, also when
    they are set.

    Args:
        function: The function.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import compile
        >>> square = compile(lambda x: x * x + 1)
        >>> [square(pc.tensor([2.0])).item() for _ in range(3)]
        [5.0, 5.0, 5.0]
    """

    _is_eager = False
    _kind: ClassVar[type[Deferred] | None] = None  # of an eager class: that of the objects before

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = getattr(function, "__qualname__", type(function).__qualname__)
        self._calls = _graph.Calls(str(name))
        self._trial: _Trial | None = _Trial(_FIRST)
        self._until_trial = iter(range(_CALLS_BETWEEN))

    def __deepcopy__(self, memo: dict[int, Any]) -> Deferred:
        return (self._kind or type(self))(copy.deepcopy(self._orig_mod, memo))

    def __reduce__(self) -> Any:
        return self._kind or type(self), (self._orig_mod,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        calls = self._calls
        if is_recording():
            return self._orig_mod(*args, **kwargs)
        if self._trial is not None:
            return self._try(self._trial, args, kwargs)
        if not calls.begin():
            return self._orig_mod(*args, **kwargs)
        if next(self._until_trial, None) is None:
            self._trial = _Trial(0)
        try:
            return self._orig_mod(*args, **kwargs)
        finally:
            calls.end()

    def _try(self, trial: _Trial, args: Any, kwargs: Any) -> Any:
        """Make a call of a trial, and note the time that it takes."""
        begin = _clock()
        if not self._calls.begin():
            return self._orig_mod(*args, **kwargs)
        trial.calls += 1
        if trial.is_eager_turn():
            self._calls.end()
            begin = _clock()
            result = self._orig_mod(*args, **kwargs)
        else:
            try:
                result = self._orig_mod(*args, **kwargs)
            finally:
                self._calls.end()
        is_eager = trial.note(_clock() - begin)
        if is_eager is not None:
            self._trial, self._until_trial = None, iter(range(_CALLS_BETWEEN))
            if is_eager:
                kind: Any = type(self)  # hashable, which mypy denies
                self.__class__ = _eager_class(kind)
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
