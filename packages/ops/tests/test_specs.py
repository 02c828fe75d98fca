"""Tests that every spec is complete and consistent."""

from __future__ import annotations

import doctest
import inspect
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

from plait_ops import samples, specs
from plait_ops.sampling import Sampler
from plait_ops.spec import Composite, Operator, Pointwise, Reduction, SpecError, View
from plait_ops.words import KINDS

OPERATORS = list(specs.all())


def for_each(selection: list[Operator]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("spec", selection, ids=lambda spec: spec.name)


@for_each(OPERATORS)
def test_parts(spec: Operator) -> None:
    assert list(samples.draw(spec)), "no samples"
    assert spec.reference_function or spec.decompose_function
    assert samples.error_facts(spec), "no errors"
    kinds = (Pointwise, Reduction)
    assert spec.shape_function or spec.decompose_function or isinstance(spec, kinds)
    assert isinstance(spec, Composite) <= (spec.decompose_function is not None)
    assert all(fact.kind in KINDS and fact.contains for fact in samples.error_facts(spec))


@for_each([spec for spec in OPERATORS if spec.kind in ("structured", "reduction")])
def test_what_a_kernel_sees_is_written(spec: Operator) -> None:
    assert spec.kernel.endswith("."), "`kernel=` must say what the schema does not"
    same = re.match(r"(?:optional[^;]*; )?as (?:for|that of) `?([\w.]+)", spec.kernel)
    if same and same[1] in {other.name for other in OPERATORS}:
        (other,) = (other for other in OPERATORS if other.name == same[1])
        assert other.kernel, f"it is said to be as for {same[1]}, which says nothing"


def test_every_family_has_a_file_of_test_data() -> None:
    families = {spec.family for spec in OPERATORS}
    folder = pathlib.Path(samples.__file__).parent
    files = {
        path.relative_to(folder).with_suffix("").as_posix()
        for path in [*folder.glob("*/*.py"), folder / "aliases.py"]
        if path.stem != "__init__"
    }
    assert families == files


def test_specs_load_neither_numpy_nor_test_data() -> None:
    program = """
import sys
from typing import Any
from plait_ops import emit, specs
specs.load()
print([name for name in ("numpy", "plait_ops.samples") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "[]\n", ran.stderr


def test_the_error_of_an_unloaded_reference_names_the_function_that_loads_it() -> None:
    program = """
from plait_ops import specs
for name, *arguments in (("exp", 0), ("cumsum", 0, 0)):
    try:
        specs.find(name)(*arguments)
    except Exception as error:
        print(type(error).__name__, error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    text = "it has no reference; plait_ops.samples.load() sets them"
    assert ran.stdout == "".join(f"SpecError {name}: {text}\n" for name in ("exp", "cumsum"))


@for_each(OPERATORS)
def test_documentation(spec: Operator) -> None:
    first = spec.doc.split("\n")[0]
    assert first, "the first line is the summary"
    if not spec.internal and spec.kind != "composite":
        assert doctest.DocTestParser().get_examples(spec.doc), "a runnable example"


@for_each(OPERATORS)
def test_marks(spec: Operator) -> None:
    writes = [argument for argument in spec.schema.arguments if argument.writes]
    if spec.schema.base.endswith("_"):
        assert writes, "a name that ends in _ writes"
        assert spec.schema.results[0].writes, "and returns what it wrote"
        assert not spec.inplace
    for result in spec.schema.results:
        assert not result.alias or any(a.alias == result.alias for a in spec.schema.arguments)
    if isinstance(spec, View) and not spec.unpredictable:
        assert spec.schema.results[0].alias == spec.schema.arguments[0].alias == "a"
    if spec.inplace:
        assert spec.schema.arguments[0].type in ("Tensor", "Tensor|Scalar")


@pytest.mark.parametrize(
    ("schema", "options", "text"),
    [
        ("a_name(Tensor self) -> Tensor", {"variants": "functions"}, "must be of"),
        ("a_name(Tensor input) -> Tensor", {"variants": "method"}, "must be `Tensor self`"),
        ("a_name(Tensor[] self) -> Tensor", {"variants": "method"}, "must be `Tensor self`"),
        ("a_name() -> Tensor", {"variants": "method"}, "must be `Tensor self`"),
        ("a_name(Tensor self) -> Tensor", {"variants": "function_"}, "no form in place"),
        (
            "a_name(Tensor self) -> Tensor",
            {"variants": "method", "internal": True},
            "internal and has no `variants`",
        ),
    ],
)
def test_variants_that_contradict_the_schema(
    schema: str, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(SpecError, match=text):
        Operator(schema, doc="None is defined.", **options)


def test_internal_operators_have_no_variants() -> None:
    assert not [spec.name for spec in OPERATORS if spec.internal and spec.variants]


@for_each([spec for spec in OPERATORS if spec.vjps])
def test_derivatives_name_their_inputs_once(spec: Operator) -> None:
    names = spec.differentiable
    assert len(set(names)) == len(names)
    assert not set(names) & spec.constants
    for each in spec.vjps:
        for name in inspect.signature(each.function).parameters:
            known = name.rstrip("0123456789") in ("g", "result")
            assert known or spec.schema.argument(name)


@for_each(OPERATORS)
def test_samples_are_the_same_every_time(spec: Operator) -> None:
    first, second = ([repr(sample) for sample in samples.draw(spec, 7)] for _ in range(2))
    assert first == second


def test_pointwise_samples_cover_common_faults_of_kernels() -> None:
    for spec in OPERATORS:
        if isinstance(spec, Pointwise):
            arrays = [
                sample.args[i]
                for sample in samples.draw(spec)
                for i in (0,)
                if hasattr(sample.args[0], "shape")
            ]
            assert any(x.ndim == 0 for x in arrays)
            assert any(x.size == 0 for x in arrays)
            assert any(min(x.strides, default=0) < 0 for x in arrays)


def test_spec_errors(scratch: None) -> None:
    Operator("made_up(Tensor self) -> Tensor", doc="x")
    with pytest.raises(SpecError, match=r"made_up is specified twice"):
        Operator("made_up(Tensor self) -> Tensor", doc="x")
    Operator("other.x(Tensor self) -> Tensor", doc="x")
    with pytest.raises(SpecError, match="before its overloads"):
        Operator("other(Tensor self) -> Tensor", doc="x")
    with pytest.raises(SpecError, match="`dtypes` must be one of"):
        Operator("third(Tensor self) -> Tensor", doc="x", dtypes="floats")
    with pytest.raises(SpecError, match="must alias"):
        View("fourth(Tensor self) -> Tensor", doc="x")
    with pytest.raises(SpecError, match="is not a tensor"):
        Operator("fifth(int n) -> Tensor", doc="x").vjp("n")
    with pytest.raises(SpecError, match="`promote` must be"):
        Pointwise("sixth(Tensor self) -> Tensor", doc="x", promote="up")
    pair = Operator("seventh(Tensor self) -> (Tensor, Tensor)", doc="x")
    for dims, text in (
        ({"self": 10, "result0": 0, "result1": 0}, "cannot cut `self` along 10"),
        ({"self": "sum", "result0": 0, "result1": 0}, "`self` is no result"),
        ({"self": 0, "result0": 0}, "how is `result1` made"),
    ):
        with pytest.raises(SpecError, match=text):
            pair.slices(**dims)


def test_find() -> None:
    assert specs.find("max.dim").identifier == "max_dim"
    with pytest.raises(KeyError):
        specs.find("no such operator")


def test_the_sampler_draws_the_requested_number() -> None:
    s = Sampler(1)
    assert s.array(2, 3, dtype="uint8").dtype == "uint8"
    assert s.strided(2, 3).strides != s.array(2, 3).strides
    assert s.backwards(3).strides == (-4,)
    assert s.expanded(4, 2).strides[0] == 0
    assert len(set(s.distinct(50).tolist())) == 50
    assert abs(s.indices(5, 100, negative=True)).max() <= 5
