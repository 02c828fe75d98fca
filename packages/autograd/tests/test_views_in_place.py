"""Views in place, of results and of views, and functions that write views."""

from __future__ import annotations

import pytest

import plait_autograd as pa
import plait_core as pc


def leaf(*values: float):
    return pc.tensor(list(values), dtype=pc.float64, requires_grad=True)


def square():
    return pc.tensor([[1.0, 2, 3], [4, 5, 6]], dtype=pc.float64, requires_grad=True)


CHANGES = {
    "t": lambda y: y.t_(),
    "transpose": lambda y: y.transpose_(0, 1),
    "swapaxes": lambda y: y.swapaxes_(0, 1),
    "unsqueeze": lambda y: y.unsqueeze_(1),
    "squeeze": lambda y: y.unsqueeze_(0).squeeze_(0),
    "as_strided": lambda y: y.as_strided_((2, 2), (1, 2), 1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("of_view", [False, True])
@pytest.mark.parametrize("write", [False, True])
def test_derivatives(change, of_view, write):
    def function(x):
        whole = x * 2
        y = whole[:, :] if of_view else whole
        assert change(y) is y
        if write:
            y.mul_(x.sum())
            whole.mul_(3)
        return y * y, whole

    x = square()
    assert pa.gradcheck(function, (x,))
    assert pa.gradgradcheck(function, (x,))
    y = function(x)[0]
    assert y.shape == change(x.detach().clone()).shape


def test_leaves_are_refused_but_within_no_grad():
    x = square()
    with pytest.raises(RuntimeError, match="t_: a leaf that requires grad, of shape"):
        x.t_()
    with pa.no_grad():
        x.t_()
    assert x.shape == (3, 2) and x.is_leaf
    (x * x).sum().backward()
    assert x.grad.tolist() == [[2, 8], [4, 10], [6, 12]]


def test_what_saved_the_tensor_is_refused():
    x, c = square(), pc.ones(2, 3, dtype=pc.float64)
    y = x * 1
    for product, changed in ((y * y, y), (x * c, c)):
        before = changed._version
        changed.t_()
        assert changed._version > before
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()


def test_a_view_stays_a_view_of_its_base():
    x = square()
    base = x * 1
    part = base[:, 1:]
    part.t_()
    base.mul_(10)
    assert part.tolist() == [[20, 50], [30, 60]]
    part.sum().backward()
    assert x.grad.tolist() == [[0, 10, 10], [0, 10, 10]]


def test_without_grad_a_view_stays_a_view_of_its_base():
    base = pc.zeros(2, 3, dtype=pc.float64)
    part = base[:, 1:]
    part.t_()
    base.add_(square())
    part.sum().backward()


class Doubled(pa.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_a_function_writes_a_view():
    x = leaf(1, 2, 3)
    y = x * 3
    part, other = y[1:], y[:2]
    assert Doubled.apply(part) is part
    assert y.tolist() == [3, 12, 18]
    (y * pc.tensor([1.0, 10, 100], dtype=pc.float64)).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [3, 60, 600]
    x.grad = None
    (part.sum() + other.sum()).backward()
    assert x.grad.tolist() == [3, 12, 6]


def test_derivatives_of_a_function_that_writes_a_view():
    class Exp(pa.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.exp_()
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    def function(x):
        y = x / 4
        Exp.apply(y[:, 1])
        return y * y

    def doubled(x):
        y = x * x
        Doubled.apply(y.t()[0])
        Doubled.apply(y)
        return y * y

    for each in (function, doubled):
        assert pa.gradcheck(each, (square(),))
        assert pa.gradgradcheck(each, (square(),))


def test_a_function_writes_a_view_of_a_constant():
    class Scale(pa.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.mark_dirty(x)
            ctx.before = x.clone()
            return x.mul_(w)

        @staticmethod
        def backward(ctx, g):
            return None, (g * ctx.before).sum()

    y = pc.tensor([1.0, 2, 3], dtype=pc.float64)
    w = pc.tensor(4.0, dtype=pc.float64, requires_grad=True)
    Scale.apply(y[:2], w)
    assert y.requires_grad and y.tolist() == [4, 8, 3]
    y.sum().backward()
    assert w.grad.item() == 3


def test_a_view_of_a_leaf_is_not_written():
    with pytest.raises(RuntimeError, match="view of a leaf"):
        Doubled.apply(leaf(1, 2)[1:])


def test_fill_with_a_number_that_requires_grad():
    def function(x, v):
        y = x * 1
        y[1:].fill_(v)
        return y

    assert pa.gradcheck(
        function, (leaf(1, 2, 3), pc.tensor(5.0, dtype=pc.float64).requires_grad_())
    )
    value = pc.tensor(2.5, requires_grad=True)
    pc.zeros(4, dtype=pc.float64).fill_(value).sum().backward()
    assert value.grad.item() == 4 and value.grad.dtype is pc.float32
    with pytest.raises(RuntimeError, match=r"fill_: `value` must be a number or a 0-d tensor"):
        pc.zeros(2).fill_(leaf(1, 2))
