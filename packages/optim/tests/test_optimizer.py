"""Groups, state, saving and loading, hooks and closures: the parts all optimizers share."""

from __future__ import annotations

import collections
import copy
import pickle
from typing import Any

import numpy as np
import pytest

import plait_optim as optim

MAKERS: list[Any] = [
    lambda params: optim.SGD(params, lr=0.1),
    lambda params: optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01),
    lambda params: optim.Adam(params, lr=0.1, amsgrad=True),
    lambda params: optim.AdamW(params, lr=0.1),
]


def problem(dtype: Any = np.float64) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    shapes = [(4, 3), (3,), ()]
    return (
        [rng.standard_normal(s).astype(dtype) for s in shapes],
        [rng.standard_normal(s).astype(dtype) for s in shapes],
    )


class Carrier:
    """An array that offers DLPack only, and has a gradient."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.grad: Any = None

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.data.__dlpack_device__()
        return device


@pytest.mark.parametrize("make", MAKERS)
def test_a_model_is_trained(make: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 5))
    true = rng.standard_normal((5, 2))
    y = x @ true + 0.5
    w, b = np.zeros((5, 2)), np.zeros(2)
    optimizer = make([w, b])
    for _ in range(400):
        error = x @ w + b - y
        optimizer.step(grads=[2 * x.T @ error / len(x), 2 * error.mean(0)])
    np.testing.assert_allclose(w, true, atol=0.02)
    np.testing.assert_allclose(b, 0.5, atol=0.02)


@pytest.mark.parametrize("make", MAKERS)
def test_training_continues_from_a_state_dict(make: Any) -> None:
    params, grads = problem()
    optimizer = make(params)
    optimizer.step(grads=grads)
    saved = copy.deepcopy(optimizer.state_dict())
    copies = [p.copy() for p in params]
    other = make(copies)
    other.load_state_dict(saved)
    for _ in range(3):
        optimizer.step(grads=grads)
        other.step(grads=grads)
    for own, theirs in zip(params, copies, strict=True):
        np.testing.assert_array_equal(own, theirs)


def test_loaded_state_is_a_copy_in_the_dtype_of_the_parameter() -> None:
    params, grads = problem()
    optimizer = optim.Adam(params)
    optimizer.step(grads=grads)
    saved = optimizer.state_dict()
    singles = [p.astype(np.float32) for p in params]
    other = optim.Adam(singles)
    other.load_state_dict(saved)
    average = other.state[singles[0]]["exp_avg"]
    assert isinstance(average, np.ndarray)
    assert average.dtype == np.float32
    np.testing.assert_allclose(average, saved["state"][0]["exp_avg"], rtol=1e-6)
    optimizer.step(grads=grads)
    assert not np.shares_memory(average, saved["state"][0]["exp_avg"])
    assert saved["state"][0]["step"] == 1  # the dictionaries are not the optimizer's


def test_layout_of_the_state_dict() -> None:
    params, grads = problem()
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": 1.0}]
    optimizer = optim.AdamW(groups)
    assert optimizer.state_dict()["state"] == {}
    optimizer.step(grads=[grads[0], None, grads[2]])
    saved = optimizer.state_dict()
    assert sorted(saved) == ["param_groups", "state"]
    assert sorted(saved["state"]) == [0, 2]
    assert sorted(saved["state"][0]) == ["exp_avg", "exp_avg_sq", "step"]
    assert [group["params"] for group in saved["param_groups"]] == [[0, 1], [2]]
    assert [group["lr"] for group in saved["param_groups"]] == [1e-3, 1.0]
    assert list(saved["param_groups"][0]) == [
        *("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "foreach", "capturable"),
        *("differentiable", "fused", "decoupled_weight_decay", "params"),
    ]


def test_state_dicts_of_other_sizes_are_refused() -> None:
    params, _ = problem()
    saved = optim.SGD(params).state_dict()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.SGD([{"params": params[:1]}, {"params": params[1:]}]).load_state_dict(saved)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optim.SGD(params[:2]).load_state_dict(saved)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_an_optimizer_is_copied_with_its_parameters(duplicate: Any) -> None:
    params, grads = problem()
    optimizer = optim.Adam(params)
    optimizer.step(grads=grads)
    other = duplicate(optimizer)
    optimizer.step(grads=grads)
    other.step(grads=grads)
    theirs = other.param_groups[0]["params"]
    for a, b in zip(params, theirs, strict=True):
        assert a is not b
        np.testing.assert_array_equal(a, b)
    assert other.state[theirs[0]]["step"] == 2


def test_groups_have_options_of_their_own() -> None:
    params, grads = problem()
    before = [p.copy() for p in params]
    optimizer = optim.SGD([{"params": params[0], "lr": 1.0}], lr=0.5)
    optimizer.add_param_group({"params": params[1:], "maximize": True})
    optimizer.step(grads=grads)
    np.testing.assert_allclose(params[0], before[0] - grads[0])
    np.testing.assert_allclose(params[1], before[1] + 0.5 * grads[1])
    assert repr(optimizer).startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "\n\nParameter Group 1\n" in repr(optimizer)


def test_grad_is_used_and_set_to_none() -> None:
    carriers = [Carrier(np.ones(3)), Carrier(np.ones(2))]
    optimizer = optim.Adam(carriers, lr=0.5)
    carriers[0].grad = np.ones(3)
    optimizer.step()
    np.testing.assert_allclose(carriers[0].data, 0.5)
    np.testing.assert_array_equal(carriers[1].data, 1)
    # the state of an array of unknown origin is plait's, and can be taken as an array
    average = optimizer.state[carriers[0]]["exp_avg"]
    np.testing.assert_allclose(np.from_dlpack(average), 0.1)
    optimizer.zero_grad()
    assert carriers[0].grad is None


def test_closure_and_hooks() -> None:
    p = Carrier(np.ones(1))
    optimizer = optim.SGD([p], lr=1.0)
    order = []

    def closure() -> float:
        order.append("closure")
        p.grad = np.ones(1)
        return 7.0

    handle = optimizer.register_step_pre_hook(lambda *a: order.append(f"pre {p.data[0]}"))
    optimizer.register_step_post_hook(lambda *a: order.append(f"post {p.data[0]}"))
    assert optimizer.step(closure) == 7.0
    assert order == ["pre 1.0", "closure", "post 0.0"]
    handle.remove()
    optimizer.step()
    assert order[3:] == ["post -1.0"]


def test_a_subclass_may_override_step_or_update() -> None:
    class Halve(optim.Optimizer):
        def update(self, group: Any, params: Any, grads: Any, states: Any) -> None:
            for p, state in zip(params, states, strict=True):
                p *= group["factor"]
                state["count"] = state.get("count", 0) + 1

    p = np.ones(2)
    optimizer = Halve([p], {"factor": 0.5})
    optimizer.step(grads=[p])
    np.testing.assert_array_equal(p, 0.5)
    assert optimizer.state[p] == {"count": 1}
    with pytest.raises(NotImplementedError, match="implement `update`"):
        optim.Optimizer([p], {}).step(grads=[p])


@pytest.mark.parametrize(
    "call",
    [
        lambda state, key: state[key],
        lambda state, key: state.get(key),
        lambda state, key: state.get(key, {"step": 5}),
        lambda state, key: state.setdefault(key, {"step": 5}),
        lambda state, key: state.setdefault(key),
        lambda state, key: state.pop(key),
        lambda state, key: state.pop(key, None),
        lambda state, key: state.update({key: {"step": 5}}),
        lambda state, key: state.popitem(),
        lambda state, key: key in state,
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_state_answers_as_a_defaultdict_of_dicts(call: Any, is_there: bool) -> None:
    outcomes = []
    for state in (optim.SGD([np.zeros(2)], lr=0.1).state, collections.defaultdict(dict)):
        if is_there:
            state.update(other={"step": 0}, mean={"step": 1})
        try:
            result = call(state, "mean")
        except KeyError:
            result = KeyError
        outcomes.append((result, dict(state)))
    assert outcomes[0] == outcomes[1]
