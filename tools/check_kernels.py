"""Check that nvcc accepts all kernels of plait-cuda: python tools/check_kernels.py [FILE ...].

Its front end alone runs, some seconds a file, and makes no code. Where no nvcc is installed (see
plait_abi.build) nothing is checked.
"""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CUDA = ROOT / "packages" / "cuda"
CORE = ROOT / "packages" / "core"
SOURCES = [str(ROOT / "packages" / name / "src") for name in ("abi", "ops")]
sys.path[:0] = SOURCES

from plait_abi.build import BuildError  # noqa: E402
from plait_abi.build._nvcc import find_nvcc  # noqa: E402

FLAGS: tuple[str, ...] = ("-std=c++17", "-x=cu", "-arch=sm_90", "-fatbin", "-fdevice-syntax-only")
FLAGS += ("-DPLAIT_KERNELS=1", "--expt-relaxed-constexpr", "-diag-suppress=186")
FLAGS += ("-Werror=all-warnings",)
INCLUDE = (CUDA / "cpp", CORE / "cpp", ROOT / "packages" / "abi" / "src" / "plait_abi" / "include")


def generate(folder: pathlib.Path) -> list[pathlib.Path]:
    """Write the pointwise units, and return them."""
    command = [sys.executable, "-m", "plait_ops.emit", "--kernels", str(folder)]
    path = os.pathsep.join([*SOURCES, os.environ.get("PYTHONPATH", "")])
    subprocess.run(command, check=True, env=dict(os.environ, PYTHONPATH=path))
    return sorted(folder.glob("pointwise_*.cpp"))


def check(nvcc: pathlib.Path, source: pathlib.Path) -> str:
    """Return what nvcc says against one file."""
    include = [f"-I{folder}" for folder in INCLUDE]
    command = [str(nvcc), *FLAGS, *include, str(source), "-o", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{source.name}:\n{done.stdout}{done.stderr}"


def main(names: list[str]) -> int:
    """Check the named files, or all, and return the exit code."""
    try:
        nvcc = find_nvcc()
    except BuildError:
        print("check_kernels: there is no nvcc; kernels of GPUs were not checked")
        return 0
    with tempfile.TemporaryDirectory() as place:
        sources = [pathlib.Path(name) for name in names]
        if not sources:
            sources = [*sorted(CUDA.glob("cpp/kernels/**/*.cpp")), *generate(pathlib.Path(place))]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            errors = list(filter(None, pool.map(lambda source: check(nvcc, source), sources)))
    print("".join(errors), end="", file=sys.stderr)
    print(f"check_kernels: {len(sources)} files, {len(errors)} with errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
