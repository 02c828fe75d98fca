"""One hook for the gradients of several tensors."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc


def leaf(*values: float) -> Any:
    return pc.tensor(list(values), requires_grad=True)


def texts(gradients: Any) -> list[Any]:
    return [None if g is None else g.tolist() for g in gradients]


def test_mode_all_waits_for_the_last_gradient_and_gives_none_for_unreached_tensors() -> None:
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    calls: list[Any] = []
    hidden = x * 5
    handle = pa.graph.register_multi_grad_hook(
        (x, hidden, y, z), lambda gradients: calls.append(texts(gradients))
    )
    (hidden * y).backward()
    (x * 2).backward()
    assert calls == [[[10.0], [2.0], [5.0], None], [[2.0], None, None, None]]
    handle.remove()
    handle.remove()
    (y * 2).backward()
    assert len(calls) == 2


def test_grad_counts_only_the_requested_inputs() -> None:
    x, y = leaf(1.0), leaf(2.0)
    calls: list[Any] = []
    pa.graph.register_multi_grad_hook((x, y), lambda gradients: calls.append(texts(gradients)))
    pa.grad((x * y).sum(), x)
    assert calls == [[[2.0], None]]


def test_mode_any_is_called_once_in_a_pass() -> None:
    x, y = leaf(1.0), leaf(2.0)
    calls: list[Any] = []
    pa.graph.register_multi_grad_hook((x, y), lambda g: calls.append(g.tolist()), mode="any")
    for _ in range(100):
        (x * y).backward()
    assert len(calls) == 100


def test_a_pass_within_a_pass_counts_for_itself() -> None:
    x, y = leaf(1.0), leaf(2.0)
    calls: list[Any] = []
    pa.graph.register_multi_grad_hook((x, y), lambda gradients: calls.append(texts(gradients)))
    inner = x * 7 + y * 8
    outer = x * y
    outer.register_hook(lambda g: inner.backward())
    outer.backward()
    assert sorted(calls) == [[[2.0], [1.0]], [[7.0], [8.0]]]


def test_passes_of_several_threads_do_not_mix() -> None:
    x, y = leaf(1.0), leaf(2.0)
    calls: list[Any] = []
    pa.graph.register_multi_grad_hook((x, y), lambda gradients: calls.append(texts(gradients)))

    def run(k: int) -> None:
        for _ in range(50):
            pa.backward(x * k + y * (k * 100))

    threads = [threading.Thread(target=run, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 150
    assert all(b == [a[0] * 100] for a, b in calls)


def test_passes_that_fail_leave_a_bounded_number_of_gradients() -> None:
    x, y = leaf(1.0), leaf(2.0)

    def fail(g: Any) -> None:
        raise KeyError("hook")

    pa.graph.register_multi_grad_hook((x, y), lambda gradients: None)
    y.register_hook(fail)
    gc.collect()
    before = pc.memory_stats()["live_bytes"]
    for _ in range(30):
        with pytest.raises(KeyError, match="hook"):
            (x * pc.ones(10_000) + y).sum().backward()
        x.grad = None
    assert pc.memory_stats()["live_bytes"] - before < 9 * 40_000


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: ((x,), print, "some"), ValueError, '`mode` must be "all" or "any", got'),
        (lambda x: ((x, 3), print, "all"), TypeError, "tensor 1 must be a tensor, got int"),
        (lambda x: ((x, x.detach()), print, "any"), RuntimeError, "tensor 1 must require grad"),
        (lambda x: ((x,), 3, "any"), TypeError, "`fn` must be callable, got int"),
    ],
)
def test_errors(call: Any, kind: type[Exception], text: str) -> None:
    tensors, fn, mode = call(leaf(1.0))
    with pytest.raises(kind, match=f"register_multi_grad_hook: {text}"):
        pa.graph.register_multi_grad_hook(tensors, fn, mode=mode)


def test_no_tensors_no_calls() -> None:
    handle = pa.graph.register_multi_grad_hook((), lambda gradients: pytest.fail("called"))
    leaf(1.0).backward()
    handle.remove()
