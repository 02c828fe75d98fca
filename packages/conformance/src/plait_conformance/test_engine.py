"""Role ``engine``: derivatives, and the behaviour of backward passes.

For difficult cases the tests accept a NotImplementedError instead of a gradient.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_abi
from plait_conformance._engine import (
    ALLOW_UNUSED,
    RETAIN,
    backward,
    engine_in_force,
    gradients,
    leaf,
    mode,
    no_grad,
)
from plait_conformance._gradients import Derivative, check_derivative


@pytest.fixture(autouse=True)
def _nothing_changes_hands() -> Iterator[None]:
    before = engine_in_force()
    yield
    assert engine_in_force() == before, "another engine came into force during the test"
    assert mode(), "recording must be on again after a test"


@pytest.fixture
def core() -> Any:
    return plait_abi.require("core")


# ---- derivatives ---------------------------------------------------------------------------------
def test_derivative(derivative: Derivative) -> None:
    assert check_derivative(derivative), "no sample could be compared"


def test_complex_gradients_are_those_of_both_parts() -> None:
    z = leaf([1 + 2j, -3 + 0.5j], "complex128")
    backward((z.abs() ** 2).sum())
    np.testing.assert_allclose(z.grad.numpy(), 2 * z.detach().numpy())


def test_dropout_uses_its_own_mask(core: Any) -> None:
    x = leaf(np.ones(100))
    y = core.dropout(x, 0.5, True)
    backward(y.sum())
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy())


# ---- leaves --------------------------------------------------------------------------------------
def test_the_text_of_a_leaf(core: Any) -> None:
    x = leaf([1.0, 2.0])
    y = x * 2
    assert (x.requires_grad, x.is_leaf, x.grad, x.grad_fn) == (True, True, None, None)
    assert (y.requires_grad, y.is_leaf) == (True, False)
    assert "Mul" in y.grad_fn.name()
    plain = core.ones(2)
    assert (plain.requires_grad, plain.is_leaf, plain.grad_fn) == (False, True, None)


def test_gradients_accumulate() -> None:
    x = leaf([1.0, 2.0, 3.0])
    for times in (1, 2, 3):
        backward((x * x).sum())
        np.testing.assert_allclose(x.grad.numpy(), times * np.array([2.0, 4.0, 6.0]))


def test_a_gradient_is_its_leaf_s_own(core: Any) -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    seed = core.ones(2, dtype="float64")
    backward(x + y, seed)
    x.grad.mul_(5)
    assert y.grad.tolist() == seed.tolist() == [1, 1]
    backward((x + y).sum())
    assert (x.grad.tolist(), y.grad.tolist()) == ([6, 6], [2, 2])


def test_a_gradient_can_be_taken_away_and_set(core: Any) -> None:
    x = leaf([1.0, 2.0])
    backward(x.sum())
    x.grad = None
    backward(x.sum())
    assert x.grad.tolist() == [1, 1]
    x.grad = core.full((2,), 5.0, dtype="float64")
    backward(x.sum())
    assert x.grad.tolist() == [6, 6]
    for wrong in (core.ones(3, dtype="float64"), core.ones(2, dtype="float32")):
        with pytest.raises((ValueError, TypeError)):
            x.grad = wrong


def test_requiring_grad_can_end_and_begin_again(core: Any) -> None:
    x = leaf([1.0])
    backward(x.sum())
    x.requires_grad_(False)
    assert not (x * 2).requires_grad and x.grad.tolist() == [1]
    x.requires_grad_()
    backward((x * 2).sum())
    assert x.grad.tolist() == [3]
    with pytest.raises(RuntimeError, match="detach"):
        (x * 2).requires_grad_(False)
    with pytest.raises(RuntimeError):
        core.arange(3).requires_grad_()


def test_detached_tensors_are_constants() -> None:
    x = leaf([3.0])
    y = (x * x).detach()
    assert not y.requires_grad
    backward((y * x).sum())
    assert x.grad.tolist() == [9]
    z = x * 2
    z.detach_()
    assert not z.requires_grad and z.is_leaf


def test_what_has_no_derivative_requires_no_grad() -> None:
    x = leaf([3.0, 1.0])
    assert not (x > 2).requires_grad
    assert not x.argmax().requires_grad


# ---- graphs --------------------------------------------------------------------------------------
def test_a_result_that_is_used_often_gathers_all_gradients() -> None:
    x = leaf([2.0])
    y = x * x
    backward((y * y + y * 3 + x).sum())  # 4 x^3 + 6 x + 1
    assert x.grad.tolist() == [45]


def test_a_ladder_of_shared_results_is_walked_once_a_node() -> None:
    x = leaf([1.0])
    y = x
    for _ in range(60):  # 2^60 paths
        y = y + y
    backward(y.sum())
    assert x.grad.tolist() == [2.0**60]


def test_one_of_several_results() -> None:
    x = leaf(np.arange(6.0).reshape(3, 2))
    values, indices = x.max(0)
    assert values.requires_grad and not indices.requires_grad
    first, _, last = x.unbind(0)
    backward(values.sum() + first.sum() * 10 + last[0] * 100)
    assert x.grad.tolist() == [[10, 10], [0, 0], [101, 1]]


def test_more_inputs_than_a_word_has_bits(core: Any) -> None:
    xs = [leaf([float(i), 1.0]) for i in range(70)]
    weights = np.arange(140.0).reshape(70, 2)
    backward((core.stack(xs) * core.from_numpy(weights)).sum())
    np.testing.assert_array_equal([x.grad.numpy() for x in xs], weights)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (3, 4)])
def test_broadcasting_is_undone(shape: tuple[int, ...]) -> None:
    x, y = leaf(np.full(shape, 2.0)), leaf(3.0)
    z = leaf(np.full((2, *shape), 5.0))
    backward((x * y * z).sum())
    for tensor, others in ((x, 3.0 * 5 * 2), (z, 2.0 * 3)):
        assert tuple(tensor.grad.shape) == tuple(tensor.shape)
        np.testing.assert_allclose(tensor.grad.numpy(), np.full(tensor.shape, others))
    assert y.grad.shape == () and y.grad.item() == 20.0 * int(np.prod(shape))


def test_a_gradient_has_its_tensor_s_dtype() -> None:
    x, y = leaf([1.0, 2.0], "float32"), leaf([3.0, 4.0], "float64")
    backward((x * y).sum())
    assert (x.grad.dtype.name, y.grad.dtype.name) == ("float32", "float64")
    assert (x.grad.tolist(), y.grad.tolist()) == ([3, 4], [1, 2])


def test_a_chain_of_1e5_nodes_runs_and_goes() -> None:
    x = leaf([1.0])
    y = x
    for _ in range(100_000):
        y = y + 1
    backward(y.sum(), flags=RETAIN)
    backward(y.sum())
    assert x.grad.tolist() == [2]
    del y  # this must not recurse either


# ---- roots and inputs ----------------------------------------------------------------------------
def test_several_roots_and_their_seeds(core: Any) -> None:
    x = leaf([1.0, 2.0])
    y, z = x * 2, (x * 3).sum()
    seed = core.tensor([10.0, 100.0], dtype="float64")
    plait_abi.run_backward((y, z), (seed, None))
    assert x.grad.tolist() == [23, 203]
    assert seed.tolist() == [10, 100]


def test_a_root_may_be_a_leaf_or_occur_twice(core: Any) -> None:
    x = leaf([2.0])
    seed = core.tensor([7.0], dtype="float64")
    plait_abi.run_backward((x, x), (seed, None))
    assert x.grad.tolist() == [8]


def test_wrong_roots_and_seeds_are_refused(core: Any) -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError):
        backward(x * 2)
    with pytest.raises(ValueError, match=r"\(2,\)"):
        backward(x * 2, core.ones(3, dtype="float64"))
    with pytest.raises((TypeError, RuntimeError)):
        backward(x * 2, core.ones(2, dtype="int64"))
    with pytest.raises(RuntimeError, match="require"):
        backward(core.ones(1))
    assert x.grad is None


def test_gradients_of_inputs_leave_leaves_alone() -> None:
    x = leaf([3.0])
    y = x * x
    z = y * y
    gx, gy = gradients(z.sum(), x, y, flags=RETAIN)
    assert (gx.tolist(), gy.tolist()) == ([108], [18])
    assert x.grad is None
    assert gradients(z.sum(), x, x)[1].tolist() == [108]


def test_unused_inputs_are_an_error_or_none() -> None:
    x, y = leaf([1.0]), leaf([2.0])
    with pytest.raises(RuntimeError, match=r"unused|not used"):
        gradients((x * 2).sum(), x, y)
    result = gradients((x * 2).sum(), x, y, flags=ALLOW_UNUSED)
    assert result[0].tolist() == [2] and result[1] is None


def test_branches_that_lead_to_no_input_are_not_computed() -> None:
    x, w = leaf([1.0]), leaf([2.0])
    y = w.exp()
    z = y * x
    (result,) = gradients(z.sum(), x)
    assert result.tolist() == pytest.approx([np.exp(2.0)])
    backward(y.sum())  # nothing of y was freed on the way
    assert w.grad.tolist() == pytest.approx([np.exp(2.0)])


def test_a_second_backward_after_freeing_is_an_error() -> None:
    x = leaf([2.0])
    y = (x * x).sum()
    backward(y, flags=RETAIN)
    backward(y)
    assert x.grad.tolist() == [8]
    with pytest.raises(RuntimeError, match="second time"):
        backward(y)
    assert x.grad.tolist() == [8]


def test_retain_grad_keeps_a_result_s_gradient() -> None:
    x = leaf([3.0])
    y = x * 2
    y.retain_grad()
    backward((y * y).sum())
    assert (y.grad.tolist(), x.grad.tolist()) == ([12], [24])
    backward((y * 3).sum())
    assert (y.grad.tolist(), x.grad.tolist()) == ([15], [30])


def test_backward_to_inputs_adds_to_the_gradients_of_results() -> None:
    x = leaf([3.0])
    y = x * 2
    (y * y).sum().backward(inputs=[y])
    (y * 3).sum().backward(inputs=[y])
    assert (y.grad.tolist(), x.grad) == ([15], None)


# ---- modes ---------------------------------------------------------------------------------------
def test_nothing_is_recorded_within_no_grad() -> None:
    x = leaf([1.0, 2.0])
    with no_grad():
        y = x * 2
        assert not mode() and not y.requires_grad
        plait_abi.set_grad_enabled(True)
        assert (x * 2).requires_grad
        plait_abi.set_grad_enabled(False)
        x.mul_(3)  # leaves may be written to
    assert mode() and (x * 2).requires_grad
    assert x.tolist() == [3, 6] and x.is_leaf


def test_a_pass_runs_within_no_grad_and_its_results_are_constants() -> None:
    x = leaf([3.0])
    y = (x * x).sum()
    with no_grad():
        backward(y, flags=RETAIN)
    (result,) = gradients(y, x)
    assert x.grad.tolist() == [6]
    assert not x.grad.requires_grad and not result.requires_grad


def test_modes_belong_to_threads() -> None:
    x = leaf([1.0])
    modes = []
    with no_grad():
        thread = threading.Thread(target=lambda: modes.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert modes == [True]


def test_a_failing_pass_leaves_the_mode_as_it_was() -> None:
    x = leaf([2.0])
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError):
        backward(z.sum())
    assert mode() and (x * 2).requires_grad


# ---- threads -------------------------------------------------------------------------------------
def test_threads_that_share_a_leaf_lose_nothing() -> None:
    x = leaf(np.zeros(8))
    rounds, count, failed = 50, 8, []

    def work() -> None:
        try:
            for _ in range(rounds):
                backward((x * 3).sum())
        except BaseException as error:  # an assertion in a thread would be lost
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert x.grad.tolist() == [3.0 * rounds * count] * 8
