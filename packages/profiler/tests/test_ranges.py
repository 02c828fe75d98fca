"""Ranges of several threads, nesting and full rings, without tensors."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from plait_profiler import ProfilerActivity, profile, record_function


def names(prof: profile) -> list[str]:
    return [event.name for event in prof.events()]


@pytest.mark.parametrize("name", ["plait_profiler._profile", "plait_profiler._range"])
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_nesting_and_times() -> None:
    with profile() as prof:
        for _ in range(2):
            with record_function("outer"):
                time.sleep(0.002)
                with record_function("inner"):
                    time.sleep(0.004)
    assert names(prof) == ["outer", "inner", "outer", "inner"]
    outer, inner = prof.events()[:2]
    assert inner.cpu_parent is outer
    assert outer.cpu_children == [inner]
    assert outer.start <= inner.start <= inner.end <= outer.end
    assert inner.cpu_time_total >= 4000
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total)
    by_name = {average.key: average for average in prof.key_averages()}
    assert by_name["outer"].count == by_name["inner"].count == 2
    assert by_name["outer"].cpu_time_total >= by_name["inner"].cpu_time_total >= 8000
    assert by_name["inner"].cpu_time == pytest.approx(by_name["inner"].cpu_time_total / 2)


def test_a_range_within_itself_counts_once() -> None:
    with profile() as prof, record_function("again"), record_function("again"):
        time.sleep(0.001)
    [average] = prof.key_averages()
    assert average.count == 2
    assert average.cpu_time_total == prof.events()[0].cpu_time_total
    assert average.self_cpu_time_total == pytest.approx(average.cpu_time_total)


def test_threads_have_timelines_of_their_own(tmp_path: Path) -> None:
    inside = threading.Barrier(3)

    def work(name: str) -> None:
        with record_function(name):
            inside.wait()

    with profile() as prof:
        threads = [threading.Thread(target=work, args=(f"worker {i}",)) for i in range(2)]
        for thread in threads:
            thread.start()
        with record_function("main"):
            inside.wait()
        for thread in threads:
            thread.join()
    assert sorted(names(prof)) == ["main", "worker 0", "worker 1"]
    assert len({event.thread for event in prof.events()}) == 3
    assert all(event.cpu_parent is None for event in prof.events())
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    complete = [line for line in trace["traceEvents"] if line["ph"] == "X"]
    assert {line["name"] for line in complete} == {"main", "worker 0", "worker 1"}
    for line in complete:
        assert line["pid"] == os.getpid()
        assert line["dur"] > 0
        assert line["cat"] == "user_annotation"
    labels = {
        line["tid"]: line["args"]["name"]
        for line in trace["traceEvents"]
        if line["name"] == "thread_name"
    }
    assert labels.keys() == {line["tid"] for line in complete}
    assert labels[os.getpid()] == "MainThread"


def test_a_decorated_function_runs_on_several_threads() -> None:
    @record_function("f")
    def f(x: int) -> int:
        """Doubles."""
        return 2 * x

    assert f.__doc__ == "Doubles."
    with profile() as prof:
        threads = [threading.Thread(target=f, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert f(3) == 6
    assert names(prof) == ["f"] * 5


def test_a_full_ring_drops_the_oldest() -> None:
    count = 20000
    with profile(capacity=1) as prof:
        for _ in range(count):
            with record_function("many"):
                pass
        with record_function("last"):
            pass
    result = names(prof)
    assert result[-1] == "last"
    dropped = prof.events().dropped
    assert dropped == count + 1 - len(result) > 0
    assert f"{dropped} events were dropped" in prof.key_averages().table()


def test_what_failed_says_so() -> None:
    with profile() as prof:
        with pytest.raises(KeyError), record_function("bad"):
            raise KeyError
        with record_function("good"):
            pass
    assert [event.failed for event in prof.events()] == [True, False]
    assert [average.failures for average in prof.key_averages()] == [1, 0]


def test_profiles_within_each_other() -> None:
    with profile() as outer:
        with record_function("a"):
            pass
        with profile() as inner, record_function("b"):
            pass
        with record_function("c"):
            pass
    assert names(outer) == ["a", "b", "c"]
    assert names(inner) == ["b"]


def test_events_that_begin_before_or_end_after_are_omitted() -> None:
    early, late = record_function("early"), record_function("late")
    early.__enter__()
    with profile() as prof:
        early.__exit__(None, None, None)
        with record_function("within"):
            pass
        late.__enter__()
    late.__exit__(None, None, None)
    assert names(prof) == ["within"]
    with profile() as again:
        pass
    assert names(again) == []


def test_a_profile_is_used_again_and_calls_back() -> None:
    calls: list[Any] = []
    prof = profile(on_trace_ready=calls.append, activities=[ProfilerActivity.CPU])
    for name in ("first", "second"):
        with prof, record_function(name):
            pass
    assert names(prof) == ["second"]
    assert calls == [prof, prof]


def test_the_table() -> None:
    with profile() as prof:
        for name, count in (("short", 3), ("a name that is much too long for its column", 1)):
            for _ in range(count):
                with record_function(name):
                    time.sleep(0.001 / count)
    table = prof.key_averages().table(sort_by="count", row_limit=1)
    lines = table.splitlines()
    assert lines[1].split("  ")[0] == "Name"
    assert lines[3].startswith("short")
    assert lines[3].endswith(" 3")
    assert "1 more rows" in table
    assert lines[5].startswith("Self CPU time total: ")
    cut = prof.key_averages().table(max_name_column_width=10)
    assert "a name ..." in cut
    assert len(prof.events().table(row_limit=-1).splitlines()) == 4 + 4 + 1


def test_what_is_refused() -> None:
    prof = profile()
    with pytest.raises(RuntimeError, match="no events: its block has not ended"):
        prof.events()
    with pytest.raises(RuntimeError, match="it was not started"):
        prof.stop()
    prof.start()
    with pytest.raises(RuntimeError, match="it runs already"), record_function("x"):
        prof.start()
    prof.stop()
    with pytest.raises(ValueError, match=r"`sort_by` must be one of .*; got 'name'"):
        prof.key_averages().table(sort_by="name")
    with pytest.raises(ValueError, match=r"`capacity` must be from 1 to .*; got 0"):
        profile(capacity=0)
    with pytest.raises(TypeError, match="members of ProfilerActivity; got 'cuda'"):
        profile(activities=["cuda"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="averages already"):
        prof.key_averages().key_averages()


def test_many_profiles_at_once() -> None:
    running = [profile() for _ in range(40)]
    for prof in running:
        prof.start()
    with record_function("seen by all"):
        pass
    for prof in running:
        prof.stop()
    assert all(names(prof) == ["seen by all"] for prof in running)


def test_events_are_compared_by_identity() -> None:
    with profile() as prof, record_function("x"), record_function("x"):
        pass
    a, b = prof.events()
    assert a != b
    assert a.cpu_memory_usage == 0
