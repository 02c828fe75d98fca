"""Facts of definitions that other packages read: values at 0, and rules that are data."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from plait_ops import samples, specs
from plait_ops.rules import BATCHING, SHARDING
from plait_ops.spec import Composite, Operator, Pointwise, SpecError

OPERATORS = list(specs.all())
samples.load()


def bound(spec: Operator) -> Iterator[dict[str, Any]]:
    """Yield the arguments of the sample calls by name."""
    for sample in samples.draw(spec):
        yield spec.schema.bind(sample.args, sample.kwargs)


def functions_of_one_tensor() -> list[Operator]:
    """Return the operators that are a function of each element of their first argument alone."""
    return [
        spec
        for spec in OPERATORS
        if spec.sharding[:1] == "e"
        and "d" not in spec.sharding
        and isinstance(spec, (Pointwise, Composite))
        and not spec.schema.results[0].alias
        and [i for i, each in enumerate(spec.schema.arguments) if each.is_tensor] == [0]
    ]


def value_at_zero_is_zero(spec: Operator) -> bool:
    """Return whether the reference is 0 at 0, for other arguments of samples and for 0.5."""
    first, *others = spec.schema.arguments
    result = False
    for values in bound(spec):
        x = values[first.name]
        if not isinstance(x, np.ndarray) or x.dtype == bool:
            continue
        halves = {each.name: 0.5 for each in others if each.type in ("float", "Scalar")}
        for choice in (values, values | halves):
            output = spec.run_reference({**choice, first.name: np.zeros(2, x.dtype)})
            # the reference of erfinv is 1e-60 there
            if output.shape != (2,) or np.any(np.abs(output) > 1e-50):
                return False
            result = True
    return result


def test_what_keeps_zeros_says_so() -> None:
    right = {spec.name for spec in functions_of_one_tensor() if value_at_zero_is_zero(spec)}
    text = {spec.name for spec in OPERATORS if spec.zero_preserving}
    assert text - right == set(), "their value at 0 is not 0"
    assert right - text == set(), "zero_preserving=True is missing"
    assert {"sin", "sqrt", "nan_to_num", "arcsin"} < right
    assert not right & {"cos", "hardtanh", "clamp", "empty_like"}


def test_rules_have_a_letter_for_each_argument() -> None:
    for spec in OPERATORS:
        for rule, kinds in ((spec.batching, BATCHING), (spec.sharding, SHARDING)):
            assert not rule or len(rule) == 1 + len(spec.schema.arguments), spec
            assert not rule or rule[0] in kinds.values(), spec


def test_results_are_linear_where_sharding_rules_say_so() -> None:
    seen = set()
    for spec in OPERATORS:
        arguments = dict(
            zip([a.name for a in spec.schema.arguments], spec.sharding[1:], strict=False)
        )
        linear = [name for name, letter in arguments.items() if letter == "l"]
        for values in bound(spec) if linear else ():
            inputs = [values[name] for name in linear]
            none = all(values[name] is None for name, letter in arguments.items() if letter == "n")
            floats = all(str(getattr(x, "dtype", "")) == "float64" for x in inputs)
            if not (none and floats) or any(np.any(~np.isfinite(x)) for x in inputs):
                continue
            doubled = spec.run_reference(values | {n: 3 * values[n] for n in linear})
            assert np.allclose(doubled, 3 * spec.run_reference(values), equal_nan=True), spec
            seen.add(spec.name)
    assert {"add", "sub", "mul", "true_divide", "neg"} <= seen


def test_elements_are_independent_where_sharding_rules_say_so() -> None:
    """A call on tensors whose elements are in reverse order gives the results in that order."""
    count = 0
    for spec in OPERATORS:
        if spec.sharding[:1] != "e" or "d" in spec.sharding or spec.unpredictable:
            continue
        if not isinstance(spec, (Pointwise, Composite)):
            continue
        for values in itertools.islice(bound(spec), 8):
            arrays = [x for x in values.values() if isinstance(x, np.ndarray)]
            if len({x.shape for x in arrays}) != 1 or not arrays[0].ndim:
                continue
            turned = {n: x[::-1] if isinstance(x, np.ndarray) else x for n, x in values.items()}
            result, want = spec.run_reference(turned), spec.run_reference(values)
            assert np.array_equal(result, want[::-1], equal_nan=result.dtype.kind in "fc"), spec
            count += 1
    assert count > 500


def test_reductions_of_parts_are_parts_of_a_reduction() -> None:
    joined = {
        "+": lambda a, b: a + b, "a": lambda a, b: (a + b) / 2, "^": np.maximum, "v": np.minimum,
    }  # fmt: skip
    x, y = (np.random.default_rng(seed).normal(size=(3, 4)) for seed in (0, 1))
    results = [spec for spec in OPERATORS if spec.sharding[:1] in joined]
    assert {spec.name for spec in results} == {"sum", "mean", "max", "min", "amax", "amin"}
    for spec in results:
        parts = [spec(each) for each in (x, y)]
        assert np.allclose(spec(np.concatenate([x, y])), joined[spec.sharding[0]](*parts)), spec


@pytest.mark.parametrize(
    ("declare", "text"),
    [
        (lambda spec: spec.batch("sideways"), "a batching rule is one of pointwise"),
        (lambda spec: spec.batch("leading", other="all"), "cannot do 'all' with `other`"),
        (lambda spec: spec.batch("leading", self="turned"), "cannot do 'turned' with `self`"),
        (lambda spec: spec.shard("sideways"), "a sharding rule is one of elements"),
        (lambda spec: spec.shard("elements", linear=["dim"]), "cannot have 'dim' as 'l'"),
        (lambda spec: spec.shard("elements", dims=["self"]), "cannot have 'self' as 'd'"),
    ],
)
def test_wrong_rules_are_refused(declare: Any, text: str) -> None:
    before = specs.find("cumsum")
    rules = before.batching, before.sharding
    with pytest.raises(SpecError, match=f"cumsum: .*{text}"):
        declare(before)
    assert (before.batching, before.sharding) == rules
