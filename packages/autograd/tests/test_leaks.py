"""Cycles through the graph leave nothing behind once Python's collector has run."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc

N = 50_000


def leaf() -> pc.Tensor:
    return pc.ones(N, requires_grad=True)


def live() -> int:
    gc.collect()
    return int(pc.memory_stats()["live_bytes"])


def keeps(attribute: Callable[[Any], Any], saved: bool = False) -> Any:
    class Keeps(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            ctx.kept = attribute(y)
            if saved:
                ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return Keeps


def function_with_its_output() -> None:
    keeps(lambda y: y).apply(leaf())


def function_with_its_output_in_a_list() -> None:
    y = keeps(lambda y: [{"y": y}], saved=True).apply(leaf())
    assert y.grad_fn is not None


def function_with_its_output_behind_another() -> None:
    (keeps(lambda y: [y]).apply(leaf()) * 2).sum()


def keeps_in_backward(keep: Callable[[Any], None]) -> Any:
    class Keeps(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            ctx.y = y
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            keep(ctx)
            return g * 2

    return Keeps


def function_that_keeps_its_output_in_backward() -> None:
    keeps_in_backward(lambda ctx: setattr(ctx, "again", ctx.y)).apply(leaf()).sum().backward()


def function_that_keeps_its_saved_output_in_backward() -> None:
    keep = keeps_in_backward(lambda ctx: setattr(ctx, "again", ctx.saved_tensors))
    keep.apply(leaf()).sum().backward()


def hook_of_a_leaf() -> None:
    x = leaf()
    x.register_hook(lambda g: g * x)
    (x * 2).sum().backward()


def hook_after_accumulation() -> None:
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda p: x)


def hook_of_a_result() -> None:
    y = leaf() * 2
    y.register_hook(lambda g: y * g)
    (y * y).sum().backward()


def hook_that_never_ran() -> None:
    y = leaf() * 2
    y.register_hook(lambda g: y * g)
    (y * y).sum()


def hook_without_a_way_to_clear_it() -> None:
    y = leaf() * 2
    y.register_hook(y.mul)  # a bound method has no tp_clear


def hook_of_a_node() -> None:
    y = leaf().exp()
    y.grad_fn.register_hook(lambda gi, go: (y,))
    y.grad_fn.register_prehook(lambda go: (y,))


def grad_fn_on_the_tensor_itself() -> None:
    y = leaf().exp()
    y.node = y.grad_fn
    y.me = y


def metadata_with_the_tensor() -> None:
    y = leaf().exp()
    y.grad_fn.metadata["y"] = [y]


def metadata_with_the_node() -> None:
    node = leaf().exp().grad_fn
    node.metadata["node"] = node


def gradient_with_its_tensor() -> None:
    x = leaf()
    (x * x).sum().backward()
    x.grad.of = x


def an_exception_that_keeps_frames() -> None:
    def fails(g: pc.Tensor) -> None:
        big = g * 2
        raise ValueError(big.shape)

    x = leaf()
    x.register_hook(fails)
    try:
        (x * x).sum().backward()
    except ValueError as error:
        reference = error  # a cycle: error -> traceback -> frame -> kept
        assert reference.__traceback__ is not None


def an_exception_in_a_function() -> None:
    class Fails(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            ctx.error = ValueError("mine")
            raise ctx.error

    with pytest.raises(ValueError, match="mine"):
        Fails.apply(leaf()).sum().backward()


def a_checkpoint_that_is_dropped() -> None:
    y = pa.checkpoint(lambda x: (x * 2).exp(), leaf())
    y.register_hook(lambda g: y)


def hooks_of_saved_tensors() -> None:
    with pa.graph.saved_tensors_hooks(lambda t: [t], lambda packed: packed[0]):
        y = leaf().exp()
    y.register_hook(lambda g: y)


CASES = [
    function_with_its_output,
    function_with_its_output_in_a_list,
    function_with_its_output_behind_another,
    function_that_keeps_its_output_in_backward,
    function_that_keeps_its_saved_output_in_backward,
    hook_of_a_leaf,
    hook_after_accumulation,
    hook_of_a_result,
    hook_that_never_ran,
    hook_without_a_way_to_clear_it,
    hook_of_a_node,
    grad_fn_on_the_tensor_itself,
    metadata_with_the_tensor,
    metadata_with_the_node,
    gradient_with_its_tensor,
    an_exception_that_keeps_frames,
    an_exception_in_a_function,
    a_checkpoint_that_is_dropped,
    hooks_of_saved_tensors,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_nothing_is_left(case: Callable[[], None]) -> None:
    case()
    before = live()
    for _ in range(3):
        case()
    assert live() == before


def test_the_collector_does_not_free_objects_in_use() -> None:
    calls: list[int] = []

    class Keeps(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            ctx.kept = [y, {"a": 1}]
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert ctx.kept[1] == {"a": 1}
            return g * 2

    x = pc.ones(3, requires_grad=True)
    y = Keeps.apply(x)
    y.note = {"b": 2}
    reference = y
    y.register_hook(lambda g: calls.append(len(reference.note)))
    y.grad_fn.metadata["c"] = {"d": 3}
    z = (y * y).sum()
    for _ in range(3):
        gc.collect()
    assert y.grad_fn.metadata == {"c": {"d": 3}}
    del y
    for _ in range(3):
        gc.collect()
    z.backward()
    assert calls == [1]
    assert x.grad.tolist() == [8.0, 8.0, 8.0]


def test_hooks_survive_when_only_the_graph_holds_them() -> None:
    calls: list[list[float]] = []

    def result() -> pc.Tensor:
        y = pc.ones(2, requires_grad=True) * 2
        y.register_hook(lambda g: calls.append((g * y).tolist()))
        return (y * 3).sum()

    loss = result()
    for _ in range(3):
        gc.collect()
    loss.backward()
    assert calls == [[6.0, 6.0]]


def test_a_step_leaves_nothing() -> None:
    w = pc.ones(1000, requires_grad=True)
    w.register_hook(lambda g: g * 1)

    def step() -> None:
        y = (w * 2).tanh()
        y.register_hook(lambda g: g + 0)
        y.sum().backward()
        w.grad = None

    step()
    gc.disable()  # no cycle is made at all
    try:
        before = pc.memory_stats()["live_bytes"]
        for _ in range(200):
            step()
        assert pc.memory_stats()["live_bytes"] == before
    finally:
        gc.enable()
