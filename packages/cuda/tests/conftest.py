"""The device of these tests is the emulation of the driver. They compare with the CPU, so
convolutions do not round their operands to TF32."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

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


@pytest.fixture
def emulation() -> Iterator[Any]:
    """Return the numbers of the emulation; work is fast again at the end."""
    from emulation_control import Emulation

    import plait_core as pc

    result = Emulation()
    yield result
    result.set("delay_us", 0)
    pc.cuda.synchronize()
