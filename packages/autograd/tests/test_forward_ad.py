"""Forward mode: levels, dual tensors, writes, and reverse mode on top."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc
from plait_abi import operator
from plait_autograd import _autograd, forward_ad


def double(values: Any, **options: Any) -> Any:
    return pc.tensor(values, dtype=pc.float64, **options)


def dual(values: Any, tangent: Any) -> Any:
    return forward_ad.make_dual(double(values), double(tangent))


def tangent(x: Any) -> Any:
    result = forward_ad.unpack_dual(x).tangent
    return None if result is None else result.tolist()


@pytest.fixture
def level() -> Iterator[int]:
    with forward_ad.dual_level() as number:
        yield number


def live() -> int:
    gc.collect()
    return int(pc.memory_stats()["live_bytes"])


# ---- levels ---------------------------------------------------------------------------------


def test_one_level_at_a_time(level: int) -> None:
    with pytest.raises(RuntimeError, match="enter_dual_level: a dual level is entered already"):
        forward_ad.enter_dual_level()
    assert tangent(dual(1.0, 2.0)) == 2.0  # the level goes on


def test_leaving_without_entering() -> None:
    with pytest.raises(RuntimeError, match="exit_dual_level: no dual level is entered"):
        forward_ad.exit_dual_level()


def test_making_a_dual_outside_of_a_level() -> None:
    with pytest.raises(RuntimeError, match="make_dual: a dual level must be entered"):
        forward_ad.make_dual(double(1.0), double(1.0))


def test_levels_are_named_by_their_number(level: int) -> None:
    with pytest.raises(RuntimeError, match=f"exit_dual_level: `level` must be .* {level}; got 0"):
        forward_ad.exit_dual_level(level=0)
    with pytest.raises(RuntimeError, match="make_dual: `level` must be"):
        forward_ad.make_dual(double(1.0), double(1.0), level=level + 1)
    x = forward_ad.make_dual(double(1.0), double(2.0), level=level)
    assert forward_ad.unpack_dual(x, level=level).tangent.item() == 2.0
    assert forward_ad.unpack_dual(x, level=level + 1).tangent is None


def test_an_error_leaves_the_level() -> None:
    with pytest.raises(KeyError), forward_ad.dual_level():
        raise KeyError
    with forward_ad.dual_level():
        pass


def test_tangents_end_with_their_level() -> None:
    with forward_ad.dual_level():
        x = dual([1.0, 2.0], [1.0, 1.0])
        y = x * 2
    assert tangent(x) is None and tangent(y) is None
    with forward_ad.dual_level():
        assert tangent(x) is None and tangent(x * 3) is None and tangent(y[:1]) is None
        x.mul_(2)
        assert tangent(x) is None


def test_the_end_of_a_level_frees_the_tangents() -> None:
    x = pc.zeros(100_000)
    before = live()
    with forward_ad.dual_level():
        reference = forward_ad.make_dual(x, pc.ones(100_000))
        also = reference * 2
        within = live()
    size = reference.numel() * reference.element_size()
    assert within - before >= 4 * size  # two values, two tangents
    assert live() - before < 2.5 * size
    del reference, also
    assert live() == before


def test_what_a_backward_pass_keeps_is_freed_with_the_level() -> None:
    x = pc.zeros(100_000)
    before = live()
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x, pc.ones(100_000)).requires_grad_().exp()
    del y
    assert live() == before


def test_a_thread_that_ends_within_a_level_leaves_it() -> None:
    references = []
    x = pc.zeros(100_000)
    before = live()

    def run() -> None:
        forward_ad.enter_dual_level()
        references.append(forward_ad.make_dual(x, pc.ones(100_000)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert live() - before < 1.5 * x.numel() * x.element_size()
    with forward_ad.dual_level():
        assert tangent(references[0]) is None


def test_levels_belong_to_threads(level: int) -> None:
    x = dual([1.0, 2.0], [1.0, 1.0])
    result: list[Any] = []

    def run() -> None:
        result.append(_autograd.level())
        result.append(tangent(x * 2))
        with forward_ad.dual_level() as own:
            result.append(own != level)
            result.append(tangent(x * dual([1.0, 1.0], [5.0, 5.0])))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert result == [0, None, True, [5.0, 10.0]]
    assert tangent(x * 2) == [2.0, 2.0]


def test_many_threads_carry_their_own() -> None:
    shared = double([1.0, 2.0, 3.0])
    wrong = []

    def run(k: int) -> None:
        for _ in range(300):
            with forward_ad.dual_level():
                x = forward_ad.make_dual(shared, double([float(k)] * 3))
                if tangent((x * x).sum()) != 12.0 * k:
                    wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tangents_may_die_on_another_thread() -> None:
    for _ in range(200):
        with forward_ad.dual_level():
            references = [dual([1.0] * 64, [1.0] * 64) for _ in range(20)]
            thread = threading.Thread(target=references.clear)
            thread.start()
        thread.join()
    assert not references


def test_without_a_level_nothing_is_carried() -> None:
    assert _autograd.level() == 0
    x = pc.ones(3)
    with forward_ad.dual_level():
        inside = x * 2  # no dual tensor among its inputs
        assert tangent(inside) is None
    y = x * inside
    assert y.grad_fn is None and tangent(y) is None


# ---- dual tensors -----------------------------------------------------------------------------


def test_make_and_unpack(level: int) -> None:
    argument, direction = double([1.0, 2.0]), double([3.0, 4.0])
    x = forward_ad.make_dual(argument, direction)
    primal, result = forward_ad.unpack_dual(x)
    assert primal.tolist() == [1.0, 2.0] and result.tolist() == [3.0, 4.0]
    assert tangent(primal) is None and tangent(argument) is None and tangent(direction) is None
    x.mul_(2)  # neither of the given tensors is written
    assert argument.tolist() == [1.0, 2.0] and direction.tolist() == [3.0, 4.0]
    assert isinstance(forward_ad.unpack_dual(x), forward_ad.UnpackedDualTensor)


@pytest.mark.parametrize(
    ("tensor", "direction", "error", "text"),
    [
        (pc.ones(2), pc.ones(3), ValueError, r"`tangent` must have the shape .*\(2,\); got \(3,\)"),
        (pc.ones(2), double([1.0, 1.0]), TypeError, "same dtype; got float32 and float64"),
        (pc.tensor([1]), pc.tensor([1]), TypeError, "floating-point or complex dtype; got int64"),
        (1.0, pc.ones(1), TypeError, "`tensor` must be a tensor, got float"),
        (pc.ones(1), None, TypeError, "`tangent` must be a tensor, got NoneType"),
    ],
)
def test_what_is_no_dual(level: int, tensor: Any, direction: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=f"make_dual: .*{text}"):
        forward_ad.make_dual(tensor, direction)


def test_a_dual_of_a_dual_has_the_new_tangent(level: int) -> None:
    x = forward_ad.make_dual(dual(3.0, 1.0) * 2, double(5.0))
    assert tangent(x) == 5.0


@pytest.mark.parametrize(
    "constant",
    [
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: x > 1,
        lambda x: x.argmax(),
        lambda x: x.to(pc.int64),
        lambda x: pc.zeros_like(x),
        lambda x: pc.empty_like(x).fill_(2.0),
    ],
)
def test_what_does_not_depend_has_no_tangent(level: int, constant: Callable[..., Any]) -> None:
    assert tangent(constant(dual([1.0, 2.0], [1.0, 1.0]))) is None


def test_no_grad_does_not_stop_tangents(level: int) -> None:
    x = dual([1.0, 2.0], [1.0, 1.0])
    with pa.no_grad():
        assert tangent(x * x) == [2.0, 4.0]
    with pa.inference_mode():
        assert tangent(x.exp().log()) == pytest.approx([1.0, 1.0])


def test_casts(level: int) -> None:
    x = dual([1.0, 2.0], [1.0, 3.0])
    for dtype in (pc.float32, pc.float16, pc.bfloat16, pc.complex64):
        result = forward_ad.unpack_dual(x.to(dtype)).tangent
        assert result.dtype is dtype and result.real.tolist() == [1.0, 3.0]


def test_complex(level: int) -> None:
    z = forward_ad.make_dual(
        pc.tensor([1 + 2j], dtype=pc.complex128), pc.tensor([3 + 4j], dtype=pc.complex128)
    )
    assert tangent(z * z) == [2 * (1 + 2j) * (3 + 4j)]
    assert tangent(z.conj()) == [3 - 4j]
    assert tangent(z.real) == [3.0] and tangent(z.imag) == [4.0]
    assert tangent(pc.view_as_real(z)) == [[3.0, 4.0]]
    assert tangent(z.abs()) == pytest.approx([(1 * 3 + 2 * 4) / 5**0.5])
    z.real.mul_(2)
    assert tangent(z) == [6 + 4j]
    assert tangent(dual([1.0], [2.0]) * 1j) == [2j]


# ---- views and writes -------------------------------------------------------------------------


def test_views_have_the_place_in_the_tangent_of_their_base(level: int) -> None:
    x = dual([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]])
    assert tangent(x.t()) == [[5.0, 7.0], [6.0, 8.0]]
    assert tangent(x[1]) == [7.0, 8.0] and tangent(x[1][:1]) == [7.0]
    assert tangent(x.reshape(-1)) == [5.0, 6.0, 7.0, 8.0]
    assert tangent(x.t().reshape(-1)) == [5.0, 7.0, 6.0, 8.0]
    assert tangent(x.unsqueeze(0).expand(2, 2, 2)[1]) == [[5.0, 6.0], [7.0, 8.0]]
    assert [tangent(part) for part in x.split(1)] == [[[5.0, 6.0]], [[7.0, 8.0]]]
    assert tangent(x.diagonal()) == [5.0, 8.0]


def test_operators_in_place(level: int) -> None:
    x = dual([1.0, 2.0, 3.0], [1.0, 0.0, 2.0])
    x.mul_(x)
    assert x.tolist() == [1.0, 4.0, 9.0] and tangent(x) == [2.0, 0.0, 12.0]
    x += x
    assert tangent(x) == [4.0, 0.0, 24.0]
    x.add_(1).sub_(1)
    assert tangent(x) == [4.0, 0.0, 24.0]
    x.zero_()
    assert tangent(x) in (None, [0.0, 0.0, 0.0])


def test_a_constant_that_is_written_becomes_dual(level: int) -> None:
    x = double([1.0, 2.0])
    x.mul_(dual([3.0, 4.0], [1.0, 1.0]))
    assert x.tolist() == [3.0, 8.0] and tangent(x) == [1.0, 2.0]
    y = pc.empty(2)
    y.copy_(x)
    assert tangent(y) == [1.0, 2.0] and forward_ad.unpack_dual(y).tangent.dtype is pc.float32
    y.copy_(pc.ones(2))
    assert tangent(y) in (None, [0.0, 0.0])


def test_writes_through_views(level: int) -> None:
    x = dual([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    first, whole = x[:2], x.view(3)
    first.mul_(10)
    assert tangent(x) == [10.0, 10.0, 1.0] == tangent(whole)
    x[1:].add_(x[:-1])  # what is read overlaps what is written
    assert tangent(x) == [10.0, 20.0, 11.0] and tangent(first) == [10.0, 20.0]
    x[0] = 5.0
    assert tangent(x) == [0.0, 20.0, 11.0]
    first.normal_()
    assert tangent(x) == [0.0, 0.0, 11.0]


def test_writes_into_a_constant_by_index(level: int) -> None:
    x = double([0.0, 0.0, 0.0])
    x[pc.tensor([2, 0])] = dual([1.0, 2.0], [3.0, 4.0])
    assert tangent(x) == [4.0, 0.0, 3.0]
    y = double([[0.0, 0.0], [0.0, 0.0]])
    y.t()[0] = dual([1.0, 2.0], [3.0, 4.0])
    assert tangent(y) == [[3.0, 0.0], [4.0, 0.0]]
    z = double([1.0, 2.0])
    z.masked_fill_(pc.tensor([True, False]), dual(1.0, 7.0))
    assert tangent(z) == [7.0, 0.0]


def test_a_write_does_not_change_the_tangents_of_others(level: int) -> None:
    x = dual([1.0, 2.0], [1.0, 1.0])
    same = x.clone()
    before = forward_ad.unpack_dual(x).tangent
    x[0].mul_(5)
    assert tangent(x) == [5.0, 1.0] and tangent(same) == [1.0, 1.0]
    assert before.tolist() == [1.0, 1.0]


def test_writes_that_do_not_fit_are_the_errors_they_always_are(level: int) -> None:
    x = dual([1.0, 2.0], [1.0, 1.0])
    counts = pc.tensor([1, 2])
    with pytest.raises(TypeError, match="add_: the result is float64, which can't be cast"):
        counts.add_(x)
    assert counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"add_: the result has shape \(2, 2\)"):
        x.add_(pc.ones(2, 2, dtype=pc.float64))
    leaf = double([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"mul_: `self` .* is a leaf that requires grad"):
        leaf.mul_(x)
    assert tangent(x) == [1.0, 1.0]


def test_out_is_refused(level: int) -> None:
    x, target = dual([1.0, 2.0], [1.0, 1.0]), double([0.0, 0.0])
    with pytest.raises(NotImplementedError, match=r"mul: .*out= is not for dual tensors"):
        pc.mul(x, x, out=target)
    with pytest.raises(NotImplementedError, match=r"mul: .*out= is not for dual tensors"):
        pc.mul(target, target, out=x)
    assert target.tolist() == [0.0, 0.0] and x.tolist() == [1.0, 2.0]
    pc.mul(target, target, out=pc.empty(2, dtype=pc.float64))


def test_views_in_place_move_the_tangent(level: int) -> None:
    x = dual([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]])
    assert tangent(x.t_() * 2) == [[2.0, 6.0], [4.0, 8.0]]
    assert tangent(x.unsqueeze_(0)) == [[[1.0, 3.0], [2.0, 4.0]]]


def test_another_layout_in_place_is_refused(level: int) -> None:
    x = dual([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]])
    x.resize_(3, 3)
    with pytest.raises(NotImplementedError, match="given another layout in place"):
        x * 2


def test_an_operator_without_derivative_is_named(level: int) -> None:
    x = dual([1.0, 2.0], [1.0, 1.0])
    with pytest.raises(NotImplementedError, match="special_airy_ai: no forward derivative"):
        operator("special_airy_ai")(x)
    assert tangent(operator("special_airy_ai")(x.detach())) is None


# ---- with reverse mode ------------------------------------------------------------------------


def energy(x: Any) -> Any:
    """Saves inputs and results, views and writes."""
    y = x.tanh() * x.exp()
    y[1:].mul_(x[:-1].sigmoid())
    return (y.softmax(0) * (x @ x)).sum() + y.norm()


def products(directions: list[list[float]]) -> Iterator[tuple[Any, Any]]:
    for direction in directions:
        point = double([0.3, -0.7, 1.1], requires_grad=True)
        (g,) = pa.grad(energy(point), point, create_graph=True)
        (twice,) = pa.grad(g, point, double(direction))
        with forward_ad.dual_level():
            x = forward_ad.make_dual(point, double(direction))
            (g,) = pa.grad(energy(x), x)
            yield tangent(g), twice.tolist()


def test_forward_over_reverse_is_reverse_over_reverse() -> None:
    for forth, twice in products([[1.0, 0.0, 0.0], [0.5, -1.0, 2.0]]):
        np.testing.assert_allclose(forth, twice, rtol=1e-10)


def test_reverse_over_forward_is_reverse_over_reverse() -> None:
    direction = double([0.5, -1.0, 2.0])
    point = double([0.3, -0.7, 1.1], requires_grad=True)
    (g,) = pa.grad(energy(point), point, create_graph=True)
    (twice,) = pa.grad(g, point, direction)
    with forward_ad.dual_level():
        t = forward_ad.unpack_dual(energy(forward_ad.make_dual(point, direction))).tangent
        (back,) = pa.grad(t, point)
    np.testing.assert_allclose(back.tolist(), twice.tolist(), rtol=1e-10)


def test_leaves_of_a_backward_pass_get_gradients_with_tangents(level: int) -> None:
    w = double([2.0, 3.0], requires_grad=True)
    x = dual([1.0, 2.0], [1.0, 1.0])
    (w * w * x).sum().backward()
    assert w.grad.tolist() == [4.0, 12.0] and tangent(w.grad) == [4.0, 6.0]
    (w * x).sum().backward()  # accumulated in place
    assert tangent(w.grad) == [5.0, 7.0]


@pytest.mark.parametrize("create", [False, True])
def test_packed_values_have_tangents(level: int, create: bool) -> None:
    x = forward_ad.make_dual(double([1.0, 2.0], requires_grad=True), double([1.0, -1.0]))
    with pa.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), pc.from_numpy):
        y = (x.exp() * x[:1]).sum()
    (g,) = pa.grad(y, x, create_graph=create)
    point = double([1.0, 2.0], requires_grad=True)
    (first,) = pa.grad((point.exp() * point[:1]).sum(), point, create_graph=True)
    (twice,) = pa.grad(first, point, double([1.0, -1.0]))
    np.testing.assert_allclose(tangent(g), twice.tolist())


def test_forward_over_reverse_through_a_checkpoint(level: int) -> None:
    x = forward_ad.make_dual(double([1.0, 2.0], requires_grad=True), double([1.0, -1.0]))
    y = pa.checkpoint(lambda x: (x.tanh().sigmoid() * x).sum(), x)
    (g,) = pa.grad(y, x)
    point = double([1.0, 2.0], requires_grad=True)
    (first,) = pa.grad((point.tanh().sigmoid() * point).sum(), point, create_graph=True)
    (twice,) = pa.grad(first, point, double([1.0, -1.0]))
    np.testing.assert_allclose(tangent(g), twice.tolist())


def test_the_collector_visits_objects_packed_with_a_tangent() -> None:
    before = live()
    with forward_ad.dual_level():
        references: list[Any] = []
        x = forward_ad.make_dual(pc.ones(1000, requires_grad=True), pc.ones(1000))
        with pa.graph.saved_tensors_hooks(
            lambda t, references=references: [t, references], lambda packed: packed[0]
        ):
            y = x.exp()
        references.append(y)  # y owns its node, which owns what was packed
        assert y.grad_fn is not None
        del x, y, references
    assert live() == before


def test_hooks_see_tangents(level: int) -> None:
    x = forward_ad.make_dual(double([1.0, 2.0], requires_grad=True), double([1.0, -1.0]))
    calls = []
    y = x * x
    y.register_hook(lambda g: calls.append(tangent(g)) or g * 2)
    y.exp().sum().backward(inputs=[x])
    assert len(calls) == 1 and calls[0] is not None
    np.testing.assert_allclose(calls[0], [2 * np.e, -4 * np.exp(4.0)])
