"""Definitions of operators by exact name, and their forms."""

from __future__ import annotations

import pytest

import plait_abi
import plait_core as pc  # noqa: F401 - brings the operators
from plait_abi import ArgumentError
from plait_graph._schemas import definition_of, has_inplace_form, has_out_form


def test_every_operator_has_a_definition() -> None:
    names = set()
    for name, _ in plait_abi.operator_names():
        for text in plait_abi.operator(name).schemas:
            op = text.partition("(")[0]
            assert definition_of(op).schema.name == op
            names.add(op)
    assert len(names) > 700


def test_properties_are_those_of_the_overload() -> None:
    assert definition_of("rand").is_random and not definition_of("zeros").is_random
    assert definition_of("t").is_view and not definition_of("t").is_composite
    assert definition_of("dropout").is_composite and definition_of("dropout").is_random
    assert definition_of("max.dim").schema.name == "max.dim"
    assert [definition_of(name).regions for name in ("cond", "while_loop", "add")] == [2, 2, 0]


@pytest.mark.parametrize(
    ("name", "inplace", "out"),
    [
        ("add", True, True),
        ("scatter.value", True, True),
        ("matmul", False, True),
        ("copy_", False, False),
        ("t", False, False),
        ("chunk", False, False),
        ("batch_norm", False, False),
        ("zeros", False, True),
    ],
)
def test_forms_are_those_that_can_be_called(name: str, inplace: bool, out: bool) -> None:
    assert has_inplace_form(name) is inplace
    assert has_out_form(definition_of(name).schema) is out


def test_names_of_forms_are_no_operators() -> None:
    with pytest.raises(ArgumentError, match="no operator 'add_'; 'add' with the form 'inplace'"):
        definition_of("add_")
    with pytest.raises(ArgumentError, match=r"'scatter_.value'; 'scatter.value' with the form"):
        definition_of("scatter_.value")
    with pytest.raises(ArgumentError, match=r"no operator 'add.nosuch'; a plug-in"):
        definition_of("add.nosuch")
