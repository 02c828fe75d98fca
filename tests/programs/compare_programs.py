"""Run each program on PyTorch and on plait, compare what they recorded, and write a table.

    compare_programs.py --pytorch PYTHON [--json FILE] [--page FILE] [NAME ...]

PYTHON is the interpreter of an environment with PyTorch and the libraries; this one has plait and
the libraries (environments.py makes both). A program is a file in a folder that is named after the
libraries' field; its docstring begins with the name of a distribution and a colon. It runs once as
`PYTHON FILE` and once as `python -m plait.torch FILE`, each in an empty folder. A program whose
numbers differ by more than float32 rounds usually runs once more on both, in float64
(in_float64.py). NAME is the beginning of a file's name or of `FIELD/NAME`; without one, all run.
--json keeps all rows: those of the programs that ran are replaced. --page replaces the table
between the marks of a page.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import datetime
import json
import math
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["Row", "Side", "compare", "judge", "main", "table"]

HERE = pathlib.Path(__file__).resolve().parent
MARKS = ("<!-- table of programs -->", "<!-- end of the table of programs -->")
ERROR = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Failure|MissingName|MissingModule)(?::.*)?$"
)
OURS = ["-m", "plait.torch"]
IN_FLOAT64 = str(HERE / "in_float64.py")
ROUNDING = 1e-4  # a larger relative difference is compared in float64
VERSIONS = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
)


@dataclasses.dataclass
class Side:
    """What one run of a program gave."""

    seconds: float
    records: dict[str, dict[str, Any]]
    error: str = ""
    mib: int = 0  # peak resident memory of the process


@dataclasses.dataclass
class Row:
    """A program's line in the table."""

    program: str
    library: str
    version: str
    what: str
    result: str
    detail: str = ""
    pytorch_seconds: float | None = None
    plait_seconds: float | None = None
    records: int = 0
    equal: float | None = None  # share of the floating numbers that have PyTorch's digits
    losses: float | None = None  # largest relative difference of a loss
    values: float | None = None  # largest relative difference of a floating number
    where: str = ""  # the record that has it
    float64: float | None = None  # the same in float64, of the records that differ by > ROUNDING
    field: str = ""
    date: str = ""
    pytorch_mib: int | None = None
    plait_mib: int | None = None


def programs() -> list[pathlib.Path]:
    """Return the files of all programs; the folder that each is in names its field."""
    return sorted(path for path in HERE.glob("*/*.py") if path.stem != "sitecustomize")


def described(path: pathlib.Path) -> tuple[str, str]:
    """Return the library and what the program does with it, from the docstring's beginning."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    library, colon, purpose = text.partition("\n\n")[0].partition(": ")
    if not colon:
        raise SystemExit(
            f"compare_programs.py: {path.name} does not begin with 'LIBRARY: what it does'"
        )
    return library, " ".join(purpose.split()).rstrip(".")


def last_error(text: str) -> str:
    """Return the line of a traceback's end that names the exception."""
    lines = text.strip().splitlines() or [""]
    places = [place for place, line in enumerate(lines) if ERROR.match(line)]
    if not places:
        return lines[-1]
    # a library that passes an error on says it after a colon, in the next line
    following = lines[places[-1] + 1 : places[-1] + 2] if lines[places[-1]].endswith(":") else []
    # without the paths of this machine
    return re.sub(r" ?\((?:/|[A-Z]:)[^)]*\)", "", " ".join([lines[places[-1]], *following]))


