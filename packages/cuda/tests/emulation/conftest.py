"""An emulated driver with test kernels, built apart from that of the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import plait_abi
import plait_core
import plait_cuda

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for emulated_driver
from emulated_driver import Driver  # noqa: E402

PACKAGE = HERE.parents[1]


@pytest.fixture(scope="session")
def driver_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put the package's libcuda.so.1 beside a library of the kernels in kernels/samples.cpp."""
    folder = tmp_path_factory.mktemp("driver")
    shutil.copy(Path(plait_cuda.__file__).parent / "emulation" / "libcuda.so.1", folder)
    cxx = os.environ.get("CXX", "c++").split()
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    headers = Path(plait_core.__file__).parent / "include" / "kernels"
    include = [f"-I{PACKAGE}", f"-I{PACKAGE / 'cpp'}", f"-I{headers}"]
    include += [f"-I{plait_abi.paths()['include']}"]
    sources = [HERE / "kernels" / "samples.cpp", *PACKAGE.glob("emulation/kernels/*.cpp")]
    command = [*cxx, *flags, "-fvisibility=hidden", "-DPLAIT_KERNELS=1", *include]
    command += [*map(str, sources), "-o", str(folder / "libplait_cuda_kernels.so")]
    subprocess.run(command, check=True)
    return folder / "libcuda.so.1"


@pytest.fixture
def driver(driver_path: Path) -> Iterator[Driver]:
    """Return the driver with a context of device 0; faults end with the test."""
    result = Driver(driver_path)
    yield result
    result.close()
