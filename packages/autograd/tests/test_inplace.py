"""In-place operators, views and versions: right gradients, or an error that says what to do."""

from __future__ import annotations

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc
from plait_abi import operator


def leaf(*values: float):
    return pc.tensor(list(values), dtype=pc.float64, requires_grad=True)


def check(function, *inputs):
    """Compare with finite differences; the function may write what it makes."""
    assert pa.gradcheck(function, inputs)
    assert pa.gradgradcheck(function, inputs)


def test_in_place_on_a_result():
    def function(x, w):
        y = x * 2
        y.mul_(w)
        y.add_(x)
        return y.tanh_()

    check(function, leaf(0.1, 0.2), leaf(0.3, 0.4))


def test_the_old_value_is_kept_where_the_derivative_reads_it():
    x, w = leaf(3.0), leaf(5.0)
    y = x * 1
    y.mul_(w)
    y.backward()
    assert x.grad.item() == 5 and w.grad.item() == 3


def test_writing_a_row():
    def function(x):
        y = x.clone()
        y[0] = 0
        y[1] = y[2].clone() * x[0]
        return y * y

    check(function, leaf(1.0, 2.0, 3.0))


def test_scaling_a_column():
    def function(x, w):
        y = x * x
        y[:, 1].mul_(w)
        return y

    x = pc.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=pc.float64, requires_grad=True)
    check(function, x, leaf(0.5, 2.0))


def test_filling_a_buffer_without_history():
    x = leaf(1.0, 2.0, 3.0)
    buffer = pc.zeros(2, 3, dtype=pc.float64)
    assert not buffer.requires_grad
    buffer[0] = x * 2
    buffer[1] = x * x
    assert buffer.requires_grad and not buffer.is_leaf
    (buffer * buffer).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 8 * x.detach().numpy() + 4 * x.detach().numpy() ** 3)


def test_a_view_made_before_its_base_was_written():
    def function(x):
        buffer = pc.zeros(3, dtype=pc.float64)
        view, all_of_it = buffer[1:], buffer.expand(2, 3)
        buffer.copy_(x * x)
        return view * view, all_of_it * 2

    check(function, leaf(1.0, 2.0, 3.0))


def test_a_view_sees_writes_through_another_view():
    def function(x):
        buffer = pc.zeros(4, dtype=pc.float64)
        left, right = buffer[:3], buffer[1:]
        right.copy_(x)
        left.mul_(x)
        return left * right

    check(function, leaf(1.0, 2.0, 3.0))


def test_views_of_views_of_a_transposed_base():
    def function(x):
        y = x * 1
        y.transpose(0, 1)[0][1:].mul_(x[1:, 1])
        return y

    x = pc.tensor(np.arange(1.0, 7).reshape(3, 2), requires_grad=True)
    check(function, x)


def test_parts_of_a_split_can_be_written():
    def function(x):
        y = x * 1
        a, b = y.unbind(0)
        a.mul_(b * 2)
        return y * 3, a * 1

    check(function, leaf(2.0, 3.0))


def test_history_of_a_written_view_is_its_base_s():
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[0]
    assert pa.grad_fn(view).name() == "SelectBackward"
    y.mul_(2)
    assert pa.grad_fn(view).name() == "AsStridedBackward"
    view.mul_(2)
    assert pa.grad_fn(y).name() == "CopySlices"
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4, 2])


def test_zero_cuts_the_gradient():
    x = leaf(1.0, 2.0)
    y = x * 3
    y.zero_()
    y.add_(x)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])


def test_a_leaf_is_not_written():
    x = leaf(1.0, 2.0)
    for write in (lambda: x.mul_(2), lambda: x[0].mul_(2), lambda: x.view(2, 1).zero_()):
        with pytest.raises(RuntimeError, match="leaf that requires grad and would be written"):
            write()
    np.testing.assert_array_equal(x.detach().numpy(), [1, 2])
    with pa.no_grad():
        x.mul_(2)
    np.testing.assert_array_equal(x.detach().numpy(), [2, 4])


