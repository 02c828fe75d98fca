"""The schema parser, and its agreement with the runtime's."""

from __future__ import annotations

import pytest

from plait_abi import operator
from plait_ops import specs
from plait_ops.schema import SchemaError, parse


def test_types_marks_and_defaults() -> None:
    schema = parse(
        "f.x(Tensor(a)! self, Tensor?[] indices, int[2]? k|kernel=3, *, Scalar? alpha=None, str "
        'r="a, b") '
        "-> (Tensor(a)!, Tensor[])"
    )
    assert (schema.base, schema.overload, schema.name, schema.identifier) == (
        "f",
        "x",
        "f.x",
        "f_x",
    )
    self, indices, k, alpha, r = schema.arguments
    assert (self.type, self.alias, self.writes, self.has_default) == ("Tensor", "a", True, False)
    assert (indices.type, indices.optional_items, indices.optional) == ("Tensor[]", True, False)
    assert (k.type, k.length, k.second, k.default, k.optional) == (
        "int[]",
        2,
        "kernel",
        (3, 3),
        True,
    )
    assert (alpha.keyword_only, alpha.optional, alpha.default) == (True, True, None)
    assert r.default == "a, b"
    assert [(x.type, x.alias, x.writes) for x in schema.results] == [
        ("Tensor", "a", True),
        ("Tensor[]", None, False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "f(Tensor self)",
        "f(Tensr self) -> Tensor",
        "f(Tensor) -> Tensor",
        "f(Tensor a, Tensor a) -> Tensor",
        "f(Tensor a) -> int",
        "f a -> Tensor",
    ],
)
def test_what_the_grammar_does_not_have(text: str) -> None:
    with pytest.raises(SchemaError, match="f"):
        parse(text)


def test_binding_as_the_binder_does() -> None:
    schema = parse("f(Tensor self, int[]* size, *, int[2] k=1, float eps=1) -> Tensor")
    assert schema.bind((0, 2, 3), {"k": 4}) == {"self": 0, "size": (2, 3), "k": (4, 4), "eps": 1.0}
    assert schema.bind((0, (2, 3)), {})["size"] == (2, 3)
    for args, kwargs, text in (
        ((), {}, "missing argument `self`"),
        ((0, 1), {"q": 1}, "unexpected keyword `q`"),
        ((0, (1,), 2), {}, "at most 2 positional"),
        ((0,), {"self": 1}, "given twice"),
    ):
        with pytest.raises(TypeError, match=text):
            schema.bind(args, kwargs)


@pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)
def test_the_runtime_knows_every_schema(spec: specs.Operator) -> None:
    assert spec.schema.text in operator(spec.schema.base).schemas
    assert operator(spec.schema.base).__doc__
    if spec.inplace:
        assert operator(spec.schema.base + "_").__name__ == spec.schema.base + "_"


def test_overloads_are_tried_in_order_of_definition() -> None:
    names = [spec.schema.text for spec in specs.all() if spec.schema.base == "max"]
    assert list(operator("max").schemas) == names
