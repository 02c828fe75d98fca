"""Inference of plait, eager and frozen, beside PyTorch, torch.compile, ONNX Runtime and OpenVINO.

    python benchmarks/inference_peers.py                    all cases and all sides
    python benchmarks/inference_peers.py --only BERT        cases whose titles hold a text
    python benchmarks/inference_peers.py --python DIR/bin/python    which has the peers
    python benchmarks/inference_peers.py --docs

Each side runs in a process of its own, with as many threads; the sides are timed in turns. A side
that is not installed, or that cannot run a model, is left out with the reason. ONNX Runtime and
OpenVINO read what `torch.onnx.export` writes. The time to the first answer begins when the model
and its weights are in memory, or where its file lies.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["main"]

HERE = pathlib.Path(__file__).parent
SAMPLE = 0.3  # seconds that one turn of a side takes at least


@dataclass(frozen=True)
class Case:
    """A model and the size of its input."""

    title: str
    model: str
    batch: int
    options: tuple[tuple[str, int], ...] = ()


CASES = [
    Case("MobileNetV2, 1 picture", "mobilenet", 1),
    Case("ResNet-50, 1 picture", "resnet50", 1),
    Case("ResNet-50, 16 pictures", "resnet50", 16),
    Case("BERT, 1 x 128", "bert", 1, (("length", 128),)),
    Case("BERT, 8 x 128", "bert", 8, (("length", 128),)),
]
Call = Callable[[], Any]  # of a model; gives an array of NumPy
Start = Callable[[], Call]  # what is timed with the first answer; before it, sides import and read


def network(library: Any, case: Case) -> tuple[Any, Any]:
    """Return a model with the weights that all sides have, and its input."""
    from models import MODELS, fill

    model = MODELS[case.model]
    x = library.from_numpy(model.data(case.batch, **dict(case.options))[0])
    return fill(library, model.build(library)).eval(), x


def plait_side(case: Case, threads: int, folder: str, *, frozen: bool) -> Start:
    """Return what gives calls of plait."""
    import plait
    from plait_graph import compile

    plait.set_num_threads(threads)
    model, x = network(plait, case)
    x = x.clone()  # memory of plait's own

    def start() -> Call:
        function = compile(model, frozen=True) if frozen else model

        def call() -> Any:
            with plait.inference_mode():
                return function(x).numpy()

        return call

    return start


def torch_side(case: Case, threads: int, folder: str, *, compiled: bool) -> Start:
    """Return what gives calls of PyTorch."""
    import torch

    torch.set_num_threads(threads)
    model, x = network(torch, case)
    if compiled:
        import torch._inductor.config as settings

        settings.freezing = True

    def start() -> Call:
        function = torch.compile(model) if compiled else model

        def call() -> Any:
            with torch.no_grad():  # freezing does not know inference_mode
                return function(x).numpy()

        return call

    return start


def write_onnx(case: Case, threads: int, folder: str) -> Start:
    """Write the file that the runtimes of ONNX read, and the input."""
    import torch

    model, x = network(torch, case)
    with torch.no_grad():
        torch.onnx.export(model, (x,), os.path.join(folder, "model.onnx"))
    np.save(os.path.join(folder, "x.npy"), x.numpy())
    return lambda: lambda: np.zeros(1)


def onnx_runtime_side(case: Case, threads: int, folder: str) -> Start:
    """Return what gives calls of ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    path = os.path.join(folder, "model.onnx")
    x = np.load(os.path.join(folder, "x.npy"))

    def start() -> Call:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        inputs = {session.get_inputs()[0].name: x}
        return lambda: session.run(None, inputs)[0]

    return start


def openvino_side(case: Case, threads: int, folder: str) -> Start:
    """Return what gives calls of OpenVINO, with numbers of 32 bits."""
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    path = os.path.join(folder, "model.onnx")
    x = np.load(os.path.join(folder, "x.npy"))

    def start() -> Call:
        model = openvino.Core().compile_model(path, "CPU", settings)
        return lambda: model(x)[0]

    return start


