"""Check and measure plait-cuda on a machine with an NVIDIA GPU.

    python tools/gpu_check.py [PART ...] [--out FOLDER] [--seconds N] [--small]
    python tools/gpu_check.py --page docs/benchmarks/gpu.md FOLDER ...

Parts, the most important first: correct, models, bandwidth, figures, processes, sanitizer. Each
takes at most 240 seconds, runs in a process of its own and writes FOLDER/<part>.json with the
commit, the card and the versions; what it prints is in FOLDER/<part>.log. A part that crashes or
does not end leaves FOLDER/<part>.failed.json, and the others run. The exit status is 0 if nothing
is wrong.

``--page`` writes one page from the files of all folders (benchmarks/gpu/page.py). It draws the
pictures of the part ``figures`` beside the page, which needs Matplotlib; those of the emulation
serve until there are some of a card. plait and plait-cuda must be installed; where PyTorch is
installed too, both are measured in turns. ``--small`` runs everything in sizes that the emulation
of the driver can compute (PLAIT_CUDA_EMULATION=1), to test this program: a part measures for some
seconds only, and has an hour to end, also on a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

pages: Any = importlib.import_module("gpu.page")
PARTS: dict[str, str] = pages.PARTS

__all__ = ["main"]

GRACE = 30
"""Seconds that a part may take longer than it was told."""

SECONDS, SMALL = 210.0, 20.0
"""Seconds that a part measures, and those in small sizes."""

HOUR = 3600.0
"""Seconds of a part in small sizes, whose end the load of the machine decides."""


def run_part(name: str, seconds: float, small: bool) -> dict[str, Any]:
    """Run one part in this process."""
    limit = HOUR if small else seconds
    if name == "sanitizer":
        return sanitizer(limit)
    kind = importlib.import_module("gpu.sides").Options
    options = kind(device="cuda", small=small, seconds=seconds, limit=limit)
    result: dict[str, Any] = importlib.import_module(f"gpu.{name}").run(options)
    return result


def sanitizer(seconds: float) -> dict[str, Any]:
    """Run compute-sanitizer over the short version of the operators' suite."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        return {"left_out": "there is no compute-sanitizer on PATH"}
    words = ["-k", "softmax or sum or gather or conv2d or mm or sort"]
    suite = importlib.import_module("gpu.correct").suite
    command = [program, "--error-exitcode", "9", sys.executable]
    result: dict[str, Any] = suite(words, seconds, command=command, PLAIT_DEVICE_CACHE="0")
    return result


def torch_problem() -> str:
    """Return why the PyTorch that is installed is not measured, in parentheses, or ""."""
    try:
        there = importlib.import_module("torch").cuda.is_available()
    except (ImportError, OSError) as error:
        return f" (not measured: {str(error).splitlines()[0][:150]})"
    return "" if there else " (not measured: it sees no GPU)"


def facts() -> dict[str, Any]:
    """Return what the figures depend on: commit, card and versions.

    Raises:
        RuntimeError: if there is no device, with the reason.
    """
    import plait

    plait.ones(1, device="cuda").cpu()  # the error says what the machine lacks
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    mark = ROOT / "COMMIT"  # where the files came without the repository: tools/gpu_set.py
    versions = {"plait": plait.__version__, "python": sys.version.split()[0]}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        versions["torch"] = importlib.metadata.version("torch") + torch_problem()
    cudnn = importlib.import_module("plait_cuda.cudnn")
    versions["cudnn"] = str(cudnn.version() or "none")
    return {
        "commit": commit.stdout.strip() if not mark.exists() else mark.read_text().strip(),
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "card": plait.cuda.get_device_name(0),
        "emulated": os.environ.get("PLAIT_CUDA_EMULATION", "0") not in ("", "0"),
        "versions": versions,
    }


