"""The caching allocator of <plait/caching_allocator.hpp> over a device of the test program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import plait_abi

HERE = Path(__file__).parent


@pytest.fixture(name="program", scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = tmp_path_factory.mktemp("allocator") / "caching_allocator"
    cxx = os.environ.get("CXX", "c++").split()
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    extra = os.environ.get("PLAIT_BUILD_FLAGS", "").split()
    source = str(HERE / "caching_allocator.cpp")
    folder = f"-I{plait_abi.paths()['include']}"
    subprocess.run([*cxx, *flags, *extra, folder, source, "-ldl", "-o", str(program)], check=True)
    return str(program)


def run(program: str, mode: str, seed: int, **environment: str) -> None:
    done = subprocess.run(
        [program, str(plait_abi.paths()["libplait_abi.so"]), mode, str(seed)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
    )
    assert done.stdout.split() == ["done"], done.stdout + done.stderr


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", ["streams", "scarce", "pools"])
@pytest.mark.long
def test_random_programs(program: str, mode: str, seed: int) -> None:
    run(program, mode, seed)


@pytest.mark.long
def test_threads_share_a_device(program: str) -> None:
    run(program, "threads", 0)


@pytest.mark.long
def test_pinned_memory_is_kept_by_size(program: str) -> None:
    run(program, "pinned", 0)


@pytest.mark.long
def test_without_the_cache_each_request_is_a_segment(program: str) -> None:
    run(program, "exact", 0, PLAIT_DEVICE_CACHE="0")
