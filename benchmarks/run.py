"""Run the benchmarks: plait and its peer in turns, in one process, with as many threads each.

    python benchmarks/run.py                          all bench_*.py of this folder
    python benchmarks/run.py --only optim --only Adam modules, and cases whose names hold a text
    python benchmarks/run.py --only distributed+DDP   those cases of those modules
    python benchmarks/run.py --json figures.json      the figures, for machines
    python benchmarks/run.py --check                  exit status 1 if a bar is missed

A module is named whole, or by a part of its name that is no other's whole. A text that is in no
module's name makes the cases of all modules, but of those that say that theirs take long
(``CHEAP = False``). Modules without ``cases()`` are programs of their own.

A module offers ``cases()``, which gives (name, plait's function, the peer's, bar), and may offer
``FIGURES``, functions that give `timing.Figure`, and ``MEAN_BAR``, the bar of the geometric mean of
its ratios. A ratio is plait's time over the peer's; it passes if
it is not above the bar. Figures of a busy machine are noisy: compare ratios, and repeat runs.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import pathlib
import platform
import statistics
import sys
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from timing import Comparison, Figure, compare

__all__ = ["main"]

HERE = pathlib.Path(__file__).parent
SIDES = ("plait_core", "torch")
Row = Comparison | Figure


def main(arguments: list[str] | None = None) -> int:
    """Read the flags, run the chosen cases, print a line for each, and return the exit status."""
    parser = argparse.ArgumentParser("benchmarks/run.py", description="Run the benchmarks.")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--check", action="store_true", help="fail if a bar is missed")
    parser.add_argument("--threads", type=int, default=2, help="of each side (default 2)")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds a case (default 2)")
    parser.add_argument("--list", action="store_true", help="name the cases, run none")
    flags = parser.parse_args(arguments)

    sys.path.insert(0, str(HERE))
    machine = prepare(flags.threads)
    print("  ".join(f"{key} {value}" for key, value in machine.items()), flush=True)
    if float(machine["load"]) > 0.5:
        print("The machine is busy: what competes for its cores hits the two sides differently.")
    rows: list[tuple[str, Row]] = []
    broken: list[str] = []
    for choice in chosen(flags.only):
        stem = choice.stem
        try:
            for row in run_module(choice, flags):
                rows.append((stem, row))
                print(line(row), flush=True)
        except Exception:
            broken.append(stem)
            print(f"{stem}: FAILED\n{traceback.format_exc()}", file=sys.stderr, flush=True)
    if flags.only and not rows and not broken and not flags.list:
        print(f"no case is called so: {', '.join(flags.only)}", file=sys.stderr)
        return 1
    missed = [row for _, row in rows if not row.passed]
    print(f"{len(rows)} figures, {len(missed)} above their bar, {len(broken)} modules failed")
    if flags.json:
        write(flags.json, machine, rows, broken)
    return int(bool(broken) or (flags.check and bool(missed)))


def prepare(threads: int) -> dict[str, str]:
    """Import both sides and return what the figures depend on."""
    machine = {"python": platform.python_version(), "cpu": processor(), "threads": str(threads)}
    for name in SIDES:
        try:
            machine[name] = str(importlib.import_module(name).__version__)
        except ImportError as error:
            print(f"{name} is missing: {error}", file=sys.stderr)
    machine["load"] = f"{os.getloadavg()[0]:.1f}"
    machine["date"] = datetime.date.today().isoformat()
    return machine


def set_threads(threads: int) -> None:
    """Give both sides as many threads."""
    for name in SIDES:
        if name in sys.modules:
            sys.modules[name].set_num_threads(threads)


def processor() -> str:
    """Return the processor's name as the system gives it."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    names = [row.partition(":")[2].strip() for row in text.splitlines() if "model name" in row]
    return names[0] if names else platform.processor()


class Choice:
    """A module to run: its file, the texts of which its cases' names hold one, or all cases.

    ``named`` says whether the module was chosen, and not only cases of whatever module.
    """

    def __init__(self, stem: str, only: list[str], anywhere: list[str]) -> None:
        self.stem = stem
        own = [text.partition("+") for text in only if names_module(text, stem)]
        self.named = bool(own)
        self.all = not only or any(not case for _, _, case in own)
        self.texts = [*anywhere, *(case for _, _, case in own)]


def names_module(text: str, stem: str) -> bool:
    """Return whether a text of --only, MODULE or MODULE+CASE, is for a module.

    MODULE is the module's name or, where no module is called so, a part of it.
    """
    name, module = text.partition("+")[0], stem.removeprefix("bench_")
    return name == module if (HERE / f"bench_{name}.py").exists() else name in module


def chosen(only: list[str]) -> Iterator[Choice]:
    """Yield the modules that hold what was asked for, or may hold it."""
    stems = [path.stem for path in sorted(HERE.glob("bench_*.py"))]
    anywhere = [text for text in only if not any(names_module(text, stem) for stem in stems)]
    for stem in stems:
        choice = Choice(stem, only, anywhere)
        if choice.all or choice.texts:
            yield choice


def run_module(choice: Choice, flags: argparse.Namespace) -> Iterator[Row]:
    """Yield the figures of one module, those that were chosen."""
    stem = choice.stem
    module = importlib.import_module(stem)
    if not choice.all and not choice.named and not getattr(module, "CHEAP", True):
        return  # making its cases takes long, so they are chosen by the module's name
    if not hasattr(module, "cases"):
        return

    def is_selected(name: str) -> bool:
        if not choice.all and not any(text in name for text in choice.texts):
            return False
        if flags.list:
            print(f"{stem.removeprefix('bench_')}: {name}")
        return not flags.list

    ratios = []
    for case in module.cases():
        if is_selected(case[0]):
            set_threads(flags.threads)
            row = compare(case, flags.budget)
            ratios.append(row.ratio)
            yield row
    if len(ratios) > 1 and hasattr(module, "MEAN_BAR"):
        mean = statistics.geometric_mean(ratios)
        yield Figure(
            f"{stem}: mean of {len(ratios)} ratios", mean, module.MEAN_BAR, "", "geometric"
        )
    for name, measure in getattr(module, "FIGURES", {}).items():
        if is_selected(name):
            yield from measure()


def line(row: Row) -> str:
    """Return a row of the table."""
    verdict = "ok" if row.passed else "MISSED"
    if isinstance(row, Figure):
        limit = "" if row.limit is None else f"limit {row.limit:g} {row.unit}  {verdict}"
        return f"{row.name:58s} {row.value:11.4g} {row.unit}  {limit}  {row.note}".rstrip()
    bar = "" if row.bar is None else f"bar {row.bar:.2f}  {verdict}"
    return (
        f"{row.name:58s} plait {duration(row.plait)}  peer {duration(row.peer)}  "
        f"ratio {row.ratio:6.3f}  {bar}"
    ).rstrip()


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, scale in (("s ", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:8.3f} {unit}"
    return f"{seconds / 1e-9:8.1f} ns"


def write(
    path: pathlib.Path, machine: dict[str, str], rows: list[tuple[str, Row]], broken: list[str]
) -> None:
    """Write all figures as JSON."""
    listed: list[dict[str, Any]] = []
    for module, row in rows:
        values = {"module": module, **asdict(row), "passed": row.passed}
        if isinstance(row, Comparison):
            values["ratio"] = row.ratio
        listed.append(values)
    path.write_text(json.dumps({"machine": machine, "figures": listed, "failed": broken}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
