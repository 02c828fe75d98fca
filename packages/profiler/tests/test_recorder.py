"""What the recorder writes: rows, signatures, links, contexts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_core as pc
from plait_profiler import Kind, Recording, profile, record_function


def names(recording: Recording, kind: Kind = Kind.OP) -> list[str]:
    rows = recording.rows[recording.rows["kind"] == kind]
    return [recording.signatures[each].name for each in rows["signature"]]


def signature(recording: Recording, name: str) -> Any:
    [result] = [each for each in recording.signatures if each.name == name]
    return result


def test_rows_are_nested_in_time() -> None:
    x = pc.ones(3)
    with profile() as prof, record_function("outer"):
        with record_function("inner"):
            x + x
        x * x
    rows = prof.recording().rows
    assert rows["depth"].tolist() == [0, 1, 2, 1]
    assert prof.recording().parents().tolist() == [-1, 0, 1, 0]
    ends = rows["start"] + rows["duration"]
    assert ends[0] >= ends[3] >= ends[1] >= ends[2]


def test_a_signature_has_the_arguments_that_change_the_cost() -> None:
    x = pc.ones(4, 6)
    with profile() as prof:
        for _ in range(3):
            x.sum(1)
        x.sum(0)
        x.t().exp()
        x.exp_()
        pc.cat([x, x])
    recording = prof.recording()
    sums = [each for each in recording.signatures if each.name == "sum"]
    assert len(sums) == 2
    assert {each.inputs[1] for each in sums} == {(0,), (1,)}
    assert signature(recording, "exp").inputs[0] == ("float32", (6, 4), (1, 6))
    assert signature(recording, "exp_").written == 4 * 24
    tensor = ("float32", (4, 6), None)
    assert signature(recording, "cat").inputs[0] == [tensor, tensor]
    assert signature(recording, "cat").outputs == (("float32", (8, 6), None),)
    assert names(recording).count("sum") == 4


def test_costs_are_those_of_a_call() -> None:
    x, row = pc.ones(8, 16), pc.ones(16).expand(8, 16)
    with profile() as prof:
        x + row
    add = signature(prof.recording(), "add")
    assert add.operations == 8 * 16
    assert add.read == 4 * (8 * 16 + 16)  # what is expanded is read once
    assert add.written == 4 * 8 * 16


def test_a_call_that_fails_has_its_status() -> None:
    with profile() as prof, pytest.raises(Exception, match="mm"):
        pc.mm(pc.ones(2, 3), pc.ones(2, 3))
    recording = prof.recording()
    [failed] = recording.rows[recording.rows["status"] < 0]
    assert recording.signatures[failed["signature"]].name == "mm"


def test_memory_events_have_bytes_and_addresses() -> None:
    with profile(profile_memory=True) as prof:
        x = pc.ones(1000)
        address = x.data_ptr()
        del x
    rows = prof.recording().rows
    allocation = rows[(rows["kind"] == Kind.ALLOC) & (rows["b"] == address)]
    free_rows = rows[(rows["kind"] == Kind.FREE) & (rows["b"] == address)]
    assert allocation["a"].tolist() == free_rows["a"].tolist() == [4000]
    assert allocation["start"][0] < free_rows["start"][0]
    reserved = prof.recording().reserved
    assert len(reserved) >= 2
    assert all(size >= 0 for _, size in reserved)


def test_memory_that_was_not_allocated_is_not_freed() -> None:
    lent = pc.from_numpy(np.ones(1000))
    with profile(profile_memory=True) as prof:
        new = pc.from_numpy(np.ones(1000))
        shapes = pc.ones(1000, device="meta")
        del lent, new, shapes
        pc.randn(1000)
    rows = prof.recording().rows
    assert rows["a"][rows["kind"] == Kind.FREE].tolist() == [4000]


def test_stacks_are_lines_of_the_program() -> None:
    def inner(x: Any) -> None:
        x + x

    x = pc.ones(2)
    with profile(with_stack=True) as prof:
        inner(x)
    recording = prof.recording()
    [row] = recording.rows
    stack = recording.contexts[row["context"]].stack
    assert [line[2] for line in stack[:2]] == ["inner", "test_stacks_are_lines_of_the_program"]
    assert stack[0][0] == __file__
    assert stack[0][1] == inner.__code__.co_firstlineno + 1


def test_threads_are_told_apart() -> None:
    x = pc.ones(2)

    def work() -> None:
        for _ in range(100):
            x + x

    threads = [threading.Thread(target=work) for _ in range(4)]
    with profile() as prof:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    _, counts = np.unique(prof.recording().rows["thread"], return_counts=True)
    assert counts.tolist() == [100] * 4


def test_the_oldest_events_make_room_and_are_counted() -> None:
    x = pc.ones(2)
    with profile(capacity=1) as prof:
        for _ in range(30000):
            x + x
        x.exp()
    recording = prof.recording()
    assert names(recording)[-1] == "exp"
    assert len(recording.rows) + recording.dropped[Kind.OP] == 30001
    assert recording.dropped[Kind.OP] > 0


# `operator new` calls a function once, at the first request of so many bytes.
CALLING_NEW = """
#include <stdlib.h>
static size_t least;
static void (*function)(void);
void call_at(size_t bytes, void (*f)(void)) { least = bytes; function = f; }
void *_Znwm(size_t bytes) {
  void (*f)(void) = function;
  if (f && bytes >= least) {
    function = NULL;
    f();
  }
  return malloc(bytes ? bytes : 1);
}
"""
WHILE_ANOTHER_ENDS = """
import ctypes
import plait_core as pc
from plait_profiler import profile
x, count = pc.ones(2), 30000

