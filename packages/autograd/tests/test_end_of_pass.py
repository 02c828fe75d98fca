"""Callbacks at the end of a backward pass, and the node that a pass is at."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc

at_end = pa.graph.at_end_of_pass


def leaf(*values: float) -> Any:
    return pc.tensor(list(values), requires_grad=True)


def hooked(hook: Callable[[], Any]) -> tuple[Any, Any]:
    """Return a leaf, and twice its value with a hook."""
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda gradient: hook())
    return x, y


def test_they_run_once_in_order_when_all_gradients_are_there() -> None:
    calls: list[Any] = []

    def hook() -> None:
        at_end(lambda: calls.append(("first", x.grad.tolist(), threading.get_ident())))
        at_end(lambda: (calls.append("second"), at_end(lambda: calls.append("last"))))
        at_end(lambda: calls.append("third"))
        calls.append("hook")

    x, y = hooked(hook)
    y.sum().backward()
    first = ("first", [2.0, 2.0], threading.get_ident())
    assert calls == ["hook", first, "second", "third", "last"]
    (y * y).sum().backward()
    assert calls.count("third") == 2


def test_a_gradient_of_inputs_is_there_already() -> None:
    x, y = hooked(lambda: at_end(lambda: calls.append((z.grad.tolist(), x.grad))))
    calls: list[Any] = []
    z = y * 3
    w = z * 1
    w.register_hook(lambda g: at_end(lambda: calls.append((z.grad.tolist(), x.grad))))
    pa.backward(w.sum(), inputs=[z])
    assert calls == [([1.0, 1.0], None)]
    w = z * 1
    w.register_hook(lambda g: at_end(lambda: calls.append((z.grad.tolist(), x.grad))))
    w.sum().backward(inputs=[z])
    assert calls[1:] == [([2.0, 2.0], None)]


def test_they_have_the_mode_of_the_pass() -> None:
    calls: list[bool] = []
    x, y = hooked(lambda: at_end(lambda: calls.append(pa.is_grad_enabled())))
    pa.grad(y.sum(), x, retain_graph=True)
    pa.grad(y.sum(), x, create_graph=True)
    assert calls == [False, True]


def test_an_inner_pass_has_its_own() -> None:
    calls: list[str] = []

    def hook() -> None:
        at_end(lambda: calls.append("outer"))
        with pa.enable_grad():
            _, inner = hooked(lambda: at_end(lambda: calls.append("inner")))
            inner.sum().backward()
        calls.append("hook")

    hooked(hook)[1].sum().backward()
    assert calls == ["inner", "hook", "outer"]


def test_a_pass_within_a_callback() -> None:
    calls: list[Any] = []

    def callback() -> None:
        with pa.enable_grad():
            z, inner = hooked(lambda: at_end(lambda: calls.append("inner")))
            inner.sum().backward()
        calls.append(z.grad.tolist())
        at_end(lambda: calls.append("outer"))

    hooked(lambda: at_end(callback))[1].sum().backward()
    assert calls == ["inner", [2.0, 2.0], "outer"]


def test_an_error_ends_the_pass_and_leaves_the_gradients() -> None:
    calls: list[str] = []

    def fail() -> None:
        raise KeyError("from the callback")

    x, y = hooked(lambda: (at_end(fail), at_end(lambda: calls.append("after"))))
    with pytest.raises(KeyError, match="from the callback"):
        y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and not calls
    assert pa.graph.running_pass() == 0


def test_a_pass_that_fails_calls_none() -> None:
    x, y = hooked(lambda: at_end(lambda: pytest.fail("called")))

    def fail(gradient: Any) -> None:
        raise ValueError("from the hook")

    x.register_hook(fail)
    with pytest.raises(ValueError, match="from the hook"):
        y.sum().backward()


def test_refusals() -> None:
    with pytest.raises(RuntimeError, match="during a backward pass only"):
        at_end(lambda: None)
    with pytest.raises(TypeError, match="a callable is required, got int"):
        at_end(3)  # type: ignore[arg-type]

    def run_in_thread() -> None:
        with pytest.raises(RuntimeError, match="this thread runs none"):
            at_end(lambda: None)
        done.append(True)

    def hook() -> None:
        thread = threading.Thread(target=run_in_thread)
        thread.start()
        thread.join()

    done: list[bool] = []
    hooked(hook)[1].sum().backward()
    assert done == [True]


def test_the_running_node() -> None:
    class Double(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            note("function")
            assert pa.graph.running_node() is ctx
            return gradient * 2

    calls: list[Any] = []

    def note(event: str) -> None:
        node = pa.graph.running_node()
        calls.append((event, None if node is None else node.name()))

    def unpack(tensor: Any) -> Any:
        note("unpack")
        return tensor

    x = leaf(1.0)
    with pa.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x.exp()
    y.register_hook(lambda g: note("tensor"))
    y.grad_fn.register_prehook(lambda g: note("before"))
    y.grad_fn.register_hook(lambda g, h: note("after"))
    x.register_hook(lambda g: note("leaf"))
    z = Double.apply(y)
    z.register_hook(lambda g: at_end(lambda: note("end")))
    z.backward()
    own = [(event, "ExpBackward") for event in ("tensor", "before", "unpack", "after")]
    assert calls == [
        ("function", "DoubleBackward"),
        *own,
        ("leaf", "AccumulateGrad"),
        ("end", None),
    ]
    assert pa.graph.running_node() is None


def test_hooks_of_a_leaf_s_node_come_after_those_of_its_gradient() -> None:
    x = leaf(1.0)
    calls: list[str] = []
    x.register_post_accumulate_grad_hook(lambda p: calls.append("gradient"))
    node = pa.graph.get_gradient_edge(x).node
    node.register_hook(lambda g, h: calls.append("node"))
    (x * 2).backward()
    assert calls == ["gradient", "node"]
