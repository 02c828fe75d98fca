"""Function: what the context keeps for backward, and for how long."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref

import pytest

import plait_autograd as pa
import plait_core as pc


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


def test_gradcheck_and_double_backward_through_a_saved_output():
    assert pa.gradcheck(Exp.apply, leaf(0.5, -1.0))
    assert pa.gradgradcheck(Exp.apply, leaf(0.5, -1.0))


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
    with pytest.raises(RuntimeError, match="ExpBackward: backward ran a second time"):
        y.backward()


def test_only_tensors_can_be_saved():
    class Wrong(pa.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x

    with pytest.raises(TypeError, match="tensors or None are required, got int"):
        Wrong.apply(leaf(1))


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


class SineOfSquare(pa.Function):
    """sin(x^2), which saves an intermediate result."""

    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(x, square)
        return square.sin()

    @staticmethod
    def backward(ctx, g):
        x, square = ctx.saved_tensors
        return g * square.cos() * 2 * x


def test_a_saved_intermediate_loses_second_derivatives_with_a_warning():
    x = pc.tensor([0.7], requires_grad=True)
    y = SineOfSquare.apply(x)
    with pytest.warns(UserWarning, match="SineOfSquare.*: saved tensor 1 is neither an input nor"):
        (first,) = pa.grad(y, x, create_graph=True)
    assert first.requires_grad  # by x alone
    y = SineOfSquare.apply(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y.backward(retain_graph=True)
        assert y.grad_fn.saved_tensors[1] is not None


@pytest.mark.parametrize("saved", ["input", "output", "integers"])
def test_what_needs_no_warning_in_double_backward(saved):
    class Kept(pa.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward({"input": x, "output": y, "integers": x.long()}[saved])
            return y

        @staticmethod
        def backward(ctx, g):
            (t,) = ctx.saved_tensors
            return g * t

    x = pc.tensor([0.7], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pa.grad(Kept.apply(x), x, create_graph=True)
