"""Events as objects, made from rows."""

from __future__ import annotations

from recordings import ACCELERATOR, Builder, many

from plait_profiler._events import events
from plait_profiler._recording import Kind


def test_an_event_has_pytorchs_names() -> None:
    output = Builder()
    here = output.context("Net", ("net.py", 12, "forward"))
    inputs = (("float32", (2, 3), None), 2.5, [("float32", (4,), None)])
    output.add(Kind.RANGE, "step", 1000, 9000, thread=7)
    output.op(
        "mul", 2000, 4000, 1, thread=7, context=here, link=5, inputs=inputs, operations=6, a=3
    )
    output.op("add", 5000, 5500, 1, thread=7, status=-2)
    output.add(Kind.DEVICE, "mul", 3000, 13000, a=3, device=ACCELERATOR + 1)
    output.add(Kind.NODE, "MulBackward", 20000, 21000, link=5, thread=8)
    result = events(output.build())
    step, mul, add, node = result
    assert [event.key for event in result] == ["step", "mul", "add", "MulBackward"]
    assert step.cpu_children == [mul, add] and mul.cpu_parent is step
    assert step.cpu_parent is None and mul.cpu_children == []
    assert (step.thread, step.process, step.scope, step.is_user_annotation) == (7, 1, 7, True)
    assert mul.time_range.start == mul.start == 2.0 and mul.time_range.elapsed_us() == 2.0
    assert (mul.cpu_time_total, step.self_cpu_time_total) == (2.0, 5.5)
    assert mul.input_shapes == [[2, 3], [], [[4]]]
    assert mul.concrete_inputs == [None, 2.5, None]
    assert add.input_shapes is None
    assert (mul.flops, mul.module, mul.stack) == (6, "Net", ["net.py(12): forward"])
    assert node.stack == mul.stack and node.scope == 1
    assert [event.kind for event in result] == [Kind.RANGE, Kind.OP, Kind.OP, Kind.NODE]
    assert mul.sequence_nr == node.sequence == 5
    assert add.sequence is None and add.sequence_nr == -1
    assert (mul.failed, add.failed) == (False, True)
    assert [tuple(kernel) for kernel in mul.kernels] == [("mul", 1, 10.0)]
    assert step.device_time_total == mul.self_device_time_total == 10.0
    assert step.self_device_time_total == 0.0
    assert "mul" in repr(mul) and "2.000us" in repr(mul)
    assert not (mul.is_async or mul.is_remote or mul.is_legacy)


def test_memory_of_events() -> None:
    result = Builder()
    result.op("outer", 0, 10)
    result.alloc(1, 1, 100, 1)
    result.op("inner", 2, 8, 1)
    result.alloc(3, 2, 30, 2)
    result.free(4, 2, 30, 2)
    result.alloc(5, 3, 7, 2)
    outer, inner = events(result.build())
    assert (outer.cpu_memory_usage, outer.self_cpu_memory_usage) == (107, 100)
    assert (inner.cpu_memory_usage, inner.self_cpu_memory_usage) == (7, 7)
    assert outer.device_memory_usage == outer.self_device_memory_usage == 0


def test_events_of_all_threads_are_in_the_order_of_their_begins() -> None:
    output = Builder()
    for start, thread in ((5, 1), (1, 2), (3, 1), (4, 2)):
        output.op(f"at {start}", start, start, thread=thread)
    result = events(output.build())
    assert [event.name for event in result] == ["at 1", "at 3", "at 4", "at 5"]
    assert [event.name for event in result[1:3]] == ["at 3", "at 4"]
    assert result[-1] is result[3]


def test_events_are_made_when_they_are_looked_at() -> None:
    result = events(many(100_000))
    assert len(result) == 87_500
    assert len(result._items._made) == 0  # type: ignore[attr-defined]
    assert result[5].cpu_parent is not None
    assert len(result._items._made) == 2  # type: ignore[attr-defined]
