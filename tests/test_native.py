"""A C++ program without Python loads the components and trains a network."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import plait_abi
import plait_autograd
import plait_core
import plait_ops

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "native" / "train.cpp"


def libraries() -> list[Path]:
    core = Path(plait_core.__file__).parent / "lib"
    autograd = Path(plait_autograd.__file__).parent / "lib" / "libplait_autograd.so"
    levels = [core / f"libplait_cpu_{level}.so" for level in ("base", "avx2")]
    kernels = next(path for path in levels if path.exists())  # a build may have one level alone
    return [Path(plait_ops.library_path()), core / "libplait_core.so", kernels, autograd]


def build(folder: Path) -> Path:
    program = folder / "train"
    cxx = os.environ.get("CXX", "c++").split()
    paths = plait_abi.paths()
    link = [str(paths["libplait_abi.so"]), f"-Wl,-rpath,{Path(paths['libplait_abi.so']).parent}"]
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{paths['include']}"]
    subprocess.run([*cxx, *flags, str(EXAMPLE), *link, "-o", str(program)], check=True)
    return program


def test_a_program_without_python_learns_xor(tmp_path: Path) -> None:
    program = build(tmp_path)
    done = subprocess.run(
        [str(program), *map(str, libraries())], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "step 2000" in done.stdout
    linked = subprocess.run(
        ["ldd", str(program), *map(str, libraries())], capture_output=True, text=True
    ).stdout
    assert "libpython" not in linked


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    done = subprocess.run([str(build(tmp_path))], capture_output=True, text=True, timeout=240)
    assert done.returncode == 2
    assert "libplait_autograd" in done.stderr
