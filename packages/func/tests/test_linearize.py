"""`linearize`, and what the derivatives of functions refuse."""

from __future__ import annotations

from typing import Any

import pytest

import plait_core as pc
from plait_abi import operator
from plait_autograd import forward_ad
from plait_func import grad, jacfwd, jacrev, jvp, linearize, vjp, vmap
from plait_ops import specs
from plait_ops.samples.large import as_dtype, distinct_samples


def close(one: Any, two: Any, equal_nan: bool = False) -> bool:
    return one.shape == two.shape and pc.allclose(one, two, 1e-4, 1e-5, equal_nan)


def leaves(value: Any) -> list[Any]:
    values = value if isinstance(value, (tuple, list)) else [value]
    return [each for each in values if isinstance(each, pc.Tensor)]


def test_derivatives_are_those_of_forward_mode() -> None:
    """`jvp` differentiates the vjp at cotangents of 0, where its formula must have a derivative."""
    count = 0
    for spec in specs.all():
        if spec.internal or spec.unpredictable:
            continue
        for sample in distinct_samples(spec, 3):
            call = as_dtype(sample, lambda array, _: pc.from_numpy(array.copy()))
            x = call.args[0] if call.args else None
            if not isinstance(x, pc.Tensor) or not x.dtype.is_floating_point:
                continue

            def f(a: Any, name: str = spec.name, call: Any = call) -> Any:
                return operator(name)(a, *call.args[1:], **call.kwargs)

            direction = pc.linspace(-1, 1, x.numel(), dtype=x.dtype).reshape(x.shape)
            try:
                tangents = leaves(jvp(f, (x,), (direction,))[1])
            except Exception:  # it has no derivative, or writes its argument
                continue
            with forward_ad.dual_level():
                duals = leaves(f(forward_ad.make_dual(x, direction)))
                expected = [forward_ad.unpack_dual(each).tangent for each in duals]
            for one, two in zip(tangents, expected, strict=True):
                assert two is None or close(one.detach(), two, equal_nan=True), spec.name
            count += 1
    assert count > 500


def test_the_function_is_called_once_and_its_derivative_often() -> None:
    calls = []

    def f(a: Any, b: Any) -> Any:
        calls.append(1)
        return {"product": a["x"] * b, "sum": [a["x"].sum()], "constant": pc.ones(2)}

    x, y = pc.randn(3), pc.randn(3)
    value, push = linearize(f, {"x": x}, y)
    assert close(value["product"], x * y) and not value["product"].requires_grad
    for _ in range(2):
        s, t = pc.randn(3), pc.randn(3)
        result = push({"x": s}, t)
        assert close(result["product"], s * y + x * t) and close(result["sum"][0], s.sum())
        assert result["constant"].tolist() == [0, 0] and not result["product"].requires_grad
    assert len(calls) == 1


def test_it_agrees_with_jvp_and_composes() -> None:
    x, v = pc.randn(4), pc.randn(4)

    def f(a: Any) -> Any:
        return pc.stack([a.sin().sum(), (a * a).prod(), a[1] * a[2].exp()])

    value, push = linearize(f, x)
    expected = jvp(f, (x,), (v,))
    assert close(value, expected[0]) and close(push(v), expected[1])
    assert close(vmap(push)(pc.eye(4)).T, jacrev(f)(x))
    both = vmap(lambda a, t: linearize(f, a)[1](t))(pc.stack([x, 2 * x]), pc.stack([v, v]))
    assert close(both[0], expected[1]) and close(both[1], linearize(f, 2 * x)[1](v))
    # derivatives with respect to the tangent, and to where the first one is taken
    assert close(grad(lambda t: (push(t) ** 2).sum())(v), jacrev(f)(x).T @ (2 * push(v)))
    second = grad(lambda a: linearize(pc.sin, a)[1](v).sum())(x)
    assert close(second, -x.sin() * v)
    w = pc.ones(4, requires_grad=True)
    linearize(lambda a: a * w, x)[1](v).sum().backward()
    assert close(w.grad, v)


def test_results_do_not_keep_the_history_of_a_level_that_has_ended() -> None:
    x = pc.randn(3)
    _, push = linearize(pc.sin, x)
    _, pull = vjp(pc.sin, x)
    for function in (push, lambda t: pull(t)[0], lambda t: jvp(pc.sin, (x,), (t,))[1]):
        result = grad(lambda t, f=function: (f(t) ** 2).sum())(pc.ones(3))
        assert close(result, 2 * x.cos() ** 2) and not result.requires_grad


X = pc.ones(3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linearize(pc.sin, 1.0), RuntimeError, "leaf 0 of `primals` must be a tensor"),
        (lambda: linearize(pc.sin, pc.arange(3)), ValueError, "floating point or complex"),
        (lambda: linearize(lambda a: 1.0, X), RuntimeError, "only tensors, got float"),
        (lambda: linearize(pc.sin, X)[1](pc.ones(4)), RuntimeError, r"shape \(3,\) of the"),
        (lambda: linearize(pc.sin, X)[1](X.double()), RuntimeError, "the dtype .*float32"),
        (lambda: linearize(pc.sin, X)[1](X, X), RuntimeError, "must have the structure of"),
        (lambda: linearize(pc.sin, X)[1](1.0), RuntimeError, r"shape \(3,\) .*, got float"),
        (lambda: jvp(pc.sin, [X], [X]), RuntimeError, "`primals` must be a tuple, got list"),
        (lambda: jvp(pc.sin, (X,), (X, X)), RuntimeError, "must have the structure of"),
        (lambda: jvp(lambda: X, (), ()), RuntimeError, "at least one tensor"),
        (lambda: vjp(lambda a: (a, a), X)[1](X), RuntimeError, "`cotangents` must have the struct"),
        (lambda: vjp(pc.sin, X)[1](pc.ones(4)), RuntimeError, "leaf 0 of `cotangents`"),
        (lambda: vjp(lambda a: 1.0, X), RuntimeError, "vjp: `func` must return only tensors"),
        (lambda: grad(lambda a: a.sum())(pc.arange(3)), RuntimeError, "floating point or compl"),
        (lambda: grad(lambda a: a)(2.0), RuntimeError, "floating point or complex .*, got float"),
        (lambda: grad(pc.sum, argnums="a")(X), RuntimeError, "`argnums` must be an int"),
        (lambda: grad(pc.sum, argnums=(0, 0))(X), RuntimeError, "an argument twice"),
        (lambda: grad(pc.sum, has_aux=True)(X), RuntimeError, "a pair of its value and"),
        (lambda: jacrev(lambda a: 1.0)(X), RuntimeError, "only tensors, got float"),
        (lambda: jacfwd(pc.sin)(1.0), RuntimeError, "must be a tensor, got float"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
