"""Which file of a library of NVIDIA is opened where there are several."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

import plait_cuda

SOURCES = pathlib.Path(plait_cuda.__file__).resolve().parents[2] / "cpp"
PROGRAM = """
#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include "driver/driver.h"
#include "host/library.h"

namespace plait::cuda::driver {
const char *folder() {
  static const std::string result = std::string(getenv("FOLDER")) + "/plait_cuda/lib/";
  return result.c_str();
}
bool emulated() { return false; }
}  // namespace plait::cuda::driver

int main() {
  if (const char *earlier = getenv("EARLIER"))
    if (!dlopen(earlier, RTLD_NOW | RTLD_LOCAL)) return 3;
  void *library = plait::cuda::open_library(
      {{"one/lib", "libpart.so.2"}, {"one/lib", "libpart.so.1"}}, getenv("CHOICE"));
  int (*version)() = nullptr, (*newer)() = nullptr;
  if (!library) return puts("none"), 0;
  if (!plait::cuda::look_up(library, {{&version, "part_version"}})) return 4;
  const bool has_all = plait::cuda::look_up(library, {{&newer, "part_of_version_2"}});
  printf("%d%s\\n", version(), has_all ? " all" : "");
}
"""


def compile_with(folder: pathlib.Path, name: str, source: str, *options: str) -> pathlib.Path:
    """Compile a C++ source; return the file with the code."""
    path, result = folder / f"{name}.cpp", folder / name
    path.write_text(source)
    compiler = os.environ.get("CXX", "c++").split()
    command = [*compiler, "-std=c++17", str(path), "-o", str(result), *options]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return result


def part(folder: pathlib.Path, soname: str, number: int) -> pathlib.Path:
    """Compile a library that says a number; those of 20 and more have a newer function, too."""
    folder.mkdir(parents=True, exist_ok=True)
    source = f'extern "C" int part_version() {{ return {number}; }}\n'
    if number >= 20:
        source += 'extern "C" int part_of_version_2() { return 0; }\n'
    return compile_with(folder, soname, source, "-shared", "-fPIC", f"-Wl,-soname,{soname}")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with a program that opens a library, and with libraries in several places."""
    if not SOURCES.is_dir():
        pytest.skip("the sources of plait-cuda are not there")
    folder = tmp_path_factory.mktemp("places")
    abi = SOURCES.parents[1] / "abi" / "src" / "plait_abi" / "include"
    library = str(SOURCES / "host" / "library.cpp")
    include = [f"-I{SOURCES}", f"-I{abi}"]
    compile_with(folder, "program", PROGRAM, library, *include, "-ldl")
    (folder / "site" / "plait_cuda" / "lib").mkdir(parents=True)
    part(folder / "site" / "nvidia" / "one" / "lib", "libpart.so.2", 21)
    part(folder / "system", "libpart.so.2", 22)
    part(folder / "elsewhere", "libpart.so.2", 23)
    part(folder / "older", "libpart.so.2", 19)
    part(folder / "elsewhere", "libpart.so.1", 13)
    return folder


def opened(places: pathlib.Path, site: str = "site", **environment: str) -> str:
    """Run the program; return the version that it has opened."""
    done = subprocess.run(
        [str(places / "program")],
        env={**os.environ, "FOLDER": str(places / site), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_packages_come_before_the_system(places: pathlib.Path) -> None:
    system = str(places / "system")
    assert opened(places, LD_LIBRARY_PATH=system) == "21 all"
    assert opened(places, site="none", LD_LIBRARY_PATH=system) == "22 all"
    assert opened(places, site="none") == "none"
    assert opened(places, CHOICE="0") == "none"


def test_a_version_that_the_process_has_open_serves(places: pathlib.Path) -> None:
    elsewhere = str(places / "elsewhere" / "libpart.so.2")
    assert opened(places, EARLIER=elsewhere) == "23 all"
    # an older library under another name is no reason to do without the one that is installed
    assert opened(places, EARLIER=str(places / "elsewhere" / "libpart.so.1")) == "21 all"
    # one of the same name that lacks a function is found out by `look_up`, and not used
    assert opened(places, EARLIER=str(places / "older" / "libpart.so.2")) == "19"
