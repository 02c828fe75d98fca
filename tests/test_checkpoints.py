"""Checkpoints of modules and optimizers: training resumes as if it had not stopped."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
import plait_optim as optim


def model() -> Any:
    pc.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))


def steps(net: Any, optimizer: Any, count: int) -> None:
    pc.manual_seed(1)
    for _ in range(count):
        optimizer.zero_grad()
        (net(pc.randn(4, 1, 4, 4)) ** 2).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("form", ["plait", "torch"])
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_training_goes_on(tmp_path: Path, form: str, mapped: bool, name: str) -> None:
    path = tmp_path / "a"
    options: dict[str, Any] = {"lr": 0.01} | ({"momentum": 0.9} if name == "SGD" else {})
    net = model()
    optimizer = getattr(optim, name)(net.parameters(), **options)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1)
    steps(net, optimizer, 3)
    state = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
        "generator": pc.get_rng_state(),
    }
    pc.save(state, path, format=form)
    steps(net, optimizer, 3)

    other = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    again = getattr(optim, name)(other.parameters(), **options)
    loaded = pc.load(path, mmap=mapped)
    other.load_state_dict(loaded["net"])
    again.load_state_dict(loaded["optimizer"])
    optim.lr_scheduler.StepLR(again, 1).load_state_dict(loaded["schedule"])
    pc.set_rng_state(loaded["generator"])
    steps(other, again, 3)
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        assert pc.equal(a, b)
    assert pc.equal(pc.load(path)["net"]["0.weight"], loaded["net"]["0.weight"]) or mapped


@pytest.mark.parametrize("form", ["plait", "torch"])
def test_parameters_stay_parameters(form: str) -> None:
    w = nn.Parameter(pc.ones(2, 3))
    value = {"w": w, "tied": w, "frozen": nn.Parameter(pc.ones(2), requires_grad=False)}
    leaf = pc.ones(2, requires_grad=True)
    file = io.BytesIO()
    pc.save({**value, "leaf": leaf, "history": leaf * 2}, file, format=form)
    back = pc.load(io.BytesIO(file.getvalue()))
    assert type(back["w"]) is nn.Parameter and back["w"].requires_grad
    assert back["tied"] is back["w"]
    assert type(back["frozen"]) is nn.Parameter and not back["frozen"].requires_grad
    assert back["leaf"].requires_grad and back["history"].is_leaf


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    first, second = nn.Linear(50, 50), nn.Linear(50, 50)
    second.weight = first.weight
    pc.save(nn.Sequential(first, second).state_dict(), tmp_path / "a")
    assert (tmp_path / "a").stat().st_size < 1.3 * 4 * 50 * 50
    state = pc.load(tmp_path / "a")
    assert state["0.weight"].data_ptr() == state["1.weight"].data_ptr()


def test_other_classes_of_tensor_are_refused() -> None:
    class Special(pc.Tensor):  # type: ignore[misc]
        pass

    special = pc.Tensor._make_subclass(Special, pc.ones(2), False)
    for form in ("plait", "torch"):
        with pytest.raises(pc.CheckpointError, match=r"save: a: got a Special.*x\.detach"):
            pc.save({"a": special}, io.BytesIO(), format=form)


def test_a_whole_module(tmp_path: Path) -> None:
    net = model()
    with pytest.raises(pc.CheckpointError, match=r"state_dict\(\).*weights_only=False"):
        pc.save(net, tmp_path / "a")
    pc.save(net, tmp_path / "a", weights_only=False)
    with pytest.raises(pc.CheckpointError, match="weights_only=False"):
        pc.load(tmp_path / "a")
    back = pc.load(tmp_path / "a", weights_only=False)
    assert type(back) is type(net)
    x = pc.ones(1, 1, 4, 4)
    assert pc.equal(back(x), net(x))


def test_under_the_umbrella(tmp_path: Path) -> None:
    import plait

    plait.save({"x": plait.ones(2)}, tmp_path / "a")
    assert plait.load(tmp_path / "a")["x"].tolist() == [1.0, 1.0]
    assert plait.CheckpointError is pc.CheckpointError


def test_parameters_without_the_packages_are_tensors(tmp_path: Path) -> None:
    """Without plait_nn and an engine, weights are loaded as tensors."""
    path = tmp_path / "a"
    pc.save({"w": nn.Parameter(pc.ones(2)), "g": pc.ones(1, requires_grad=True)}, path)
    code = (
        "import sys\n"
        "sys.modules['plait_nn'] = sys.modules['plait_autograd'] = None\n"
        "import plait_core as pc\n"
        f"state = pc.load({os.fspath(path)!r})\n"
        "assert type(state['w']) is pc.Tensor and state['w'].tolist() == [1.0, 1.0]\n"
        "assert state['g'].tolist() == [1.0]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
