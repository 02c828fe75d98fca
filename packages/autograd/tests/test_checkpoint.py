"""Checkpoints: same results, same gradients, less memory."""

from __future__ import annotations

from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc


def double(*values: float) -> pc.Tensor:
    return pc.tensor(list(values), dtype=pc.float64, requires_grad=True)


def test_values_gradients_and_random_numbers_are_the_same() -> None:
    w, x = double(2.0, 3.0), double(1.0, 2.0)
    calls: list[int] = []

    def f(x: pc.Tensor, scale: int = 1) -> pc.Tensor:
        calls.append(1)
        h = (x * w).exp()
        return (h * pc.rand(2, dtype=pc.float64)).sin() * scale

    def run(call: Any) -> list[Any]:
        pc.manual_seed(3)
        y = call(x, scale=3)
        grads = pa.grad(y.sum(), [x, w])
        return [y.tolist(), *[g.tolist() for g in grads], pc.rand(1).item()]

    plain = run(f)
    calls.clear()
    assert run(lambda *a, **k: pa.checkpoint(f, *a, **k)) == plain
    assert len(calls) == 2


def test_without_rng_state_random_numbers_differ() -> None:
    x = double(1.0)
    calls: list[float] = []

    def f(x: pc.Tensor) -> pc.Tensor:
        noise = pc.rand(1, dtype=pc.float64)
        calls.append(noise.item())
        return x.exp() * noise

    pa.checkpoint(f, x, preserve_rng_state=False).backward()
    pa.checkpoint(f, x).backward()
    assert calls[0] != calls[1]
    assert calls[2] == calls[3]


def test_nested_and_differentiated_twice() -> None:
    w = double(2.0, 3.0)

    def inner(x: pc.Tensor) -> pc.Tensor:
        return (x * w).tanh() * x

    def outer(x: pc.Tensor, nested: bool) -> pc.Tensor:
        y = pa.checkpoint(inner, x * 2) if nested else inner(x * 2)
        return (y * x).exp()

    def second(nested: bool) -> list[list[float]]:
        x = double(0.1, 0.2)
        y = pa.checkpoint(outer, x, True) if nested else outer(x, False)
        first = pa.grad(y.sum(), [x, w], create_graph=True)
        return [g.tolist() for g in pa.grad(sum(g.sum() for g in first), [x, w])]

    assert second(True) == second(False)


def test_the_graph_may_be_used_twice_if_it_is_kept() -> None:
    x = double(1.0)
    y = pa.checkpoint(lambda t: t.exp().sin(), x)
    y.backward(retain_graph=True)
    first = x.grad.item()
    y.backward()
    assert x.grad.item() == 2 * first
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_memory_between_the_passes_is_that_of_arguments_and_results() -> None:
    n, depth = 100_000, 10

    def f(x: pc.Tensor) -> pc.Tensor:
        for _ in range(depth):
            x = x.sin()
        return x

    def live_bytes_of(call: Any) -> int:
        x = pc.ones(n, requires_grad=True)
        before = pc.memory_stats()["live_bytes"]
        y = call(x)
        growth = pc.memory_stats()["live_bytes"] - before
        y.sum().backward()
        return growth // (4 * n)

    assert live_bytes_of(f) >= depth - 1
    assert live_bytes_of(lambda x: pa.checkpoint(f, x)) <= 2
    assert live_bytes_of(lambda x: pa.checkpoint_sequential([f, f, f], 3, x)) <= depth + 3

    def outer(x: pc.Tensor) -> pc.Tensor:
        return pa.checkpoint(f, pa.checkpoint(f, x))

    assert live_bytes_of(lambda x: pa.checkpoint(outer, x)) <= 2


def test_sequential_is_the_composition() -> None:
    x = double(0.3)
    steps = [pc.exp, pc.sin, pc.cos, pc.tanh, pc.exp]
    for segments in range(1, 6):
        y = pa.checkpoint_sequential(steps, segments, x)
        (g,) = pa.grad(y, x)
        z = pc.exp(pc.tanh(pc.cos(pc.sin(pc.exp(x)))))
        assert (y.item(), g.item()) == (z.item(), pa.grad(z, x)[0].item())
    with pytest.raises(ValueError, match=r"`segments` must be in \[1, 5\]; got 6"):
        pa.checkpoint_sequential(steps, 6, x)


def test_without_gradients_nothing_is_kept() -> None:
    calls: list[int] = []
    with pa.no_grad():
        y = pa.checkpoint(lambda t: (calls.append(1), t * 2)[1], double(1.0))
    assert not y.requires_grad
    assert calls == [1]


