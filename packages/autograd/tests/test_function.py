"""Function: operators written in Python."""

from __future__ import annotations

import gc
import sys
import weakref
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


class Exp(pa.Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


def leaf(*values: float):
    return pc.tensor(list(values), dtype=pc.float64, requires_grad=True)


def test_arguments_that_are_no_tensors():
    x = leaf(1, 2)
    y = Scale.apply(x, 3.0)
    assert pa.grad_fn(y).name() == "ScaleBackward"
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])


def test_gradcheck_and_double_backward_through_a_saved_output():
    assert pa.gradcheck(Exp.apply, leaf(0.5, -1.0))
    assert pa.gradgradcheck(Exp.apply, leaf(0.5, -1.0))


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
    seen = []

    class Both(pa.Function):
        @staticmethod
        def forward(ctx, x, y):
            seen.append(ctx.needs_input_grad)
            return x + y, x * 2

        @staticmethod
        def backward(ctx, g0, g1):
            assert g1.shape == (2,) and g1.tolist() == [0, 0]
            return g0 + g1 * 2, None

    x = leaf(1, 2)
    total, _ = Both.apply(x, pc.ones(2, dtype=pc.float64))
    total.sum().backward()
    assert seen == [(True, False)]
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


def viewing(forward):
    class Viewing(pa.Function):
        @staticmethod
        def backward(ctx, g):
            return g * 10

    Viewing.forward = staticmethod(forward)
    return Viewing


FORWARDS = {
    "the input": lambda ctx, x: x,
    "a view": lambda ctx, x: x.view(-1),
    "a part": lambda ctx, x: x[:],
    "detached": lambda ctx, x: x.detach(),
    "a view of it": lambda ctx, x: x.detach().view(-1),
}
WRITES = {
    "itself": lambda z: z.mul_(2),
    "a part": lambda z: z[1:].mul_(2),
    "composite": lambda z: z.clamp_(0, 1),
    "setitem": lambda z: z.__setitem__(0, 1),
    "strided": lambda z: pc.as_strided(z, (2,), (1,)).mul_(2),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("forward", FORWARDS.values(), ids=FORWARDS)
@pytest.mark.parametrize("of_leaf", [False, True])
def test_an_output_in_the_input_s_memory_is_not_written(forward, write, of_leaf):
    x = leaf(1, 2, 3)
    y = x if of_leaf else x * 1
    z = viewing(forward).apply(y)
    with pytest.raises(RuntimeError, match=r"returned by a Function.*clone\(\)"):
        write(z)
    assert y.tolist() == [1, 2, 3]
    z.sum().backward()
    assert x.grad.tolist() == [10, 10, 10]


@pytest.mark.parametrize("forward", FORWARDS.values(), ids=FORWARDS)
def test_an_output_in_the_input_s_memory_is_void_once_that_is_written(forward):
    x = leaf(1, 2, 3)
    y = x * 1
    z = viewing(forward).apply(y)
    part = z[1:]
    used = z * 2
    y.mul_(3)
    for stale in (z, part):
        with pytest.raises(RuntimeError, match=r"written in place since.*clone\(\)"):
            (stale * 2).sum()
    used.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [20, 20, 20]
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_views_of_an_output_that_is_a_view_go_through_the_function():
    x = leaf(1, 2, 3)
    z = viewing(lambda ctx, x: x.view(-1)).apply(x * 1)
    (z[1:].sum() + pc.as_strided(z, (2,), (1,)).sum() + z.view(3, 1).t().sum()).backward()
    assert x.grad.tolist() == [20, 30, 20]


def test_an_output_in_a_buffer_is_void_once_that_is_written():
    buffer = pc.zeros(3, dtype=pc.float64)

    def forward(ctx, x):
        buffer.copy_(x)
        return buffer[:]

    z = viewing(forward).apply(leaf(1, 2, 3))
    with pytest.raises(RuntimeError, match="returned by a Function"):
        z.mul_(2)
    buffer.zero_()
    with pytest.raises(RuntimeError, match="written in place since"):
        z.sum()


def test_an_output_that_nobody_else_sees_can_be_written():
    def forward(ctx, x):
        return (x * 2).view(-1)

    x = leaf(1, 2, 3)
    z = viewing(forward).apply(x)
    z.mul_(3)
    z[1:].mul_(2)
    z.sum().backward()
    assert x.grad.tolist() == [30, 60, 60]


def test_a_saved_tensor_that_was_written_is_an_error():
    x = leaf(1, 2)
    y = Exp.apply(x)
    y.detach().zero_()
    with pytest.raises(
        RuntimeError, match=r"ExpBackward: saved tensor 0 \(float64, shape \(2,\)\)"
    ):
        y.sum().backward()


def test_saved_tensors_are_freed_after_the_pass():
    x = leaf(1)
    y = Exp.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="ExpBackward: backward came here a second time"):
        y.backward()


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


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda g: (g, g), "must be None, since the argument was no tensor"),
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


