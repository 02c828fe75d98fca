"""Run a sample of a library's own tests on PyTorch, and those that passed there on plait.

    library_tests.py --pytorch PYTHON [--seconds 1800 | --tests N] [--seed 17] LIBRARY CHECKOUT

PYTHON is the interpreter of an environment with PyTorch, the libraries and test_requirements.txt;
this one has plait instead of PyTorch. CHECKOUT is a folder with the library's repository, at the
installed version or near it. The tests are listed on PyTorch, shuffled with the seed, and run there
in fresh processes: until the seconds are used up, not counting those in which a process collects
its tests, or the first N. They then run on plait in the same groups and order, so that each gets
the same random numbers; those that passed on PyTorch count. --page and --json replace the library's
part of a page and of its records; --again runs on plait what a run recorded in --work before. A
test that crashes or hangs ends its process only.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from compare_programs import OURS, versions

__all__ = ["Library", "Outcome", "Suite", "groups", "main", "sample", "table"]

HERE = pathlib.Path(__file__).resolve().parent
MARKS = ("<!-- table of tests -->", "<!-- end of the table of tests -->")
START = 420.0  # seconds until the first test of a process begins, or 3.5 times a test's limit
TICK = 1.0  # a longer time between two looks at a process is one in which the machine was stopped


@dataclasses.dataclass(frozen=True)
class Library:
    """Where a repository has its tests, and how they are started.

    ``kept`` are the folders and files that the tests need: the rest of the repository, the
    library's sources above all, must not be found instead of the installed library. ``path`` is put
    on PYTHONPATH; ``files`` is how many test files a sample is taken from, 0 for all.
    """

    name: str
    distribution: str
    kept: tuple[str, ...]
    tests: tuple[str, ...]
    path: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    files: int = 0


LIBRARIES = {
    library.name: library
    for library in (
        Library("accelerate", "accelerate", ("tests", "examples"), ("tests",)),
        Library("botorch", "botorch", ("test",), ("test",)),
        Library("captum", "captum", ("tests",), ("tests",), (".",)),
        Library("e3nn", "e3nn", ("tests",), ("tests",)),
        Library("einops", "einops", ("einops/tests",), ("einops/tests",)),
        Library("geoopt", "geoopt", ("tests",), ("tests",)),
        Library("gpytorch", "gpytorch", ("test",), ("test",)),
        Library("ignite", "pytorch-ignite", ("tests", "examples"), ("tests/ignite",)),
        Library("kornia", "kornia", ("tests", "testing", "conftest.py"), ("tests",), (".",)),
        Library(
            "lightning",
            "lightning",
            ("tests",),
            ("tests/tests_pytorch", "tests/tests_fabric"),
            ("tests",),
        ),
        Library("linear_operator", "linear-operator", ("test",), ("test",)),
        Library("nflows", "nflows", ("tests",), ("tests",)),
        Library("peft", "peft", ("tests", "examples"), ("tests",)),
        Library("piq", "piq", ("tests",), ("tests",), (".",)),
        Library("pyro", "pyro-ppl", ("tests", "examples", "setup.cfg"), ("tests",)),
        Library(
            "pytorch_metric_learning", "pytorch-metric-learning", ("tests",), ("tests",), (".",)
        ),
        Library("pytorch_optimizer", "pytorch-optimizer", ("tests",), ("tests",), (".",)),
        Library(
            "segmentation_models", "segmentation-models-pytorch", ("tests",), ("tests",), (".",)
        ),
        Library("skorch", "skorch", ("skorch/tests",), ("skorch/tests",)),
        Library("tensordict", "tensordict", ("test",), ("test",), ("test",)),
        Library("timm", "timm", ("tests",), ("tests",)),
        Library("torch_geometric", "torch-geometric", ("test", "pyproject.toml"), ("test",)),
        Library(
            "torchdiffeq",
            "torchdiffeq",
            ("tests",),
            ("tests",),
            words=("-o", "python_files=*_tests.py"),
        ),
        Library("torchmetrics", "torchmetrics", ("tests",), ("tests/unittests",), ("tests",)),
        Library("torchmin", "pytorch-minimize", ("tests",), ("tests",)),
        Library("torchsde", "torchsde", ("tests",), ("tests",), (".",)),
        Library("torchvision", "torchvision", ("test", "references"), ("test",)),
        Library(
            "transformers",
            "transformers",
            # its tests read the sources by their path, so these must be the installed version's
            ("tests", "src", "examples", "utils", "conftest.py", "pyproject.toml", "setup.py"),
            ("tests",),
            files=200,
        ),
        Library("zuko", "zuko", ("tests",), ("tests",)),
    )
}


@dataclasses.dataclass
class Outcome:
    """How a test ended: `passed`, `failed`, `skipped`, `crashed`, `hung` or `not found`."""

    result: str
    error: str = ""
    seconds: float = 0.0


class Suite:
    """A library's tests in a folder of their own, and one interpreter to run them."""

    def __init__(
        self, library: Library, folder: pathlib.Path, command: Sequence[str], limit: float
    ) -> None:
        self.library = library
        self.folder = folder
        self.command = [*command, "-m", "pytest", "-p", "recording_tests", "-q", "--tb=short"]
        self.command += ["--color=no", "-p", "no:cacheprovider", "--rootdir", str(folder)]
        self.command += ["--continue-on-collection-errors", *library.words]
        self.limit = limit
        self.not_collected: dict[str, str] = {}
        self.places: dict[str, str] = {}  # each test's function, and which of its tests it is
        self.spent = 0.0  # seconds in which tests have run

    def environment(self, record: pathlib.Path, chosen: pathlib.Path | None) -> dict[str, str]:
        """Return the environment variables of a process: offline, and with the plugin."""
        paths = [str(HERE), *(str(self.folder / word) for word in self.library.path)]
        before = None
        if self.command[0] == sys.executable:  # plait, from where this process has it
            paths.append(str(HERE / "torch_in_processes"))
            before = os.environ.get("PYTHONPATH")
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*paths, *([before] if before else [])]),
            "TESTS_RECORD": str(record),
            "TESTS_CHOSEN": str(chosen or ""),
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "HF_HOME": str(self.folder / "hub"),
            "TORCH_HOME": str(self.folder / "hub"),
            "MPLBACKEND": "agg",
            "WANDB_MODE": "disabled",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONHASHSEED": "0",
            "TEST_DEVICE": "cpu",  # of pytorch_metric_learning
            "EINOPS_TEST_BACKENDS": "numpy,torch",
        }

    def start(
        self, words: Sequence[str], record: pathlib.Path, chosen: pathlib.Path | None
    ) -> subprocess.Popen[bytes]:
        """Start pytest on files or folders; its output goes beside the record."""
        with open(record.with_suffix(".log"), "ab") as log:
            return subprocess.Popen(
                [*self.command, *words],
                cwd=self.folder,
                env=self.environment(record, chosen),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def list_tests(self, chooser: random.Random) -> list[str]:
        """Return the ids of the library's tests, of ``files`` files at most."""
        words = list(self.library.tests)
        if self.library.files:
            results = [
                str(path.relative_to(self.folder))
                for word in words
                for path in sorted((self.folder / word).rglob("test_*.py"))
            ]
            words = sorted(chooser.sample(results, min(self.library.files, len(results))))
        with tempfile.TemporaryDirectory() as place:
            record = pathlib.Path(place) / "record"
            process = self.start(["--collect-only", *words], record, None)
            process.wait()
            lines = record.read_text().splitlines() if record.exists() else []
            if not lines:
                raise SystemExit(record.with_suffix(".log").read_text()[-3000:])
        events = [json.loads(line) for line in lines]
        self.not_collected = {one["file"]: one["error"] for one in events if "file" in one}
        self.places = {one["listed"]: one["place"] for one in reversed(events) if "listed" in one}
        return list(dict.fromkeys(one["listed"] for one in events if "listed" in one))

    def run(self, names: Sequence[str], seconds: float | None = None) -> dict[str, Outcome]:
        """Run tests and return how they ended; once ``seconds`` are spent the rest is left out."""
        done: dict[str, Outcome] = {}
        with tempfile.TemporaryDirectory() as place:
            while rest := [name for name in names if name not in done]:
                if seconds is not None and self.spent > seconds:
                    break
                one = Process(self, rest, pathlib.Path(place))
                ended = one.follow(None if seconds is None else seconds - self.spent)
                self.spent += one.seconds()
                done.update(one.outcomes)
                if ended == "time":
                    break
                if one.running:
                    done[one.running] = Outcome(
                        *("hung", f"not done after {self.limit:.0f} s")
                        if ended == "limit"
                        else ("crashed", ended),
                        self.limit if ended == "limit" else 0.0,
                    )
                else:  # pytest ended: it did not find the tests that it did not run
                    reason = one.reasons or {"": ended}
                    for name in rest:
                        error = reason.get(name.partition("::")[0], reason.get("", ""))
                        done.setdefault(name, Outcome("not found", error))
        return done


class Process:
    """One process of pytest and the events of its record so far."""

    def __init__(self, suite: Suite, names: Sequence[str], place: pathlib.Path) -> None:
        self.suite = suite
        self.outcomes: dict[str, Outcome] = {}
        self.reasons: dict[str, str] = {}
        self.running = ""
        self.now = 0.0  # seconds since the start, without those in which the machine was stopped
        self.changed = 0.0  # when the last event was
        self.begun = 0.0  # when the first test began
        self.read = 0
        self.record = place / "record"
        self.record.unlink(missing_ok=True)
        choice = place / "chosen"
        lines = [json.dumps([name, suite.places.get(name, "")]) for name in names]
        choice.write_text("\n".join(lines))
        files = list(dict.fromkeys(name.partition("::")[0] for name in names))
        self.process = suite.start(files, self.record, choice)

    def seconds(self) -> float:
        """Return for how long tests have run."""
        return self.now - self.begun if self.begun else 0.0

    def follow(self, seconds: float | None) -> str:
        """Wait for the end, and return `time`, `limit` or how the process ended."""
        limit = self.suite.limit
        before = time.monotonic()
        while self.process.poll() is None:
            time.sleep(0.1)
            now = time.monotonic()
            self.now += min(now - before, TICK)
            before = now
            self.take()
            late = self.now - self.changed > (limit if self.begun else max(START, 3.5 * limit))
            if late or (seconds is not None and self.seconds() > seconds):
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                self.take()
                if not late:  # parts of the last test may have passed, but not yet the test
                    self.outcomes.pop(self.running, None)
                return "limit" if late else "time"
        self.take()
        with contextlib.suppress(ProcessLookupError):  # processes that a test has left running
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.returncode
        if code < 0:
            return f"ended by signal {signal.Signals(-code).name}"
        log = self.record.with_suffix(".log").read_text(errors="replace").strip().splitlines()
        return f"pytest ended with exit code {code}: {log[-1] if log else ''}"

    def take(self) -> None:
        """Read the events that are new."""
        if not self.record.exists():
            return
        with open(self.record) as file:
            file.seek(self.read)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self.read += len(whole.encode())
        for line in whole.splitlines():
            self.changed = self.now
            self.note(json.loads(line))

    def note(self, event: dict[str, Any]) -> None:
        """Process one event."""
        if "file" in event:
            self.reasons[event["file"]] = event["error"]
        if "begun" in event:
            self.running, self.begun = event["begun"], self.begun or self.now
        if "step" in event:
            before = self.outcomes.get(event["step"])
            if before is None or (before.result == "passed" and event["outcome"] != "passed"):
                result = Outcome(event["outcome"], event["error"], round(event["seconds"], 3))
                self.outcomes[event["step"]] = result
        if "ended" in event:
            self.running = ""


def copy_tests(library: Library, checkout: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Copy what the tests need into a folder, without the library's sources, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for word in library.kept:
        source, target = checkout / word, folder / word
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy(source, target)
    for word in library.tests:
        if not (folder / word).is_dir():
            raise SystemExit(f"library_tests.py: {checkout} has no folder {word}")
    return folder


def sample(
    suite: Suite, seed: int, seconds: float | None, at_once: int, number: int = 0
) -> tuple[int, list[list[str]], dict[str, Outcome]]:
    """List, shuffle and run tests on PyTorch; return their number, the groups, the results.

    It ends after ``seconds`` unless that is None, and with ``number`` tests unless that is 0.
    """
    chooser = random.Random(seed)
    names = suite.list_tests(chooser)
    chooser.shuffle(names)
    total = len(names)
    names = names[:number] if number else names
    print(f"{suite.library.name}: {len(names)} of {total} tests", flush=True)
    result: list[list[str]] = []
    results: dict[str, Outcome] = {}
    for first in range(0, len(names), at_once):
        # a file's tests one after the other, so that its fixtures are made once; the files in the
        # order of the shuffled tests, as the time may be up in the middle
        drawn = names[first : first + at_once]
        files = {name.partition("::")[0]: place for place, name in reversed([*enumerate(drawn)])}
        group = sorted(drawn, key=lambda name: files[name.partition("::")[0]])
        done = suite.run(group, seconds)
        result.append([name for name in group if name in done])
        results.update(done)
        if seconds is not None and suite.spent > seconds:
            break
    return total, result, results


def run_on_plait(
    suite: Suite,
    drawn: list[list[str]],
    theirs: dict[str, Outcome],
    before: dict[str, Outcome],
) -> dict[str, Outcome]:
    """Run on plait what passed on PyTorch; with results from before, what did not pass then."""
    ours = dict(before)
    for group in drawn:
        passed = [name for name in group if theirs[name].result == "passed"]
        if before:
            chosen = [n for n in passed if n not in before or before[n].result != "passed"]
            ours.update(suite.run(chosen))
        else:
            # what failed on PyTorch runs too, as the next test continues its random numbers
            chosen = [n for n in group if theirs[n].result in ("passed", "failed", "skipped")]
            done = suite.run(chosen)
            ours.update((name, done[name]) for name in passed)
    return ours


def groups(results: dict[str, Outcome]) -> list[dict[str, Any]]:
    """Return the tests that did not pass, grouped by cause, the most frequent first."""
    entries: dict[str, dict[str, Any]] = {}
    for name, outcome in results.items():
        if outcome.result == "passed":
            continue
        text = outcome.error if outcome.result == "failed" else f"{outcome.result}: {outcome.error}"
        # of files and of the interpreter, no folders
        text = re.sub(r"(?<![\w/.])/[^\s()'\"]*/(?=[^\s()'\"/]+\.py\b|python\b)", "", text)
        error = re.sub(r" \[[^\]]*\]$", "", text)
        key = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?", "#", error)[:120]
        group = entries.setdefault(key, {"error": text[:400], "count": 0, "tests": []})
        group["count"] += 1
        group["tests"].append(name)
    return sorted(entries.values(), key=lambda group: (-group["count"], group["error"]))


def count_results(results: dict[str, Outcome]) -> dict[str, int]:
    """Return the number of tests for each result."""
    counts: dict[str, int] = {}
    for outcome in results.values():
        counts[outcome.result] = counts.get(outcome.result, 0) + 1
    return counts


def table(parts: dict[str, dict[str, Any]]) -> str:
    """Return the libraries' counts as a table in Markdown."""
    lines = [
        "| library | tests of | date | seconds | tests | run | passed on PyTorch "
        "| of these on plait | share |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, part in sorted(parts.items()):
        share = 100.0 * part["passed"] / max(1, part["passed_on_pytorch"])
        lines.append(
            f"| {name} {part['version']} | {part['tests_of']} | {part['date']} "
            f"| {part['seconds']:.0f} | {part['tests']} | {part['run']} "
            f"| {part['passed_on_pytorch']} | {part['passed']} | {share:.1f} % |"
        )
    return "\n".join(lines)


def publish(part: dict[str, Any], name: str, page: pathlib.Path | None, file: pathlib.Path) -> None:
    """Put a library's counts among the records, and the table of all into the page."""
    parts = json.loads(file.read_text()) if file.exists() else {}
    parts[name] = part
    file.write_text(json.dumps(dict(sorted(parts.items())), indent=1) + "\n")
    if page:
        before, _, rest = page.read_text().partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        page.write_text(f"{before}{MARKS[0]}\n{table(parts)}\n{MARKS[1]}{after}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the command line's values."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", choices=sorted(LIBRARIES))
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--pytorch", required=True, help="the Python of PyTorch's environment")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--seconds", type=float, default=1800.0, help="time on PyTorch")
    parser.add_argument("--tests", type=int, default=0, help="so many tests, in whatever time")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a test")
    parser.add_argument("--at-once", type=int, default=250, help="tests of a process")
    parser.add_argument("--tests-of", default="", help="the version that CHECKOUT is of")
    parser.add_argument("--work", type=pathlib.Path, help="a folder to work in and keep")
    parser.add_argument("--again", action="store_true", help="on plait only, from --work")
    parser.add_argument("--failed", action="store_true", help="with --again, what failed last")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the command line; the exit code is 0 whatever the tests gave."""
    argument = parse(arguments)
    library = LIBRARIES[argument.library]
    work = argument.work or pathlib.Path(tempfile.mkdtemp())
    folder = copy_tests(library, argument.checkout, work / library.name)
    reference = work / f"{library.name}.json"
    if argument.again:
        record = json.loads(reference.read_text())
    else:
        suite = Suite(library, folder, [argument.pytorch], argument.limit)
        begin = time.monotonic()
        seconds = None if argument.tests else argument.seconds
        number, result, theirs = sample(
            suite, argument.seed, seconds, argument.at_once, argument.tests
        )
        record = {
            "tests": number,
            "groups": result,
            "pytorch": {name: dataclasses.asdict(one) for name, one in theirs.items()},
            "places": {name: suite.places[name] for name in theirs},
            "not_collected": suite.not_collected,
            "pytorch_seconds": round(time.monotonic() - begin),
            "seconds": seconds or round(suite.spent),
            "seed": argument.seed,
        }
        reference.write_text(json.dumps(record, indent=1))
    theirs = {name: Outcome(**one) for name, one in record["pytorch"].items()}
    print(f"{library.name}: on PyTorch {count_results(theirs)}", flush=True)
    suite = Suite(library, folder, [sys.executable, *OURS], argument.limit)
    suite.places = record.get("places", {})
    before = record["plait"] if argument.failed else {}
    begin = time.monotonic()
    ours = run_on_plait(
        suite, record["groups"], theirs, {name: Outcome(**one) for name, one in before.items()}
    )
    record["plait"] = {name: dataclasses.asdict(one) for name, one in ours.items()}
    if not argument.failed:  # else the record has the time of all tests
        record["plait_seconds"] = round(time.monotonic() - begin)
    reference.write_text(json.dumps(record, indent=1))
    show(record, ours, argument, library)
    return 0


def show(
    record: dict[str, Any], ours: dict[str, Outcome], argument: argparse.Namespace, library: Library
) -> None:
    """Print the results, and publish them in the files of the command line."""
    counts = count_results(ours)
    result = groups(ours)
    both = versions(argument.pytorch), versions(sys.executable)
    version = both[0].get(library.distribution, "")
    part = {
        "version": version,
        "tests_of": argument.tests_of or version,
        "date": datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat(),
        "python": platform.python_version(),
        "torch": both[0].get("torch"),
        "plait": both[1].get("plait-torch", "of the working tree"),
        "seed": record["seed"],
        "seconds": record["seconds"],
        "pytorch_seconds": record["pytorch_seconds"],
        "plait_seconds": record["plait_seconds"],
        "tests": record["tests"],
        "run": len(record["pytorch"]),
        "on_pytorch": count_results({n: Outcome(**one) for n, one in record["pytorch"].items()}),
        "passed_on_pytorch": len(ours),
        "passed": counts.get("passed", 0),
        "on_plait": counts,
        "causes": [{**group, "tests": group["tests"][:5]} for group in result],
    }
    print(f"{library.name}: on plait {counts}", flush=True)
    for group in result:
        print(f"{group['count']:5} {group['error']}\n      {group['tests'][0]}", flush=True)
    if argument.json:
        publish(part, library.name, argument.page, argument.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