SIDES: dict[str, tuple[tuple[str, ...], Callable[[Case, int, str], Start]]] = {
    "plait": (("plait",), lambda *a: plait_side(*a, frozen=False)),
    "plait, frozen": (("plait",), lambda *a: plait_side(*a, frozen=True)),
    "PyTorch": (("torch",), lambda *a: torch_side(*a, compiled=False)),
    "torch.compile": (("torch",), lambda *a: torch_side(*a, compiled=True)),
    "ONNX Runtime": (("onnxruntime",), onnx_runtime_side),
    "OpenVINO": (("openvino",), openvino_side),
}
_WRITER = "the file for ONNX"


def serve(side: str, case: Case, threads: int, folder: str) -> None:
    """Write lines of JSON: about the first answer, then the time of a call for each line read."""
    answers, sys.stdout = sys.stdout, sys.stderr
    needs, build = ((), write_onnx) if side == _WRITER else SIDES[side]
    for package in needs:
        if importlib.util.find_spec(package) is None:
            raise SystemExit(f"{package} is not installed")
    start = build(case, threads, folder)
    begin = time.perf_counter()
    call = start()
    first = np.asarray(call(), dtype=np.float64)
    seconds = time.perf_counter() - begin
    numbers = first.reshape(-1)[:: max(first.size // 8, 1)].tolist()
    print(json.dumps({"first": seconds, "numbers": numbers}), file=answers, flush=True)
    for _ in range(2):
        call()
    for _ in sys.stdin:
        call()  # after the other sides' turns: caches and pages
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < SAMPLE or not count:
            call()
            count += 1
        seconds = (time.perf_counter() - begin) / count
        print(json.dumps({"seconds": seconds}), file=answers, flush=True)


class Server:
    """A process that runs one side of a case."""

    def __init__(self, python: str, side: str, case: Case, threads: int, folder: str) -> None:
        command = [python, str(HERE / "inference_peers.py"), "--serve", side, "--only", case.title]
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `stop` closes it
        self.process = subprocess.Popen(
            [*command, "--threads", str(threads), "--folder", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def read(self) -> Any:
        """Return the next answer; None if the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def turn(self) -> float:
        """Return the seconds of a call."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.read()["seconds"])

    def stop(self) -> str:
        """End the process; return the last line of its errors."""
        self.process.communicate()
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        self.errors.close()
        return lines[-1] if lines else f"it ended with {self.process.returncode}"


@dataclass
class Result:
    """The medians of a case: seconds of a call and of the first answer by side, and what failed."""

    case: Case
    calls: dict[str, float]
    firsts: dict[str, float]
    notes: list[str]


def run(case: Case, sides: list[str], python: str, threads: int, rounds: int) -> Result:
    """Return what was measured of a case."""
    servers: dict[str, Server] = {}
    result = Result(case, {}, {}, [])
    numbers: list[float] | None = None
    with tempfile.TemporaryDirectory() as folder:
        if {"ONNX Runtime", "OpenVINO"}.intersection(sides):
            writer = Server(python, _WRITER, case, threads, folder)
            answer = writer.read()
            text = writer.stop()
            if answer is None:
                result.notes.append(f"{case.title}, {_WRITER}: {text}")
                sides = [side for side in sides if side not in ("ONNX Runtime", "OpenVINO")]
        for side in sides:
            own = sys.executable if side.startswith("plait") else python
            server = Server(own, side, case, threads, folder)
            answer = server.read()
            if answer is None:
                result.notes.append(f"{case.title}, {side}: {server.stop()}")
                continue
            servers[side], result.firsts[side] = server, answer["first"]
            numbers = numbers or answer["numbers"]
            if not np.allclose(answer["numbers"], numbers, rtol=1e-2, atol=1e-2):
                result.notes.append(f"{case.title}, {side}: other results")
        times: dict[str, list[float]] = {side: [] for side in servers}
        for _ in range(rounds):
            for side, server in servers.items():
                times[side].append(server.turn())
        for server in servers.values():
            server.stop()
    result.calls = {side: statistics.median(each) for side, each in times.items()}
    return result


def ratios(results: list[Result]) -> list[float]:
    """Return the fastest peer's time over plait's fastest, for each case that has both."""
    values = []
    for result in results:
        plait = [v for s, v in result.calls.items() if s.startswith("plait")]
        peers = [v for s, v in result.calls.items() if not s.startswith("plait")]
        if plait and peers:
            values.append(min(peers) / min(plait))
    return values


def table(results: list[Result]) -> str:
    """Return two tables: calls in milliseconds, and first answers in seconds."""
    sides = [side for side in SIDES if any(side in result.calls for result in results)]

    def row(result: Result, values: dict[str, float], scale: float) -> str:
        cells = [f"{values[s] * scale:.4g}" if s in values else "-" for s in sides]
        return "| " + " | ".join([result.case.title, *cells, ""]).rstrip()

    head = "| Model | " + " | ".join(sides)
    lines = [f"{head} | best peer / best plait |", "|---" * (len(sides) + 2) + "|"]
    for result in results:
        cell = "".join(f" {value:.2f} |" for value in ratios([result]))
        lines.append(row(result, result.calls, 1e3) + cell)
    if ratios(results):
        mean = statistics.geometric_mean(ratios(results))
        lines += ["", f"The geometric mean of the ratios is {mean:.2f}."]
    lines += ["", "Seconds to the first answer:", "", f"{head} |", "|---" * (len(sides) + 1) + "|"]
    lines += [row(result, result.firsts, 1) for result in results]
    lines += ["", *(note for result in results for note in result.notes)]
    return "\n".join(lines).rstrip() + "\n"


def headline(results: list[Result]) -> str:
    """Return what the index of pages says: the best peer's time over plait's best."""
    mean = statistics.geometric_mean(ratios(results)) if ratios(results) else 0
    return f"best peer's time over plait's: {mean:.2f} in the geometric mean" if mean else ""


PAGE = """# Inference beside engines that compile

`python benchmarks/inference_peers.py --docs` wrote this page. Each side runs in a process of its
own on {threads} threads, in float32. The sides are timed in turns, after a call that does not
count; a figure is the median of {rounds} turns, in milliseconds a call. The time to the first
answer begins when the model and its weights are in memory, or where its file lies.

| | |
|---|---|
{machine}

{tables}
The peers: {versions}.
"""


def versions(python: str) -> str:
    """Return the versions of the peers that an interpreter has."""
    code = (
        "from importlib.metadata import version, PackageNotFoundError\n"
        "for name in ('torch', 'onnxruntime', 'openvino'):\n"
        "    try: print(name, version(name))\n"
        "    except PackageNotFoundError: pass"
    )
    done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return ", ".join(done.stdout.splitlines())


def main(arguments: list[str] | None = None) -> int:
    """Print the tables of the cases; write the page."""
    parser = argparse.ArgumentParser("benchmarks/inference_peers.py")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--sides", default=";".join(SIDES), metavar="SIDE;...")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the peers")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--docs", action="store_true", help="write the page of this processor and the list of pages"
    )
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    flags = parser.parse_args(arguments)
    cases = [case for case in CASES if flags.only in case.title]
    if flags.serve:
        serve(flags.serve, cases[0], flags.threads, flags.folder)
        return 0
    sides = [side for side in SIDES if side in flags.sides.split(";")]
    sys.path.insert(0, str(HERE / "table1"))
    import processor_pages
    from machine import description

    machine = "\n".join(f"| {key} | {value} |" for key, value in description().items())
    results = []
    for case in cases:
        results.append(run(case, sides, flags.python, flags.threads, flags.rounds))
        print(case.title, results[-1].calls, flush=True)
    tables = table(results)
    print(tables)
    if flags.docs:
        page = PAGE.format(
            threads=flags.threads,
            rounds=flags.rounds,
            machine=machine,
            tables=tables,
            versions=versions(flags.python),
        )
        rows = [
            [result.case.title, side, seconds, result.firsts[side]]
            for result in results
            for side, seconds in result.calls.items()
        ]
        values = {"date": datetime.date.today().isoformat(), "rows": rows}
        processor_pages.write("inference", page, headline(results), values)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    raise SystemExit(main())
