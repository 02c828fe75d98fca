"""What compare_programs.py says of programs that pass, differ, lack a name, fail and hang."""

from __future__ import annotations

import json
import math
import pathlib
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
sys.path.insert(0, str(PROGRAMS))
import compare_programs as run  # noqa: E402

sys.path.remove(str(PROGRAMS))

PRINTED = """
import json, os
import torch
x = torch.arange(6.0).reshape(2, 3)
with open(os.environ["PROGRAM_RECORD"], "w") as file:
    json.dump({"sum": {"kind": "exact", "values": [int(x.sum())]}}, file)
"""


def floats(*values: float, rtol: float = 1e-3) -> dict[str, object]:
    largest = max(abs(value) for value in values)
    norm = math.sqrt(sum(value * value for value in values))
    return {
        "kind": "float", "shape": [len(values)], "values": list(values),
        "largest": largest, "norm": norm, "rtol": rtol, "atol": 0.0,
    }  # fmt: skip


def on_plait(folder: pathlib.Path, text: str, limit: float = 300.0) -> run.Side:
    path = folder / "program.py"
    path.write_text(text)
    return run.run([sys.executable, *run.OURS, str(path)], limit)


def test_every_program_says_its_library_and_has_its_requirement() -> None:
    files = (PROGRAMS / "requirements.txt", PROGRAMS / "without_dependencies.txt")
    lines = [line for path in files for line in path.read_text().splitlines()]
    required = {line.partition("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    results = run.programs()
    assert len(results) >= 30
    for path in results:
        library, purpose = run.described(path)
        assert library.lower().replace("_", "-") in required, path.name
        assert purpose, path.name
        assert len(path.read_text().splitlines()) <= 120, path.name


def test_what_is_equal_within_its_tolerance_passes() -> None:
    theirs = {"loss": floats(1.0, 1000.0), "ids": {"kind": "exact", "shape": [1], "values": [3]}}
    ours = {"loss": floats(1.5, 1000.4), "ids": {"kind": "exact", "shape": [1], "values": [3]}}
    assert run.compare(ours, theirs) == ("pass", "")


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ({"a": floats(1.0, 2.01)}, "2.01, PyTorch 2.0"),
        ({"a": floats(1.0, math.nan)}, "nan, PyTorch 2.0"),
        ({"a": floats(1.0)}, "has shape [1], not [2]"),
        ({}, "`a` is not there"),
        ({"a": floats(1.0, 2.0), "b": floats(1.0)}, "`b` is PyTorch's not"),
        ({"a": {"kind": "text", "shape": [2], "values": ["x", "y"]}}, "`a` has x"),
    ],
)
def test_the_first_difference_is_told(ours: dict[str, object], said: str) -> None:
    result, detail = run.compare(ours, {"a": floats(1.0, 2.0)})
    assert result == "differs"
    assert said in detail


def test_a_program_runs_on_plait_and_its_record_is_read(tmp_path: pathlib.Path) -> None:
    side = on_plait(tmp_path, PRINTED)
    assert not side.error
    assert side.records == {"sum": {"kind": "exact", "values": [15]}}
    assert run.judge(side, side) == ("pass", "")


def test_a_name_that_is_not_there_is_missing(tmp_path: pathlib.Path) -> None:
    side = on_plait(tmp_path, "import torch\ntorch.no_such_name\n")
    result, detail = run.judge(side, run.Side(1.0, {"a": floats(1.0)}))
    assert result == "missing"
    assert "no_such_name" in detail


