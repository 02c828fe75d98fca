"""What `torch.backends.cpu.get_cpu_capability` says of the kernels that run."""

from __future__ import annotations

import platform

import pytest

from plait_core import instruction_sets
from plait_torch import _backends, installed


@pytest.mark.parametrize(
    ("library", "expected"), [("plait_cpu_avx2", "AVX2"), ("plait_cpu_base", "DEFAULT")]
)
def test_the_capability_is_that_of_the_kernels(
    library: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instruction_sets, "kernel_library", lambda: library)
    assert _backends.cpu.get_cpu_capability() == expected


def test_capabilities_of_the_processor() -> None:
    with installed():
        import torch

        facts = torch.cpu.get_capabilities()
        assert (
            facts["num_logical_cores"] >= facts["num_physical_cores"] >= facts["num_sockets"] >= 1
        )
        assert facts["architecture"] == platform.machine() and facts["l1d_cache_size"] >= 0
        if platform.machine() == "x86_64":
            assert facts["sse2"] is True and isinstance(facts["avx512_vbmi2"], bool)
            assert facts["avx2"] >= (torch.backends.cpu.get_cpu_capability() == "AVX2")


def test_queues_and_events_of_the_processor_are_complete() -> None:
    with installed():
        import torch

        stream = torch.cpu.current_stream()
        assert isinstance(stream, torch.cpu.Stream) and stream is torch.cpu.current_stream()
        event = torch.cpu.Event()
        event.record(stream)
        stream.wait_event(event)
        assert event.query() and torch.thread_safe_generator() is None