def run_process(words: Sequence[str], seconds: float, log: pathlib.Path) -> str:
    """Run a program with its output in a file, and return what went wrong, or "".

    It is stopped after `seconds`, with the processes that it started.
    """
    with log.open("w") as output:
        process = subprocess.Popen(
            words, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"stopped after {seconds:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status < 0:
        return f"it was ended by {signal.Signals(-status).name}"
    lines = log.read_text(errors="replace").splitlines() or [""]
    return f"exit status {status}: {lines[-1][:300]}" if status else ""


def ask_facts(out: pathlib.Path) -> dict[str, Any]:
    """Return the facts, asked by another process: a driver may crash or hang.

    Raises:
        SystemExit: if there is no device to check.
    """
    answer = out / "facts.json"
    answer.unlink(missing_ok=True)
    words = [sys.executable, __file__, "--inside", "facts", "--out", str(out)]
    failure = run_process(words, 120, out / "facts.log")
    if failure or not answer.exists():
        raise SystemExit(f"gpu_check: no device can be used: {failure}; see {out / 'facts.log'}")
    result: dict[str, Any] = json.loads(answer.read_text())
    return result


def start_part(name: str, arguments: argparse.Namespace, known: dict[str, Any]) -> list[str]:
    """Run one part in a process of its own; return what went wrong."""
    out: pathlib.Path = arguments.out
    target, failed = out / f"{name}.json", out / f"{name}.failed.json"
    words = [sys.executable, __file__, "--inside", name, "--seconds", str(arguments.seconds)]
    words += ["--out", str(out), *(["--small"] if arguments.small else [])]
    unfinished = out / f"{name}.part"
    unfinished.unlink(missing_ok=True)
    begin = time.monotonic()
    limit = HOUR if arguments.small else arguments.seconds + GRACE
    failure = run_process(words, limit, out / f"{name}.log")
    if not failure and not unfinished.exists():
        failure = "it ended without a record"
    record = {"part": name, **known, "small": arguments.small}
    if failure:
        record["failure"] = failure
        failed.write_text(json.dumps(record, indent=1))
    else:
        failed.unlink(missing_ok=True)
        record["result"] = json.loads(unfinished.read_text())
        target.write_text(json.dumps(record, indent=1))
        unfinished.unlink()
    wrong = list(pages.problems(record))
    seconds = time.monotonic() - begin
    print(f"{name}: {'failed' if wrong else 'ok'}, {seconds:.0f} s", flush=True)
    for line in wrong:
        print(f"  {line}", flush=True)
    if failure:
        print(f"  its output is in {out / f'{name}.log'}", flush=True)
    return wrong


def write_page(path: pathlib.Path, folders: Sequence[pathlib.Path]) -> None:
    """Write the page of all records, and its pictures beside it."""
    records = pages.read(folders)
    path.write_text(pages.page(records))
    figures = records.get("figures")
    if figures and "result" in figures:
        device = "an emulated device" if figures["emulated"] else figures["card"]
        draw = importlib.import_module("gpu.figures").draw
        draw(figures["result"], path.parent, device)


def run_inside(name: str, arguments: argparse.Namespace) -> None:
    """Do the work of a process that `run_process` started, and leave its answer in a file."""
    if name == "facts":
        path, result = arguments.out / "facts.json", facts()
    else:
        path = arguments.out / f"{name}.part"
        result = run_part(name, arguments.seconds, arguments.small)
    path.write_text(json.dumps(result, indent=1))


def main(words: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "results" / "gpu")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--inside", choices=[*PARTS, "facts"], help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.seconds is None:
        arguments.seconds = SMALL if arguments.small else SECONDS
    if arguments.page is not None:
        folders = [pathlib.Path(name) for name in arguments.names] or [arguments.out]
        write_page(arguments.page, folders)
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.inside is not None:
        run_inside(arguments.inside, arguments)
        return 0
    unknown = sorted(set(arguments.names) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    known = ask_facts(arguments.out)
    versions = ", ".join(f"{key} {value}" for key, value in known["versions"].items())
    print(f"{known['card']}, commit {known['commit']}, {versions}", flush=True)
    if "torch" not in known["versions"]:
        print("PyTorch is not installed: plait is measured alone", flush=True)
    failed = [n for n in arguments.names or PARTS if start_part(n, arguments, known)]
    print(f"records are in {arguments.out}; {len(failed)} parts failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
