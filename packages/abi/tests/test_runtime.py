"""The runtime library from C++, without Python in the process: see the folder `runtime`."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import plait_abi

SOURCES = sorted(Path(__file__).with_name("runtime").glob("*.cpp"))
NAMES = [
    name
    for source in SOURCES
    for name in re.findall(r"^TEST\((\w+)\)", source.read_text(), flags=re.M)
]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = Path(plait_abi.__file__).parent
    library = home / "lib" / "libplait_abi.so"
    folder = tmp_path_factory.mktemp("runtime")
    cxx = os.environ.get("CXX", "c++").split()
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{home / 'include'}"]
    extra = os.environ.get("PLAIT_BUILD_FLAGS", "").split()
    link = [str(library), f"-Wl,-rpath,{library.parent}", "-lpthread"]

    def compiled(source: Path) -> str:
        target = str(folder / f"{source.stem}.o")
        subprocess.run([*cxx, *flags, *extra, "-c", str(source), "-o", target], check=True)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, SOURCES))
    subprocess.run([*cxx, *extra, *objects, *link, "-o", str(folder / "test")], check=True)
    return folder / "test"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
def test_runtime(program: Path, name: str) -> None:
    # definitions and replaced tables live as long as the process: not leaks
    options = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}
    env = os.environ | options
    done = subprocess.run(
        [str(program), name], capture_output=True, text=True, timeout=240, env=env
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"


WITHOUT_EXCEPTIONS = """
#include <plait/plait.hpp>
#include <cstdio>
int main() {
  const plait_runtime *runtime = plait_runtime_v0();
  plait_thread *thread = runtime->thread();
  const plait::Dims size{2, 3};
  plait::Tensor x;
  if (runtime->tensor_new(thread, plait::dtype::float32, 2, size.data(), nullptr, {kDLCPU, 0},
                          x.out()) < 0)
    return 1;
  const plait_op *op = runtime->op("exp");
  plait_value in[] = {plait::value(x)}, out[1];
  if (op) return plait::try_call(thread, op, in, 1, out);
  std::puts(plait::text(x.shape(), x.ndim()).c_str());
}
"""


def test_the_layer_for_cpp_needs_no_exceptions(tmp_path: Path) -> None:
    home = Path(plait_abi.__file__).parent
    library = home / "lib" / "libplait_abi.so"
    source, program = tmp_path / "plain.cpp", tmp_path / "plain"
    source.write_text(WITHOUT_EXCEPTIONS)
    cxx = os.environ.get("CXX", "c++").split()
    flags = ["-std=c++17", "-fno-exceptions", "-Wall", "-Wextra", "-Werror"]
    link = [str(library), f"-Wl,-rpath,{library.parent}"]
    command = [*cxx, *flags, f"-I{home / 'include'}", str(source), *link, "-o", str(program)]
    subprocess.run(command, check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "(2, 3)\n")


def test_the_list_is_not_empty() -> None:
    assert len(NAMES) > 15