def test_errors_signals_and_hangs_are_rows(tmp_path: pathlib.Path) -> None:
    theirs = run.Side(1.0, {"a": floats(1.0)})
    side = on_plait(tmp_path, "raise ValueError('this and\\nthat')")
    assert run.judge(side, theirs) == ("fails", "ValueError: this and")
    side = on_plait(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert run.judge(side, theirs) == ("fails", "ended by signal SIGSEGV")
    side = on_plait(tmp_path, "import time; time.sleep(60)", limit=3.0)
    assert run.judge(side, theirs) == ("fails", "not done after 3 s")
    assert run.judge(side, run.Side(1.0, {}, "ImportError: x"))[0] == "not on PyTorch"


def test_equal_digits_and_the_largest_difference_of_losses_are_told() -> None:
    theirs = {
        "train_loss": floats(2.0, 4.0),
        "weight": floats(1.0, math.nan),
        "name": {"kind": "text"},
    }
    ours = {
        "train_loss": floats(2.0, 4.0012),
        "weight": floats(1.0, math.nan),
        "name": {"kind": "text"},
    }
    found = run.digits(ours, theirs)
    assert found.equal == 0.75
    assert found.losses == found.values == pytest.approx(0.0012 / 4)
    assert found.where == "train_loss"
    assert run.digits(theirs, theirs) == run.Digits(1.0, 0.0, 0.0, "train_loss")
    assert run.digits({}, {"ids": {"kind": "exact", "values": [3]}}) == run.Digits()
    assert run.digits({"a": floats(math.nan)}, {"a": floats(1.0)}).values == math.inf
    row = run.Row("one", "lib", "1.0", "does it", "pass", "", 1.5, 1.0, 7, 0.75, 3e-7, 2e-6, "x")
    assert "| 7: 75 % equal, losses 3e-07, values 2e-06 | 1.5 |" in run.table([row], "Today.")
    row.values, row.float64 = 2e-3, 3e-15
    assert ", values 2e-03 (`x`), in float64 3e-15 | 1.5 |" in run.table([row], "Today.")


def test_a_program_runs_in_float64_where_it_says_float32(tmp_path: pathlib.Path) -> None:
    program = """
import numpy as np, torch
from recording import array, record
layer = torch.nn.Linear(2, 2, dtype=torch.float32).float()
read = layer(torch.from_numpy(np.ones((1, 2), np.float32)))
record("dtypes", [str(x.dtype) for x in (read, array(0, 2), torch.ones(1, dtype=torch.float))])
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    side = run.run([sys.executable, *run.OURS, run.IN_FLOAT64, str(path)], 300.0)
    assert not side.error
    assert side.records["dtypes"]["values"] == ["torch.float64"] * 3


def test_the_table_has_a_line_for_each_program(tmp_path: pathlib.Path) -> None:
    rows = [
        run.Row("one", "lib", "1.0", "does it", "pass", "", 1.5, 1.0, 7),
        run.Row("two", "lib", "1.0", "does more", "fails", "ValueError: a|b", 1.5, 1.0, 7),
    ]
    text = run.table(rows, "Today.")
    assert text.startswith("Today. 2 programs: 1 fails, 1 pass.")
    assert "| lib 1.0 | `one`: does it | **pass** | 7 | 1.5 | 1.0 |  |  |  |" in text
    assert r"a\|b" in text
    assert json.dumps([run.dataclasses.asdict(row) for row in rows])


def test_rows_of_programs_that_ran_replace_older_ones(tmp_path: pathlib.Path) -> None:
    names = [path.stem for path in run.programs()[:2]]
    records = tmp_path / "records.json"
    old = [run.Row(name, "lib", "1.0", "does it", "fails", "ValueError") for name in names]
    run.save(records, "Today.", [*old, run.Row("removed", "lib", "1.0", "", "pass")])
    run.save(records, "Today.", [run.Row(names[0], "lib", "1.1", "does it", "pass")])
    results = {row.program: row.result for row in run.merge(records, [])}
    assert results == {names[0]: "pass", names[1]: "fails"}


def test_memory_is_that_of_the_process(tmp_path: pathlib.Path) -> None:
    little = on_plait(tmp_path, "pass").mib
    program = "import time\ntext = bytearray(200_000_000)\ntime.sleep(1)"
    assert on_plait(tmp_path, program).mib > little + 150
