"""Check and measure plait-cuda on a machine with an NVIDIA GPU.

    python tools/gpu_check.py [PART ...] [--out FOLDER] [--seconds N] [--small]
    python tools/gpu_check.py --page docs/benchmarks/gpu.md FOLDER ...

Parts, the most important first: correct, models, bandwidth, figures, processes, sanitizer. Each
takes at most 240 seconds, runs in a process of its own and writes FOLDER/<part>.json with the
commit, the card and the versions. ``--page`` writes one page from the files of all folders; the
newest record of a part counts. It draws the pictures of the part ``figures`` beside the page, which
needs Matplotlib; those of the emulation serve until there are some of a card. plait and plait-cuda
must be installed; where PyTorch is installed too, both are measured in turns. ``--small`` runs
everything in sizes that the emulation of the driver can compute (PLAIT_CUDA_EMULATION=1), to test
this program.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

__all__ = ["PARTS", "main", "page"]

PARTS = {
    "correct": "Results against those of the CPU",
    "models": "Training steps of six models, and the cost of a launch",
    "bandwidth": "Kernels as a share of a copy, and products",
    "figures": "Host and device, and memory from step to step",
    "processes": "Memory that processes share, and collectives",
    "sanitizer": "compute-sanitizer over a sample of operators",
}
"""The parts and their titles, in the order in which they run."""


def run_part(name: str, seconds: float, small: bool) -> dict[str, Any]:
    """Run one part in this process."""
    if name == "sanitizer":
        return sanitizer(seconds)
    kind = importlib.import_module("gpu.sides").Options
    options = kind(device="cuda", small=small, seconds=seconds)
    result: dict[str, Any] = importlib.import_module(f"gpu.{name}").run(options)
    return result


def sanitizer(seconds: float) -> dict[str, Any]:
    """Run compute-sanitizer over the short version of the operators' suite."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        return {"left_out": "there is no compute-sanitizer on PATH"}
    tests = ROOT / "packages" / "cuda" / "tests" / "test_samples.py"
    words = [program, "--error-exitcode", "9", sys.executable, "-m", "pytest", "-q", str(tests)]
    environment = {"PLAIT_CUDA_EMULATION": "0", **os.environ, "PLAIT_DEVICE_CACHE": "0"}
    try:
        done = subprocess.run(
            [*words, "-k", "softmax or sum or gather or conv2d or mm or sort"],
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "stopped", "seconds": seconds}
    return {"status": done.returncode, "tail": done.stdout.splitlines()[-30:]}


def facts() -> dict[str, Any]:
    """Return what the figures depend on: commit, card and versions."""
    import plait

    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    versions = {"plait": plait.__version__, "python": sys.version.split()[0]}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        versions["torch"] = importlib.metadata.version("torch")
    available = plait.cuda.is_available()
    if available:
        cudnn = importlib.import_module("plait_cuda.cudnn")
        versions["cudnn"] = str(cudnn.version() or "none")
    return {
        "commit": commit.stdout.strip(),
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "card": plait.cuda.get_device_name(0) if available else "none",
        "emulated": os.environ.get("PLAIT_CUDA_EMULATION", "0") not in ("", "0"),
        "versions": versions,
    }


def start_part(name: str, arguments: argparse.Namespace) -> int:
    """Run one part in a process of its own; return 1 after a failure."""
    target = arguments.out / f"{name}.json"
    words = [sys.executable, __file__, "--inside", name, "--seconds", str(arguments.seconds)]
    words += ["--out", str(arguments.out), *(["--small"] if arguments.small else [])]
    begin = time.monotonic()
    try:
        status = subprocess.run(words, timeout=arguments.seconds + 30, check=False).returncode
    except subprocess.TimeoutExpired:
        status = -1
    print(f"{name}: status {status}, {time.monotonic() - begin:.0f} s", flush=True)
    return int(status != 0 or not target.exists())


def read(folders: Sequence[pathlib.Path]) -> dict[str, dict[str, Any]]:
    """Return the newest record of each part; a real card comes before the emulation."""
    records: dict[str, dict[str, Any]] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*.json")):
        record = json.loads(path.read_text())
        if record.get("part") not in PARTS:
            continue
        before = records.get(record["part"])
        rank = (not record["emulated"], record["time"])
        if before is None or rank > (not before["emulated"], before["time"]):
            records[record["part"]] = record
    return records


HEAD = """# On a GPU

What `python tools/gpu_check.py` measured. A part without a record has never run on a GPU: on a
machine with one, install plait, plait-cuda and PyTorch, run the command, and write this page with
`python tools/gpu_check.py --page docs/benchmarks/gpu.md FOLDER`.
"""


