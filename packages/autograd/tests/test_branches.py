"""Several threads in one pass: the same bits, the same errors, all memory freed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plait_abi
import plait_autograd as pa
import plait_core as pc

SIDE = 140  # large enough to be worth a thread


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = pc.get_num_threads()
    yield
    pc.set_num_threads(before)


def leaves(n: int) -> list[Any]:
    generator = pc.Generator().manual_seed(0)
    return [
        pc.randn(SIDE, SIDE, dtype=pc.float64, generator=generator, requires_grad=True)
        for _ in range(n)
    ]


def joined(xs: list[Any]) -> Any:
    """Branches that meet at several nodes, so that the order of sums matters."""
    parts = [pc.linalg.inv(x) @ xs[0] for x in xs] + [x.softmax(1) for x in xs]
    return (pc.stack(parts) * pc.stack(parts[::-1])).sum()


def gradients(width: int, function: Callable[[list[Any]], Any]) -> list[bytes]:
    pc.set_num_threads(width)
    xs = leaves(5)
    function(xs).backward()
    return [x.grad.numpy().tobytes() for x in xs]


@pytest.mark.parametrize("width", [2, 3, 8])
def test_bits_do_not_depend_on_threads(width: int) -> None:
    assert gradients(width, joined) == gradients(1, joined)


def test_branches_run_on_several_threads() -> None:
    """Each derivative waits for the other: on one thread this would never end."""
    pc.set_num_threads(2)
    barrier, calls = threading.Barrier(2, timeout=240), set()

    def product(*_: Any) -> Any:
        if threading.get_ident() not in calls and len(calls) < 2:
            calls.add(threading.get_ident())
            barrier.wait()
        return NotImplemented  # plait's own kernel goes on

    y = pc.stack([pc.linalg.inv(x) for x in leaves(2)]).sum()
    with plait_abi.kernel("mm", product):
        y.backward()
    assert len(calls) == 2 and not barrier.broken


def test_derivatives_of_different_operators_do_not_wait_for_each_other() -> None:
    """A product uses all threads itself, which it could not beside a short derivative."""
    pc.set_num_threads(2)
    widths = []

    def product(*_: Any) -> Any:
        widths.append(pc.get_num_threads())  # 1 beside another derivative
        return NotImplemented

    xs = leaves(2)
    y = pc.stack([xs[0] @ xs[1], xs[0].softmax(1)]).sum()
    with plait_abi.kernel("mm", product):
        y.backward()
    assert widths == [2, 2]


def test_errors_are_raised_in_order_and_gradients_are_complete_afterwards() -> None:
    pc.set_num_threads(2)
    xs = leaves(4)
    inner = [x * 2 for x in xs]
    y = pc.stack([pc.linalg.inv(each) for each in inner]).sum()
    spoiled = [each.exp() for each in inner]
    z = pc.stack(spoiled).sum()
    spoiled[1].detach().zero_()
    with pytest.raises(RuntimeError, match=r"exp: .*overwritten"):
        z.backward()
    y.backward(retain_graph=True)
    first = [x.grad.clone() for x in xs]
    y.backward()
    assert all(bool((x.grad == 2 * g).all()) for x, g in zip(xs, first, strict=True))
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_values_are_freed_by_the_pass() -> None:
    pc.set_num_threads(2)
    xs = leaves(6)
    pa.grad(joined(xs), xs)
    before = pc.memory_stats()["live_bytes"]
    for _ in range(3):
        y = joined(xs)
        y.backward()
        for x in xs:
            x.grad = None
        assert pc.memory_stats()["live_bytes"] - before < 64  # y itself
        del y
