"""Shape functions in C++, on device meta, against the Python ones and the references."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

import numpy as np
import pytest

import plait_abi
from plait_abi import operator
from plait_ops import samples, specs, words
from plait_ops.sampling import Sample, Sampler
from plait_ops.spec import Operator
from plait_ops.words import KINDS, Fault, Meta

ERRORS = {kind: getattr(plait_abi, kind, None) or getattr(builtins, kind) for kind in KINDS}
# the shape of their results depends on values
BY_VALUE = {
    *("nonzero", "nonzero_list", "argwhere", "where.condition", "masked_select", "one_hot"),
    *("index", "index_columns", "index_put", "index_put_", "masked_scatter", "masked_scatter_"),
    *("bincount", "histc", "isin", "nms", "repeat_interleave.tensor", "repeat_interleave.counts"),
    *("tensor_split.tensor", "unravel_index", "combinations", "tril_indices", "triu_indices"),
}
"""Operators that need elements, which tensors on meta do not have."""
OPERATORS = list(specs.all())
WITH_SHAPE = [spec for spec in OPERATORS if spec.shape_function is not None]


def on_meta(array: np.ndarray[Any, Any]) -> Any:
    strides = [step // array.itemsize for step in array.strides]
    result = operator("empty")((1,), dtype=array.dtype.name, device="meta")
    return operator("as_strided")(result, array.shape, strides)


def as_meta(array: np.ndarray[Any, Any]) -> Meta:
    return Meta(
        array.shape, array.dtype.name, tuple(step // array.itemsize for step in array.strides)
    )


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def with_device(spec: Operator, sample: Sample) -> dict[str, Any]:
    """Add a device to calls of operators that make new tensors."""
    names = [argument.name for argument in spec.schema.arguments]
    has_tensor = any(argument.is_tensor for argument in spec.schema.arguments)
    return (
        {**sample.kwargs, "device": "meta"}
        if "device" in names and not has_tensor
        else sample.kwargs
    )


@pytest.mark.parametrize(
    "spec", [s for s in OPERATORS if s.name not in BY_VALUE], ids=lambda spec: spec.name
)
def test_shapes_and_dtypes(spec: Operator) -> None:
    for sample in samples.draw(spec):
        copied = sample.copied()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            want = as_list(spec(*copied.args, **copied.kwargs))
        call = sample.mapped(on_meta)
        got = as_list(operator(spec.name)(*call.args, **with_device(spec, call)))
        assert [(tuple(x.shape), x.dtype.name) for x in got] == [
            (np.shape(x), np.asarray(x).dtype.name) for x in want
        ], sample
        assert all(x.device.type == "meta" for x in got)


@pytest.mark.parametrize("spec", WITH_SHAPE, ids=lambda spec: spec.name)
def test_the_python_shape_function_agrees(spec: Operator) -> None:
    assert spec.shape_function is not None
    for sample in samples.draw(spec):
        result = sample.mapped(as_meta)
        values = spec.schema.bind(result.args, result.kwargs)
        inferred = words.infer(spec.shape_function, spec.schema.base, values)
        call = sample.mapped(on_meta)
        got = as_list(operator(spec.name)(*call.args, **with_device(spec, call)))
        assert [(tuple(x.shape), str(x.dtype)) for x in inferred] == [
            (tuple(x.shape), x.dtype.name) for x in got
        ], sample


@pytest.mark.parametrize("spec", WITH_SHAPE, ids=lambda spec: spec.name)
def test_both_refuse_with_the_same_words(spec: Operator) -> None:
    """A call that fails before its kernel fails in Python and in C++ with one text."""
    assert spec.shape_function is not None
    for fact in samples.error_facts(spec):
        try:
            result = fact.call(Sampler(0)).mapped(as_meta)
            values = spec.schema.bind(result.args, result.kwargs)
            words.infer(spec.shape_function, spec.schema.base, values)
        except Fault as fault:
            call = fact.call(Sampler(0)).mapped(on_meta)
            with pytest.raises(ERRORS[fault.kind]) as raised:
                operator(spec.name)(*call.args, **with_device(spec, call))
            assert str(raised.value) == fault.text
            assert fault.kind == fact.kind
        except (TypeError, AttributeError):
            pass  # a wrong type, for which the binding raises


def test_shapes_that_depend_on_values_are_refused() -> None:
    for name, extra in (("nonzero", ()), ("one_hot", ())):
        x = operator("empty")((3,), dtype="int64", device="meta")
        with pytest.raises(NotImplementedError, match=r"depends on values.*meta"):
            operator(name)(x, *extra)


def test_results_keep_the_order_of_dimensions() -> None:
    x = on_meta(np.zeros((2, 3, 4, 5), "float32").transpose(0, 3, 1, 2))
    y = operator("add")(x, 1)
    # a view that exists only if the last dimensions of the result lie as those of x do
    assert operator("view")(operator("permute")(y, (0, 2, 3, 1)), (2 * 3 * 4 * 5,)).shape == (120,)
    with pytest.raises(plait_abi.ShapeError, match="reshape"):
        operator("view")(y, (120,))