@pytest.mark.parametrize(
    ("make", "write", "named"),
    [
        (lambda x: x.exp(), lambda x, y: y.mul_(2), r"exp: its result"),
        (lambda x: x * x.detach(), lambda x, y: x.detach().zero_(), r"mul: `other`"),
        (lambda x: x.exp(), lambda x, y: y.detach().view(2, 1)[0].zero_(), r"exp: its result"),
    ],
    ids=["result", "input", "view of a detached result"],
)
def test_an_overwritten_value_is_an_error(make, write, named):
    x = leaf(1.0, 2.0)
    h = x * 1
    y = make(h)
    z = y.sum()
    write(h, y)
    with pytest.raises(
        RuntimeError, match=named + r" \(float64, shape \(2,\)\).*version 1, saved at version 0"
    ):
        z.backward()


def test_writing_an_unsaved_tensor_is_no_error():
    x = leaf(1.0, 2.0)
    y = x + 1
    y.detach().zero_()
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])


def test_an_operand_that_lies_in_the_target_is_saved_as_it_was():
    def whole(x):
        y = x * 1
        y.mul_(y)
        y[:2].div_(y[1:] + 2)
        return y * x

    def neighbours(x):
        y = x.clone()
        y[1:].mul_(y[:-1])
        view = y[:2]
        view.mul_(view)
        return y * y

    check(whole, leaf(0.5, 1.5, 2.0))
    check(neighbours, leaf(0.5, 1.5, 2.0))


def self_product(x):
    y = x * 1
    y.mul_(y)
    return y


def neighbour_product(x):
    y = x * 1
    y[1:].mul_(y[:-1])
    return y


@pytest.mark.parametrize("make", [self_product, neighbour_product])
def test_a_tensor_multiplied_with_itself_in_place_dies_at_once(make):
    x = leaf(*range(8))
    storages = []
    for _ in range(3):
        before = pc.memory_stats()["live_blocks"]
        big = pc.ones(5000, dtype=pc.float64) * x[0]
        y = make(big)
        del y, big
        storages.append(pc.memory_stats()["live_blocks"] - before)
    assert storages[1:] == [0, 0]


COMPOSITES = [
    lambda y: y.clamp_(-1, 1),
    lambda y: y.clip_(-1, 1),
    operator("gelu_"),
    lambda y: y.absolute_(),
    lambda y: y.clamp_(min=y * 0.5),
    lambda y: y[1:].absolute_(),
    lambda y: y[1:].clamp_(y[:-1] - 1, y[:-1] + 1),
]


@pytest.mark.parametrize("write", COMPOSITES)
def test_composites_in_place(write):
    def function(x):
        y = x * 2
        write(y)
        return y * y

    check(function, leaf(0.3, -0.4, 1.7, -2.1))


@pytest.mark.parametrize(
    "name", ["exp_", "sigmoid_", "tanh_", "sqrt_", "reciprocal_", "relu_", "absolute_"]
)
def test_second_derivatives_through_a_written_view(name):
    def function(x):
        y = x.clone()
        getattr(y[:2], name)()
        return y * y

    x = leaf(0.3, 0.5, 0.7)
    (first,) = pa.grad(function(x).sum(), x, create_graph=True)
    (second,) = pa.grad((first * first).sum(), x)  # not kept: one pass comes to exp_ twice
    out_of_place = getattr(pc, name[:-1])(x[:2])
    expected_first, *_ = pa.grad((out_of_place**2).sum() + x[2] ** 2, x, create_graph=True)
    (expected,) = pa.grad((expected_first * expected_first).sum(), x)
    np.testing.assert_allclose(second.numpy(), expected.numpy())
    check(function, x)


def test_out_has_no_derivative():
    x, target = leaf(1.0), pc.zeros(1, dtype=pc.float64)
    with pytest.raises(RuntimeError, match="add: out= has no derivative, but `self` requires grad"):
        pc.add(x, 1, out=target)
    with pytest.raises(RuntimeError, match="but `out` requires grad"):
        pc.add(target, 1, out=x * 1)
    with pa.no_grad():
        pc.add(x, 1, out=target)
    assert target.item() == 2


def test_detach_in_place_is_not_for_views():
    x = leaf(1.0, 2.0)
    y = x * 2
    with pytest.raises(RuntimeError, match="cannot be detached in place"):
        y[0].detach_()
    y.detach_()
    assert not y.requires_grad and y.is_leaf


