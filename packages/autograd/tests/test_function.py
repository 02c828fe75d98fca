"""Function: derivatives written in Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc


class Scale(pa.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def leaf(*values: float):
    return pc.tensor(list(values), dtype=pc.float64, requires_grad=True)


def test_arguments_that_are_no_tensors():
    x = leaf(1, 2)
    y = Scale.apply(x, 3.0)
    assert pa.grad_fn(y).name() == "ScaleBackward"
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])


def test_setup_context_style():
    class Product(pa.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    assert pa.gradgradcheck(Product.apply, (leaf(1.0, 2.0), leaf(3.0, 4.0)))


def test_several_outputs_and_needs_input_grad():
    calls = []

    class Both(pa.Function):
        @staticmethod
        def forward(ctx, x, y):
            calls.append(ctx.needs_input_grad)
            return x + y, x * 2

        @staticmethod
        def backward(ctx, g0, g1):
            assert g1.shape == (2,) and g1.tolist() == [0, 0]
            return g0 + g1 * 2, None

    x = leaf(1, 2)
    total, _ = Both.apply(x, pc.ones(2, dtype=pc.float64))
    total.sum().backward()
    assert calls == [(True, False)]
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])


def test_nothing_is_recorded_without_need():
    assert not Scale.apply(pc.ones(2), 2).requires_grad
    with pa.no_grad():
        assert not Scale.apply(leaf(1), 2).requires_grad


def test_forward_is_not_recorded_and_the_mode_comes_back():
    class Look(pa.Function):
        @staticmethod
        def forward(ctx, x):
            assert not pa.is_grad_enabled()
            assert not (x * 2).requires_grad
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert not pa.is_grad_enabled()
            return g * 2

    Look.apply(leaf(1)).backward()
    assert pa.is_grad_enabled()


def test_mark_dirty():
    class AddOne(pa.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = leaf(1, 2)
    y = x * 2
    z = AddOne.apply(y)
    assert z is y and pa.grad_fn(y).name() == "AddOneBackward"
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [20, 20])
    with pytest.raises(RuntimeError, match="leaf of shape"):
        AddOne.apply(x)


def test_mark_dirty_must_be_returned():
    class Lost(pa.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

    with pytest.raises(RuntimeError, match="mark_dirty must be returned"):
        Lost.apply(leaf(1))


def test_mark_non_differentiable():
    class Order(pa.Function):
        @staticmethod
        def forward(ctx, x):
            y, other = x * 2, x * 3
            ctx.mark_non_differentiable(other)
            return y, other

        @staticmethod
        def backward(ctx, g, _):
            return g * 2

    y, other = Order.apply(leaf(1))
    assert y.requires_grad and not other.requires_grad


def test_an_input_that_is_returned_becomes_another_tensor():
    class Same(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1)
    y = Same.apply(x)
    assert y is not x and x.is_leaf
    y.backward()
    assert x.grad.item() == 7


def test_keyword_arguments_follow_the_others():
    class Scale(pa.Function):
        @staticmethod
        def forward(ctx, x, *, factor, power=1):
            ctx.save_for_backward(x, factor)
            return x * factor**power

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs_input_grad == (True, True)
            x, factor = ctx.saved_tensors
            return g * factor, (g * x).sum()

    x, factor = pc.ones(2, requires_grad=True), pc.tensor(3.0, requires_grad=True)
    Scale.apply(x, factor=factor).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and factor.grad.item() == 2.0


def test_a_named_tuple_of_outputs():
    class Pair(NamedTuple):
        left: object
        right: object

    class Split(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return Pair(x * 2, x * 3)

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 3 * h

    x = leaf(1)
    pair = Split.apply(x)
    assert type(pair) is Pair
    (pair.left + pair.right * 10).sum().backward()
    assert x.grad.tolist() == [32]


def test_the_names_of_the_module_function():
    assert pa.function.Function is pa.Function
    assert pa.function.once_differentiable is pa.once_differentiable
    assert pa.function.FunctionCtx is pa.FunctionContext
