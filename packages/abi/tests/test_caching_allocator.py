"""The caching allocator of <plait/caching_allocator.hpp> over a device of the test program."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

import plait_abi


@pytest.fixture(scope="module")
def program(compile_cpp: Callable[..., str]) -> str:
    return compile_cpp("caching_allocator")


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