def run(command: list[str], limit: float) -> Side:
    """Run a program in an empty folder and return what it recorded and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record.json"
        work = pathlib.Path(folder) / "work"
        work.mkdir()
        environment = {
            **os.environ,
            "PROGRAM_RECORD": str(record),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])),
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(work / "hub"),
            "MPLBACKEND": "agg",
            "PYTHONWARNINGS": "ignore",
            "WANDB_MODE": "disabled",
        }
        begin = time.perf_counter()
        with open(pathlib.Path(folder) / "output", "w+", errors="replace") as output:
            process = subprocess.Popen(
                command,
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            status, peak = wait(process, limit)
            output.seek(0)
            error = last_error(output.read()) if status else ""
        if status is None:
            error = f"not done after {limit:.0f} s"
        elif status < 0:
            error = f"ended by signal {signal.Signals(-status).name}"
        seconds = time.perf_counter() - begin
        records = json.loads(record.read_text()) if record.exists() else {}
    return Side(seconds, records, error, peak)


def wait(process: subprocess.Popen[bytes], limit: float) -> tuple[int | None, int]:
    """Wait for a process; return its exit code, None past the limit, and its peak MiB of memory.

    What the system reports at the end counts the memory of the process that forked, too. So the
    peak is read while the process runs.
    """
    end, peak = time.monotonic() + limit, 0
    while process.poll() is None:
        peak = max(peak, peak_of(process.pid))
        if time.monotonic() > end:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None, 0
        time.sleep(0.02)
    return process.returncode, peak


def peak_of(pid: int) -> int:
    """Return the most MiB that a process has had in memory; 0 if it has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) // 1024 if found else 0


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """Return how far ``ours`` is from ``theirs``, as a multiple of what is allowed."""
    same = ours["kind"] == theirs["kind"] and ours.get("shape") == theirs.get("shape")
    if not same or len(ours["values"]) != len(theirs["values"]):
        return math.inf
    if theirs["kind"] != "float":
        return 0.0 if ours["values"] == theirs["values"] else math.inf
    allowed = theirs["rtol"] * theirs["largest"] + theirs["atol"]
    worst = 0.0
    if math.isfinite(theirs["norm"]) or math.isfinite(ours["norm"]):
        gap = abs(ours["norm"] - theirs["norm"])
        worst = gap / (allowed * max(1.0, math.prod(theirs["shape"]) ** 0.5))
    for one, two in zip(ours["values"], theirs["values"], strict=True):
        if one == two or (math.isnan(one) and math.isnan(two)):
            continue
        worst = max(worst, abs(one - two) / allowed)
    return math.inf if math.isnan(worst) else worst


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[str, str]:
    """Return `pass` or `differs`, and the first record that differs with both of its values."""
    for name in theirs:
        if name not in ours:
            return "differs", f"`{name}` is not there"
        separate = difference(ours[name], theirs[name])
        if separate > 1:
            one, two = ours[name], theirs[name]
            if one.get("shape") != two.get("shape"):
                return "differs", f"`{name}` has shape {one.get('shape')}, not {two.get('shape')}"
            pairs = zip(one["values"], two["values"], strict=False)
            first = max(pairs, key=lambda pair: _difference(*pair))
            return (
                "differs",
                f"`{name}` has {first[0]}, PyTorch {first[1]} ({separate:.2g} x allowed)",
            )
    more = [name for name in ours if name not in theirs]
    return ("differs", f"`{more[0]}` is PyTorch's not") if more else ("pass", "")


def _difference(one: Any, two: Any) -> float:
    if isinstance(one, str) or isinstance(two, str):
        return float(one != two)
    difference = abs(one - two)
    return math.inf if math.isnan(difference) else difference


@dataclasses.dataclass
class Digits:
    """How much of what was recorded is PyTorch's to the last digit.

    Differences are relative to the largest number of their record, or to what the program takes as
    0 if that is more. Without numbers they are None.
    """

    equal: float | None = None  # share of the floating numbers that are equal
    losses: float | None = None  # largest difference of a loss: a record whose name says so
    values: float | None = None  # largest difference of any number
    where: str = ""  # the record that has it


def digits(ours: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]]) -> Digits:
    """Return how near the records on plait, ``ours``, are to those on PyTorch."""
    same: list[bool] = []
    result = Digits()
    for name, record in theirs.items():
        if record["kind"] != "float" or name not in ours:
            continue
        scale = max(record["largest"], record["atol"]) or 1.0
        for one, two in zip(ours[name]["values"], record["values"], strict=False):
            same.append(one == two or (math.isnan(one) and math.isnan(two)))
            gap = 0.0 if same[-1] else abs(one - two) / scale
            gap = math.inf if math.isnan(gap) else gap
            if result.values is None or gap > result.values:
                result.values, result.where = gap, name
            if "loss" in name.lower():
                result.losses = max(gap, result.losses or 0.0)
    result.equal = sum(same) / len(same) if same else None
    return result


def judge(ours: Side, theirs: Side) -> tuple[str, str]:
    """Return a program's result and, unless it is `pass`, the reason."""
    if theirs.error:
        return "not on PyTorch", theirs.error
    if not ours.error:
        return compare(ours.records, theirs.records) if theirs.records else ("runs", "")
    named = ("AttributeError", "ImportError", "ModuleNotFoundError", "NotImplementedError")
    kind = ours.error.partition(":")[0].rpartition(".")[2]
    refused = "plait_torch: " in ours.error and "is not available" in ours.error
    absent = refused or "cannot import name" in ours.error
    result = "missing" if kind in named or absent else "fails"
    return result, ours.error


def versions(python: str) -> dict[str, str]:
    """Return the installed distributions of an interpreter, by their names in lower case."""
    text = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True)
    result = json.loads(text.stdout)
    return {str(name).lower().replace("_", "-"): version for name, version in result.items()}


