"""What a profile records of programs that use several packages."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

import plait
import plait_optim
from plait import nn, optim
from plait.profiler import Category, Kind, Recording, profile
from plait.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.fails = False

    def forward(self, x: plait.Tensor) -> plait.Tensor:
        if self.fails:
            raise KeyError("asked for")
        return self.first(x).relu()


def rows_of(recording: Recording, name: str, kind: Kind = Kind.OP) -> Any:
    numbers = [i for i, each in enumerate(recording.signatures) if each.name == name]
    rows = recording.rows
    return rows[np.isin(rows["signature"], numbers) & (rows["kind"] == kind)]


def modules_of(recording: Recording, rows: Any) -> list[str]:
    return [recording.contexts[each].module for each in rows["context"]]


def test_a_node_has_the_link_of_the_call_that_made_it() -> None:
    w = plait.ones(3, requires_grad=True)
    with profile() as prof:
        y = (w * w).exp()
        y.sum().backward()
    recording = prof.recording()
    for name in ("mul", "exp", "sum"):
        node_name = f"{name.capitalize()}Backward"
        [call], [node] = rows_of(recording, name)[:1], rows_of(recording, node_name, Kind.NODE)
        assert call["link"] == node["link"] > 0
    assert rows_of(recording, "backward", Kind.BACKWARD)["link"].tolist() == [0]


def test_calls_without_gradients_have_no_link() -> None:
    with profile() as prof, plait.no_grad():
        plait.ones(3, requires_grad=True) * 2
    assert not prof.recording().rows["link"].any()


def test_modules_are_named_by_their_path() -> None:
    model = nn.Sequential(Block(), nn.ReLU(), Block())
    x = plait.ones(2, 4)
    with profile() as prof:
        model(x)
        x.exp()
    recording = prof.recording()
    assert modules_of(recording, rows_of(recording, "linear")) == [
        "Sequential.0.first",
        "Sequential.2.first",
    ]
    assert modules_of(recording, rows_of(recording, "relu")) == [
        "Sequential.0",
        "Sequential.1",
        "Sequential.2",
    ]
    assert modules_of(recording, rows_of(recording, "exp")) == [""]
    with profile(with_modules=False) as without:
        model(x)
    assert len(without.recording().contexts) == 1


def test_many_modules_are_all_named() -> None:
    model = nn.Sequential(*[nn.ReLU() for _ in range(200)])
    with profile() as prof:
        model(plait.ones(2))
    recording = prof.recording()
    result = modules_of(recording, rows_of(recording, "relu"))
    assert result == [f"Sequential.{i}" for i in range(200)]


def test_an_exception_leaves_its_modules() -> None:
    model = nn.Sequential(Block(), Block())
    model[1].fails = True
    x = plait.ones(2, 4)
    with profile() as prof:
        with pytest.raises(KeyError):
            model(x)
        x.exp()
        model[0](x)
    recording = prof.recording()
    assert modules_of(recording, rows_of(recording, "exp")) == [""]
    assert modules_of(recording, rows_of(recording, "linear"))[-1] == "Block.first"


def test_names_of_modules_that_come_and_move() -> None:
    relu, x = nn.ReLU(), plait.ones(2, 4)
    model = nn.Sequential(Block(), relu)
    hidden = nn.Sigmoid()  # within no module, so its type is its name
    with profile() as prof:
        model(x)
        model.append(nn.Tanh())  # it is not among the names that are known
        model[0].forward = lambda x: hidden(x)
        model(x)
        model(x)
    recording = prof.recording()
    assert modules_of(recording, rows_of(recording, "tanh")) == ["Sequential.2"] * 2
    assert modules_of(recording, rows_of(recording, "sigmoid")) == ["Sequential.0.Sigmoid"] * 2


class Waits(nn.Module):
    """Its forward waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.may_go = threading.Event(), threading.Event()

    def forward(self, x: plait.Tensor) -> plait.Tensor:
        self.entered.set()
        self.may_go.wait(60)
        return x


def test_a_module_that_runs_when_a_profile_ends_is_around_nothing_later() -> None:
    waits, relu, x = Waits(), nn.ReLU(), plait.ones(2)
    entered, may_go = waits.entered, waits.may_go
    dropped, profiled = threading.Event(), threading.Event()
    outer = [nn.Sequential(waits)]
    del waits

    def work() -> None:
        outer.pop()(x)
        gc.collect()
        dropped.set()
        profiled.wait(60)
        relu(x)

    thread = threading.Thread(target=work)
    with profile():
        thread.start()
        assert entered.wait(60)
    may_go.set()
    assert dropped.wait(60)
    with profile() as prof:
        profiled.set()
        thread.join()
    recording = prof.recording()
    assert modules_of(recording, rows_of(recording, "relu")) == ["ReLU"]


def test_a_training_shows_its_steps_and_its_waiting() -> None:
    data = TensorDataset(plait.randn(32, 4), plait.randn(32, 4))
    model = Block()
    sgd = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with profile(profile_memory=True) as prof:
        for x, y in DataLoader(data, batch_size=8):
            sgd.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            sgd.step()
            prof.step()
    recording = prof.recording()
    counts = Counter(
        (int(row["kind"]), recording.signatures[row["signature"]].name) for row in recording.rows
    )
    assert counts[Kind.RANGE, "Optimizer.step#SGD.step"] == 4
    assert counts[Kind.DATA, "enumerate(DataLoader)#IndexIterator.__next__"] == 5
    assert counts[Kind.STEP, "ProfilerStep#0"] == 1
    assert not (recording.rows["status"] < 0).any()
    marks = recording.rows[recording.rows["kind"] == Kind.MARK]
    messages = {Category(int(category)) for category in marks["a"]}
    assert messages == {Category.PARAMETER, Category.GRADIENT, Category.OPTIMIZER_STATE}
    parameters = marks["b"][marks["a"] == Category.PARAMETER]
    assert set(parameters.tolist()) == {each.data_ptr() for each in model.parameters()}


@pytest.mark.parametrize("context", [None, "fork"])
def test_workers_are_in_the_timeline(context: str | None) -> None:
    class Doubles:  # sent to workers by value
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> plait.Tensor:
            return plait.ones(4) * index

    with profile() as prof:
        loader = DataLoader(Doubles(), 4, num_workers=2, multiprocessing_context=context)
        assert len(list(loader)) == 2
    recording = prof.recording()
    result = rows_of(recording, "mul")
    assert len(result) == 8
    assert len(set(result["process"].tolist())) == 2


def test_hooks_of_all_optimizers() -> None:
    calls = []
    x = np.ones(2)
    sgd = optim.SGD([x], lr=0.1)
    before = plait_optim.register_optimizer_step_pre_hook(lambda *args: calls.append("before"))
    after = plait_optim.register_optimizer_step_post_hook(lambda *args: calls.append("after"))
    sgd.register_step_pre_hook(lambda *args: calls.append("own"))
    sgd.step(grads=[x])
    before.remove()
    after.remove()
    sgd.step(grads=[x])
    assert calls == ["before", "own", "after", "own"]


def test_a_program_of_optimizers_and_numpy_alone() -> None:
    x = np.ones(4, np.float32)
    adam = plait_optim.Adam([x], lr=0.1)
    with profile() as prof:
        adam.step(grads=[x.copy()])
    recording = prof.recording()
    [step] = rows_of(recording, "Optimizer.step#Adam.step", Kind.RANGE)
    [call] = rows_of(recording, "adam_step")
    assert step["start"] <= call["start"]
    assert call["depth"] == step["depth"] + 1
