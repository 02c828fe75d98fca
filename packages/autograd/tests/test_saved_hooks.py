"""Hooks of saved tensors."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc

hooks = pa.graph.saved_tensors_hooks


def test_what_is_saved_is_packed_once_and_unpacked_by_each_pass() -> None:
    packed: list[list[float]] = []
    unpacked: list[int] = []

    def pack(t: pc.Tensor) -> tuple[int, list[float]]:
        assert not pa.is_grad_enabled()
        packed.append(t.tolist())
        return len(packed) - 1, t.tolist()

    def unpack(entry: tuple[int, list[float]]) -> pc.Tensor:
        assert not pa.is_grad_enabled()
        unpacked.append(entry[0])
        return pc.tensor(entry[1])

    x = pc.tensor([1.0, 2.0], requires_grad=True)
    with hooks(pack, unpack):
        y = x * x
        z = (y * 3).exp()
    count = len(packed)
    (z * 2).sum().backward(retain_graph=True)
    assert len(packed) == count
    first = len(unpacked)
    assert first >= 2
    z.sum().backward()
    assert len(unpacked) == 2 * first
    with pytest.raises(RuntimeError, match="second time"):
        z.sum().backward()


def test_double_backward_goes_through_unpacked_tensors() -> None:
    x = pc.tensor([1.0, 2.0], dtype=pc.float64, requires_grad=True)

    def second(packed: bool) -> list[list[float]]:
        if packed:
            with hooks(lambda t: t * 2, lambda t: t / 2):
                y = x.exp() * x
        else:
            y = x.exp() * x
        (g,) = pa.grad(y.sum(), x, create_graph=True)
        (h,) = pa.grad(g.sum(), x)
        return [g.tolist(), h.tolist()]

    for a, b in zip(second(True), second(False), strict=True):
        assert a == pytest.approx(b, rel=1e-12)


def test_lists_of_tensors_find_their_own_edges() -> None:
    a = pc.tensor([2.0], dtype=pc.float64, requires_grad=True)
    b = pc.tensor([3.0], dtype=pc.float64, requires_grad=True)

    def f(a: Any, b: Any) -> Any:
        with hooks(lambda t: t, lambda t: t):
            return pc.stack([a * b, b, a * a]).prod(0)

    assert pa.gradgradcheck(f, (a, b))


def test_the_innermost_hooks_count_and_end_with_their_block() -> None:
    log: list[str] = []

    def log_hooks(name: str) -> Any:
        return hooks(lambda t: (log.append(name), t)[1], lambda t: t)

    x = pc.ones(1, requires_grad=True)
    with log_hooks("outer"):
        x.exp()
        with log_hooks("inner"):
            x.exp()
        x.exp()
    x.exp()
    assert log == ["outer", "inner", "outer"]
    with pytest.raises(ValueError, match="leave"), log_hooks("never"):
        raise ValueError("leave")
    x.exp()
    assert "never" not in log


def test_hooks_belong_to_their_thread() -> None:
    log: list[int] = []
    x = pc.ones(1, requires_grad=True)
    with hooks(lambda t: (log.append(1), t)[1], lambda t: t):
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
    assert log == []


def test_what_a_pack_hook_computes_is_not_packed() -> None:
    calls: list[int] = []

    def pack(t: pc.Tensor) -> pc.Tensor:
        calls.append(1)
        with pa.enable_grad():
            return (t.requires_grad_() * 2).exp().detach()

    x = pc.ones(1, requires_grad=True)
    with hooks(pack, lambda t: t):
        x.exp()
    assert calls == [1]


def test_writes_to_packed_tensors_are_not_checked() -> None:
    x = pc.tensor([1.0, 2.0], requires_grad=True)
    with hooks(lambda t: t.clone(), lambda t: t):
        y = x.exp()
    with pa.no_grad():
        y.zero_()
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([2.7182817, 7.389056])


class Square(pa.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * x
        ctx.save_for_backward(x, None, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, nothing, y = ctx.saved_tensors
        assert nothing is None
        return g * (2 * x + 0 * y)


@pytest.mark.parametrize("function", [Square.apply, lambda x: x.exp() * x])
def test_arguments_are_packed_as_they_are_and_results_without_history(function: Any) -> None:
    x = pc.tensor([3.0], requires_grad=True)
    calls: list[Any] = []
    with hooks(lambda t: (calls.append(t), t)[1], lambda t: t):
        y = function(x)
    assert any(t is x for t in calls) and not any(t is y for t in calls)
    assert any(not t.requires_grad for t in calls)
    (g,) = pa.grad(y, x, create_graph=True)
    assert g.requires_grad and x.grad is None and x.grad_fn is None
    y.backward()
    assert x.grad.tolist() == g.tolist()


def test_saved_tensors_of_functions_are_packed_too() -> None:
    packed: list[int] = []
    x = pc.tensor([3.0], dtype=pc.float64, requires_grad=True)
    with hooks(
        lambda t: (packed.append(1), t.tolist())[1], lambda v: pc.tensor(v, dtype=pc.float64)
    ):
        y = Square.apply(x)
    assert len(packed) == 2
    (g,) = pa.grad(y, x, create_graph=True)
    assert g.tolist() == [6.0]
    (h,) = pa.grad(g, x)
    assert h.tolist() == [2.0]


def test_errors_of_hooks() -> None:
    x = pc.ones(3, requires_grad=True)
    with pytest.raises(ZeroDivisionError), hooks(lambda t: 1 / 0, lambda t: t):
        x.exp()
    with hooks(lambda t: t, lambda t: 7):
        y, z = x.exp(), Square.apply(x)
    for result in (y, z):
        with pytest.raises(TypeError, match="unpack hook must return a tensor; got int"):
            result.sum().backward()
    with hooks(lambda t: t, lambda t: pc.ones(5)):
        y = x * x
    with pytest.raises(RuntimeError, match="broadcast"):
        y.sum().backward()
    with (
        pytest.raises(RuntimeError, match="pack hook wrote the tensor"),
        hooks(lambda t: t.add_(1), lambda t: t),
    ):
        x.exp()
    with pytest.raises(TypeError, match="`pack_hook` must be callable, got int"):
        hooks(1, lambda t: t)  # type: ignore[arg-type]
    assert x.exp().requires_grad


def test_packed_tensors_are_freed_by_the_pass() -> None:
    alive: set[int] = set()

    class Token:
        def __init__(self, t: pc.Tensor) -> None:
            self.t = t
            alive.add(id(self))

        def __del__(self) -> None:
            alive.discard(id(self))

    x = pc.ones(3, requires_grad=True)
    with hooks(Token, lambda token: token.t):
        y = x.exp().sum()
    assert alive
    y.backward()
    assert not alive


def test_hooks_can_be_disabled() -> None:
    refuse = pa.graph.disable_saved_tensors_hooks
    with refuse("outer"):
        with refuse("not here"), pytest.raises(RuntimeError, match="not here"):
            hooks(lambda t: t, lambda t: t).__enter__()
        with pytest.raises(RuntimeError, match="outer"), pa.graph.save_on_cpu():
            pass
    with hooks(lambda t: t, lambda t: t), pytest.raises(RuntimeError, match="late"), refuse("late"):
        pass
    with pa.graph.save_on_cpu(), pa.graph.save_on_cpu(pin_memory=True):
        pass


def test_mutation_of_saved_tensors() -> None:
    x = pc.full((2,), 3.0, requires_grad=True)
    with pa.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = (y**2).sum()
        y.sin_()
        z.backward()
        late = (x * x).sum()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(AssertionError, match="must run within it"):
        late.backward()
