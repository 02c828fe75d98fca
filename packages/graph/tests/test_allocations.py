"""Runs of every operator, on all its samples with fixed shapes: no allocations, and told memory."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw

HERE = Path(__file__).parent

_spec = importlib.util.spec_from_file_location("operators_of_graphs", HERE / "test_operators.py")
assert _spec and _spec.loader
operators = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(operators)

# Operators with results whose shapes depend on values: each run makes new tensors.
VARYING = {
    "argwhere",
    "bincount",
    "combinations",
    "index",
    "index_columns",
    "masked_scatter",
    "masked_select",
    "nms",
    "nonzero",
    "nonzero_list",
    "repeat_interleave.counts",
    "repeat_interleave.tensor",
    "unravel_index",
    "where.condition",
}


def bits(t: Any) -> np.ndarray[Any, Any]:
    t = t.detach().contiguous()
    return np.asarray((t.view(pc.int16) if t.dtype == pc.bfloat16 else t).numpy())


def graphs(folder: Path, save_tensors: Callable[..., Path]) -> Iterator[Path]:
    """Write the graph of each sample, and beside it its inputs."""
    for spec in specs.all():
        for number, sample in enumerate(draw(spec)):
            first = sample.copied().mapped(pc.from_numpy)
            inputs = operators.flat((*first.args, *first.kwargs.values()))
            if any(min(t.stride(), default=0) < 0 for t in inputs):
                continue  # a tensor in C has none
            data = {id(t): bits(t).tobytes() for t in inputs}
            function, args, kwargs = operator(spec.name), first.args, first.kwargs
            _, text, weights = operators.recorded(lambda: function(*args, **kwargs), inputs)  # noqa: B023
            names = [weight["name"] for weight in json.loads(text)["weights"]]
            arrays = dict(zip(names, map(bits, weights), strict=True))
            path = folder / f"{spec.name}.{number}"
            save_tensors(path, {"plait_graph": text}, arrays)
            for i, one in enumerate(data.values()):
                Path(f"{path}.{i}").write_bytes(one)
            yield path


def count(program: Path, arguments: list[str], paths: list[Path]) -> dict[Path, list[str]]:
    """Return for each graph "fixed", "varying" or "error", and the numbers or the text."""
    lines = "".join(f"{path}\n" for path in paths)
    done = subprocess.run(
        [program, *arguments], input=lines, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    counts = {}
    for line in done.stdout.splitlines():
        path, *rest = line.split(" ", 2)
        counts[Path(path)] = rest
    assert list(counts) == paths
    return counts


def use_blas(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Name the library of products and decompositions, if it is installed."""
    if not importlib.util.find_spec("scipy_openblas32"):
        return False
    import scipy_openblas32

    (library,) = Path(scipy_openblas32.get_lib_dir()).glob("libscipy_openblas*.so")
    monkeypatch.setenv("PLAIT_BLAS_LIBRARY", str(library))
    return True


@pytest.fixture(scope="module")
def files(
    tmp_path_factory: pytest.TempPathFactory, save_tensors: Callable[..., Path]
) -> list[Path]:
    """Return the files of all samples."""
    if "-fsanitize" in os.environ.get("PLAIT_BUILD_FLAGS", ""):
        pytest.skip("the sanitizer has malloc")
    return list(graphs(tmp_path_factory.mktemp("operators"), save_tensors))


def test_operators_allocate_nothing(
    compiled: Callable[..., Path],
    libraries: str,
    files: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = ["allocations_of_operators.cpp", "count_allocations.cpp"]
    program = compiled("allocations-of-operators", *(HERE / "programs" / name for name in sources))
    # a library for products has lists of its own, so that it only serves what needs one
    monkeypatch.delenv("PLAIT_BLAS_LIBRARY", raising=False)
    counts = count(program, [libraries], files)
    without = [path for path, rest in counts.items() if "LAPACK library is required" in rest[1]]
    if use_blas(monkeypatch):
        counts.update(count(program, [libraries], without))
    else:
        for path in without:
            del counts[path]
    errors = {path.name: text for path, (kind, text) in counts.items() if kind == "error"}
    # a sample whose argument has several elements in one place cannot be copied to an input
    assert all("is expanded: several elements" in text for text in errors.values()), errors
    assert len(errors) < 20
    kinds: dict[str, set[str]] = {"fixed": set(), "varying": set(), "error": set()}
    for path, (kind, _) in counts.items():
        kinds[kind].add(path.name.rpartition(".")[0])
    assert kinds["varying"] == VARYING
    assert len(kinds["fixed"]) > 500
    some = {path.name: n for path, (kind, n) in counts.items() if kind == "fixed" and n != "0"}
    assert some == {}


# What zeros do not show: these refuse some of them, or take more for masks that choose elements.
LESS_IS_TOLD = {"linalg_inv", "linalg_inv_ex", "index_put"}


def test_operators_take_what_is_told(
    compiled: Callable[..., Path],
    libraries: str,
    files: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_blas(monkeypatch)
    program = compiled("memory-of-runs", HERE / "programs" / "memory_of_runs.cpp")
    small = next(path for path in files if path.name == "relu.0")
    counts = count(program, [libraries, str(small), "2"], files)
    fixed = {
        path: list(map(int, n.split())) for path, (kind, n) in counts.items() if kind == "fixed"
    }
    assert len(fixed) > 3000
    # what depends on values, copies of inputs with gaps while they are set: a few bytes
    little = {
        path.name.rpartition(".")[0]: (told, taken)
        for path, (told, _, taken, _) in fixed.items()
        if taken > told + 256
    }
    assert set(little) <= LESS_IS_TOLD, little
