"""The device of these tests is the emulation of the driver."""

from __future__ import annotations

import os
import pathlib
import sys

os.environ.setdefault("PLAIT_CUDA_EMULATION", "1")
sys.path.append(str(pathlib.Path(__file__).parent))
