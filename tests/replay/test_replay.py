"""Calls that were recorded in the reproducible mode give the same bits elsewhere, without Python.

The libraries are compiled for aarch64 and run under QEMU's user-mode emulation. That needs a cross
compiler and the emulator (Debian: g++-aarch64-linux-gnu, qemu-user or qemu-user-static);
PLAIT_REPLAY_CXX and PLAIT_REPLAY_RUN name others.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import plait_abi
import plait_core
import plait_ops
import plait_optim

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CXX = os.environ.get("PLAIT_REPLAY_CXX", "aarch64-linux-gnu-g++")
EMULATOR = next(filter(shutil.which, ("qemu-aarch64", "qemu-aarch64-static")), "qemu-aarch64")
RUN = os.environ.get("PLAIT_REPLAY_RUN", f"{EMULATOR} -L /usr/aarch64-linux-gnu")
FLAGS = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{plait_abi.paths()['include']}")
PACKAGES = ("abi", "ops", "core", "optim")
FEWEST_CALLS = 5000  # so that no part of the recording is lost unseen


def run(command: Sequence[str | Path], folder: Path = ROOT, **more: str) -> str:
    words = [str(word) for word in command]
    environment = {**os.environ, **more}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of recorded calls, made with the best kernels of this processor."""
    folder = tmp_path_factory.mktemp("calls")
    recorder, file = folder / "recorder.so", folder / "calls"
    compiler = os.environ.get("CXX", "c++").split()
    run([*compiler, *FLAGS, "-shared", "-fPIC", HERE / "recorder.cpp", "-o", recorder])
    run([sys.executable, HERE / "programs.py", recorder], PLAIT_RECORD=str(file))
    return file


def replayed(output: str) -> None:
    match = re.search(r"(\d+) calls, 0 operators differ", output)
    assert match and int(match[1]) >= FEWEST_CALLS, output[-4000:]


def program(compiler: Sequence[str], abi: Path, folder: Path) -> Path:
    result = folder / "replay"
    link = [abi, f"-Wl,-rpath,{abi.parent}"]
    run([*compiler, *FLAGS, HERE / "replay.cpp", *link, "-o", result])
    return result


@pytest.mark.parametrize("kernels", [("base", "exact"), ("base", "avx2")], ids="-".join)
def test_kernels_of_this_machine(calls: Path, kernels: tuple[str, ...], tmp_path: Path) -> None:
    core = Path(plait_core.__file__).parent / "lib"
    selection = [core / f"libplait_cpu_{name}.so" for name in kernels]
    if not all(path.exists() for path in selection):
        pytest.skip("there is one instruction set")
    abi = Path(plait_abi.paths()["libplait_abi.so"])
    libraries = [
        plait_ops.library_path(),
        core / "libplait_core.so",
        *selection,
        Path(plait_optim.__file__).parent / "lib" / "libplait_optim.so",
    ]
    result = program(os.environ.get("CXX", "c++").split(), abi, tmp_path)
    replayed(run([result, calls, *libraries]))


def test_kernels_of_aarch64(calls: Path, tmp_path: Path) -> None:
    for word in (CXX.split()[0], RUN.split()[0]):
        if not shutil.which(word):
            pytest.skip(f"{word} is not installed")
    result = tmp_path / "libraries"
    for name in PACKAGES:
        folder, objects = ROOT / "packages" / name, tmp_path / "objects"
        command = [sys.executable, "setup.py", "build_libraries", result]
        run(command, folder, CXX=CXX, PLAIT_BUILD_DIR=str(objects))
    lib = {path.stem.removeprefix("libplait_"): path for path in result.glob("*/lib/*.so")}
    selection = [lib[name] for name in ("ops", "core", "cpu_base", "optim")]
    replayed(run([*RUN.split(), program(CXX.split(), lib["abi"], tmp_path), calls, *selection]))
