"""Steps on tensors without values: whatever reads a value fails, as on a device it would wait."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_optim as optim
from plait_optim import swa_utils
from plait_optim._component import operator

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}],
    "Adam": [{}, {"amsgrad": True, "maximize": True}, {"weight_decay": 0.1}],
    "AdamW": [{}, {"amsgrad": True}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True}],
    "Adagrad": [{}, {"initial_accumulator_value": 0.5}],
    "Adafactor": [{}, {"weight_decay": 0.1, "maximize": True}],
    "Muon": [{}, {"nesterov": False}],
    **{name: [{}] for name in ("ASGD", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop")},
}
MAKERS = [(name, options) for name, several in OPTIONS.items() for options in several]


def empty(*shape: int, **options: Any) -> Any:
    return pc.empty(*shape, device="meta", **options)


def with_foreach(name: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    if "foreach" not in inspect.signature(getattr(optim, name)).parameters:
        return [options]
    return [{**options, "foreach": foreach} for foreach in (None, False, True)]


def test_every_optimizer_is_tried() -> None:
    all_of_them = {name for name in optim.__all__ if inspect.isclass(getattr(optim, name))}
    assert {*OPTIONS, "LBFGS", "Optimizer", "SparseAdam"} == all_of_them


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(("name", "options"), MAKERS, ids=str)
def test_steps_read_no_values(name: str, options: dict[str, Any], dtype: str) -> None:
    kind = getattr(pc, dtype)
    for argument in with_foreach(name, options):
        params = [empty(3, 4, dtype=kind), empty(4, 2, dtype=kind)]
        params += [] if name == "Muon" else [empty(5, dtype=kind), empty(dtype=kind)]
        optimizer = getattr(optim, name)(params, lr=0.1, **argument)
        schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        for param in params:
            param.grad = pc.empty_like(param)
        for limits in ({}, {"max_norm": 1.0}, {}):
            optimizer.step(**limits)
            schedule.step()
        optimizer.zero_grad(set_to_none=False)
        for param in params:
            for value in optimizer.state[param].values():
                assert not isinstance(value, pc.Tensor) or str(value.device) == "meta"
        other = getattr(optim, name)(copy.deepcopy(params), lr=0.1, **argument)
        other.load_state_dict(optimizer.state_dict())
        other.step(grads=[pc.empty_like(param) for param in params])
        with pytest.raises(RuntimeError, match="meta"):
            _ = optimizer.grad_norm


def test_line_searches_read_the_loss() -> None:
    p = empty(3)
    p.grad = empty(3)
    with pytest.raises(RuntimeError, match="meta"):
        optim.LBFGS([p]).step(lambda: empty())


def test_averages_of_weights_read_no_values() -> None:
    weights = [empty(3, 4), empty(2, dtype=pc.float64)]
    for average in (
        swa_utils.AveragedModel(weights),
        swa_utils.AveragedModel(weights, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9)),
        swa_utils.AveragedModel(weights, avg_fn=swa_utils.get_ema_avg_fn(0.9)),
    ):
        for _ in range(3):
            average.update_parameters(weights)
        assert average.n_averaged == 3


def test_parameters_may_be_on_several_devices() -> None:
    def params() -> list[Any]:
        return [pc.ones(3, 2), pc.ones(2, 2)]

    def grads() -> list[Any]:
        return [pc.full([3, 2], 0.5), pc.full([2, 2], -0.25)]

    for name, options in MAKERS:
        own, expected = params(), params()
        between = [own[0], empty(4, 4), own[1], empty(2, 3)]
        optimizer = getattr(optim, name)(between, **options)
        other = getattr(optim, name)(expected, **options)
        for _ in range(3):
            first, second = grads()
            optimizer.step(grads=[first, empty(4, 4), second, empty(2, 3)])
            other.step(grads=grads())
        for a, b in zip(own, expected, strict=True):
            assert a.tolist() == b.tolist(), name


def test_an_error_on_one_device_is_told() -> None:
    optimizer = optim.Adam([pc.ones(3), empty(3)])
    with pytest.raises(ValueError, match=r"grads\[0\]. must have the shape of .params\[0\]"):
        optimizer.step(grads=[pc.ones(2), empty(3)])
    with pytest.raises(ValueError, match="all tensors must be on one device"):
        optim.Adam([pc.ones(3)]).step(grads=[empty(3)])


def test_updates_that_are_not_one_call_are_not_repeated() -> None:
    class Twice(optim.Optimizer):
        calls = 0

        def update(self, *args: Any) -> None:
            self.calls += 1
            raise ValueError("mine")

    optimizer = Twice([pc.ones(3), empty(3)], {})
    with pytest.raises(ValueError, match="mine"):
        optimizer.step(grads=[pc.ones(3), empty(3)])
    assert optimizer.calls == 1


def test_a_state_goes_to_the_device_of_its_parameter() -> None:
    p = pc.ones(3)
    optimizer = optim.Adam([p])
    optimizer.step(grads=[pc.ones(3)])
    other = optim.Adam([empty(3)])
    other.load_state_dict(optimizer.state_dict())
    [state] = other.state.values()
    assert str(state["exp_avg"].device) == "meta" and state["step"] == 1
    # numbers of the host, too
    array = np.ones(3, np.float32)
    numbers = optim.Adam([array])
    numbers.step(grads=[np.ones(3, np.float32)])
    other.load_state_dict(numbers.state_dict())
    with pytest.raises(RuntimeError, match="meta"):
        optimizer.load_state_dict(other.state_dict())


def test_a_0d_parameter_of_the_cpu_is_not_taken_for_an_operand() -> None:
    step = operator("sgd_step")
    with pytest.raises(ValueError, match="`grads` is on meta, an earlier one on cpu"):
        step([pc.tensor(1.0)], [empty()], [], [1])
    with pytest.raises(ValueError, match="is on meta, an earlier one on cpu"):
        step([pc.tensor(1.0), empty(3)], [pc.tensor(1.0), empty(3)], [], [1])
    with pytest.raises(ValueError, match="`params` is on cpu, an earlier one on meta"):
        step([empty(3), pc.tensor(1.0)], [empty(3), pc.tensor(1.0)], [], [1])
    step([empty(3)], [empty(3)], [], [1], grad_scale=pc.tensor(1.0))  # this is one
    scale = pc.tensor(1.0)
    optim.SGD([empty(3), scale], lr=0.5).step(grads=[empty(3), pc.tensor(1.0)])
    assert scale.item() == 0.5
