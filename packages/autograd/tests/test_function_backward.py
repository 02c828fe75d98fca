"""Function: the arguments and results of backward."""

from __future__ import annotations

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc


def leaf(*values: float):
    return pc.tensor(list(values), dtype=pc.float64, requires_grad=True)


def function_returning(make):
    class Returns(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return make()

    return Returns


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda g: (g, g), "must be None, since the argument was not a tensor"),
        (lambda g: (g,), "one gradient .or None. for each of the 2 arguments"),
        (
            lambda g: (pc.ones(5, dtype=pc.float64), None),
            r"input 0 must have shape \(2,\); got \(5,\)",
        ),
        (lambda g: (pc.ones(2, dtype=pc.int64), None), "input 0 must be float64; got int64"),
        (lambda g: ("text", None), "tensors or None are required"),
    ],
)
def test_wrong_gradients_are_named(result, message):
    class Wrong(pa.Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return result(g)

    with pytest.raises((RuntimeError, TypeError), match=message):
        Wrong.apply(leaf(1, 2), 2).sum().backward()


def test_broadcast_gradients_are_summed():
    class Expand(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x.expand(3, 2).clone()

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(1, 2)
    Expand.apply(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])


def test_gradients_on_another_device_are_errors():
    x, far = leaf(1, 2), pc.zeros(2, dtype=pc.float64, device="meta")
    text = "gradient for input 0 must be on device cpu; got meta"
    with pytest.raises(ValueError, match=f"ReturnsBackward: the {text} .the call was made at"):
        function_returning(lambda: far).apply(x).sum().backward()
    with pytest.raises(ValueError, match="gradient of result 0 must be on device cpu; got meta"):
        (x * 2).backward(far)
    y = x * 2
    y.register_hook(lambda g: far)
    with pytest.raises(ValueError, match="the tensor's gradient on device cpu, or None; got meta"):
        y.sum().backward()
    assert x.grad is None


def test_a_returned_gradient_that_requires_grad_leaves_no_graph_behind():
    reference = leaf(3, 4)
    for make in (lambda: reference, lambda: reference * 2, lambda: leaf(5, 6)):
        x = leaf(1, 2)
        function_returning(make).apply(x).sum().backward()
        assert not x.grad.requires_grad
        assert x.grad.tolist() == make().tolist()
        x.grad.zero_()
    assert reference.tolist() == [3, 4]


def test_an_exception_arrives_as_the_same_object():
    class Odd(Exception):
        pass

    error = Odd("from backward")

    class Fails(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise error

    x = leaf(1)
    with pytest.raises(Odd) as caught:
        (Fails.apply(x * 1) * 2).backward()
    assert caught.value is error
    assert any(entry.name == "backward" for entry in caught.traceback)
    (x * 2).backward()
    assert x.grad.item() == 2


def test_backward_within_backward():
    class Inner(pa.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with pa.enable_grad():
                copy = x.detach().requires_grad_()
                (copy * copy).sum().backward()
            return g * copy.grad

    x = leaf(3)
    y = x * 1
    (Inner.apply(y) + y).sum().backward()
    assert x.grad.item() == 7


def test_once_differentiable():
    class Twice(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @pa.once_differentiable
        def backward(ctx, g):
            return g * 2

    x = leaf(1)
    assert pa.grad(Twice.apply(x), x)[0].item() == 2
    y = Twice.apply(x)
    (g,) = pa.grad(y * y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        pa.grad(g, x)


def test_outputs_without_gradients_give_zeros_to_backward():
    calls = []

    class Largest(pa.Function):
        @staticmethod
        def forward(ctx, x):
            index, twice = x.argmax(), x * 2
            ctx.mark_non_differentiable(index, twice)
            return x.exp(), index, twice, "text"

        @staticmethod
        def backward(ctx, g, g_index, g_twice, g_text):
            calls.append((g_index, g_twice, g_text))
            return g + g_twice

    class Sparse(Largest):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return Largest.forward(ctx, x)

        @staticmethod
        def backward(ctx, g, *others):
            calls.append(others)
            return g

    x = leaf(1, 2)
    Largest.apply(x)[0].sum().backward()
    index, twice, text = calls.pop()
    assert (index.shape, index.dtype, index.tolist()) == ((), pc.int64, 0)
    assert (twice.dtype, twice.tolist(), text) == (pc.float64, [0.0, 0.0], None)
    assert x.grad.tolist() == [1.0, 1.0]
    Sparse.apply(x)[0].sum().backward()
    assert calls == [(None, None, None)]


def test_vjp_is_another_name_for_backward():
    class Twice(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    class Both(Twice):
        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = pc.ones(1, requires_grad=True)
    Twice.apply(x).backward()
    assert x.grad.tolist() == [2.0]
    with pytest.raises(RuntimeError, match="Both: backward and vjp are two names"):
        Both.apply(x).backward()
