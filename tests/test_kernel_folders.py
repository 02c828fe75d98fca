"""The kernels of a family of operators have the folder and file name of its definition."""

from __future__ import annotations

import pathlib
import re

import pytest

from plait_ops import specs
from plait_ops.emit.kernels import scalar_name
from plait_ops.spec import Pointwise

CPP = pathlib.Path(__file__).resolve().parents[1] / "packages/core/cpp"
OPERATORS = {operator.name: operator for operator in specs.all()}
FAMILIES = {operator.family for operator in OPERATORS.values()}
OTHERS = ("python", "runtime")  # these folders have no kernels
FILES = [
    path
    for path in sorted(CPP.glob("*/*"))
    if path.suffix in {".cpp", ".h"} and path.parent.name not in OTHERS
]
# Reductions over exponentials of rows, as softmax has them.
ELSEWHERE = {"logsumexp": "normalization"}


def _family_named(stem: str) -> set[str]:
    """The families whose name a file's name is, or begins with."""
    return {family for family in FAMILIES if f"{stem}_".startswith(family.rpartition("/")[2] + "_")}


def test_a_file_with_a_familys_name_lies_in_its_folder() -> None:
    named = [(path, _family_named(path.stem)) for path in FILES]
    assert sum(bool(families) for _, families in named) > 50
    misplaced = {
        str(path.relative_to(CPP)): families
        for path, families in named
        if families and path.parent.name not in {name.partition("/")[0] for name in families}
    }
    assert misplaced == {}


@pytest.mark.parametrize(
    "operator",
    [spec for spec in OPERATORS.values() if isinstance(spec, Pointwise) and spec.scalar],
    ids=lambda operator: operator.name,
)
def test_the_header_of_the_family_has_the_scalar_function(operator: Pointwise) -> None:
    header = (CPP / f"{operator.family}.h").read_text(encoding="utf-8")
    functions = re.findall(r"^PLAIT_HD .*?(\w+)\(", header, re.MULTILINE)
    functions += re.findall(r"^PLAIT_\w*(?:UNARY|BINARY)\w*\((\w+)", header, re.MULTILINE)
    assert functions.count(scalar_name(operator)) >= 1


def test_kernels_are_registered_in_the_folder_of_their_operators_family() -> None:
    registered = [
        (name, path.parent.name)
        for path in FILES
        for name in re.findall(r'^PLAIT_\w*KERNEL\w*\("([\w.]+)"', path.read_text(), re.MULTILINE)
    ]
    assert len(registered) > 100
    for name, folder in registered:
        expected = ELSEWHERE.get(name, OPERATORS[name].family.partition("/")[0])
        assert folder == expected, f"{name} is registered in {folder}/, not in {expected}/"
