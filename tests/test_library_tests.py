"""What library_tests.py says of tests that pass, fail, crash and hang, and how it groups them."""

from __future__ import annotations

import json
import pathlib
import random
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
sys.path.insert(0, str(PROGRAMS))
import library_tests as run  # noqa: E402

sys.path.remove(str(PROGRAMS))

SUITE = """
import os, socket, time
import pytest
import torch

@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_sum(dtype):
    assert torch.ones(3, dtype=dtype).sum() == 3

def test_wrong():
    raise ValueError("size 12 is wrong")

def test_wrong_too():
    raise ValueError("size 13 is wrong")

def test_left_out():
    pytest.skip("no reason")

def test_network():
    socket.create_connection(("192.0.2.1", 80), timeout=5)

def test_crash():
    os.abort()

def test_hang():
    time.sleep(600)
"""
LIBRARY = run.Library("strange", "strange", ("tests",), ("tests",))


def suite(tmp_path: pathlib.Path, text: str = SUITE) -> run.Suite:
    checkout = tmp_path / "checkout"
    (checkout / "tests").mkdir(parents=True)
    (checkout / "strange").mkdir()
    (checkout / "tests" / "test_all.py").write_text(text)
    folder = run.copy_tests(LIBRARY, checkout, tmp_path / "work")
    assert not (folder / "strange").exists()  # the library's sources stay behind
    return run.Suite(LIBRARY, folder, [sys.executable, *run.OURS], limit=10.0)


def test_each_test_gets_its_outcome_and_a_dead_process_is_replaced(tmp_path: pathlib.Path) -> None:
    tests = suite(tmp_path)
    names = tests.list_tests(random.Random(0))
    assert len(names) == 8
    done = tests.run([*names, "tests/test_all.py::test_of_pytorch_only"])
    results = {name.partition("::")[2]: outcome.result for name, outcome in done.items()}
    assert results == {
        "test_sum[torch.float32]": "passed",
        "test_sum[torch.int64]": "passed",
        "test_wrong": "failed",
        "test_wrong_too": "failed",
        "test_left_out": "skipped",
        "test_network": "failed",
        "test_crash": "crashed",
        "test_hang": "hung",
        "test_of_pytorch_only": "not found",
    }
    errors = {name.partition("::")[2]: outcome.error for name, outcome in done.items()}
    assert "without the network" in errors["test_network"]
    assert "SIGABRT" in errors["test_crash"]
    first = run.groups(done)[0]
    assert (first["count"], first["error"][:28]) == (2, "ValueError: size 12 is wrong")


PARTS = """
import time, unittest

class TestParts(unittest.TestCase):
    def test_parts(self):
        with self.subTest(part=1):
            pass
        time.sleep(600)
"""


def test_the_time_of_a_sample_begins_with_its_first_test(tmp_path: pathlib.Path) -> None:
    tests = suite(tmp_path, PARTS)
    # the part has passed, and the test has not ended
    assert tests.run(["tests/test_all.py::TestParts::test_parts"], seconds=0.2) == {}
    assert tests.spent >= 0.2  # else it would be 0: the process was ended while it started


DRAWING = """
import random
random.seed(1)

def test_0_fails_after_a_draw():
    assert random.random() == 0

def test_1_expects_the_second_number():
    own = random.Random(1)
    own.random()
    assert random.random() == own.random()
"""


def test_tests_get_the_same_random_numbers_on_both_sides(tmp_path: pathlib.Path) -> None:
    tests = suite(tmp_path, DRAWING)
    fails, expects = names = tests.list_tests(random.Random(0))
    theirs = tests.run(names)
    assert [theirs[name].result for name in names] == ["failed", "passed"]
    ours = run.run_on_plait(tests, [names], theirs, {})
    assert list(ours) == [expects] and ours[expects].result == "passed"
    again = run.run_on_plait(tests, [names], theirs, {expects: run.Outcome("failed")})
    assert again[expects].result == "failed"  # alone it draws the first number
    assert fails not in again


def test_a_sample_may_have_a_number_of_tests(tmp_path: pathlib.Path) -> None:
    total, groups, theirs = run.sample(suite(tmp_path, DRAWING), 3, None, 250, 1)
    assert total == 2 and [len(group) for group in groups] == [1]
    assert list(theirs) == groups[0]


def test_groups_name_files_without_the_folders_of_a_machine() -> None:
    text = "KeyError: in <module 'torch' (/of/one/machine/torch/__init__.py)> [package/file.py:3]"
    result = run.groups({"test": run.Outcome("failed", text)})[0]["error"]
    assert result == "KeyError: in <module 'torch' (__init__.py)> [package/file.py:3]"
    text = "CalledProcessError: Command '['/of/one/machine/bin/python', 'a.py']' failed [file.py:3]"
    result = run.groups({"test": run.Outcome("failed", text)})[0]["error"]
    assert result == "CalledProcessError: Command '['python', 'a.py']' failed [file.py:3]"


def test_a_test_is_found_by_its_place_where_its_id_differs(tmp_path: pathlib.Path) -> None:
    tests = suite(tmp_path)
    names = tests.list_tests(random.Random(0))
    assert tests.places[names[1]] == "tests/test_all.py::test_sum 2/2"
    theirs = "tests/test_all.py::test_sum[another text]"
    tests.places = {theirs: tests.places[names[1]]}
    assert [one.result for one in tests.run([theirs]).values()] == ["passed"]


def test_the_page_gets_the_table_of_all_libraries(tmp_path: pathlib.Path) -> None:
    page, file = tmp_path / "page.md", tmp_path / "records.json"
    page.write_text(f"before\n{run.MARKS[0]}\nold\n{run.MARKS[1]}\nafter\n")
    part = {
        "version": "1.0", "tests_of": "1.0", "date": "2026-01-02", "seconds": 60, "tests": 9,
        "run": 8, "passed_on_pytorch": 4, "passed": 3,
    }  # fmt: skip
    run.publish(part, "two", page, file)
    run.publish({**part, "passed": 4}, "one", page, file)
    lines = page.read_text().splitlines()
    assert lines[0] == "before" and lines[-1] == "after" and "old" not in lines
    assert [line.rpartition("| ")[0].rpartition("| ")[2].strip() for line in lines[4:6]] == [
        "4",
        "3",
    ]
    assert "75.0 %" in lines[5] and list(json.loads(file.read_text())) == ["one", "two"]
