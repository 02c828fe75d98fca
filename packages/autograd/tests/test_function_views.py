"""Function: outputs that share memory with an input."""

from __future__ import annotations

import pytest

import plait_autograd as pa
import plait_core as pc


def leaf(*values: float):
    return pc.tensor(list(values), dtype=pc.float64, requires_grad=True)


def function_with(forward):
    class Viewing(pa.Function):
        @staticmethod
        def backward(ctx, g):
            return g * 10

    Viewing.forward = staticmethod(forward)
    return Viewing


FORWARDS = {
    "the input": lambda ctx, x: x,
    "a view": lambda ctx, x: x.view(-1),
    "a part": lambda ctx, x: x[:],
    "detached": lambda ctx, x: x.detach(),
    "a view of it": lambda ctx, x: x.detach().view(-1),
}


WRITES = {
    "itself": lambda z: z.mul_(2),
    "a part": lambda z: z[1:].mul_(2),
    "composite": lambda z: z.clamp_(0, 1),
    "setitem": lambda z: z.__setitem__(0, 1),
    "strided": lambda z: pc.as_strided(z, (2,), (1,)).mul_(2),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("forward", FORWARDS.values(), ids=FORWARDS)
@pytest.mark.parametrize("of_leaf", [False, True])
def test_an_output_in_the_memory_of_the_input_cannot_be_written(forward, write, of_leaf):
    x = leaf(1, 2, 3)
    y = x if of_leaf else x * 1
    z = function_with(forward).apply(y)
    with pytest.raises(RuntimeError, match=r"returned by a Function.*clone\(\)"):
        write(z)
    assert y.tolist() == [1, 2, 3]
    z.sum().backward()
    assert x.grad.tolist() == [10, 10, 10]


@pytest.mark.parametrize("forward", FORWARDS.values(), ids=FORWARDS)
def test_an_output_in_the_memory_of_the_input_is_invalid_after_a_write_to_it(forward):
    x = leaf(1, 2, 3)
    y = x * 1
    z = function_with(forward).apply(y)
    part = z[1:]
    used = z * 2
    y.mul_(3)
    for stale in (z, part):
        with pytest.raises(RuntimeError, match=r"later written in place.*clone\(\)"):
            (stale * 2).sum()
    used.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [20, 20, 20]
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_views_of_an_output_that_is_a_view_go_through_the_function():
    x = leaf(1, 2, 3)
    z = function_with(lambda ctx, x: x.view(-1)).apply(x * 1)
    (z[1:].sum() + pc.as_strided(z, (2,), (1,)).sum() + z.view(3, 1).t().sum()).backward()
    assert x.grad.tolist() == [20, 30, 20]


def test_an_output_in_a_buffer_is_invalid_after_a_write_to_the_buffer():
    buffer = pc.zeros(3, dtype=pc.float64)

    def forward(ctx, x):
        buffer.copy_(x)
        return buffer[:]

    z = function_with(forward).apply(leaf(1, 2, 3))
    with pytest.raises(RuntimeError, match="returned by a Function"):
        z.mul_(2)
    buffer.zero_()
    with pytest.raises(RuntimeError, match="later written in place"):
        z.sum()


def test_an_output_with_memory_of_its_own_can_be_written():
    def forward(ctx, x):
        return (x * 2).view(-1)

    x = leaf(1, 2, 3)
    z = function_with(forward).apply(x)
    z.mul_(3)
    z[1:].mul_(2)
    z.sum().backward()
    assert x.grad.tolist() == [30, 60, 60]


@pytest.mark.parametrize("plain", [False, True])
def test_without_recording_a_returned_input_is_a_new_tensor(plain):
    x = pc.ones(3) if plain else leaf(1, 2, 3)
    with pa.no_grad():
        y = function_with(FORWARDS["the input"]).apply(x)
        pair = function_with(lambda ctx, x: [x, 2]).apply(x)
    assert y is not x and not y.requires_grad and y.data_ptr() == x.data_ptr()
    assert x.requires_grad is not plain
    assert type(pair) is list and pair[0] is not x and pair[1] == 2


def test_without_recording_a_dirty_input_is_returned_itself():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = pc.ones(3)
    assert function_with(forward).apply(x) is x


def record_write(x):
    with pa.enable_grad():
        x.mul_(3)


@pytest.mark.parametrize(
    "change", [record_write, lambda x: x.detach_()], ids=["recorded", "detached"]
)
def test_a_call_depends_on_its_input_before_forward_changed_it(change):
    def forward(ctx, x):
        change(x)
        return x * 1

    x = leaf(1, 2, 3)
    function_with(forward).apply(x * 2).sum().backward()
    assert x.grad.tolist() == [20, 20, 20]