def test_a_view_made_without_recording_is_read_as_a_detached_one():
    x = leaf(1.0, 2.0)
    y = x * 2
    with pa.no_grad():
        view = y[0]
    assert not view.requires_grad and view._base is y
    assert not (view * 3).requires_grad
    y.mul_(3)
    assert not view.requires_grad and view.item() == 6
    (y * view).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [36, 36])


def views_of_a_result():
    y = leaf(1.0, 2.0, 3.0) * 1
    with pa.no_grad():
        view = y[1:]
    return view


def views_of_parts():
    y = pc.ones(2, 2, dtype=pc.float64, requires_grad=True) * 1
    with pa.no_grad():
        return pc.view_as_complex(y)


def test_a_view_of_another_dtype_made_without_recording_is_not_written():
    view = views_of_parts()
    with pytest.raises(RuntimeError, match=r"no_grad\(\)"):
        view.mul_(2)
    assert view.tolist() == [1 + 1j, 1 + 1j]


def views_of_views():
    view = views_of_a_result()
    return view[:1]


def views_of_a_leaf():
    x = leaf(1.0, 2.0, 3.0)
    with pa.no_grad():
        return x[1:]


def views_of_what_became_a_leaf():
    x = pc.ones(3, dtype=pc.float64)
    view = x[1:]
    x.requires_grad_()
    return view


WRITES = [
    lambda view: view.mul_(2),
    lambda view: view.zero_(),
    lambda view: view.clamp_(0, 1),
    lambda view: view.copy_(pc.zeros(len(view))),
    lambda view: view.__setitem__(0, 5),
    lambda view: pc.add(view.detach(), 1, out=view),
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    "make", [views_of_a_result, views_of_views, views_of_a_leaf, views_of_what_became_a_leaf]
)
def test_a_view_that_the_history_does_not_know_is_not_written(make, write):
    view = make()
    before = view.tolist()
    with pytest.raises(RuntimeError, match=r"no_grad\(\)"):
        write(view)
    assert view.tolist() == before
    with pa.no_grad():
        view.mul_(2)
    assert view.tolist() == [2 * value for value in before]


def test_a_view_made_without_recording_can_be_a_leaf():
    y = leaf(1.0, 2.0) * 1
    with pa.no_grad():
        view = y[1:]
    view.requires_grad_()
    assert view.is_leaf
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3]
    y.mul_(2)
    (view * 3).sum().backward()


def test_a_view_whose_elements_overlap_is_not_written():
    y = leaf(1.0, 2.0, 3.0) * 1
    windows = pc.as_strided(y, (2, 2), (1, 1))
    with pytest.raises(RuntimeError, match="share their memory"):
        windows.mul_(2)
    assert y.tolist() == [1, 2, 3]


def test_an_overlapping_view_of_a_written_base():
    def function(x):
        buffer = pc.zeros(3, dtype=pc.float64)
        windows = pc.as_strided(buffer, (2, 2), (1, 1), 0)
        buffer.copy_(x * x)
        return windows * windows

    check(function, leaf(1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((3, 3), (1, 1), 1), ((4,), (0,), 2), ((2, 3), (0, 1), 0), ((2, 2, 2), (2, 1, 1), 0)],
)
def test_overlapping_strides_on_a_leaf(size, stride, offset):
    def function(x):
        view = pc.as_strided(x, size, stride, offset)
        return view * view

    check(function, leaf(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    rows = pc.tensor([[1.0, 2, 3], [4, 5, 6]], dtype=pc.float64, requires_grad=True)
    check(lambda x: function(x.t().t()), rows)


def test_as_strided_of_a_leaf_that_is_a_view():
    whole = pc.from_numpy(np.arange(6.0))
    x = whole[1:5].requires_grad_()
    y = x.as_strided((2, 2), (1, 1))
    (y * pc.from_numpy(np.array([[1.0, 2.0], [3.0, 4.0]]))).sum().backward()
    assert x.grad.tolist() == [1, 5, 4, 0]
    with pytest.raises(RuntimeError, match=r"outside the tensor of shape \(4,\)"):
        x.as_strided((5,), (1,), 0)


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.data.mul_(2),
        lambda y: y.data[:].mul_(2),
        lambda y: y.data.detach().mul_(2),
        lambda y: y.data.data.mul_(2),
        lambda y: pc.mul(y.data, 2, out=y.data),
    ],
)
def test_a_write_through_data_is_not_checked(write):
    x = leaf(0.5, 1.0)
    y = x.exp()
    view, before = y[:1], y._version
    write(y)
    assert y._version == before and view.grad_fn is not None
    y.sum().backward()
    np.testing.assert_allclose(x.grad, 2 * np.exp([0.5, 1.0]))


