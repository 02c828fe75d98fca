"""What `torch.backends.cpu.get_cpu_capability` says of the kernels that run."""

from __future__ import annotations

import pytest

from plait_core import instruction_sets
from plait_torch import _backends


@pytest.mark.parametrize(
    ("library", "expected"), [("plait_cpu_avx2", "AVX2"), ("plait_cpu_base", "DEFAULT")]
)
def test_the_capability_is_that_of_the_kernels(
    library: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instruction_sets, "kernel_library", lambda: library)
    assert _backends.cpu.get_cpu_capability() == expected
