"""Frozen functions with ``check=n``: what differs from the function is found and named."""

from __future__ import annotations

import copy
import ctypes
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_abi import ArgumentError
from plait_graph import _graph, compile

sys.path.insert(0, str(Path(__file__).parent))

from random_programs import draw_program
from same_bits import Counted, bits
from test_random_programs import Side


def model() -> Any:
    pc.manual_seed(3)
    return nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)
    )


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
}


class Training:
    """A model, an optimizer, and a step."""

    def __init__(self, optimizer: str = "Adam", sets_to_none: bool = True) -> None:
        self.model = model()
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.sets_to_none = sets_to_none

    def step(self, x: pc.Tensor, y: pc.Tensor) -> Any:
        self.optimizer.zero_grad(set_to_none=self.sets_to_none)
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def state(self) -> Any:
        parameters = list(self.model.parameters())
        states = [bits(dict(self.optimizer.state[p])) for p in parameters]
        grads = [bits(p.grad) for p in parameters]
        return bits(dict(self.model.state_dict())), states, grads, bits(pc.get_rng_state())


X, Y = pc.arange(32.0).reshape(8, 4).sin(), pc.tensor([0, 1] * 4)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("sets_to_none", [True, False])
def test_a_step_counts_once(optimizer: str, sets_to_none: bool) -> None:
    results = []
    for check in (None, 1, 2):
        training = Training(optimizer, sets_to_none)
        step = training.step if check is None else compile(training.step, frozen=True, check=check)
        pc.manual_seed(5)
        losses = []
        for i in range(7):
            training.optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
            losses.append(bits(step(X, Y)))
        results.append((losses, training.state()))
    assert results[0] == results[1] == results[2]


def test_a_model_with_gradients() -> None:
    plain = model()
    checked = compile(copy.deepcopy(plain), frozen=True, check=1)
    for i in range(4):
        got = []
        for module in (plain, checked):
            pc.manual_seed(i)
            module(X).square().sum().backward()
            got.append([bits(p.grad) for p in module.parameters()])
        assert got[0] == got[1]


def test_every_nth_run() -> None:
    f = Counted(lambda x: x * 2)
    compiled = compile(f, frozen=True, check=3)
    calls = []
    for _ in range(9):
        assert compiled(X).shape == X.shape
        calls.append(f.calls)
    assert calls == [1, 2, 2, 2, 3, 3, 3, 4, 4]


@pytest.mark.parametrize("seed", range(0, 300, 15))
def test_random_programs(seed: int) -> None:
    """Writes, views and aliases end as in eager; versions count the writes of both."""
    eager, checked = (Side(draw_program(seed), is_compiled=False) for _ in range(2))
    checked.function = compile(checked.function, frozen=True, check=1)
    for k in range(4):
        try:
            expected = eager.call(k)
        except (RuntimeError, IndexError, ValueError) as error:  # depends on values
            with pytest.raises(type(error)):
                checked.call(k)
            return
        got = checked.call(k)
        del expected[2], got[2]  # versions
        assert got == expected


def test_two_optimizers() -> None:
    def final(check: int) -> Any:
        trained = model()
        optimizers = [make(trained.parameters()) for make in OPTIMIZERS.values()]

        def step(x: pc.Tensor) -> Any:
            trained.zero_grad()
            loss = trained(x).square().mean()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            return loss

        compiled = compile(step, frozen=True, check=check)
        pc.manual_seed(1)
        return [bits(compiled(X)) for _ in range(6)], bits(dict(trained.state_dict()))

    assert final(0) == final(1)


def test_an_error_of_an_operator() -> None:
    compiled = compile(lambda x, i: x[i], frozen=True, check=1)
    for _ in range(3):
        compiled(X, Y)
    with pytest.raises(IndexError):
        compiled(X, Y + 100)


def test_what_the_function_counts_is_restored() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count, self.seen = 0, [0]

        def forward(self, x: pc.Tensor) -> pc.Tensor:
            self.count += 1
            self.seen[0] += 1
            return x + 1

    module = Model()
    compiled = compile(module, frozen=True, check=1)
    for _ in range(5):
        compiled(X)
    assert (module.count, module.seen) == (2, [2])
    assert len(compiled.graphs()) == 1


def forge(monkeypatch: pytest.MonkeyPatch, pattern: str, other: str) -> None:
    """Let programs have another text than the one that was recorded."""
    program = _graph.Program

    def forged(text: str) -> Any:
        return program(re.sub(pattern, other, text, count=1))

    monkeypatch.setattr(_graph, "Program", forged)


def inplace(x: pc.Tensor) -> pc.Tensor:
    y = x * 2
    y.add_(1)
    y.mul_(3)
    return y.relu()


