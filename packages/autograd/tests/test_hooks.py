"""Hooks of tensors, of nodes, and after accumulation."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc


def leaf(*values: float) -> pc.Tensor:
    return pc.tensor(list(values), requires_grad=True)


def test_the_order_of_all_hooks_is_that_of_pytorch() -> None:
    log: list[Any] = []
    x = leaf(1.0, 2.0)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: (log.append(("y first", g.tolist())), g * 2)[1])
    y.register_hook(lambda g: log.append(("y second", g.tolist())))
    x.register_hook(lambda g: (log.append(("x", g.tolist())), g + 1)[1])
    y.grad_fn.register_prehook(lambda gs: (log.append(("pre", gs[0].tolist())), (gs[0] * 10,))[1])
    y.grad_fn.register_hook(lambda gi, go: log.append(("post", gi[0].tolist(), go[0].tolist())))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("acc", p.grad.tolist(), p is x)))
    y.sum().backward()
    assert log == [
        ("y first", [1.0, 1.0]),
        ("y second", [2.0, 2.0]),
        ("pre", [2.0, 2.0]),
        ("post", [60.0, 60.0], [20.0, 20.0]),
        ("x", [60.0, 60.0]),
        ("acc", [61.0, 61.0], True),
    ]
    assert y.grad.tolist() == [2.0, 2.0]  # after the hooks of y, before those of its node
    assert x.grad.tolist() == [61.0, 61.0]


def test_a_hook_sees_the_complete_gradient_once() -> None:
    calls: list[list[float]] = []
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: calls.append(g.tolist()))
    (y * 3 + y * 4).backward()
    assert calls == [[7.0]]


def test_hooks_change_the_results_of_grad() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g * 5)
    x.register_hook(lambda g: g * 7)
    gy, gx = pa.grad(y.sum(), [y, x])
    assert gy.tolist() == [5.0, 5.0]
    assert gx.tolist() == [70.0, 70.0]
    assert x.grad is None


def test_hooks_of_results_beyond_the_first() -> None:
    x = leaf(1.0, 3.0, 2.0)
    values, _ = x.sort()
    a, b = x.split([1, 2])
    b.register_hook(lambda g: g * 100)
    values.register_hook(lambda g: g * 10)
    (a.sum() + b.sum() + values.sum()).backward()
    assert x.grad.tolist() == [11.0, 110.0, 110.0]


def test_an_in_place_operator_leaves_the_hook_with_the_old_value() -> None:
    calls: list[list[float]] = []
    x = leaf(1.0, 2.0)
    y = x * 1
    y.register_hook(lambda g: calls.append(g.tolist()))
    y.mul_(5)
    y.sum().backward()
    assert calls == [[5.0, 5.0]]


def test_a_removed_hook_is_not_called_and_keeps_nothing_alive() -> None:
    x = leaf(1.0)
    calls: list[int] = []
    handle = x.register_hook(lambda g: calls.append(1))
    x.sum().backward()
    handle.remove()
    handle.remove()
    x.sum().backward()
    with x.register_hook(lambda g: calls.append(2)):
        x.sum().backward()
    x.sum().backward()
    assert calls == [1, 2]
    late = (x * 2).register_hook(print)  # the node is gone already
    late.remove()


def test_hooks_can_be_added_and_removed_while_they_run() -> None:
    x = leaf(1.0)
    calls: list[str] = []

    def once(g: pc.Tensor) -> None:
        calls.append("once")
        handle.remove()
        x.register_hook(lambda g: calls.append("new"))

    handle = x.register_hook(once)
    x.sum().backward()
    x.sum().backward()
    assert calls == ["once", "new"]


def test_a_pass_within_a_hook() -> None:
    x, w = leaf(2.0), leaf(3.0)

    def inner(g: pc.Tensor) -> pc.Tensor:
        with pa.enable_grad():
            (w * w).sum().backward()
        return g * w.grad

    x.register_hook(inner)
    (x * 5).sum().backward()
    assert w.grad.tolist() == [6.0]
    assert x.grad.tolist() == [30.0]


def test_hooks_are_recorded_with_create_graph_and_only_then() -> None:
    x = leaf(3.0)
    modes: list[bool] = []

    def hook(g: pc.Tensor) -> pc.Tensor:
        modes.append(pa.is_grad_enabled())
        return g * x

    y = x * x
    x.register_hook(hook)
    (first,) = pa.grad(y, x, create_graph=True)
    assert first.tolist() == [18.0]  # 2x * x
    (second,) = pa.grad(first, x)
    assert second.tolist() == [36.0]  # 4x, and the hook again: times x
    assert modes == [True, False]


def test_node_hooks_get_none_for_inputs_without_gradient() -> None:
    calls: list[Any] = []
    x = leaf(1.0)
    y = x * pc.tensor([2.0])
    y.grad_fn.register_hook(lambda gi, go: calls.append([g is None for g in gi]))
    y.backward()
    assert calls[0][0] is False
    assert x.grad.tolist() == [2.0]


def test_post_accumulate_hook_may_take_the_gradient_away() -> None:
    x = leaf(1.0, 2.0)

    def step(p: pc.Tensor) -> None:
        with pa.no_grad():
            p -= p.grad
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 0.5).sum().backward()
    assert x.tolist() == [0.5, 1.5]
    assert x.grad is None


def test_backward_inputs_accumulates_with_hooks_into_leaves_and_others() -> None:
    calls: list[list[float]] = []
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    w.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad.tolist()))
    for _ in range(2):
        h = x * w
        (h * h).sum().backward(inputs=[w, h])
        assert h.grad.tolist() == [6.0, 16.0]
    assert x.grad is None
    assert calls == [[6.0, 32.0], [12.0, 64.0]]
    h = x * w
    pa.backward((h * h).sum(), inputs=[w])
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (lambda g: pc.ones(3), pc.ShapeError, r"shape \(2,\); got \(3,\)"),
        (lambda g: pc.ones(2, dtype=pc.float64), TypeError, "float32, or None; got float64"),
        (lambda g: "text", TypeError, "tensors or None are required"),
        (lambda g: 1 / 0, ZeroDivisionError, "division by zero"),
    ],
)
def test_what_a_hook_must_not_do(answer: Any, error: type[Exception], text: str) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(answer)
    with pytest.raises(error, match=text):
        y.sum().backward()
    assert x.grad is None
    x.sum().backward()  # the failure left no mark
    assert x.grad.tolist() == [1.0, 1.0]


def test_errors_of_registration() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="register_hook: the tensor must require grad"):
        pc.ones(1).register_hook(print)
    with pytest.raises(RuntimeError, match="a leaf that requires grad is required"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError, match="a callable is required, got int"):
        x.register_hook(3)  # type: ignore[arg-type]
    y = x * 2
    y.grad_fn.register_prehook(lambda gs: ())
    with pytest.raises(RuntimeError, match="None or 1 gradients; got 0"):
        y.backward()
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: 5)
    with pytest.raises(RuntimeError, match="gradients; got int"):
        y.backward()


def test_a_prehook_may_stop_the_gradient() -> None:
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda gs: (None,))
    (y + x).sum().backward()
    assert x.grad.tolist() == [1.0]


def test_metadata_lives_with_the_node() -> None:
    y = leaf(1.0) * 2
    y.grad_fn.metadata["name"] = "twice"
    gc.collect()
    assert y.grad_fn.metadata == {"name": "twice"}
    assert y.grad_fn is not None
    assert (y * 3).grad_fn.next_functions[0][0].metadata["name"] == "twice"


def test_hooks_of_a_function() -> None:
    class Double(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(1.0)
    y = Double.apply(x)
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_hook(lambda gi, go: (gi[0] + go[0],))
    y.backward()
    assert x.grad.tolist() == [30.0]
    assert y.grad_fn.name() == "DoubleBackward"