@pytest.mark.parametrize("part", [lambda d: d, lambda d: d[:], lambda d: d.detach()])
def test_a_history_of_data_is_checked_against_its_own_writes(part):
    x = pc.tensor([1.0, 2.0])
    d = x.data.requires_grad_()
    y = d.exp()
    x.add_(1)  # another counter
    y.sum().backward()
    np.testing.assert_allclose(d.grad, np.exp([1, 2]), rtol=1e-6)
    y = d * d
    with pa.no_grad():
        part(d).mul_(2)
    with pytest.raises(RuntimeError, match="overwritten"):
        y.sum().backward()


def test_data_of_a_tensor_that_requires_grad_stays_differentiable():
    x = pc.ones(3, requires_grad=True)
    for other in (pc.tensor([1, 2, 3]), pc.tensor([True, False, True])):
        with pytest.raises(pc.DTypeError, match=r"^data: a tensor that requires grad must have a"):
            x.data = other
    x.data = pc.ones(2, dtype=pc.float64)
    assert (x.dtype, x.requires_grad) == (pc.float64, True)
    y = pc.ones(2)
    y.data = pc.tensor([1, 2])
    assert y.dtype is pc.int64


def test_second_derivatives_by_a_base_whose_view_was_written():
    """The tensor that a write saved is part of the base, and its gradient goes there."""
    x = pc.tensor([0.5, -1.0, 2.0], dtype=pc.float64, requires_grad=True)
    y = x * 1
    y[:2].exp_()
    (g,) = pa.grad((y * y).sum(), x, create_graph=True)
    by_y, by_x = pa.grad(g.sum(), [y, x])
    # g = (2 y0 y0, 2 y1 y1, 2 y2): one factor is what the exp saved
    e = np.exp([0.5, -1.0])
    np.testing.assert_allclose(by_y.numpy(), [*(4 * e), 2])
    np.testing.assert_allclose(by_x.numpy(), [*(4 * e * e), 2])


@pytest.mark.parametrize("write", ["exp_", "tanh_", "sigmoid_"])
def test_second_derivatives_by_a_written_base_are_those_without_views(write):
    def seconds(part):
        x = pc.tensor([0.5, -1.0, 2.0], dtype=pc.float64, requires_grad=True)
        y = x * 1
        seen = []
        getattr(part(y), write)()
        y.register_hook(lambda g: seen.append(g.tolist()))
        (g,) = pa.grad((y * y * y).sum(), x, create_graph=True)
        result = pa.grad((g * g).sum(), [y, x])
        return [t.tolist() for t in result], seen

    expected, hooked = seconds(lambda y: y)
    for part in (lambda y: y[:], lambda y: y.view(3, 1), lambda y: y[0:3]):
        result, seen = seconds(part)
        for one, other in ((result, expected), (seen, hooked)):
            for a, b in zip(one, other, strict=True):
                assert a == pytest.approx(b)


@pytest.mark.parametrize("call", [pc.std, pc.sum, pc.linalg.norm, pc.linalg.pinv, pc.trace])
def test_out_of_composites_and_reductions_has_no_derivative(call):
    x, target = pc.ones(2, 2, dtype=pc.float64), pc.empty(0, dtype=pc.float64)
    for inputs, out in ((x.clone().requires_grad_(), target), (x, target.requires_grad_())):
        with pytest.raises(RuntimeError, match="out= has no derivative"):
            call(inputs, out=out)
    with pa.no_grad():
        call(x.clone().requires_grad_(), out=target)
    assert target.numel() > 0


@pytest.mark.parametrize(
    "function", [lambda x: x / (x * 2 + 1), lambda x: x.erfinv(), lambda x: x.sinc()]
)
def test_results_that_no_derivative_needs_may_be_written(function):
    x = pc.tensor([0.25, 0.5], dtype=pc.float64, requires_grad=True)
    (expected,) = pa.grad(function(x).sum(), x)
    y = function(x)
    y.mul_(3)
    y.sum().backward()
    assert pc.allclose(x.grad, expected * 3)
    assert pa.gradcheck(function, (x,))
