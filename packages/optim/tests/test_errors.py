"""Error texts; a step that fails has written nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_optim as optim
from plait_optim._component import operator


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
@pytest.mark.parametrize(
    ("params", "grads", "error", "words"),
    [
        (
            [ones(2, 3), ones(2, 3)],
            [ones(2, 3), ones(3, 2)],
            plait_abi.ShapeError,
            ["grads[1]", "params[1]", "(2, 3)", "(3, 2)"],
        ),
        ([ones(3)], [ones(3, 1)], plait_abi.ShapeError, ["grads[0]", "(3,)", "(3, 1)"]),
        (
            [ones(2), ones(4)],
            [ones(2), ones(4, dtype=np.float64)],
            plait_abi.DTypeError,
            ["grads[1]", "params[1]", "float32", "float64", "(4,)"],
        ),
        (
            [ones(2), ones(4, dtype=np.int64)],
            [ones(2), ones(4, dtype=np.int64)],
            plait_abi.DTypeError,
            ["params[1]", "float16, bfloat16, float32 or float64", "int64", "(4,)"],
        ),
        (
            [ones(2), np.broadcast_to(ones(1), (4,))],
            [ones(2), ones(4)],
            ValueError,
            ["params", "read-only"],
        ),
    ],
)
def test_a_bad_gradient_leaves_everything_as_it_was(
    make: Any, params: list[Any], grads: list[Any], error: type[Exception], words: list[str]
) -> None:
    before = [p.copy() for p in params]
    optimizer = make(params, lr=0.1)
    with pytest.raises(error) as caught:
        optimizer.step(grads=grads)
    text = str(caught.value)
    assert text.startswith("sgd_step" if make is optim.SGD else "adam_step")
    for word in words:
        assert word in text
    for now, then in zip(params, before, strict=True):
        np.testing.assert_array_equal(now, then)
    for state in optimizer.state_dict()["state"].values():
        assert state["step"] == 0


def test_a_refused_step_does_not_count() -> None:
    p = ones(3)
    optimizer = optim.SGD([p], lr=1.0, momentum=0.5, dampening=0.5)
    with pytest.raises(plait_abi.ShapeError):
        optimizer.step(grads=[ones(2)])
    optimizer.step(grads=[ones(3)])
    # the first gradient enters the buffer undampened
    np.testing.assert_array_equal(p, 0)


def test_the_number_of_gradients() -> None:
    optimizer = optim.SGD([ones(1), ones(1)], lr=0.1)
    with pytest.raises(ValueError, match=r"`grads` must hold one gradient .* 2 parameters; got 1"):
        optimizer.step(grads=[ones(1)])


def test_arrays_without_grad() -> None:
    with pytest.raises(TypeError, match=r"numpy\.ndarray carry no \.grad; pass step\(grads="):
        optim.SGD([ones(1)], lr=0.1).step()


@pytest.mark.parametrize(
    ("make", "options", "text"),
    [
        (optim.SGD, {"lr": -1}, "Invalid learning rate: -1"),
        (optim.SGD, {"momentum": -1}, "Invalid momentum value: -1"),
        (optim.SGD, {"weight_decay": -1}, "Invalid weight_decay value: -1"),
        (optim.SGD, {"nesterov": True}, "Nesterov momentum requires a momentum and zero damp"),
        (optim.Adam, {"lr": -1}, "Invalid learning rate: -1"),
        (optim.Adam, {"eps": -1}, "Invalid epsilon value: -1"),
        (optim.Adam, {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
        (optim.Adam, {"betas": (0.9, -0.1)}, "Invalid beta parameter at index 1: -0.1"),
        (optim.AdamW, {"weight_decay": -1}, "Invalid weight_decay value: -1"),
        (optim.NAdam, {"momentum_decay": -1}, "Invalid momentum_decay value: -1"),
        (optim.NAdam, {"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1: 1.0"),
        (optim.RAdam, {"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1: 1.0"),
        (optim.Adamax, {"eps": float("nan")}, "Invalid epsilon value: nan"),
        (optim.Adagrad, {"lr_decay": -1}, "Invalid lr_decay value: -1"),
        (optim.Adagrad, {"initial_accumulator_value": -1}, "Invalid initial_accumulator_value"),
        (optim.Adadelta, {"rho": 1.5}, "Invalid rho value: 1.5"),
        (optim.RMSprop, {"alpha": -1}, "Invalid alpha value: -1"),
        (optim.RMSprop, {"momentum": -1}, "Invalid momentum value: -1"),
        (optim.Rprop, {"etas": (1.5, 2.0)}, "Invalid eta values: 1.5, 2.0"),
        (optim.ASGD, {"weight_decay": -1}, "Invalid weight_decay value: -1"),
        (optim.Adafactor, {"beta2_decay": 0.1}, "beta2_decay must be at most 0; got 0.1"),
        (optim.Adafactor, {"d": 0.5}, "d must be at least 1; got 0.5"),
        (optim.Adafactor, {"eps": (-1.0, 1e-3)}, "Invalid epsilon1: -1.0"),
        (optim.LBFGS, {"line_search_fn": "armijo"}, "only 'strong_wolfe' is supported; got 'arm"),
        (optim.LBFGS, {"lr": -1}, "Invalid learning rate: -1"),
    ],
)
def test_options_out_of_range(make: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make([ones(1)], **options)


def test_what_is_no_number_or_no_state() -> None:
    with pytest.raises(TypeError, match="SGD: `lr` must be a number, got str"):
        optim.SGD([ones(1)], lr="a")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match=r"a parameter group needs 'params'; got \['parms'\]"):
        optim.SGD([{"parms": [ones(1)]}], lr=0.1)
    with pytest.raises(KeyError, match="load_state_dict: 'param_groups' is missing"):
        optim.SGD([ones(1)], lr=0.1).load_state_dict({})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, ["capturable", "differentiable"]) for name in ("NAdam", "RAdam", "Rprop", "ASGD")),
        *((name, ["differentiable"]) for name in ("Adam", "Adamax", "Adadelta", "RMSprop")),
    ],
)
def test_options_that_are_not_there(name: str, options: list[str]) -> None:
    for option in options:
        with pytest.raises(NotImplementedError, match=f"{name}: {option}"):
            getattr(optim, name)([ones(1)], **{option: True})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"adjust_lr_fn": "x"}, "adjust_lr_fn must be 'original', 'match_rms_adamw' or None"),
        ({"ns_steps": 100}, "ns_steps must be less than 100; got 100"),
        ({"ns_coefficients": (1.0, 2.0)}, "ns_coefficients must be 3 numbers"),
        ({"momentum": -1}, "Invalid momentum value: -1"),
    ],
)
def test_options_of_muon(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        optim.Muon([ones(2, 2)], **options)


def test_muon_is_for_matrices() -> None:
    with pytest.raises(ValueError, match=r"only supports 2D .* with size: \(3,\)"):
        optim.Muon([ones(2, 2), ones(3)])
    optimizer = optim.Muon([ones(2, 2)])
    with pytest.raises(ValueError, match="only supports 2D"):
        optimizer.add_param_group({"params": [ones(3)]})
    assert len(optimizer.param_groups) == 1
    p, q = ones(2, 2), ones(2, 2)
    with pytest.raises(plait_abi.ShapeError, match=r"Muon: `grads\[1\]` must have the shape of"):
        optim.Muon([p, q]).step(grads=[ones(2, 2), ones(2, 3)])
    np.testing.assert_array_equal(p, 1)


def test_lbfgs_needs_one_group_and_gradients() -> None:
    with pytest.raises(ValueError, match=r"parameter groups\); got 2 groups"):
        optim.LBFGS([{"params": [ones(1)]}, {"params": [ones(1)]}])
    optimizer = optim.LBFGS([ones(2)])
    with pytest.raises(ValueError, match=r"parameter groups\); got 2 groups"):
        optimizer.add_param_group({"params": [ones(1)]})
    assert len(optimizer.param_groups) == 1
    with pytest.raises(TypeError, match=r"returns \(loss, gradients\); got float"):
        optimizer.step(lambda: 1.0)
    with pytest.raises(ValueError, match="one gradient for each of the 1 parameters; got 0"):
        optimizer.step(lambda: (1.0, []))


class OnlyDLPack:
    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape = array.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("make", [optim.LBFGS, optim.Muon, optim.Adafactor])
def test_some_compute_with_their_parameters(make: Any) -> None:
    with pytest.raises(TypeError, match=r"no `concatenate` beside .*OnlyDLPack"):
        make([OnlyDLPack(ones(2, 2))])


def test_a_subclass_may_be_choosy_about_groups() -> None:
    class Narrow(optim.SGD):
        def check_group(self, group: dict[str, Any]) -> None:
            assert group["lr"] == 0.5
            assert all(group is not other for other in self.param_groups)
            if group["params"][0].shape[0] > 2:
                raise ValueError("too wide")

    optimizer = Narrow([ones(2)], lr=0.5)
    with pytest.raises(ValueError, match="too wide"):
        optimizer.add_param_group({"params": [ones(3)]})
    assert len(optimizer.param_groups) == 1
    optimizer.step(grads=[ones(2)])
    optimizer.add_param_group({"params": [ones(1)]})
    assert len(optimizer.param_groups) == 2


@pytest.mark.parametrize("make", [optim.Muon, optim.Adafactor])
def test_a_refused_group_leaves_the_optimizer_as_it_was(make: Any) -> None:
    optimizer = make([ones(2, 2)])
    with pytest.raises(TypeError, match="no `concatenate` beside"):
        optimizer.add_param_group({"params": [OnlyDLPack(ones(2, 2))]})
    assert len(optimizer.param_groups) == 1


def test_clipping() -> None:
    p = ones(2)
    with pytest.raises(ValueError, match="Invalid max_norm: -1"):
        optim.SGD([p]).step(grads=[ones(2)], max_norm=-1)
    with pytest.raises(plait_abi.DTypeError, match=r"grad_norm: `grads\[0\]` must be float16"):
        optim.SGD([p]).step(grads=[np.ones(2, np.int64)], max_norm=1)

    class Own(optim.Optimizer):
        def update(self, *args: Any) -> None:
            raise AssertionError("not to be called")

    with pytest.raises(NotImplementedError, match=r"Own: .* needs an update that scales gradients"):
        Own([p], {}).step(grads=[ones(2)], max_norm=1.0)
    np.testing.assert_array_equal(p, 1)


def test_parameters_that_are_none() -> None:
    with pytest.raises(TypeError, match=r"iterable of Tensors or dicts, but got numpy\.ndarray"):
        optim.SGD(ones(2))
    with pytest.raises(ValueError, match="empty parameter list"):
        optim.SGD([])
    with pytest.raises(TypeError, match="can only optimize Tensors, but one of the params is list"):
        optim.SGD([[1.0]])
    with pytest.raises(TypeError, match=r"; give it model.parameters\(\)"):
        optim.SGD([SimpleNamespace(parameters=list)])
    with pytest.raises(TypeError, match="ordered collections"):
        optim.SGD([{"params": {1.0}}])
    with pytest.raises(TypeError, match="param_group must be a dict"):
        optim.SGD([ones(1)]).add_param_group([ones(1)])  # type: ignore[arg-type]


def test_parameters_given_twice() -> None:
    p = ones(1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([{"params": [p]}, {"params": [p]}])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([p, p])


def test_names_for_all_or_none() -> None:
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("a", ones(1)), ones(1)])
    optimizer = optim.SGD([("a", ones(1))])
    assert optimizer.param_groups[0]["param_names"] == ["a"]
    with pytest.raises(ValueError, match="cannot add param group without names"):
        optimizer.add_param_group({"params": [ones(1)]})


def test_the_operators_check_arguments_that_the_classes_always_set_correctly() -> None:
    p, g, m, v = ones(2), ones(2), ones(2), ones(2)
    step = operator("adam_step")
    with pytest.raises(ValueError, match=r"adam_step: `steps` must hold one number.*2; got 3"):
        step([p, p], [g, g], [m, m], [v, v], [], [1, 2, 3])
    with pytest.raises(ValueError, match=r"`steps\[0\]` must be at least 1; got 0"):
        step([p], [g], [m], [v], [], [0])
    with pytest.raises(ValueError, match=r"`grads` must hold one tensor for each.*1; got 0"):
        step([p], [], [m], [v], [], [1])
    with pytest.raises(ValueError, match=r"`exp_avg_sqs` must hold one tensor"):
        step([p], [g], [m], [], [], [1])
    with pytest.raises(ValueError, match=r"`beta1` must be in \[0, 1\); got 1"):
        step([p], [g], [m], [v], [], [1], beta1=1.0)
    with pytest.raises(plait_abi.ShapeError, match=r"`max_exp_avg_sqs\[0\]` must have the shape"):
        step([p], [g], [m], [v], [ones(3)], [1])
    with pytest.raises(plait_abi.ShapeError, match=r"`momentum_buffers\[0\]` must have the shape"):
        operator("sgd_step")([p], [g], [ones(3)], [1])
    with pytest.raises(plait_abi.ShapeError, match="optimizer_state_load: `value` must have"):
        operator("optimizer_state_load")(p, ones(3))
    with pytest.raises(plait_abi.DTypeError, match="optimizer_state: `param` must be float16"):
        operator("optimizer_state")(ones(2, dtype=np.int64), 1.0)
    with pytest.raises(
        ValueError, match=r"nadam_step: `mu_products` must hold one number.*1; got 2"
    ):
        operator("nadam_step")([p], [g], [m], [v], [1], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"asgd_step: `mus` must hold one number.*1; got 0"):
        operator("asgd_step")([p], [g], [m], [1], [0.5], [])
    with pytest.raises(ValueError, match=r"radam_step: `beta2` must be in \[0, 1\); got 1"):
        operator("radam_step")([p], [g], [m], [v], [1], beta2=1.0)
    with pytest.raises(plait_abi.ShapeError, match=r"`values\[0\]` must have the shape of `averag"):
        operator("average_step")([p], [ones(3)], weight=0.5)
    with pytest.raises(plait_abi.DTypeError, match="optimizer_state_load"):
        operator("optimizer_state_load")(p, ones(2, dtype=np.int64))
    np.testing.assert_array_equal(p, 1)
