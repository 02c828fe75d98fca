"""`Function` in forward mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc
from plait_autograd import forward_ad


def double(values: Any, **options: Any) -> Any:
    return pc.tensor(values, dtype=pc.float64, **options)


def tangent(x: Any) -> Any:
    result = forward_ad.unpack_dual(x).tangent
    return None if result is None else result.tolist()


class Cube(pa.Function):
    """Saves input and output, so that both kinds of saved tensors are differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * x * x
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * 3 * y / x

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


def test_jvp_gives_the_tangent() -> None:
    with forward_ad.dual_level():
        y = Cube.apply(forward_ad.make_dual(double([1.0, 2.0]), double([1.0, -1.0])))
        assert y.tolist() == [1.0, 8.0]
        assert tangent(y) == [3.0, -12.0]
        assert tangent(y * 2) == [6.0, -24.0]


def test_calls_within_forward_do_not_count() -> None:
    class Other(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 5

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 7

    with forward_ad.dual_level():
        assert tangent(Other.apply(forward_ad.make_dual(double(1.0), double(1.0)))) == 7.0


def test_a_function_without_jvp_says_so_before_it_runs() -> None:
    ran = []

    class Without(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ran.append(1)
            return x * 2

    with forward_ad.dual_level():
        x = forward_ad.make_dual(double(1.0), double(1.0))
        with pytest.raises(NotImplementedError, match=r"Without: a static method jvp"):
            Without.apply(x)
        assert not ran
        Without.apply(double(1.0))  # no dual tensor, no need
    assert ran == [1]


def test_tangents_that_are_missing_are_zeros_or_none() -> None:
    got: list[Any] = []

    class Sum(pa.Function):
        materialize = True

        @staticmethod
        def forward(ctx: Any, x: Any, factor: float, y: Any) -> Any:
            ctx.set_materialize_grads(Sum.materialize)
            return x * factor + y

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            got[:] = tangents
            return tangents[0] * 2

    with forward_ad.dual_level():
        x = forward_ad.make_dual(double([1.0]), double([1.0]))
        Sum.apply(x, 2.0, double([5.0]))
        assert got[1] is None and got[2].tolist() == [0.0]
        Sum.materialize = False
        Sum.apply(x, 2.0, double([5.0]))
        assert got[1] is None and got[2] is None


def test_setup_context_and_several_results() -> None:
    class Both(pa.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2, x.round().to(pc.int64), x * 3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_non_differentiable(output[2])

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2, None, t * 3

    with forward_ad.dual_level():
        a, b, c = Both.apply(forward_ad.make_dual(double([1.0]), double([1.0])))
        assert tangent(a) == [2.0] and tangent(b) is None and tangent(c) is None


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (
            lambda t: (t, t),
            RuntimeError,
            "one tangent .* for each of the 1 results of forward; got 2",
        ),
        (lambda t: 1.0, TypeError, "must return tensors or None; for result 0 .* float"),
        (lambda t: t.sum(), RuntimeError, r"result 0 must have its shape, \(2,\); got \(\)"),
    ],
)
def test_what_jvp_returns_is_checked(result: Any, error: Any, text: str) -> None:
    class Wrong(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return result(t)

    with forward_ad.dual_level():
        x = forward_ad.make_dual(double([1.0, 2.0]), double([1.0, 1.0]))
        with pytest.raises(error, match=f"Wrong: .*{text}|Wrong: the tangent .*{text}"):
            Wrong.apply(x)


def test_an_input_that_is_written() -> None:
    class Double(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2

    with forward_ad.dual_level():
        x = forward_ad.make_dual(double([1.0, 2.0]), double([1.0, 3.0]))
        y = Double.apply(x)
        assert y is x and tangent(x) == [2.0, 6.0]
        part = forward_ad.make_dual(double([1.0, 2.0]), double([1.0, 3.0]))
        Double.apply(part[1:])
        assert part.tolist() == [1.0, 4.0] and tangent(part) == [1.0, 6.0]


class Tail(pa.Function):
    """Returns a view of its input, with a tangent that does not follow from the input's."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x[1:]

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t[1:] * 10


def test_a_view_of_the_input_has_the_tangent_that_jvp_returns() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(double([1.0, 2.0]), double([1.0, 3.0]))
        y = Tail.apply(x)
        assert tangent(y) == [30.0] and tangent(y * 2) == [60.0]
        with pytest.raises(NotImplementedError, match="returned in the memory of its input"):
            y.mul_(2)
        x.mul_(2)
        with pytest.raises(RuntimeError, match=r"written since: .*clone\(\) it first"):
            tangent(y)


def test_an_input_that_is_returned_becomes_a_new_tensor() -> None:
    class Same(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return None

    with forward_ad.dual_level():
        x = forward_ad.make_dual(double([1.0]), double([1.0]))
        y = Same.apply(x)
        assert y is not x and tangent(y) is None and tangent(x) == [1.0]
        assert tangent(y * 2) is None


def test_an_error_in_jvp_arrives_and_leaves_the_level_working() -> None:
    class Fails(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            raise KeyError("mine")

    with forward_ad.dual_level():
        x = forward_ad.make_dual(double([1.0]), double([1.0]))
        with pytest.raises(KeyError, match="mine"):
            Fails.apply(x)
        assert tangent(x * 3) == [3.0]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("create", [False, True])
def test_forward_over_reverse_through_saved_tensors(packed: bool, create: bool) -> None:
    import contextlib

    hooks = pa.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), pc.from_numpy)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(double([1.0, 2.0], requires_grad=True), double([1.0, -1.0]))
        with hooks if packed else contextlib.nullcontext():
            y = Cube.apply(x).sum()
        (g,) = pa.grad(y, x, create_graph=create)
        np.testing.assert_allclose(g.detach().numpy(), [3.0, 12.0])
        np.testing.assert_allclose(tangent(g), [6.0, -12.0])


def test_reverse_over_forward() -> None:
    x = double([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        y = Cube.apply(forward_ad.make_dual(x, double([1.0, -1.0])))
        (g,) = pa.grad(forward_ad.unpack_dual(y).tangent.sum(), x)
    assert g.tolist() == [6.0, -12.0]


def test_save_for_forward_takes_tensors() -> None:
    class Wrong(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_forward(1)
            return x

    with pytest.raises(TypeError, match="save_for_forward: tensors or None are required, got int"):
        Wrong.apply(double(1.0))
