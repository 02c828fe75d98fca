"""In-place operators, views and versions: right, or an error that says what to do."""

from __future__ import annotations

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc


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
        (lambda x: x.exp(), lambda x, y: y.mul_(2), r"exp: `its result`"),
        (lambda x: x * x.detach(), lambda x, y: x.detach().zero_(), r"mul: `other`"),
        (lambda x: x.exp(), lambda x, y: y.detach().view(2, 1)[0].zero_(), r"exp: `its result`"),
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


def test_writing_what_nobody_saved_is_no_error():
    x = leaf(1.0, 2.0)
    y = x + 1
    y.detach().zero_()
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])


def test_an_operand_that_aliases_the_target_is_an_error():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.mul_(y)
    with pytest.raises(RuntimeError, match=r"mul_: `other`.*overwritten"):
        y.sum().backward()


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


def test_a_view_made_without_recording_is_a_detached_one():
    x = leaf(1.0, 2.0)
    y = x * 2
    with pa.no_grad():
        view = y[0]
    assert not view.requires_grad
    view.mul_(100)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])


def test_an_overlapping_view_of_a_written_base_says_so():
    x = leaf(1.0, 2.0, 3.0)
    buffer = pc.zeros(3, dtype=pc.float64)
    windows = pc.as_strided(buffer, (2, 2), (1, 1), 0)
    buffer.copy_(x)
    with pytest.raises(NotImplementedError, match="elements overlap"):
        windows.sum().backward()
