"""How much of a device this process may have, and what NVIDIA's tools are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plait_core as pc
import plait_cuda

MIB = 1 << 20


@pytest.fixture
def limited() -> Iterator[int]:
    """Let the process have 64 MiB more than it has."""
    pc.cuda.synchronize()
    pc.cuda.empty_cache()
    limit = pc.cuda.memory_reserved() + 64 * MIB
    plait_cuda.limit_memory(limit)
    yield limit
    plait_cuda.limit_memory(None)


def bytes_of(n: int) -> Any:
    return pc.empty(n, dtype=pc.uint8, device="cuda")


def test_a_request_beyond_the_limit_is_refused(limited: int) -> None:
    assert plait_cuda.memory_limit() == limited
    with pytest.raises(pc.cuda.OutOfMemoryError, match=f"may have {limited} bytes of the device"):
        bytes_of(65 * MIB)
    kept = bytes_of(40 * MIB)
    with pytest.raises(pc.cuda.OutOfMemoryError):
        bytes_of(40 * MIB)
    del kept
    bytes_of(60 * MIB)  # what the allocator had kept was given back
    plait_cuda.limit_memory(None)
    assert plait_cuda.memory_limit() is None
    bytes_of(80 * MIB)


def test_a_refusal_of_the_driver_does_not_speak_of_the_limit(limited: int, emulation: Any) -> None:
    with pytest.raises(pc.cuda.OutOfMemoryError):
        bytes_of(65 * MIB)
    plait_cuda.limit_memory(None)
    with pytest.raises(pc.cuda.OutOfMemoryError) as error:
        bytes_of(1 << 40)
    assert "may have" not in str(error.value)


def test_bad_limits() -> None:
    with pytest.raises(ValueError, match="`nbytes` must not be negative, got -1"):
        plait_cuda.limit_memory(-1)
    with pytest.raises(ValueError, match="there is no device 1000"):
        plait_cuda.limit_memory(1, device=1000)


def test_tools_hear_when_to_record(emulation: Any) -> None:
    pc.ones(1, device="cuda")
    before = emulation.get("profiles")
    plait_cuda.profiler(True)
    plait_cuda.profiler(False)
    assert emulation.get("profiles") == before + 1
