"""The device of these tests is the emulation of the driver. They compare with the CPU, so
convolutions do not round their operands to TF32."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("PLAIT_CUDA_EMULATION", "1")
sys.path.append(str(pathlib.Path(__file__).parent))


@pytest.fixture(autouse=True, scope="session")
def exact_convolutions() -> Iterator[None]:
    """Convolutions of float32 are computed in float32."""
    import plait_core as pc

    pc.accelerator.set_tf32(convolutions=False)
    yield
    pc.accelerator.set_tf32(convolutions=True)
