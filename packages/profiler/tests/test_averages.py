"""Sums by name, shapes, stack, module and line, against sums that a loop makes."""

from __future__ import annotations

import sys
import types
from collections import defaultdict
from typing import Any

import pytest
from recordings import ACCELERATOR, Builder, many, nested

from plait_profiler._averages import EventAverage, EventList, key_averages
from plait_profiler._events import events
from plait_profiler._recording import Kind, Recording


def by_key(averages: EventList[EventAverage]) -> dict[str, EventAverage]:
    assert len({average.key for average in averages}) == len(averages)
    return {average.key: average for average in averages}


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_those_of_a_loop_over_events(seed: int) -> None:
    recording = nested(seed)
    expected: dict[Any, list[float]] = defaultdict(lambda: [0, 0.0, 0.0, 0, 0])
    for event in events(recording):
        separate = event.backward and event.category != "backward"
        key = (event.name, event.category, separate)
        around, within = event.cpu_parent, False
        while around is not None:
            also = around.backward and around.category != "backward"
            within |= (around.name, around.category, also) == key
            around = around.cpu_parent
        sums = expected[key]
        sums[0] += 1
        sums[1] += event.self_cpu_time_total if event.category != "step" else 0
        sums[2] += 0 if within else event.cpu_time_total
        sums[3] += event.self_cpu_memory_usage
        sums[4] += 0 if within else event.cpu_memory_usage
    averages = key_averages(recording)
    result = {
        (a.key.removesuffix(" (backward)"), a.category, a.key.endswith(" (backward)")): [
            a.count,
            a.self_cpu_time_total,
            a.cpu_time_total,
            a.self_cpu_memory_usage,
            a.cpu_memory_usage,
        ]
        for a in averages
    }
    assert result.keys() == expected.keys()
    for key, sums in expected.items():
        assert result[key] == pytest.approx(sums), key


def training_step() -> Recording:
    result = Builder()
    lines = [("/x/site-packages/plait_nn/linear.py", 9, "forward"), ("net.py", 12, "forward")]
    main = ("train.py", 3, "main")
    net, head = result.context("Net", lines[1], main), result.context("Net.head", *lines, main)
    loop = result.context("", main)
    shape: dict[str, Any] = {"inputs": (("float32", (4, 4), None), 2)}
    result.op("mul", 0, 10, context=net, link=1, operations=16, read=100, written=50, **shape)
    result.op("linear", 20, 60, context=head, link=2, operations=999, composite=True, **shape)
    result.op("mm", 25, 45, 1, context=head, link=2, operations=200, read=30, written=10)
    result.op("add", 46, 50, 1, context=head, operations=20)
    result.add(Kind.BACKWARD, "backward", 100, 200, context=loop)
    result.add(Kind.NODE, "MmBackward", 110, 150, depth=1, link=2)
    result.op("mm", 120, 140, 2, operations=400)
    result.add(Kind.NODE, "MulBackward", 150, 160, depth=1, link=1, status=-1)
    result.op("mul", 151, 155, 2, operations=16, status=-1, **shape)
    return result.build()


def test_forward_and_backward_are_apart() -> None:
    averages = by_key(key_averages(training_step()))
    assert list(averages) == [
        "mul", "linear", "mm", "add", "backward", "MmBackward", "mm (backward)", "MulBackward",
        "mul (backward)",
    ]  # fmt: skip
    assert averages["mm"].cpu_time_total == averages["mm (backward)"].cpu_time_total == 0.02
    assert [a.scope for a in averages.values()] == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert averages["MulBackward"].failures == averages["mul (backward)"].failures == 1
    assert averages["mul"].failures == 0
    assert averages["mul"].top_level == 1 and averages["mm"].top_level == 0


def test_operations_of_a_composite_are_those_of_its_calls() -> None:
    averages = by_key(key_averages(training_step()))
    assert averages["linear"].flops == 220
    assert averages["linear"].self_flops == 0
    assert averages["backward"].flops == 416
    assert averages["mul"].bytes == 150 and averages["linear"].bytes == 40
    total = key_averages(training_step()).total_average()
    assert (total.key, total.flops, total.bytes, total.count) == ("Total", 16 + 220 + 416, 190, 9)
    assert total.cpu_time_total == pytest.approx(0.15)
    assert averages["mm"].flop_rate == pytest.approx(200 / 20e-9)
    assert averages["mm"].bandwidth == pytest.approx(40 / 20e-9)