def test_hidden_inputs_and_several_results() -> None:
    w, x = double(3.0), double(2.0)
    h = x * 1

    def f(a: pc.Tensor, options: dict[str, Any]) -> tuple[pc.Tensor, int, pc.Tensor]:
        return a * w * h, options["n"], a.exp()

    y, n, z = pa.checkpoint(f, h, {"n": 4})
    (y + z).sum().backward()
    assert n == 4
    assert w.grad.tolist() == [4.0]
    assert x.grad.item() == pytest.approx(12.0 + 7.38905609893065)


def test_errors_name_the_fault() -> None:
    x = double(1.0, 2.0)
    state = {"n": 2}

    def changes(t: pc.Tensor) -> pc.Tensor:
        for _ in range(state["n"]):
            t = t.exp()
        return t

    y = pa.checkpoint(changes, x)
    state["n"] = 1
    with pytest.raises(RuntimeError, match="it saved 2 at first and 1 later"):
        y.sum().backward()

    size = [2]
    y = pa.checkpoint(lambda t: t[: size[0]].exp().sum(), x)
    size[0] = 1
    with pytest.raises(RuntimeError, match=r"number 0 was float64, shape \(2,\) at first"):
        y.backward()

    h = x * 1
    y = pa.checkpoint(pc.exp, h)
    with pa.no_grad():
        h.add_(1)
    with pytest.raises(RuntimeError, match="an argument was overwritten"):
        y.sum().backward()

    def fails(t: pc.Tensor) -> pc.Tensor:
        if state["n"] == 3:
            raise KeyError("second time")
        return t.exp()

    y = pa.checkpoint(fails, x)
    state["n"] = 3
    with pytest.raises(KeyError, match="second time"):
        y.sum().backward()
    with pytest.raises(TypeError, match="`function` must be callable"):
        pa.checkpoint(3, x)  # type: ignore[arg-type]
    assert (x * x).requires_grad


def test_a_pass_within_the_function() -> None:
    x = double(0.5, 1.5)
    calls: list[int] = []

    def force(t: Any) -> Any:
        calls.append(1)
        energy = (t**3).sin().sum()
        (g,) = pa.grad(energy, t, create_graph=True)
        return g * t

    def once(t: Any) -> Any:
        (g,) = pa.grad((t**3).sum(), t)
        return g * t.exp()

    for function in (force, once):
        (expected,) = pa.grad(function(x).sum(), x)
        (result,) = pa.grad(pa.checkpoint(function, x).sum(), x)
        assert result.tolist() == expected.tolist()
    calls.clear()
    y = pa.checkpoint(force, x)
    assert len(calls) == 2  # the pass within needed what it had just computed
    y.sum().backward()
    assert len(calls) == 3


def test_what_a_pass_within_the_function_computed_is_not_kept() -> None:
    x = pc.ones(10_000, dtype=pc.float64, requires_grad=True)

    def function(t: Any) -> Any:
        h = t
        for _ in range(10):
            h = h.sin()
        (g,) = pa.grad(h.sum(), t, create_graph=True)
        return g

    before = pc.memory_stats()["live_bytes"]
    y = pa.checkpoint(function, x)
    assert pc.memory_stats()["live_bytes"] - before <= 2 * 80_000
    y.sum().backward()


def test_contexts_of_both_calls() -> None:
    entered: list[str] = []

    class Note:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            entered.append(self.name)

        def __exit__(self, *_: object) -> None:
            entered.append(f"{self.name} over")

    y = pa.checkpoint(pc.exp, double(1.0), context_fn=lambda: (Note("first"), Note("again")))
    assert entered == ["first", "first over"]
    y.backward()
    assert entered[2:] == ["again", "again over"]


def test_the_check_can_be_left_out() -> None:
    scale = [pc.tensor([2.0], dtype=pc.float64)]
    x = double(1.0, 2.0)
    y = pa.checkpoint(lambda t: t * scale[0], x, determinism_check="none")
    scale[0] = pc.tensor([3.0, 4.0], dtype=pc.float64)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    with pytest.raises(ValueError, match="`determinism_check` must be"):
        pa.checkpoint(pc.exp, x, determinism_check="some")


def test_another_function_is_a_checkpoint_error() -> None:
    calls: list[int] = []

    def function(t: Any) -> Any:
        calls.append(1)
        return t.exp().sin() if len(calls) == 1 else t.exp()

    y = pa.checkpointing.checkpoint(function, double(1.0))
    with pytest.raises(pa.checkpointing.CheckpointError, match="it saved 2 at first and 1 later"):
        y.backward()


def test_what_the_second_call_saves_later_is_not_needed() -> None:
    calls: list[int] = []

    def function(t: Any) -> Any:
        calls.append(1)
        return t.exp() if len(calls) == 1 else t.exp().sin()

    x = double(1.0)
    pa.checkpoint(function, x).backward()  # as in PyTorch, which stops the second call there
    assert x.grad.item() == pytest.approx(2.718281828459045) and len(calls) == 2
