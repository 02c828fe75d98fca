"""Tests that every spec is complete and consistent."""

from __future__ import annotations

import doctest
import inspect
import pathlib
import subprocess
import sys

import pytest

from plait_ops import samples, specs
from plait_ops.sampling import Sampler
from plait_ops.spec import Composite, Operator, Pointwise, Reduction, SpecError, View

OPERATORS = list(specs.all())
EXCEPTIONS = {
    "ShapeError",
    "DTypeError",
    "ValueError",
    "IndexError",
    "TypeError",
    "NotImplementedError",
    "RuntimeError",
}


def over(chosen: list[Operator]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("spec", chosen, ids=lambda spec: spec.name)


@over(OPERATORS)
def test_parts(spec: Operator) -> None:
    assert list(samples.draw(spec)), "no samples"
    assert spec.reference_function or spec.decompose_function
    assert samples.error_facts(spec), "no errors"
    kinds = (Pointwise, Reduction)
    assert spec.shape_function or spec.decompose_function or isinstance(spec, kinds)
    assert isinstance(spec, Composite) <= (spec.decompose_function is not None)
    assert all(fact.kind in EXCEPTIONS and fact.contains for fact in samples.error_facts(spec))


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
from plait_ops import emit, specs
specs.load()
print([name for name in ("numpy", "plait_ops.samples") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "[]\n", ran.stderr


def test_a_reference_that_is_not_loaded_says_what_loads_it() -> None:
    program = """
from plait_ops import specs
for name, *arguments in (("relu", 0), ("cumsum", 0, 0)):
    try:
        specs.find(name)(*arguments)
    except Exception as error:
        print(type(error).__name__, error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    text = "it has no reference; plait_ops.samples.load() sets them"
    assert ran.stdout == "".join(f"SpecError {name}: {text}\n" for name in ("relu", "cumsum"))


@over(OPERATORS)
def test_documentation(spec: Operator) -> None:
    first = spec.doc.split("\n")[0]
    assert first, "the first line is the summary"
    if not spec.internal and spec.kind != "composite":
        assert doctest.DocTestParser().get_examples(spec.doc), "a runnable example"


@over(OPERATORS)
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


@over([spec for spec in OPERATORS if spec.vjps])
def test_derivatives_name_their_inputs_once(spec: Operator) -> None:
    names = spec.differentiable
    assert len(set(names)) == len(names)
    assert not set(names) & spec.constants
    for each in spec.vjps:
        for name in inspect.signature(each.function).parameters:
            known = name.rstrip("0123456789") in ("g", "result")
            assert known or spec.schema.argument(name)


@over(OPERATORS)
def test_samples_are_the_same_every_time(spec: Operator) -> None:
    first, second = ([repr(sample) for sample in samples.draw(spec, 7)] for _ in range(2))
    assert first == second


def test_pointwise_samples_cover_what_kernels_get_wrong() -> None:
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
    with pytest.raises(SpecError, match="is no tensor"):
        Operator("fifth(int n) -> Tensor", doc="x").vjp("n")
    with pytest.raises(SpecError, match="`promote` must be"):
        Pointwise("sixth(Tensor self) -> Tensor", doc="x", promote="up")


def test_find() -> None:
    assert specs.find("max.dim").identifier == "max_dim"
    with pytest.raises(KeyError):
        specs.find("no such operator")


def test_the_sampler_draws_what_it_is_asked_for() -> None:
    s = Sampler(1)
    assert s.array(2, 3, dtype="uint8").dtype == "uint8"
    assert s.strided(2, 3).strides != s.array(2, 3).strides
    assert s.backwards(3).strides == (-4,)
    assert s.expanded(4, 2).strides[0] == 0
    assert len(set(s.distinct(50).tolist())) == 50
    assert abs(s.indices(5, 100, negative=True)).max() <= 5