def test_an_operator_with_a_cost_is_not_counted_with_its_calls() -> None:
    result = Builder()
    result.add(Kind.RANGE, "step", 0, 20)
    result.op("attention", 1, 10, 1, operations=100)
    result.op("mm", 2, 5, 2, operations=60)
    averages = by_key(key_averages(result.build()))
    assert [averages[key].flops for key in ("step", "attention", "mm")] == [100, 100, 60]


def test_by_shape_and_by_stack() -> None:
    result = Builder()
    where = [result.context("", ("a.py", line, "f"), ("b.py", line // 2, "g")) for line in (2, 3)]
    for start, size, context in ((0, 4, 0), (10, 8, 0), (20, 8, 1), (30, 8, 1)):
        result.op(
            "exp", start, start + 5, context=where[context], inputs=(("float32", (size,), None),)
        )
    recording = result.build()
    assert [a.count for a in key_averages(recording)] == [4]
    shaped = key_averages(recording, group_by_input_shape=True)
    assert [(a.count, a.input_shapes) for a in shaped] == [(1, [[4]]), (3, [[8]])]
    assert "[[8]]" in shaped.table()
    stacked = key_averages(recording, group_by_stack_n=1)
    assert [(a.count, a.stack) for a in stacked] == [(2, ["a.py(2): f"]), (2, ["a.py(3): f"])]
    assert "a.py(3): f" in stacked.table()
    both = key_averages(recording, True, 2)
    assert [a.count for a in both] == [1, 1, 2]
    assert both[0].stack == ["a.py(2): f", "b.py(1): g"]


def test_by_signature() -> None:
    averages = by_key(key_averages(training_step(), by="signature"))
    assert averages["mul(float32[4, 4], 2)"].count == 1
    assert averages["mul (backward)(float32[4, 4], 2)"].failures == 1
    assert averages["add"].count == 1  # nothing is known of its arguments


def test_by_module_and_by_line() -> None:
    modules = by_key(key_averages(training_step(), by="module"))
    assert {key: (a.count, a.cpu_time_total) for key, a in modules.items()} == {
        "Net": (1, pytest.approx(0.05)),  # with what is within it
        "Net.head": (3, pytest.approx(0.04)),
        "(none) (backward)": (0, pytest.approx(0.05)),
        "Net (backward)": (1, pytest.approx(0.05)),
        "Net.head (backward)": (1, pytest.approx(0.04)),
    }
    assert modules["Net"].self_cpu_time_total == pytest.approx(0.01)
    assert modules["Net"].flops == 236
    assert modules["Net.head"].module_type == "head"
    lines = by_key(key_averages(training_step(), by="line"))
    assert lines["net.py(12): forward"].count == 4
    assert lines["net.py(12): forward (backward)"].cpu_time_total == pytest.approx(0.05)
    assert lines["train.py(3): main (backward)"].cpu_time_total == pytest.approx(0.1)


def test_a_module_that_ran_only_others() -> None:
    result = Builder()
    result.op("mul", 0, 4, context=result.context("Net.a.b"))
    modules = by_key(key_averages(result.build(), by="module"))
    assert {key: a.cpu_time_total for key, a in modules.items()} == dict.fromkeys(
        ("Net.a.b", "Net", "Net.a"), 0.004
    )


def test_work_on_devices() -> None:
    result = Builder()
    result.op("linear", 0, 9, composite=True)
    result.op("mm", 1, 5, 1, a=1, operations=50, device=ACCELERATOR)
    result.alloc(2, 1, 64, 2, device=ACCELERATOR)
    result.add(Kind.DEVICE, "mm", 4, 104, a=1, device=ACCELERATOR)
    recording = result.build()
    averages = by_key(key_averages(recording))
    assert averages["mm"].self_device_time_total == averages["linear"].device_time_total == 0.1
    assert averages["linear"].self_device_time_total == 0
    assert averages["linear"].device_memory_usage == averages["mm"].self_device_memory_usage == 64
    assert averages["mm"].cpu_memory_usage == 0
    assert averages["mm"].flop_rate == pytest.approx(50 / 100e-9)
    table = key_averages(recording).table(sort_by="self_cuda_time_total")
    assert "Self Device" in table and "Device Mem" in table
    assert table.splitlines()[3].startswith("mm ")


def test_steps_take_no_time_of_their_own() -> None:
    result = Builder()
    result.add(Kind.STEP, "ProfilerStep#1", 0, 60)
    result.add(Kind.STEP, "ProfilerStep#2", 60, 100)
    result.op("mul", 10, 20)
    averages = key_averages(result.build())
    assert averages[0].category == "step" and averages[0].cpu_time_total == 0.1
    assert (averages[0].key, averages[0].count) == ("ProfilerStep*", 2)
    assert averages[0].self_cpu_time_total == 0
    assert averages.self_cpu_time_total == 0.01


def test_the_table_and_its_errors() -> None:
    averages = key_averages(training_step())
    table = averages.table(sort_by="flops", row_limit=2, header="A step", time_unit="ms")
    lines = table.splitlines()
    assert lines[0] == "A step"
    assert lines[4].startswith("backward ") and "0.000ms" in lines[4]
    assert "7 more rows: row_limit" in table and "# Failed" in table and "GFLOP/s" in table
    top = averages.table(top_level_events_only=True)
    assert "linear" in top and "mm" not in top
    assert str(averages) == averages.table()
    assert repr(averages) == "<EventList of 9 averages>"
    assert "backward" in str(events(training_step()))
    for arguments, message in (
        ({"sort_by": "name"}, "`sort_by` must be one of cpu_time, .*; got 'name'"),
        ({"time_unit": "ns"}, "`time_unit` must be s, ms or us; got 'ns'"),
    ):
        with pytest.raises(ValueError, match=message):
            averages.table(**arguments)
    recording = training_step()
    with pytest.raises(
        ValueError, match="`by` must be one of name, signature, module, line; got 'op'"
    ):
        key_averages(recording, by="op")
    with pytest.raises(ValueError, match="`group_by_stack_n` must not be negative; got -1"):
        key_averages(recording, group_by_stack_n=-1)
    with pytest.raises(ValueError, match="by='line' cannot be combined with grouping"):
        key_averages(recording, True, by="line")
    with pytest.raises(TypeError, match="averages already"):
        averages.key_averages()


def test_what_was_dropped_is_said() -> None:
    recording = training_step()
    recording.dropped = {Kind.OP: 3, Kind.RANGE: 2, Kind.NODE: 0}
    assert key_averages(recording).dropped == 5
    assert "5 events were dropped, the oldest (3 OP, 2 RANGE)" in key_averages(recording).table()


def test_html_escapes_and_says_the_names_in_full() -> None:
    result = Builder()
    result.add(Kind.RANGE, "<b>", 0, 5)
    text = key_averages(result.build())._repr_html_()
    assert "&lt;b&gt;" in text and "<b>" not in text


def test_pandas_is_imported_only_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    averages = key_averages(training_step())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas: needs pandas"):
        averages.to_pandas()
    pandas = types.ModuleType("pandas")
    pandas.DataFrame = lambda data, columns: (data, columns)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    data, columns = averages.to_pandas()
    assert columns[0] == "key" and data["key"][0] == "mul" and data["flops"][1] == 220
    assert data["backward"] == [False] * 4 + [True] * 5
    assert len(events(training_step()).to_pandas()[0]["device_time"]) == 9


def test_an_empty_recording() -> None:
    recording = Builder().build()
    assert len(key_averages(recording)) == len(events(recording)) == 0
    assert key_averages(recording).total_average().count == 0
    assert "Self CPU time total: 0.000us" in key_averages(recording).table()
    assert len(key_averages(recording, by="module")) == 0


def test_a_large_recording() -> None:
    averages = key_averages(many(100_000), group_by_input_shape=True, group_by_stack_n=1)
    assert sum(a.count for a in averages) == 87_500
    one = key_averages(many(100_000))
    assert sum(a.self_cpu_time_total for a in averages) == pytest.approx(one.self_cpu_time_total)