def rows(programs: list[pathlib.Path], pytorch: str, limit: float) -> Iterator[Row]:
    """Run the programs and yield their rows, each printed as soon as it is known."""
    known = versions(pytorch), versions(sys.executable)
    now = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    skipped_file = pathlib.Path(pytorch).parents[1] / "skipped.json"
    skipped = json.loads(skipped_file.read_text()) if skipped_file.exists() else {}
    for path in programs:
        library, purpose = described(path)
        key = library.lower().replace("_", "-")
        row = Row(path.stem, library, known[0].get(key, ""), purpose, "not installed")
        row.field, row.date = path.parent.name, now
        if all(key in side for side in known):
            theirs = run([pytorch, str(path)], limit)
            ours = run([sys.executable, *OURS, str(path)], limit)
            row.result, row.detail = judge(ours, theirs)
            row.pytorch_seconds = round(theirs.seconds, 1)
            row.plait_seconds = round(ours.seconds, 1)
            row.pytorch_mib, row.plait_mib = theirs.mib or None, ours.mib or None
            row.records = len(theirs.records)
            found = digits(ours.records, theirs.records)
            row = dataclasses.replace(row, **dataclasses.asdict(found))
            far = [
                name
                for name, record in theirs.records.items()
                if (digits(ours.records, {name: record}).values or 0.0) > ROUNDING
            ]
            if far:
                theirs = run([pytorch, IN_FLOAT64, str(path)], limit)
                ours = run([sys.executable, *OURS, IN_FLOAT64, str(path)], limit)
                if not theirs.error and not ours.error:
                    wide = {name: theirs.records[name] for name in far if name in theirs.records}
                    row.float64 = digits(ours.records, wide).values
        else:
            reasons = [text for word, text in skipped.items() if word.lower().startswith(key)]
            row.detail = (reasons or ["not in both environments"])[0]
        print(f"{row.program:28} {row.result:14} {row.detail}", flush=True)
        yield row


def _compared(row: Row) -> str:
    """Return how many values were compared, and how near they are to PyTorch's."""
    parts = [] if row.equal is None else [f"{math.floor(100 * row.equal)} % equal"]
    if row.losses is not None:
        parts.append(f"losses {row.losses:.0e}" if row.losses else "losses equal")
    if row.values:
        where = f" (`{row.where}`)" if row.values > ROUNDING else ""
        parts.append(f"values {row.values:.0e}{where}")
    if row.float64 is not None:
        parts.append(f"in float64 {row.float64:.0e}" if row.float64 else "in float64 equal")
    return f"{row.records}: {', '.join(parts)}" if parts else str(row.records)


def _cell(text: str) -> str:
    return re.sub(r"([|<>*_\[\]])", r"\\\1", text)


def table(output: list[Row], title: str) -> str:
    """Return the rows as tables in Markdown, one for each field, below a line that sums them up."""
    counts: dict[str, int] = {}
    for row in output:
        counts[row.result] = counts.get(row.result, 0) + 1
    total = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    lines = [f"{title} {len(output)} programs: {total}."]
    for name in dict.fromkeys(row.field for row in output):
        lines += ["", f"## {name.capitalize()}", ""]
        lines += [
            "| library | program | result | values compared | PyTorch, s | plait, s "
            "| PyTorch, MiB | plait, MiB | date |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        lines += [line(row) for row in output if row.field == name]
    return "\n".join(lines)


def line(row: Row) -> str:
    """Return a row's line of Markdown."""
    detail = f": {_cell(row.detail)[:240]}" if row.detail else ""
    numbers = (row.pytorch_seconds, row.plait_seconds, row.pytorch_mib, row.plait_mib)
    cells = [
        f"{row.library} {row.version}",
        f"`{row.program}`: {_cell(row.what)}",
        f"**{row.result}**{detail}",
        _compared(row),
        *("" if number is None else str(number) for number in numbers),
        row.date,
    ]
    return f"| {' | '.join(cells)} |"


def merge(path: pathlib.Path | None, output: list[Row]) -> list[Row]:
    """Return the rows of a file of records, with those of the programs that ran replaced."""
    known: dict[str, Row] = {}
    fields = {path.stem: path.parent.name for path in programs()}
    if path and path.exists():
        content = json.loads(path.read_text())
        entries = [entry for entry in content["rows"] if entry["program"] in fields]
        for entry in entries:
            known[entry["program"]] = Row(**{"date": content.get("date", ""), **entry})
    known.update({row.program: row for row in output})
    for name, row in known.items():
        row.field = fields.get(name, row.field)
    return sorted(known.values(), key=lambda row: (row.field, row.program))


def save(path: pathlib.Path, title: str, output: list[Row]) -> None:
    """Write the rows, and those that the file had of other programs."""
    content = {"title": title, "rows": [dataclasses.asdict(row) for row in merge(path, output)]}
    path.write_text(json.dumps(content, indent=1) + "\n")


def main(arguments: list[str]) -> int:
    """Run the command line; the exit code is 0 whatever the programs gave."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pytorch", required=True, help="the Python of PyTorch's environment")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a program")
    parser.add_argument("names", nargs="*")
    flags = parser.parse_args(arguments)
    words = tuple(flags.names) or ("",)
    selection = [
        path
        for path in programs()
        if path.stem.startswith(words) or f"{path.parent.name}/{path.stem}".startswith(words)
    ]
    both = versions(flags.pytorch), versions(sys.executable)
    plait = both[1].get("plait-torch", "of the working tree")
    title = (
        f"Python {platform.python_version()}, {os.cpu_count()} processors, "
        f"PyTorch {both[0].get('torch')}, plait-torch {plait}."
    )
    result: list[Row] = []
    for row in rows(selection, flags.pytorch, flags.limit):
        result.append(row)
        if flags.json:  # at once, as all of them take long
            save(flags.json, title, result)
    if flags.json:
        result = merge(flags.json, result)
    text = table(result, title)
    if flags.page:
        before, _, rest = flags.page.read_text().partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        flags.page.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")
    if not flags.json and not flags.page:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