FORGED: dict[str, tuple[Callable[[pc.Tensor], Any], str, str, str]] = {
    "an operator": (lambda x: ((x * 2).relu() + 1).sum(), '"relu"', '"sigmoid"', r"relu .*call 1"),
    "a number": (lambda x: (x * 2).sin() * 0.5, "0.5", "0.25", r"mul \(operator call 2"),
    "in place": (inplace, r'"add", (.*?)1\b', r'"add", \g<1>2', r"add \(operator call 1"),
    "the last of three": (lambda x: x.exp().sin().cos(), '"cos"', '"sin"', r"cos .*call 2"),
    "integers": (lambda x: (x > 0).sum() + 1, '"gt"', '"ge"', r"gt \(operator call 0"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_wrong_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, pattern, other, expected = FORGED[name]
    forge(monkeypatch, pattern, other)
    compiled = compile(function, frozen=True, check=2)
    x = pc.arange(4.0)
    for _ in range(3):
        compiled(x)
    with pytest.raises(RuntimeError, match=expected + ".* differs in .* instead of"):
        compiled(x)


@pytest.mark.parametrize(
    ("pattern", "other", "expected"),
    [
        (r'("op": "adam_step".*null, )false', r"\g<1>true", r"adam_step \(operator call"),
        (r'("op": "native_batch_norm_act.*?)1e-05', r"\g<1>0.1", "native_batch_norm_activation"),
        (
            r"(batch_norm_activation_backward.*?)1e-05",
            r"\g<1>0.1",
            "batch_norm_activation_backward",
        ),
        ('("mul", "in": .*?)0.9', r"\g<1>0.8", r"mul \(operator call 3\)"),
        ('"adam.0.lr", "value": 0.01', '"adam.0.lr", "value": 5.0', None),  # it is set at each run
    ],
)
def test_a_wrong_step_is_undone(
    pattern: str, other: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge(monkeypatch, pattern, other)
    training = Training()
    step = compile(training.step, frozen=True, check=2)
    for _ in range(4):
        step(X, Y)
    before = training.state()
    if expected is None:
        step(X, Y)
    else:
        with pytest.raises(RuntimeError, match=expected):
            step(X, Y)
        assert training.state() == before
        training.step(X, Y)
    assert training.state() != before


def test_a_wrong_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile(lambda x: (x * 2).sin() * 3, frozen=True, check=1)
    x = pc.arange(4.0).requires_grad_()
    compiled(x)
    forge(monkeypatch, '"cos"', '"sin"')
    compiled(x)
    with pytest.raises(RuntimeError, match=r"cos \(operator call 4\)"):
        compiled(x)


class Hidden:
    """State that a frozen function does not see."""

    def __init__(self) -> None:
        self.library = ctypes.c_double(0)  # as a counter of a library
        self.array = np.zeros(4, np.float32)
        self.shared = pc.from_numpy(self.array)


HIDDEN: dict[str, tuple[Callable[[Hidden, pc.Tensor], Any], str]] = {
    "a number of a library": (lambda h, x: x + h.library.value, "add .*`other` is .* in one call"),
    "a branch": (lambda h, x: x.sin() if h.library.value > 2 else x.cos(), "cos in one call"),
    "more calls": (lambda h, x: x.sin().cos() if h.library.value > 2 else x.sin(), "makes 1 oper"),
    "an array as a constant": (lambda h, x: x.sin() * pc.tensor(h.array.tolist()), "read by mul"),
    "an exception": (lambda h, x: x.sin() / (1 // (h.library.value < 3)), "ZeroDivisionError"),
    "an array that is read": (lambda h, x: x + float(h.shared.sum()), "reads the elements"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_state(name: str) -> None:
    function, expected = HIDDEN[name]
    hidden = Hidden()
    compiled = compile(lambda x: function(hidden, x), frozen=True, check=2)
    x = pc.arange(4.0)
    if name == "an array that is read":
        with pytest.raises(NotImplementedError, match=expected):
            compiled(x)
        return
    for _ in range(4):
        compiled(x)
    hidden.library.value = 3
    hidden.array[:] = 1
    compiled(x)
    with pytest.raises(RuntimeError, match=expected):
        compiled(x)


def test_memory_that_others_write_to_within_the_function() -> None:
    hidden = Hidden()

    def function(x: pc.Tensor) -> Any:
        y = x.sin()
        hidden.array += 1  # NumPy writes to a tensor between two operator calls
        return y + hidden.shared

    compiled = compile(function, frozen=True, check=1)
    x = pc.arange(4.0)
    compiled(x)
    compiled(x)
    with pytest.raises(RuntimeError, match=r"add \(operator call 1\).* 2.0 instead of 3.0"):
        compiled(x)
    assert hidden.array.tolist() == [2.0] * 4


def test_a_scheduler_within_a_step() -> None:
    training = Training("SGD")
    scheduler = optim.lr_scheduler.StepLR(training.optimizer, 4, 0.5)

    def step(x: pc.Tensor, y: pc.Tensor) -> Any:
        loss = training.step(x, y)
        scheduler.step()
        return loss

    compiled = compile(step, frozen=True, check=1)
    for _ in range(3):
        compiled(X, Y)
    with pytest.raises(RuntimeError, match=r"sgd_step .*: `lr` is %sgd.0.lr in one call and 0\.1"):
        compiled(X, Y)


@pytest.mark.parametrize("check", [-1, 1.5, True, None])
def test_check_is_a_number(check: Any) -> None:
    with pytest.raises(ArgumentError, match="compile: `check` must be an int >= 0"):
        compile(lambda x: x, frozen=True, check=check)