def test_a_function_dies_with_its_output():
    class Trace(pa.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(x, y)
            ctx.marker = marker = type("Marker", (), {})()
            references.append(weakref.ref(marker))
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    references = []
    gc.disable()
    try:
        y = Trace.apply(leaf(1)) * 1
        assert references[0]() is not None
        del y
        assert references[0]() is None
    finally:
        gc.enable()


class Mark:
    pass


def keeping(forward, backward):
    class Keeping(pa.Function):
        pass

    Keeping.forward, Keeping.backward = staticmethod(forward), staticmethod(backward)
    return Keeping


def keep_the_output(ctx, x):
    ctx.y = x.exp()
    return ctx.y


def write_the_input(ctx, x):
    ctx.mark_dirty(x)
    ctx.save_for_backward(x.exp_())
    return x


@pytest.mark.parametrize("forward", [keep_the_output, write_the_input])
def test_what_keeps_its_output_dies_with_it(forward):
    function = keeping(forward, lambda ctx, g: g)
    gc.disable()
    try:
        for run_backward in (False, True):
            y = function.apply(leaf(1, 2) * 1)
            if run_backward:
                y.sum().backward()
            y.mark = Mark()
            mark = weakref.ref(y.mark)
            del y
            assert mark() is None
    finally:
        gc.enable()


def test_an_output_as_an_attribute_has_its_history():
    function = keeping(keep_the_output, lambda ctx, g: g * ctx.y)
    x = leaf(0.5, 1.0)
    assert pa.gradcheck(function.apply, (x,))
    assert pa.gradgradcheck(function.apply, (x,))
    with pytest.raises(AttributeError, match="missing"):
        keeping(lambda ctx, x: x * ctx.missing, None).apply(x)


def test_attributes_that_equal_outputs_without_history():
    def forward(ctx, x):
        ctx.number, ctx.nothing, ctx.constant = 5, None, x.floor()
        ctx.mark_non_differentiable(ctx.constant)
        ctx.save_for_backward(ctx.constant)
        return x * 2, ctx.constant, 5, None

    def backward(ctx, g, *rest):
        assert ctx.number == 5 and ctx.nothing is None
        assert not ctx.constant.requires_grad and not ctx.saved_tensors[0].requires_grad
        return g * ctx.constant

    x = leaf(2.5)
    (g,) = pa.grad(keeping(forward, backward).apply(x)[0], x, create_graph=True)
    assert g.tolist() == [2]


def test_an_input_that_is_returned_is_saved_as_the_input():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.x = x
        return x

    def backward(ctx, g):
        assert ctx.x.is_leaf
        return g * ctx.saved_tensors[0] * 3

    x = leaf(2)
    (first,) = pa.grad(keeping(forward, backward).apply(x).sum(), x, create_graph=True)
    assert pa.grad(first.sum(), x)[0].tolist() == [3]


def test_only_tensors_can_be_saved():
    class Wrong(pa.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x

    with pytest.raises(TypeError, match="tensors or None are required, got int"):
        Wrong.apply(leaf(1))


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


def test_outputs_without_gradients_give_zeros_to_backward():
    seen = []

    class Largest(pa.Function):
        @staticmethod
        def forward(ctx, x):
            index, twice = x.argmax(), x * 2
            ctx.mark_non_differentiable(index, twice)
            return x.exp(), index, twice, "text"

        @staticmethod
        def backward(ctx, g, g_index, g_twice, g_text):
            seen.append((g_index, g_twice, g_text))
            return g + g_twice

    class Sparse(Largest):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return Largest.forward(ctx, x)

        @staticmethod
        def backward(ctx, g, *others):
            seen.append(others)
            return g

    x = leaf(1, 2)
    Largest.apply(x)[0].sum().backward()
    index, twice, text = seen.pop()
    assert (index.shape, index.dtype, index.tolist()) == ((), pc.int64, 0)
    assert (twice.dtype, twice.tolist(), text) == (pc.float64, [0.0, 0.0], None)
    assert x.grad.tolist() == [1.0, 1.0]
    Sparse.apply(x)[0].sum().backward()
    assert seen == [(None, None, None)]


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


def line_after(n: int) -> int:
    return sys._getframe(1).f_lineno + n


def test_errors_of_a_function_name_the_lines_of_its_call_and_of_the_write():
    x = leaf(1, 2)
    call = line_after(1)
    y = Exp.apply(x * 1)
    write = line_after(1)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="ExpBackward: saved tensor 0") as caught:
        y.sum().backward()
    text = str(caught.value)
    assert f"overwritten by `mul_` at {__file__}:{write} in test_errors" in text
    assert f"saved by the call at {__file__}:{call} in test_errors" in text
    assert "set_detect_anomaly" not in text

    call = line_after(1)
    y = Exp.apply(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time") as caught:
        y.backward()
    # the sum saves nothing
    assert f"(the call was made at {__file__}:{call} in test_errors" in str(caught.value)

    class Wrong(Exp):
        @staticmethod
        def backward(ctx, g):
            return g[:1][[0, 0, 0]]

    call = line_after(1)
    y = Wrong.apply(x)
    with pytest.raises(RuntimeError, match=r"input 0 must have shape \(2,\); got \(3,\)") as caught:
        y.sum().backward()
    assert f"(the call was made at {__file__}:{call} in test_errors" in str(caught.value)


def test_the_names_of_the_module_function():
    assert pa.function.Function is pa.Function
    assert pa.function.once_differentiable is pa.once_differentiable
    assert pa.function.FunctionCtx is pa.FunctionContext


def gives(make):
    class Gives(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return make()

    return Gives


def test_gradients_on_another_device_are_errors():
    x, far = leaf(1, 2), pc.zeros(2, dtype=pc.float64, device="meta")
    text = "gradient for input 0 must be on device cpu; got meta"
    with pytest.raises(ValueError, match=f"GivesBackward: the {text} .the call was made at"):
        gives(lambda: far).apply(x).sum().backward()
    with pytest.raises(ValueError, match="gradient of result 0 must be on device cpu; got meta"):
        (x * 2).backward(far)
    y = x * 2
    y.register_hook(lambda g: far)
    with pytest.raises(ValueError, match="the tensor's gradient on device cpu, or None; got meta"):
        y.sum().backward()
    assert x.grad is None


def test_a_returned_gradient_that_requires_grad_leaves_no_graph_behind():
    kept = leaf(3, 4)
    for make in (lambda: kept, lambda: kept * 2, lambda: leaf(5, 6)):
        x = leaf(1, 2)
        gives(make).apply(x).sum().backward()
        assert not x.grad.requires_grad
        assert x.grad.tolist() == make().tolist()
        x.grad.zero_()
    assert kept.tolist() == [3, 4]
