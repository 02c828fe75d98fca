"""The page of what was measured on a GPU, written from the records of `tools/gpu_check.py`."""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from gpu.figures import PICTURES

__all__ = ["PARTS", "page", "problems", "read"]

PARTS = {
    "correct": "Results against those of the CPU",
    "models": "Training steps of six models, and the cost of a launch",
    "bandwidth": "Kernels as a share of a copy, products and convolutions",
    "figures": "Host and device, and memory from step to step",
    "processes": "Memory that processes share, and collectives",
    "sanitizer": "compute-sanitizer over a sample of operators",
}
"""The parts and their titles, in the order in which they run."""

HEAD = """# On a GPU

What `python tools/gpu_check.py` measured. A part without a record has never run on a GPU. To fill
the page, on a machine with one:

1. Install plait, plait-cuda, pytest and plait-conformance, and PyTorch, which is measured beside
   plait. `pip install "plait-cuda[libraries]"` brings NVIDIA's libraries too ({doc}`/guides/gpu`).
   For a machine without a network, `nox -s gpu-set -- --python python3.12` collects in `dist/gpu`
   the wheels, the files of the next step and a script that does both; it says how large they are.
2. In a checkout of the repository, run `python tools/gpu_check.py`. Its six parts take at most four
   minutes each; the names of parts as arguments choose some. It says what is wrong at the end, and
   why a part failed. Each part leaves a record in `results/gpu`.
3. Write this page with `python tools/gpu_check.py --page docs/benchmarks/gpu.md results/gpu`, with
   Matplotlib for its pictures. Folders of several machines or days are merged: the newest record of
   a part counts.
"""


def read(folders: Sequence[pathlib.Path]) -> dict[str, dict[str, Any]]:
    """Return the newest record of each part; a real card comes before the emulation, and a part
    that ended before one that failed.
    """
    records: dict[str, dict[str, Any]] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*.json")):
        try:
            record = json.loads(path.read_text())
            part, rank = record["part"], _rank(record)
        except (ValueError, TypeError, KeyError):
            continue  # a file of something else
        if part in PARTS and (part not in records or rank > _rank(records[part])):
            records[part] = record
    return records


def _rank(record: dict[str, Any]) -> tuple[bool, bool, str]:
    return not record["emulated"], "failure" not in record, record["time"]


def problems(record: dict[str, Any]) -> Iterator[str]:
    """Yield a line for everything in a record that went wrong."""
    if "failure" in record:
        yield record["failure"]
        return
    yield from _problems(record["result"], "")


def _problems(value: Any, name: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    if "error" in value:
        yield f"{name}: {value['error']}"
    elif value.get("status", 0) != 0:
        last = (value.get("tail") or [""])[-1]
        yield f"{name}: status {value['status']}{last and ': '}{last}"
    for key, inner in value.items():
        yield from _problems(inner, f"{name}, {key}" if name else key)


def page(records: dict[str, dict[str, Any]]) -> str:
    """Return the page of the records."""
    text = HEAD
    for name, title in PARTS.items():
        text += f"\n## {title}\n\n"
        record = records.get(name)
        if record is None or record["emulated"]:
            text += f"Never run on a GPU (`gpu_check.py {name}`).\n"
            if record is not None and name == "figures" and "result" in record:
                text += EMULATED_PICTURES + pictures()
            continue
        versions = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
        head = f"{record['card']}, commit {record['commit']}, {record['time'][:10]}"
        text += f"{head}, {versions}.\n\n"
        if "failure" in record:
            text += f"It failed: {record['failure']}.\n"
            continue
        wrong = [f"- {line}\n" for line in problems(record)]
        text += "Wrong:\n\n" + "".join(wrong) + "\n" if wrong else ""
        text += TABLES.get(name, plain)(record["result"])
    return text


def plain(result: dict[str, Any]) -> str:
    """Return a result as it is."""
    return f"```json\n{json.dumps(result, indent=1)[:4000]}\n```\n"


def _ratio(row: dict[str, Any]) -> str:
    return f"{row['torch'] / row['plait']:.2f}" if "torch" in row else "-"


def correct_table(result: dict[str, Any]) -> str:
    """Return the tables of trainings and of what a step asks for, and the ends of the suites."""
    text = "| training | dtype | difference of losses from the CPU's |\n|---|---|---|\n"
    for name, row in result["trainings"].items():
        for dtype, curve in row.items():
            text += f"| {name} | {dtype} | {curve['difference']:.1e} |\n"
    text += "\n| step of | requests of memory in each step | the host waited for the device |\n"
    text += "|---|---|---|\n"
    for name, row in result["steps"].items():
        requests = ", ".join(str(n) for n in row["requests"])
        text += f"| {name} | {requests} | {'yes' if row['waited'] else 'no'} |\n"
    for name in ("operators", "kit"):
        suite = result[name]
        last = suite.get("left_out") or (suite.get("tail") or ["stopped"])[-1]
        text += f"\nTests of `{name}`: {last}\n"
    return text


def models_table(result: dict[str, Any]) -> str:
    """Return the table of training steps, with their mean of each dtype."""
    text = "| model | plait, ms | PyTorch, ms | PyTorch / plait |\n|---|---|---|---|\n"
    ratios: dict[str, list[float]] = {}
    for name, row in result["models"].items():
        if "plait" not in row:
            text += f"| {name} | {row.get('error', row.get('left_out'))} | | |\n"
            continue
        other = f"{row['torch'] * 1e3:.2f}" if "torch" in row else "-"
        text += f"| {name} | {row['plait'] * 1e3:.2f} | {other} | {_ratio(row)} |\n"
        if "torch" in row:
            ratios.setdefault(name.split()[-1], []).append(row["torch"] / row["plait"])
    for dtype, values in ratios.items():
        mean = math.exp(math.fsum(map(math.log, values)) / len(values))
        text += f"| mean of {len(values)}, {dtype} | | | {mean:.2f} |\n"
    launch = {name: f"{seconds * 1e6:.2f} us" for name, seconds in result["launch"].items()}
    costs = ", ".join(f"{value} ({name})" for name, value in launch.items())
    return text + f"\nOne call of `x.add_(1.0)` on one element costs the host {costs}.\n"


def bandwidth_table(result: dict[str, Any]) -> str:
    """Return the tables of kernels, products and convolutions."""
    copy = result["kernels"]["copy"]
    speed = copy["bytes"] / copy["plait"]
    text = f"A copy moves {speed / 1e12:.2f} TB/s.\n\n"
    text += "| kernel | share of the copy | PyTorch / plait |\n|---|---|---|\n"
    for name, row in result["kernels"].items():
        share = row["bytes"] / row["plait"] / speed
        text += f"| {name} | {share:.0%} | {_ratio(row)} |\n"
    for kind in ("products", "convolutions"):
        text += f"\n| {kind} | plait, Tflop/s | PyTorch / plait |\n|---|---|---|\n"
        for name, row in result[kind].items():
            text += f"| {name} | {row['operations'] / row['plait'] / 1e12:.1f} | {_ratio(row)} |\n"
    return text


EMULATED_PICTURES = """
The pictures were drawn on the emulation of the driver, with a small model: a CPU computes what the
device should, so they show the order of events, and no time of a GPU. On a machine with a GPU,
`python tools/gpu_check.py figures` records what they show, and the command above draws them.
"""


def pictures() -> str:
    """Return the text that shows the two pictures."""
    first, second = PICTURES.values()
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


TABLES = {
    "correct": correct_table,
    "models": models_table,
    "bandwidth": bandwidth_table,
    "figures": figures_table,
}
