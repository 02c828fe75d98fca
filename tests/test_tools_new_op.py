"""The skeletons of operators are valid specs, and overwrite no file."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import check_changes  # noqa: E402
import new_op  # noqa: E402

CHECK = """
import importlib.util, sys
import numpy as np
from plait_ops import samples, specs
samples.load()
names = "plait_ops.specs.FAMILY", "plait_ops.samples.FAMILY"
for name, file in zip(names, sys.argv[1:], strict=True):
    spec = importlib.util.spec_from_file_location(name, file)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
operator = module.twofold
assert len(list(samples.draw(operator))) >= 3
assert samples.error_facts(operator)
assert operator.doc
assert operator.kind not in ("structured", "reduction") or operator.kernel.endswith(".")
np.testing.assert_array_equal(operator(np.array([1.0, -2.0])), [1.0, 4.0])
"""


def check(definition: pathlib.Path, data: pathlib.Path, family: str) -> None:
    """Import both files, in a process of their own, for specs register themselves."""
    program = CHECK.replace("FAMILY", family.replace("/", "."))
    command = [sys.executable, "-c", program, str(definition), str(data)]
    subprocess.run(command, check=True, env=dict(os.environ))


def check_format(*files: pathlib.Path) -> None:
    """Fail if `lint` would: the files are formatted as those beside them."""
    ruff = shutil.which("ruff", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    if ruff is not None:
        for command in (["check", "--quiet", "--select", "I"], ["format", "--check", "--quiet"]):
            subprocess.run(
                [ruff, *command, "--config", ROOT / "pyproject.toml", *files], check=True
            )


@pytest.mark.parametrize("kind", sorted(new_op.KINDS))
def test_a_skeleton_is_a_working_spec(tmp_path: pathlib.Path, kind: str) -> None:
    definition, data, *kernel = new_op.write("twofold", kind, tmp_path)
    assert definition == tmp_path / new_op.SPECS / "pointwise/twofold.py"
    assert data == tmp_path / new_op.SAMPLES / "pointwise/twofold.py"
    suffix = {"pointwise": ["h"], "structured": ["cpp"], "composite": []}[kind]
    assert kernel == [tmp_path / new_op.KERNELS / f"pointwise/twofold.{each}" for each in suffix]
    for path in (definition, data, *kernel):
        assert "twofold" in path.read_text() and "EDIT" in path.read_text()
        assert "NAME" not in path.read_text()
    check(definition, data, "pointwise/twofold")
    check_format(definition, data)


@pytest.mark.parametrize("kind", sorted(new_op.KINDS))
def test_an_operator_joins_a_family(tmp_path: pathlib.Path, kind: str) -> None:
    family = "reduction/differences"
    for folder in (new_op.SPECS, new_op.SAMPLES):
        there = tmp_path / folder / f"{family}.py"
        there.parent.mkdir(parents=True)
        text = (ROOT / folder / f"{family}.py").read_text()
        there.write_text(text.replace('"diff(', '"diff_of(').replace('"diff"', '"diff_of"'))
    header = tmp_path / new_op.KERNELS / f"{family}.h"
    header.parent.mkdir(parents=True)
    header.write_text("// differences\n" + new_op.HEADER)
    definition, data, *kernel = new_op.write("twofold", kind, tmp_path, family)
    assert (definition, data) == tuple(
        tmp_path / folder / f"{family}.py" for folder in (new_op.SPECS, new_op.SAMPLES)
    )
    for path in (definition, data):
        assert "diff_of" in path.read_text()
        lines = [line for line in path.read_text().splitlines() if line.startswith("from ")]
        assert len({line.split()[1] for line in lines}) == len(lines)  # one import a module
    check_format(definition, data)
    if kind == "pointwise":
        assert kernel == [header] and header.read_text().startswith("// differences\n")
        assert "PLAIT_HD T twofold(T x)" in header.read_text()
    check(definition, data, family)


@pytest.mark.parametrize("name", ["Softmax", "relu_", "2d", "", "a-b", "lambda"])
def test_names_that_cannot_be(tmp_path: pathlib.Path, name: str) -> None:
    with pytest.raises(ValueError, match="`name` must be like log_softmax"):
        new_op.write(name, "pointwise", tmp_path)


@pytest.mark.parametrize("family", ["activations", "pointwise/", "unknown/one", "pointwise/One"])
def test_families_that_cannot_be(tmp_path: pathlib.Path, family: str) -> None:
    with pytest.raises(ValueError, match="`family` must be like pointwise/activations"):
        new_op.write("twofold", "pointwise", tmp_path, family)


def test_an_operator_that_exists_is_refused() -> None:
    text = r"there is an operator 'softmax' in .*specs/normalization/softmax\.py"
    with pytest.raises(ValueError, match=text):
        new_op.write("softmax", "composite")


def test_no_kernel_is_overwritten(tmp_path: pathlib.Path) -> None:
    definition, data, kernel = new_op.write("twofold", "structured", tmp_path)
    definition.unlink()
    kernel.write_text("mine")
    before = data.read_text()
    with pytest.raises(ValueError, match=r"cpp/pointwise/twofold\.cpp would be overwritten"):
        new_op.write("twofold", "structured", tmp_path)
    assert kernel.read_text() == "mine" and data.read_text() == before


@pytest.mark.parametrize("name", ["twofold", "two_fold_2d"])
def test_the_fragment_of_the_changelog_has_its_form(tmp_path: pathlib.Path, name: str) -> None:
    for folder in ("packages/ops", "docs/design"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "packages/ops/pyproject.toml").write_text("[project]\nname = 'plait-ops'\n")
    path = new_op.describe(name, tmp_path)
    assert path.read_text() == f"`{name}` was added: EDIT what it computes.\n"
    (tmp_path / "changes/README.md").write_text("How to write them.\n")
    assert check_changes.check(tmp_path) == []
