"""The role "compiler": another provider's programs run, and ours where it declines."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_graph import compile, export, load

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "plugins" / "compiler.c"

pytestmark = pytest.mark.skipif(not EXAMPLE.is_file(), reason="needs the examples")


def built(source: Path, folder: Path) -> Path:
    """Compile a plug-in against the headers of the packages."""
    result = folder / f"{source.stem}.so"
    command = [*os.environ.get("CC", "cc").split(), "-std=c11", "-O1", "-shared", "-fPIC"]
    command += ["-Wall", "-Wextra", "-Wpedantic", "-Werror", str(source), "-o", str(result)]
    command += [f"-I{plait_abi.paths(name)['include']}" for name in ("plait_abi", "plait_graph")]
    subprocess.run(command, check=True)
    return result


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(EXAMPLE, tmp_path_factory.mktemp("compiler"))


class Counts:
    """The programs of the example that exist, and how often they ran."""

    def __init__(self, library: Path) -> None:
        names = ("example_compiler_programs", "example_compiler_runs")
        handle = ctypes.CDLL(str(library))
        self._values = [ctypes.c_uint64.in_dll(handle, name) for name in names]

    @property
    def programs(self) -> int:
        return self._values[0].value

    @property
    def runs(self) -> int:
        return self._values[1].value


@contextlib.contextmanager
def other_compiler(library: Path) -> Iterator[Counts]:
    plait_abi.load(str(library))
    try:
        yield Counts(library)
    finally:
        plait_abi.detach("example-compiler")


def active() -> list[str]:
    return [
        record.provider
        for record in plait_abi.records()
        if (record.kind, record.name) == ("role", "compiler") and record.active
    ]


def test_it_runs_compiled_functions_and_files(library: Path, tmp_path: Path) -> None:
    path, x = tmp_path / "model.safetensors", pc.randn(4, 3)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    export(model, (x,), path)
    assert active() == ["plait_graph-programs"]
    with other_compiler(library) as counts:
        assert active() == ["example-compiler"]
        run, n_runs = load(path), counts.runs
        assert counts.programs == 1 and run(x).tolist() == model(x).tolist()
        assert counts.runs == n_runs + 1
        compiled = compile(model, frozen=True)
        for _ in range(3):  # forward and backward pass are a program each
            model.zero_grad()
            compiled(x).sum().backward()
        grad = model[0].weight.grad
        model.zero_grad()
        model(x).sum().backward()
        assert counts.programs == 3 and counts.runs == n_runs + 3
        assert pc.equal(grad, model[0].weight.grad)
        assert len(compiled.graphs()) == 2
        with pytest.raises(Exception, match=r"the input input is float32\(5, 3\)"):
            run(pc.randn(5, 3))
    assert active() == ["plait_graph-programs"] and counts.programs == 3
    assert run(x).tolist() == model(x).tolist() and counts.runs == n_runs + 5
    del run, compiled
    assert counts.programs == 0
    runs = counts.runs
    assert load(path)(x).shape == (4, 2) and counts.runs == runs


def test_it_trains_with_numbers(library: Path, tmp_path: Path) -> None:
    def losses() -> tuple[list[float], Any, Any]:
        pc.manual_seed(0)
        model, x = nn.Linear(3, 2), pc.randn(4, 3)
        optimizer = optim.Adam(model.parameters(), lr=0.1)
        schedule = optim.lr_scheduler.StepLR(optimizer, 2)

        @compile(frozen=True)
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        result = []
        for _ in range(6):
            result.append(step(x).item())
            schedule.step()
        return result, step, x

    own, *_ = losses()
    with other_compiler(library) as counts:
        runs = counts.runs
        other, step, x = losses()
        assert other == own and counts.runs == runs + 3
        export(step._orig_mod, (x,), tmp_path / "step.safetensors", training=True)
        train = load(tmp_path / "step.safetensors")
        before = train(x).item()
        train.save(tmp_path / "later.safetensors")
        again = load(tmp_path / "later.safetensors")
        assert train(x).item() == again(x).item() != before
        del train, again, step


def test_what_it_declines_is_ours(library: Path) -> None:
    with other_compiler(library) as counts:
        before = counts.programs, counts.runs
        function = compile(lambda x: x.sort().values + 1, frozen=True)
        for _ in range(3):
            assert function(pc.tensor([2.0, 1.0])).tolist() == [2.0, 3.0]
        assert (counts.programs, counts.runs) == before and len(function.graphs()) == 1


def test_errors_of_a_compiler(tmp_path: Path) -> None:
    library = built(Path(__file__).parent / "programs" / "broken_compiler.c", tmp_path)
    path = tmp_path / "model.safetensors"
    export(lambda x: x + 1, (pc.zeros(2),), path)
    plait_abi.load(str(library))
    try:
        with pytest.raises(ValueError, match="broken: no register is free"):
            load(path)
        run = load(path)
        with pytest.raises(ValueError, match="compiler broken: output 0 is missing"):
            run(pc.zeros(2))
        ctypes.CDLL(str(library)).take_function()
        with pytest.raises(ValueError, match="the compiler broken is incomplete"):
            load(path)
    finally:
        plait_abi.detach("broken-compiler")
    assert np.array_equal(load(path)(pc.zeros(2)).numpy(), np.ones(2, np.float32))