def page(records: dict[str, dict[str, Any]]) -> str:
    """Return the page of the records."""
    text = HEAD
    for name, title in PARTS.items():
        text += f"\n## {title}\n\n"
        record = records.get(name)
        if record is None or record["emulated"]:
            text += f"Never run on a GPU (`gpu_check.py {name}`).\n"
            if record is not None and name == "figures":
                text += EMULATED_PICTURES + pictures()
            continue
        versions = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
        head = f"{record['card']}, commit {record['commit']}, {record['time'][:10]}"
        text += f"{head}, {versions}.\n\n"
        text += TABLES.get(name, plain)(record["result"])
    return text


def plain(result: dict[str, Any]) -> str:
    """Return a result as it is."""
    return f"```json\n{json.dumps(result, indent=1)[:4000]}\n```\n"


def _ratio(row: dict[str, Any]) -> str:
    return f"{row['torch'] / row['plait']:.2f}" if "torch" in row else "-"


def models_table(result: dict[str, Any]) -> str:
    """Return the table of training steps."""
    text = "| model | plait, ms | PyTorch, ms | PyTorch / plait |\n|---|---|---|---|\n"
    for name, row in result["models"].items():
        if "plait" not in row:
            text += f"| {name} | {row.get('error', row.get('left_out'))} | | |\n"
            continue
        other = f"{row['torch'] * 1e3:.2f}" if "torch" in row else "-"
        text += f"| {name} | {row['plait'] * 1e3:.2f} | {other} | {_ratio(row)} |\n"
    launch = {name: f"{seconds * 1e6:.2f} us" for name, seconds in result["launch"].items()}
    return text + f"\nOne call of `x.add_(1.0)` on one element costs the host {launch}.\n"


def bandwidth_table(result: dict[str, Any]) -> str:
    """Return the tables of kernels and products."""
    copy = result["kernels"]["copy"]
    speed = copy["bytes"] / copy["plait"]
    text = f"A copy moves {speed / 1e12:.2f} TB/s.\n\n"
    text += "| kernel | share of the copy | PyTorch / plait |\n|---|---|---|\n"
    for name, row in result["kernels"].items():
        share = row["bytes"] / row["plait"] / speed
        text += f"| {name} | {share:.0%} | {_ratio(row)} |\n"
    text += "\n| product | plait, Tflop/s | PyTorch / plait |\n|---|---|---|\n"
    for name, row in result["products"].items():
        text += f"| {name} | {row['operations'] / row['plait'] / 1e12:.1f} | {_ratio(row)} |\n"
    return text


EMULATED_PICTURES = """
The pictures were drawn on the emulation of the driver, with a small model: a CPU computes what the
device should, so they show the order of events, and no time of a GPU. On a machine with a GPU,
`python tools/gpu_check.py figures` records what they show, and the command above draws them.
"""


def pictures() -> str:
    """Return the text that shows the two pictures."""
    first, second = importlib.import_module("gpu.figures").PICTURES.values()
    return f"""
![The host's calls, the device's kernels, and the depth of the queue]({first})

A call of the host puts kernels into the queue and returns; an arrow leads to the first of them.
While the queue is not empty, the device does not wait for the host. This is Figure 1 of PyTorch's
paper.

![Bytes of tensors and bytes that the allocator has, in four steps]({second})

The allocator asks the driver for memory in the first step, and keeps what is freed. Later steps ask
for nothing. Figure 2 of the paper shows the same by the driver's calls.
"""


def figures_table(result: dict[str, Any]) -> str:
    """Return the table of steps, the use of the device, and the pictures."""
    text = "| step | host, ms | until the device is done, ms | requests of memory |\n"
    text += "|---|---|---|---|\n"
    for number, step in enumerate(result["memory"]["steps"]):
        times = f"{step['host_seconds'] * 1e3:.2f} | {step['seconds'] * 1e3:.2f}"
        text += f"| {number + 1} | {times} | {step['requests']} |\n"
    queue = result["timeline"]["queue"]
    text += (
        f"\nIn the first picture the device had work for {queue['utilization']:.0%} of its time; "
    )
    return text + f"work waited {queue['ahead']:.0f} us in the mean.\n" + pictures()


TABLES = {"models": models_table, "bandwidth": bandwidth_table, "figures": figures_table}


def main(words: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "results" / "gpu")
    parser.add_argument("--seconds", type=float, default=210)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--inside", choices=PARTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.page is not None:
        folders = [pathlib.Path(name) for name in arguments.names] or [arguments.out]
        records = read(folders)
        arguments.page.write_text(page(records))
        if figures := records.get("figures"):
            device = "an emulated device" if figures["emulated"] else figures["card"]
            draw = importlib.import_module("gpu.figures").draw
            draw(figures["result"], arguments.page.parent, device)
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.inside is not None:
        name = arguments.inside
        result = run_part(name, arguments.seconds, arguments.small)
        record = {"part": name, **facts(), "small": arguments.small, "result": result}
        (arguments.out / f"{name}.json").write_text(json.dumps(record, indent=1))
        return 0
    unknown = sorted(set(arguments.names) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    return max(start_part(name, arguments) for name in arguments.names or PARTS)


if __name__ == "__main__":
    sys.exit(main())
