"""Optimizers on the pretend accelerator: the CPU's results, and no step that waits for it."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait
import plait_abi
import plait_optim
from plait_optim._component import operator

STEPS = Path(plait_optim.__file__).parent / "lib" / "libplait_optim.so"


@pytest.fixture(scope="module")
def built(device_library: Path) -> Path:
    return device_library


class Device:
    """The accelerator, with its counts."""

    def __init__(self, library: Path, same_kernels: bool) -> None:
        self.same_kernels = same_kernels
        self._functions = ctypes.CDLL(str(library))
        self._functions.example_device_get.restype = ctypes.c_int64

    def count(self, name: str) -> int:
        return int(self._functions.example_device_get(name.encode()))


@pytest.fixture(params=["kernels", "decompositions"])
def device(built: Path, request: pytest.FixtureRequest) -> Iterator[Device]:
    """With the CPU's kernels of the steps, which it finds if it comes later; or without them."""
    same_kernels = request.param == "kernels"
    operator("sgd_step")
    if not same_kernels:
        plait_abi.detach("plait_optim")
    plait_abi.load(str(built))
    if not same_kernels:
        plait_abi.load(str(STEPS))
    yield Device(built, same_kernels)
    gc.collect()
    plait_abi.detach("example-device")


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: plait.optim.SGD(p, lr=0.1),
    "momentum": lambda p: plait.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "Adam": lambda p: plait.optim.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: plait.optim.AdamW(p, lr=0.1, maximize=True),
    "RMSprop": lambda p: plait.optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
    "Adagrad": lambda p: plait.optim.Adagrad(p, lr=0.1, initial_accumulator_value=0.5),
    "ASGD": lambda p: plait.optim.ASGD(p, lr=0.1, t0=1.0),
    "Muon": lambda p: plait.optim.Muon([q for q in p if q.ndim == 2], lr=0.1),
    **{
        name: lambda p, name=name: getattr(plait.optim, name)(p, lr=0.1)
        for name in ("Adadelta", "Adafactor", "Adamax", "NAdam", "RAdam", "Rprop")
    },
}


def parameters(dtype: Any) -> list[Any]:
    rng = np.random.default_rng(1)
    arrays = [np.asarray(rng.standard_normal(shape)) for shape in [(4, 3), (3,), (5, 2), ()]]
    return [plait.from_numpy(a).to(dtype) for a in arrays]


def give_gradients(params: list[Any], step: int) -> None:
    rng = np.random.default_rng(step)
    for p in params:
        array = np.asarray(rng.standard_normal(tuple(p.shape)))
        p.grad = plait.from_numpy(array).to(p.dtype).to(p.device)


CLIPS: dict[str, Callable[[list[Any]], Any]] = {
    "within the step": lambda params: None,
    "norm": lambda params: plait.nn.utils.clip_grad_norm_(params, 1.0),
    "largest": lambda params: plait.nn.utils.clip_grad_norm_(params, 1.0, float("inf")),
    "value": lambda params: plait.nn.utils.clip_grad_value_(params, 0.5),
}


def trained(
    name: str, clip: str, dtype: Any, places: list[str], device: Device | None = None
) -> list[Any]:
    """Return the values of parameters that are on ``places`` in turn, after four steps."""
    params = [
        plait.nn.Parameter(p.to(places[i % len(places)])) for i, p in enumerate(parameters(dtype))
    ]
    optimizer = OPTIMIZERS[name](params)
    for step in range(4):
        give_gradients(params, step)
        before = device and (device.count("waits"), device.count("copies"))
        CLIPS[clip](params)
        optimizer.step(**({"max_norm": 1.0} if clip == "within the step" else {}))
        assert before == (device and (device.count("waits"), device.count("copies")))
    return [np.array(p.detach().cpu().double().numpy()) for p in params]


def check(argument: list[Any], expected: list[Any], rtol: float) -> None:
    for own, want in zip(argument, expected, strict=True):
        np.testing.assert_allclose(own, want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_the_cpu_and_wait_for_nothing(
    device: Device, name: str, clip: str
) -> None:
    for dtype, rtol in ((plait.float32, 1e-5), (plait.float64, 1e-12), (plait.float16, 4e-3)):
        expected = trained(name, clip, dtype, ["cpu"])
        result = trained(name, clip, dtype, ["ext"], device)
        check(result, expected, 0.0 if device.same_kernels else rtol)


@pytest.mark.parametrize("clip", ["within the step", "norm"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_on_several_devices(device: Device, name: str, clip: str) -> None:
    expected = trained(name, clip, plait.float64, ["cpu"])
    for places in (
        ["ext:0", "ext:1"],
        ["cpu", "ext"],
        ["ext:1", "cpu", "ext:0"],
        ["ext", "ext", "ext", "cpu"],  # the 0-d one
    ):
        check(trained(name, clip, plait.float64, places), expected, 1e-12)


def test_the_norm_is_read_when_it_is_looked_at(device: Device) -> None:
    p = plait.nn.Parameter(plait.zeros(2, device="ext"))
    optimizer = plait.optim.SGD([p], lr=1.0)
    p.grad = plait.tensor([3.0, 4.0], device="ext")
    optimizer.step(max_norm=1.0)
    before = device.count("copies")
    assert optimizer.grad_norm == 5.0 and optimizer.grad_norm == 5.0
    assert device.count("copies") == before + 1


def test_states_go_between_devices(device: Device) -> None:
    def at(place: str, saved: Any = None) -> tuple[Any, Any]:
        p = plait.nn.Parameter(plait.ones(3, device=place))
        optimizer = plait.optim.Adam([p], lr=0.1)
        if saved is not None:
            optimizer.load_state_dict(saved.state_dict())
        p.grad = plait.tensor([1.0, -2.0, 3.0], device=place)
        optimizer.step()
        return p, optimizer

    _, first = at("cpu")
    _, second = at("ext", first)
    [state] = second.state.values()
    assert str(state["exp_avg"].device) == "ext:0"
    third, _ = at("cpu", second)
    expected, _ = at("cpu", at("cpu", first)[1])
    np.testing.assert_allclose(third.detach().numpy(), expected.detach().numpy(), rtol=1e-6)
    array = np.ones(3, np.float32)
    numbers = plait_optim.Adam([array])
    numbers.load_state_dict(second.state_dict())
    assert numbers.state[array]["exp_avg"].tolist() == state["exp_avg"].cpu().tolist()
    at("ext", numbers)


def test_averages_of_weights_on_another_device(device: Device) -> None:
    model = plait.nn.Linear(2, 2)
    average = plait.optim.swa_utils.AveragedModel(model, device="ext")
    expected = plait.optim.swa_utils.AveragedModel(model)
    for scale in (1.0, 3.0):
        with plait.no_grad():
            model.weight.fill_(scale)
        average.update_parameters(model)
        expected.update_parameters(model)
    assert str(average.module.weight.device) == "ext:0"
    assert average.module.weight.cpu().tolist() == expected.module.weight.tolist()


def test_lbfgs_on_a_device(device: Device) -> None:
    ends = []
    for place in ("cpu", "ext"):
        p = plait.nn.Parameter(plait.tensor([-1.0, 1.0], dtype=plait.float64, device=place))
        optimizer = plait.optim.LBFGS([p], max_iter=60, line_search_fn="strong_wolfe")

        def closure(p: Any = p, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
            loss.backward()
            return loss

        optimizer.step(closure)
        ends.append(p.detach().cpu().tolist())
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-9)
    np.testing.assert_allclose(ends[1], [1.0, 1.0], rtol=1e-3)
