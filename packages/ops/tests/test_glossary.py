"""Each argument of an operator has a text, and each text an argument; signatures are Python."""

from __future__ import annotations

import ast
import re

import pytest

from plait_abi import operator
from plait_ops import glossary, specs
from plait_ops.schema import SchemaError
from plait_ops.spec import Operator

OPERATORS = list(specs.all())
PUBLIC = [each for each in OPERATORS if not each.internal]


def test_each_argument_has_a_text() -> None:
    missing = [
        f"{each.name}: {argument.name}"
        for each in PUBLIC
        for argument in each.schema.arguments
        if not (each.meanings.get(argument.name) or glossary.meaning(each.name, argument))
    ]
    assert not missing


def test_each_text_is_of_an_argument() -> None:
    names = {argument.name for each in OPERATORS for argument in each.schema.arguments}
    assert set(glossary.ARGUMENTS) <= names
    pairs = {(each.name, argument.name) for each in OPERATORS for argument in each.schema.arguments}
    assert set(glossary.OF_OPERATORS) <= pairs


def test_a_text_of_another_argument_is_an_error() -> None:
    with pytest.raises(SchemaError, match="no argument `count`"):
        Operator("wrong(Tensor self) -> Tensor", doc="Text.\n\nArgs:\n    count: How often.")


def _parameters(doc: str, name: str) -> set[str]:
    """Return the parameters of the signatures, the first lines of a docstring."""
    names: set[str] = set()
    for line in doc.partition("\n\n")[0].splitlines():
        [function] = ast.parse(f"def {line}: ...").body
        assert isinstance(function, ast.FunctionDef) and function.name == name
        names |= {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    return names


def test_signatures_and_texts_agree() -> None:
    """The first lines of `help` are signatures of Python; the texts are of their parameters."""
    for spec in PUBLIC:
        if spec.schema.overload:
            continue
        doc = operator(spec.name).__doc__ or ""
        names = _parameters(doc, spec.name)
        block = re.search(r"\nArgs:\n((?:    .+\n)+)", doc)
        listed = set(re.findall(r"^    (\w+): ", block[1], re.MULTILINE)) if block else set()
        every = {"layout", "pin_memory", "requires_grad"}  # of all operators that make tensors
        second = {"self"} if "input" in listed else set()  # the first name of the input
        assert names - every - second == listed, spec.name
        assert "`self`" not in doc or "self" in names, spec.name
