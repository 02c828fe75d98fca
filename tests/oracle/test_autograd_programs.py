"""Programs that mutate, hook and differentiate twice do in plait what they do in PyTorch.

A program returns numbers or fails; both libraries must do the same, but for the list below.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from torch_programs import PROGRAMS, ours, outcome, theirs

for part in (
    "writes",
    "passes",
    "functions",
    "contexts",
    "hooks",
    "graphs",
    "views",
    "derivatives",
):
    importlib.import_module(f"programs_{part}")

DIFFERENCES = {
    "views_of_views": "what `w.mul_(w)` overwrites is saved as a copy",
    "chunk_inplace": "parts of a split may be written",
    "transposed_inplace_sub": "what is read may overlap what is written",
    "inf_leaf_requires": "tensors made in inference mode are tensors like others",
    "f_nontuple_list": "forward may return a list",
    "gradedge": "names without namespaces",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program = PROGRAMS[name]
    same = outcome(program, ours) == outcome(program, theirs)
    assert same or name in DIFFERENCES
    assert not same or name not in DIFFERENCES, "no difference any more"
