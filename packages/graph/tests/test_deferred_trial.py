"""Functions whose calls are faster if they do not wait."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
from plait_graph import _deferred, compile
from plait_graph._compiled_module import DeferredModule


class Timed:
    """A function of which a call takes what its kind takes, by a clock that it moves itself."""

    def __init__(self, deferred: int, eager: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.deferred, self.eager, self.now = deferred, eager, 0
        self.compiled = compile(self.call)
        self.kinds: list[bool] = []  # of the calls: whether they were eager
        monkeypatch.setattr(_deferred, "_clock", lambda: self.now)

    def call(self, x: Any) -> Any:
        trial = self.compiled._trial
        is_eager = self.compiled._is_eager or (trial is not None and trial.is_eager_turn())
        self.kinds.append(is_eager)
        self.now += self.eager if is_eager else self.deferred
        return (x + x).relu()

    def make(self, calls: int) -> None:
        for _ in range(calls):
            assert self.compiled(pc.tensor([-1.0, 3.0])).tolist() == [0.0, 6.0]


@pytest.mark.parametrize(
    ("deferred", "eager", "is_eager"),
    [(5_000, 3_000, True), (5_000, 5_000, False), (9_000_000, 8_000_000, True)],
    ids=["slower", "as fast", "large"],
)
def test_calls_that_do_not_pay_wait_no_more(
    deferred: int, eager: int, is_eager: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Timed(deferred, eager, monkeypatch)
    timed.make(60)
    assert timed.kinds == [False] * 6 + [False, True] * 7 + [is_eager] * 40
    graphs = timed.compiled.graphs()
    assert [[node.op for node in graph.nodes] for graph in graphs] == [["add", "relu"]]


def test_functions_and_modules_whose_calls_wait_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(2, 1, monkeypatch)
    timed.make(20)
    compiled = timed.compiled
    assert compiled._is_eager and isinstance(compiled, _deferred.Deferred) and callable(compiled)
    assert list(inspect.signature(compiled).parameters) == ["x"]
    assert repr(type(compiled)) == repr(_deferred.Deferred)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        compiled()
    module = compile(nn.Linear(2, 1))
    assert type(module) is DeferredModule
    x = pc.ones(1, 2)
    expected = module(x).item()
    module.__class__ = _deferred._eager_class(DeferredModule)
    for each in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert isinstance(each, DeferredModule) and each(x).item() == expected
        assert each.in_features == 2 and each.eval() is each and not each.training
    assert type(copy.deepcopy(module)) is DeferredModule
    module._orig_mod = nn.ReLU()
    assert module(pc.tensor([-1.0])).item() == 0

    class Counted:
        @compile
        def add(self, x: Any) -> Any:
            return self, x + 1

    Counted.__dict__["add"].__class__ = _deferred._eager_class(_deferred.Deferred)
    owner = Counted()
    same, result = owner.add(pc.ones(1))
    assert same is owner and result.item() == 2


def test_later_calls_are_tried_too(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(5_000, 6_000, monkeypatch)
    timed.make(500)
    timed.deferred = 7_000  # as of smaller arguments
    timed.make(600)
    assert timed.kinds[20:1021] == [False] * 1001
    assert timed.kinds[1021:] == [False, True] * 7 + [True] * 65


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
    assert compiled._trial is None


def test_calls_within_another_function_are_no_trial() -> None:
    inner = compile(lambda x: x + 1)
    outer = compile(lambda x: inner(x) * 2)
    for _ in range(5):
        assert outer(pc.ones(1)).item() == 4
    assert inner._trial is not None and inner._trial.calls == -6 and outer._trial.calls == -1
