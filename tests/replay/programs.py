"""What is recorded: sample calls of all operators, larger ones, and first steps of models."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import plait
import plait_abi

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "packages" / "core" / "tests"), str(ROOT / "tests")]

import reproducible_children  # noqa: E402
import test_reproducible_models  # noqa: E402


def main(recorder: str) -> None:
    """Run everything in the reproducible mode, watched by the plug-in ``recorder``."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    plait.set_reproducible(True)
    plait_abi.load(recorder)
    for _ in reproducible_children.operators():
        pass
    for _ in reproducible_children.large():
        pass
    for name in test_reproducible_models.TRAINED:
        test_reproducible_models.step_digests(name, whole=False)


if __name__ == "__main__":
    main(sys.argv[1])