def begin_another():
    with profile(capacity=1):
        for _ in range(count):
            x + x

call = ctypes.CFUNCTYPE(None)(begin_another)
prof = profile()
prof.start()
for _ in range(count):
    x + x
# the memory for its rows, before they are copied
ctypes.CDLL(None).call_at(ctypes.c_size_t(64 * count), call)
prof.stop()
print(len(prof.recording().rows), dict(prof.recording().dropped))
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_profile_that_begins_while_another_ends_leaves_its_events(tmp_path: Path) -> None:
    source, library = tmp_path / "new.c", tmp_path / "new.so"
    source.write_text(CALLING_NEW)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    preloaded = [str(library), *os.environ.get("LD_PRELOAD", "").split()]  # a sanitizer's
    out = subprocess.run(
        [sys.executable, "-c", WHILE_ANOTHER_ENDS],
        env={**os.environ, "LD_PRELOAD": " ".join(preloaded)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (out.stdout, out.stderr) == ("30000 {}\n", "")


def test_profiles_side_by_side_have_their_own_times_and_kinds() -> None:
    x = pc.ones(2)
    with profile() as outer:
        x + x
        with profile(profile_memory=True) as inner:
            x * x
        x - x
    assert names(outer.recording()) == ["add", "mul", "sub"]
    assert names(inner.recording()) == ["mul"]
    assert Kind.ALLOC not in outer.recording().rows["kind"]
    assert Kind.ALLOC in inner.recording().rows["kind"]


def test_a_range_that_was_open_before_is_not_recorded() -> None:
    prof = profile()
    with record_function("before"):
        prof.start()
        pc.ones(2)
    prof.stop()
    assert names(prof.recording()) == ["ones"]
    with profile() as later:
        pc.zeros(2)
    assert later.recording().rows["depth"].tolist() == [0]


def test_ranges_may_be_entered_again_and_end_with_errors() -> None:
    part = record_function("part")
    with profile() as prof, pytest.raises(KeyError), part, part:
        raise KeyError
    assert prof.recording().rows["depth"].tolist() == [0, 1]
    assert (prof.recording().rows["status"] < 0).all()
    with pytest.raises(RuntimeError, match="not entered"):
        part.__exit__(None, None, None)


def test_a_range_that_another_thread_ends() -> None:
    part = record_function("part")
    with profile() as prof:
        part.__enter__()

        def end() -> None:
            with record_function("of the thread"):
                part.__exit__(None, None, None)
                with record_function("inner"):
                    pass

        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
        with record_function("later"):
            pass
    recording = prof.recording()
    depths = {
        recording.signatures[row["signature"]].name: int(row["depth"]) for row in recording.rows
    }
    assert depths["of the thread"] == 0
    assert depths["inner"] == 1
    assert depths["later"] == 1  # where it began, the range is open for ever


def test_any_range_of_the_abi_is_seen() -> None:
    with profile() as prof, plait_abi.Range("waiting", 128):
        pass
    assert names(prof.recording(), Kind.DATA) == ["waiting"]
    with pytest.raises(ValueError, match="kind"):
        plait_abi.Range("other", 1)


def test_nothing_is_watched_when_no_profile_runs() -> None:
    assert not plait_abi.observed(0xFFFF)
    with profile():
        assert plait_abi.observed(int(Kind.OP))
        assert not plait_abi.observed(int(Kind.ALLOC))
    assert not plait_abi.observed(0xFFFF)
