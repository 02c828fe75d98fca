"""Gradients that are made where a caller wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc
from plait_autograd import checkpointing

Loss = Callable[[Any, Any], Any]
N = 24  # squared 2304 bytes: places smaller than 1 KiB are copied to

LOSSES: dict[str, Loss] = {
    "product of matrices": lambda a, b: (a @ b).sin().sum(),
    "two results of one size": lambda a, b: (a * b).sum(),
    "one leaf twice": lambda a, b: (a * a + b).sum(),
    "several parts": lambda a, b: (a[:4] * b[:4]).sum() + (a[2:] * 3).sum() + b.sum(),
    "transposed": lambda a, b: (a.t() @ b.t()).square().sum(),
    "expanded": lambda a, b: (a.sum() * b).sum(),
    "the leaf itself": lambda a, b: a.sum() + (a * b).sum(),
}


def leaves() -> tuple[Any, Any]:
    pc.manual_seed(0)
    return pc.randn(N, N).requires_grad_(), pc.randn(N, N).requires_grad_()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_gradients_are_the_same_in_places(loss: Loss) -> None:
    expected = leaves()
    loss(*expected).backward()
    inputs = leaves()
    buffer = pc.full((2 * N * N,), 7.0)
    places = [buffer[i * N * N : (i + 1) * N * N].view(N, N) for i in range(2)]
    for leaf, place in zip(inputs, places, strict=True):
        pa.graph.set_gradient_place(leaf, place)
    for _ in range(2):
        for leaf in inputs:
            leaf.grad = None
        loss(*inputs).backward()
        for leaf, place, other in zip(inputs, places, expected, strict=True):
            assert leaf.grad.data_ptr() == place.data_ptr()
            assert leaf.grad.tolist() == other.grad.tolist() == place.tolist()


def test_a_second_pass_adds_where_the_gradient_is() -> None:
    a, b = leaves()
    place = pc.zeros(N, N)
    pa.graph.set_gradient_place(a, place)
    (a @ b).sum().backward()
    once = place.clone()
    (a @ b).sum().backward()
    assert place.tolist() == (once + once).tolist()


def test_grad_and_recorded_passes_leave_places_alone() -> None:
    a, b = leaves()
    place = pc.full((N, N), 7.0)
    pa.graph.set_gradient_place(a, place)
    (result,) = pa.grad((a @ b).sum(), [a])
    assert result.data_ptr() != place.data_ptr()
    (a @ b).square().sum().backward(create_graph=True)
    assert a.grad.requires_grad
    assert place.tolist() == pc.full((N, N), 7.0).tolist()


def test_a_place_ends() -> None:
    a, b = leaves()
    place = pc.full((N, N), 7.0)
    pa.graph.set_gradient_place(a, place)
    pa.graph.set_gradient_place(a, None)
    (a @ b).sum().backward()
    assert place[0, 0] == 7.0


def test_leaves_of_other_layouts_and_odd_addresses() -> None:
    a = pc.randn(N, N).t().requires_grad_()
    b = pc.randn(N, N).requires_grad_()
    buffer = pc.zeros(2 * N * N + 1)
    places = [buffer[1 + i * N * N : 1 + (i + 1) * N * N].view(N, N) for i in range(2)]
    pa.graph.set_gradient_place(a, places[0])
    pa.graph.set_gradient_place(b, places[1])
    (a @ b).sum().backward()
    other, more = a.detach().clone().requires_grad_(), b.detach().clone().requires_grad_()
    (other @ more).sum().backward()
    assert places[0].tolist() == other.grad.tolist()
    assert places[1].tolist() == more.grad.tolist()


def test_bad_places() -> None:
    a, _ = leaves()
    with pytest.raises(ValueError, match=r"shape, dtype and device.*\(24, 2\)"):
        pa.graph.set_gradient_place(a, pc.zeros(N, 2))
    with pytest.raises(ValueError, match="not require grad"):
        pa.graph.set_gradient_place(a, pc.zeros(N, N, requires_grad=True))
    with pytest.raises(ValueError, match="leaf"):
        pa.graph.set_gradient_place(a * 2, pc.zeros(N, N))


def test_hooks_and_checkpoints_use_other_memory() -> None:
    a, b = leaves()
    expected = leaves()

    def block(x: Any) -> Any:
        return (x @ a).sin() @ b

    (((expected[0] @ expected[0]).sin() @ expected[1]) @ expected[0]).square().sum().backward()
    place = pc.full((N, N), 7.0)
    other = pc.full((N, N), 7.0)
    pa.graph.set_gradient_place(a, place)
    pa.graph.set_gradient_place(b, other)
    references = []

    def unpack(x: Any) -> Any:
        references.append(x + 0)
        return references[-1]

    with pa.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = checkpointing.checkpoint(block, a, use_reentrant=False)
        loss = (y @ a).square().sum()
    loss.backward()
    assert a.grad.tolist() == place.tolist() == expected[0].grad.tolist()
    assert b.grad.tolist() == other.tolist() == expected[1].grad.tolist()
    pointers = {place.data_ptr(), other.data_ptr()}
    assert references and not pointers & {x.data_ptr() for x in references}
