"""The skeletons of operators: each is a spec that holds together, and never overwrites anything."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import new_op  # noqa: E402

CHECK = """
import importlib.util, sys
import numpy as np
from plait_ops import specs
list(specs.all())
spec = importlib.util.spec_from_file_location("skeleton", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
operator = module.twofold
samples = list(operator.draw())
assert len(samples) >= 3
assert operator.doc
np.testing.assert_array_equal(operator(np.array([1.0, -2.0])), [1.0, 4.0])
"""


@pytest.mark.parametrize("kind", sorted(new_op.KINDS))
def test_a_skeleton_is_a_working_spec(tmp_path: pathlib.Path, kind: str) -> None:
    spec, *others = new_op.write("twofold", kind, tmp_path)
    assert len(others) == (kind != "composite")
    assert all("twofold" in path.read_text() and "EDIT" in path.read_text() for path in others)
    assert not any("NAME" in path.read_text() for path in [spec, *others])
    # Elsewhere, for specs register themselves.
    subprocess.run([sys.executable, "-c", CHECK, str(spec)], check=True, env=dict(os.environ))


@pytest.mark.parametrize("name", ["Softmax", "relu_", "2d", "", "a-b", "lambda"])
def test_names_that_cannot_be(tmp_path: pathlib.Path, name: str) -> None:
    with pytest.raises(ValueError, match="`name` must be like log_softmax"):
        new_op.write(name, "pointwise", tmp_path)


def test_an_operator_that_exists_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there is an operator 'softmax' in .*specs/normalization/softmax\.py"):
        new_op.write("softmax", "composite")


def test_nothing_is_overwritten(tmp_path: pathlib.Path) -> None:
    _, scalar = new_op.write("twofold", "pointwise", tmp_path)
    (tmp_path / new_op.SPECS / "pointwise/twofold.py").unlink()
    scalar.write_text("mine")
    with pytest.raises(ValueError, match=r"cpp/pointwise/twofold\.h would be overwritten"):
        new_op.write("twofold", "pointwise", tmp_path)
    assert scalar.read_text() == "mine"
