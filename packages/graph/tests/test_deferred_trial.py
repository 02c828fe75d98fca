"""Functions whose calls are faster if they do not wait."""

from __future__ import annotations

from typing import Any

import pytest

import plait_core as pc
from plait_graph import _deferred, compile


class Clock:
    """A clock by which a call takes what its kind takes."""

    def __init__(self, deferred: int, eager: int) -> None:
        self.deferred, self.eager, self.now, self.is_begin = deferred, eager, 0, True
        self.function: Any = None

    def __call__(self) -> int:
        self.is_begin = not self.is_begin
        if self.is_begin and self.function._trial is not None:
            is_eager = self.function._trial.is_eager_turn()
            self.now += self.eager if is_eager else self.deferred
        return self.now


@pytest.mark.parametrize(
    ("deferred", "eager", "is_eager"),
    [(5_000, 3_000, True), (5_000, 4_900, False), (9_000_000, 8_000_000, True)],
    ids=["slower", "as fast", "large"],
)
def test_calls_that_do_not_pay_wait_no_more(
    deferred: int, eager: int, is_eager: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(deferred, eager)
    monkeypatch.setattr(_deferred, "_clock", clock)
    clock.function = double = compile(lambda x: (x + x).relu())
    x = pc.tensor([-1.0, 3.0])
    for _ in range(60):
        assert double(x).tolist() == [0.0, 6.0]
    assert double._is_eager is is_eager
    assert [[node.op for node in graph.nodes] for graph in double.graphs()] == [["add", "relu"]]


def test_errors_and_results_of_trials() -> None:
    calls = 0

    def function(x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise KeyError(calls)
        return x * calls

    compiled = compile(function)
    for i in range(1, 100):
        if i % 3 == 0:
            with pytest.raises(KeyError):
                compiled(pc.ones(2))
        else:
            assert compiled(pc.ones(2)).tolist() == [i, i]
