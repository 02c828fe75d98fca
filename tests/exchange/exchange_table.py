"""Models exchanged with PyTorch and onnxruntime: the largest difference and the time beside theirs.

    python tests/exchange/exchange_table.py [--small] [--write FILE] [MODEL ...]

Each model of the benchmarks goes, with the same weights, by a file

- from PyTorch to plait and back, as a TorchScript archive of `torch.jit.trace`,
- from plait to onnxruntime, as `plait_onnx.export` writes it,
- from PyTorch to plait, as an ONNX file of `torch.onnx.export`, if that can write the model.

A row has the largest difference of the outputs as a part of the largest output, and milliseconds of
a call on one thread: the least of several, of both in turn. `--write` puts the table between the
marks in a guide. It ends with an error if a difference is larger than 0.001, or if plait or
onnxruntime refuses a model. It needs PyTorch; `nox -s exchange -- --table` installs it.
"""

from __future__ import annotations

import argparse
import io
import platform
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

import plait
import plait_onnx
from plait_torch import _torchscript
from plait_torch._torchscript import _scripting

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from models import MODELS, fill  # noqa: E402

BEGIN, END = "<!-- table of exchanges -->", "<!-- end of the table -->"
HEAD = "| model | from | to | by | difference | plait, ms | the other, ms |\n" + "|---" * 7 + "|"
LARGEST = 1e-3
SECONDS, FEWEST = 0.5, 5  # of timing each pair, and its calls
SMALL = ("bert", "gpt2", "gnmt", "neumf", "vgg19")  # in small versions, as the others are large

Run = Callable[[], Any]


def arrays_of(result: Any) -> list[Any]:
    """Return the outputs as arrays of NumPy."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [part if isinstance(part, np.ndarray) else part.detach().numpy() for part in parts]


def compared(own: Run, other: Run) -> tuple[float, float, float]:
    """Return the difference of two functions' outputs, and milliseconds of a call of each."""
    pairs = list(zip(arrays_of(own()), arrays_of(other()), strict=True))
    difference = max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in pairs)
    best, end, count = [np.inf, np.inf], time.perf_counter() + SECONDS, 0
    while count < FEWEST or time.perf_counter() < end:
        for i, run in enumerate((own, other)):
            start = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - start)
        count += 1
    return difference, best[0] * 1e3, best[1] * 1e3


def session_of(model: Any, arrays: list[Any]) -> Run:
    """Return a function that runs an ONNX model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {entry.name: array for entry, array in zip(session.get_inputs(), arrays, strict=True)}
    return lambda: session.run(None, feed)


class Refused(Exception):
    """PyTorch does not write a model."""


def by_torch(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function of PyTorch that writes a model."""
    try:
        return function(*args, **options)
    except Exception as error:
        raise Refused(f"PyTorch refuses: {type(error).__name__}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of an error, for a cell of a table."""
    return (str(error).strip() or type(error).__name__).split("\n")[0].replace("|", "/")[:150]


class Pair:
    """A model in both libraries, with its inputs."""

    def __init__(self, name: str, small: bool) -> None:
        model = MODELS[name]
        build, data = model.small if small else ({}, {})
        self.title = f"{model.title}, small" if small else model.title
        self.own = fill(plait, model.build(plait, **build)).eval()
        self.other = fill(torch, model.build(torch, **build)).eval()
        arrays = model.data(1, **data)
        self.arrays = list(arrays[:-1] if model.trained else arrays)
        self.tensors = tuple(map(plait.from_numpy, self.arrays))
        self.others = tuple(map(torch.from_numpy, self.arrays))

    def archive_of_torch(self) -> tuple[Run, Run]:
        """PyTorch's archive in plait, beside PyTorch."""
        file = io.BytesIO()
        traced = by_torch(torch.jit.trace, self.other, self.others, check_trace=False)
        torch.jit.save(traced, file)
        file.seek(0)
        module = _torchscript.load(file)
        return lambda: module(*self.tensors), lambda: self.other(*self.others)

    def archive_of_plait(self) -> tuple[Run, Run]:
        """An archive of plait in PyTorch, beside plait."""
        file = io.BytesIO()
        _torchscript.save(_scripting.trace(self.own, self.tensors, {}), file)
        file.seek(0)
        module = torch.jit.load(file)
        return lambda: self.own(*self.tensors), lambda: module(*self.others)

    def onnx_of_plait(self) -> tuple[Run, Run]:
        """An ONNX file of plait in onnxruntime, beside plait."""
        model = plait_onnx.export(self.own, self.tensors).to_proto().SerializeToString()
        return lambda: self.own(*self.tensors), session_of(model, self.arrays)

    def onnx_of_torch(self) -> tuple[Run, Run]:
        """An ONNX file of PyTorch in plait, beside onnxruntime."""
        file = io.BytesIO()
        torch.backends.mha.set_fastpath_enabled(False)  # one operator, which ONNX does not have
        try:
            options = {"dynamo": False, "opset_version": 17}
            by_torch(torch.onnx.export, self.other, self.others, file, **options)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
        module = plait_onnx.load(file.getvalue())
        return lambda: module(*self.tensors), session_of(file.getvalue(), self.arrays)


WAYS: dict[tuple[str, str, str], Callable[[Pair], tuple[Run, Run]]] = {
    ("PyTorch", "plait", "TorchScript"): Pair.archive_of_torch,
    ("plait", "PyTorch", "TorchScript"): Pair.archive_of_plait,
    ("plait", "onnxruntime", "ONNX"): Pair.onnx_of_plait,
    ("PyTorch", "plait, onnxruntime", "ONNX"): Pair.onnx_of_torch,
}


def rows_of(name: str, small: bool) -> list[tuple[str, bool]]:
    """Return the rows of a model, and whether each is right."""
    pair, rows = Pair(name, small), []
    for (source, target, form), way in WAYS.items():
        head = f"| {pair.title} | {source} | {target} | {form} |"
        try:
            difference, own, other = compared(*way(pair))
        except Refused as error:
            rows.append((f"{head} {error} | | |", True))
            continue
        except Exception as error:
            rows.append((f"{head} **{type(error).__name__}**: {first_line(error)} | | |", False))
            continue
        right = difference <= LARGEST
        said = f"{difference:.0e}" if right else f"**{difference:.0e}**"
        rows.append((f"{head} {said} | {own:.1f} | {other:.1f} |", right))
    return rows


def versions() -> str:
    """Return one sentence about what was compared."""
    return (
        f"Python {platform.python_version()}, {platform.machine()}, one thread, PyTorch "
        f"{torch.__version__}, onnxruntime {onnxruntime.__version__}, {time.strftime('%Y-%m-%d')}."
    )


def main() -> int:
    """Compare the models, print the rows, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--small", action="store_true", help="small versions of all models")
    parser.add_argument("--write", type=Path, help="a guide with the marks of the table")
    parser.add_argument("models", nargs="*", help="names of benchmarks/models")
    options = parser.parse_args()
    torch.set_num_threads(1)
    plait.set_num_threads(1)
    warnings.simplefilter("ignore")
    lines, wrong = [versions(), "", *HEAD.split("\n")], 0
    with torch.no_grad(), plait.no_grad():
        for name in options.models or MODELS:
            for row, right in rows_of(name, options.small or name in SMALL):
                print(row, flush=True)
                lines.append(row)
                wrong += not right
    if options.write is not None:
        before, rest = options.write.read_text("utf-8").split(BEGIN)
        table = "\n".join((BEGIN, *lines, END))
        options.write.write_text(before + table + rest.split(END)[1], "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
