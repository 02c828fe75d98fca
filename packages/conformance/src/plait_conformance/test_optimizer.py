"""Role ``optimizer``: the behaviour of all optimizers.

``--provider package:Name,package:Other`` names classes that are made as ``Name(params, lr=...)``,
or with their defaults. If a class does not have an option, the test of the option checks that it
raises.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from plait_conformance._optimizers import Case, Problem

SHAPES = ((4, 3), (2, 5), (1, 1))


def assert_equal(problem: Problem, other: Problem) -> None:
    for a, b in zip(problem.values(), other.values(), strict=True):
        np.testing.assert_array_equal(a, b)


def distance(problem: Problem) -> float:
    return float(sum((v**2).sum() for v in problem.values()))


def test_the_loss_falls(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    before, result = problem.loss(), optimizer.make(problem.params)
    for _ in range(20):
        optimizer.step(result, problem)
    assert problem.loss() < before


def test_parameters_are_written_in_place_and_keep_their_dtype(optimizer: Case) -> None:
    for dtype in ("float32", "float64"):
        problem = optimizer.problem(*SHAPES, dtype=dtype)
        before = problem.values()
        result = optimizer.make(problem.params)
        optimizer.step(result, problem)
        for p, param, old in zip(
            result.param_groups[0]["params"], problem.params, before, strict=True
        ):
            assert p is param
            now = np.from_dlpack(p)
            assert now.dtype == dtype
            assert now.shape == old.shape
            assert not np.array_equal(now, old)


def test_single_and_double_agree(optimizer: Case) -> None:
    problems = [optimizer.problem(*SHAPES, dtype=dtype) for dtype in ("float32", "float64")]
    for problem in problems:
        result = optimizer.make(problem.params)
        for _ in range(3):
            optimizer.step(result, problem)
    for a, b in zip(*[p.values() for p in problems], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_state_is_in_the_dtype_of_its_parameter(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES, dtype="float64")
    result = optimizer.make(problem.params)
    for _ in range(2):
        optimizer.step(result, problem)
    for state in result.state_dict()["state"].values():
        for value in state.values():
            if hasattr(value, "__dlpack__"):
                assert np.from_dlpack(value).dtype == np.float64


def test_training_continues_from_a_saved_state(optimizer: Case) -> None:
    first, second = optimizer.problem(*SHAPES), optimizer.problem(*SHAPES)
    result = optimizer.make(first.params)
    for _ in range(3):
        optimizer.step(result, first)
    saved = copy.deepcopy(result.state_dict())
    second = Problem([optimizer.array(v) for v in first.values()], first.aims)
    other = optimizer.make(second.params)
    other.load_state_dict(saved)
    for _ in range(3):
        optimizer.step(result, first)
        optimizer.step(other, second)
    assert_equal(first, second)


def test_layout_of_a_saved_state(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    result = optimizer.make(problem.params)
    # of all parameters, if it is made before the first step
    assert set(result.state_dict()["state"]) in (set(), {0, 1, 2})
    optimizer.step(result, problem)
    saved = result.state_dict()
    assert sorted(saved) == ["param_groups", "state"]
    assert set(saved["state"]) <= {0, 1, 2}
    assert [group["params"] for group in saved["param_groups"]] == [[0, 1, 2]]
    assert set(result.defaults) <= set(saved["param_groups"][0])


def test_a_state_of_another_size_is_refused(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    saved = optimizer.make(problem.params).state_dict()
    with pytest.raises(ValueError, match="size of optimizer's group"):
        optimizer.make(problem.params[:2]).load_state_dict(saved)


def test_an_optimizer_is_copied_with_its_parameters(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    result = optimizer.make(problem.params)
    optimizer.step(result, problem)
    copies = [copy.deepcopy(result)]
    if optimizer.library == "numpy":
        copies.append(pickle.loads(pickle.dumps(result)))
    optimizer.step(result, problem)
    for other in copies:
        theirs = Problem(other.param_groups[0]["params"], problem.aims)
        optimizer.step(other, theirs)
        assert_equal(problem, theirs)


def test_groups_are_stepped_with_their_own_options(optimizer: Case) -> None:
    both, one, two = (optimizer.problem(*SHAPES) for _ in range(3))
    groups = [{"params": both.params[:1]}, {"params": both.params[1:], "lr": 0.5}]
    try:
        result = optimizer.make(groups, lr=0.25)
    except ValueError as error:
        assert "group" in str(error)  # optimizers with one group only must raise
        return
    assert one.aims is not None and two.aims is not None
    one, two = Problem(one.params[:1], one.aims[:1]), Problem(two.params[1:], two.aims[1:])
    singles = [optimizer.make(one.params, lr=0.25), optimizer.make(two.params, lr=0.5)]
    for _ in range(3):
        optimizer.step(result, both)
        for single, problem in zip(singles, (one, two), strict=True):
            optimizer.step(single, problem)
    for a, b in zip(both.values(), one.values() + two.values(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert [g["params"] for g in result.state_dict()["param_groups"]] == [[0], [1, 2]]


def test_a_group_may_be_added_later(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    result = optimizer.make(problem.params[:1])
    assert problem.aims is not None
    optimizer.step(result, Problem(problem.params[:1], problem.aims[:1]))
    before = problem.values()
    try:
        result.add_param_group({"params": problem.params[1:]})
        optimizer.step(result, problem)
    except ValueError as error:  # raises at once or at the next step
        assert "group" in str(error)
        return
    for now, old in zip(problem.values(), before, strict=True):
        assert not np.array_equal(now, old)


def test_closures_are_called_and_their_loss_returned(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    result = optimizer.make(problem.params)
    calls = []
    inner = optimizer.closure(problem)

    def closure() -> Any:
        calls.append(problem.loss())
        return inner()

    if optimizer.library == "numpy" and not optimizer.needs_closure:
        loss = result.step(lambda: closure()[0], grads=problem.gradients())
    else:
        loss = result.step(closure)
    assert calls
    if isinstance(loss, tuple):
        loss = loss[0]
    assert float(loss) == pytest.approx(calls[0])


def test_maximize_is_minimize_of_the_negative(optimizer: Case) -> None:
    up, down = optimizer.problem(*SHAPES), optimizer.problem(*SHAPES)
    if not optimizer.has("maximize"):
        with pytest.raises(TypeError, match="maximize"):
            optimizer.make(up.params, maximize=True)
        return
    down.sign = -1.0
    rising, falling = optimizer.make(up.params, maximize=True), optimizer.make(down.params)
    before = up.loss()
    for _ in range(3):
        optimizer.step(rising, up)
        optimizer.step(falling, down)
    assert up.loss() > before
    assert_equal(up, down)


def test_weight_decay_alone_makes_weights_smaller(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES, aim=False)
    if not optimizer.has("weight_decay"):
        with pytest.raises(TypeError, match="weight_decay"):
            optimizer.make(problem.params, weight_decay=0.1)
        return
    result = optimizer.make(problem.params, weight_decay=0.1)
    before = distance(problem)
    for _ in range(2):
        optimizer.step(result, problem)
    assert distance(problem) < before


def test_nothing_moves_without_gradients_and_decay(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES, aim=False)
    options = {name: 0.0 for name in ("weight_decay", "lambd") if optimizer.has(name)}
    result = optimizer.make(problem.params, **options)
    before = problem.values()
    for _ in range(2):
        optimizer.step(result, problem)
    for now, old in zip(problem.values(), before, strict=True):
        np.testing.assert_array_equal(now, old)


def test_a_parameter_without_gradient_is_unchanged(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    problem.left_out = {1}
    result = optimizer.make(problem.params)
    initial = result.state_dict()["state"].get(1)
    before = problem.values()
    optimizer.step(result, problem)
    now = problem.values()
    np.testing.assert_array_equal(now[1], before[1])
    assert not np.array_equal(now[0], before[0])
    state = result.state_dict()["state"].get(1)
    assert state is initial is None or (set(state) == set(initial) and state.get("step", 0) == 0)


def test_parameters_of_no_elements(optimizer: Case) -> None:
    problem = optimizer.problem((4, 3), (0, 3), (2, 0))
    result = optimizer.make(problem.params)
    before = problem.loss()
    for _ in range(3):
        optimizer.step(result, problem)
    assert problem.loss() < before
    result.load_state_dict(copy.deepcopy(result.state_dict()))
    optimizer.step(result, problem)
    assert [v.shape for v in problem.values()] == [(4, 3), (0, 3), (2, 0)]


def test_parameters_of_other_dimensions(optimizer: Case) -> None:
    problem = optimizer.problem((), (3,), (2, 3, 2))
    try:
        result = optimizer.make(problem.params)
    except ValueError as error:
        # optimizers for matrices only must raise
        assert "2D" in str(error) or "shape" in str(error)
        return
    before = problem.loss()
    for _ in range(20):
        optimizer.step(result, problem)
    assert problem.loss() < before


def test_hooks_run_around_a_step(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    result = optimizer.make(problem.params)
    start = problem.loss()
    calls: list[tuple[str, bool]] = []
    before = result.register_step_pre_hook(
        lambda o, args, kwargs: calls.append(("pre", problem.loss() == start))
    )
    result.register_step_post_hook(
        lambda o, args, kwargs: calls.append(("post", problem.loss() == start))
    )
    optimizer.step(result, problem)
    assert calls == [("pre", True), ("post", False)]
    before.remove()
    optimizer.step(result, problem)
    assert [name for name, _ in calls] == ["pre", "post", "post"]


def test_hooks_run_around_saving_and_loading(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    result = optimizer.make(problem.params)
    calls: list[str] = []
    result.register_state_dict_pre_hook(lambda o: calls.append("save"))
    result.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    result.register_load_state_dict_pre_hook(
        lambda o, state: {k: v for k, v in state.items() if k != "note"}
    )
    result.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    saved = result.state_dict()
    assert saved["note"] == 1
    result.load_state_dict(saved)
    assert "note" in saved
    assert calls == ["save", "loaded"]


def test_a_rate_may_be_changed_between_steps(optimizer: Case) -> None:
    problem = optimizer.problem(*SHAPES)
    result = optimizer.make(problem.params, lr=0.1)
    optimizer.step(result, problem)
    for group in result.param_groups:
        group["lr"] = group["lr"] * 0.5
    optimizer.step(result, problem)
    assert result.state_dict()["param_groups"][0]["lr"] == 0.05
    assert repr(result).startswith(type(result).__name__)


def test_gradients_are_forgotten(optimizer: Case) -> None:
    if optimizer.library == "numpy":
        optimizer.make(optimizer.problem(*SHAPES).params).zero_grad()
        return
    problem = optimizer.problem(*SHAPES)
    result = optimizer.make(problem.params)
    optimizer.step(result, problem)
    assert problem.params[0].grad is not None
    result.zero_grad()
    assert [p.grad for p in problem.params] == [None, None, None]


def test_rates_below_zero_and_no_parameters_are_refused(optimizer: Case) -> None:
    with pytest.raises(ValueError, match=r"rate|lr"):
        optimizer.make(optimizer.problem((2, 2)).params, lr=-1.0)
    with pytest.raises(ValueError, match="empty parameter list"):
        optimizer.make([])
