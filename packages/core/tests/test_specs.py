"""Every operator against its spec: values, forms, errors, examples."""

from __future__ import annotations

import doctest
import re
import warnings
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw, error_facts
from plait_ops.sampling import Sample, Sampler, copy_layout
from plait_ops.spec import ErrorFact, Operator

ERRORS: dict[str, type[Exception]] = {
    "ShapeError": pc.ShapeError,
    "DTypeError": pc.DTypeError,
    "ValueError": ValueError,
    "IndexError": IndexError,
    "TypeError": TypeError,
    "NotImplementedError": NotImplementedError,
    "RuntimeError": RuntimeError,
}
OPERATORS = list(specs.all())
TOLERANCE = {
    "float16": 1e-3,
    "float32": 2e-5,
    "float64": 1e-11,
    "complex64": 2e-5,
    "complex128": 1e-11,
}


def for_each(names: list[Operator]) -> Any:
    return pytest.mark.parametrize("spec", names, ids=lambda spec: spec.name)


def tensors(sample: Sample) -> Sample:
    """Return the arguments with arrays as tensors over the same bytes."""
    return sample.mapped(pc.from_numpy)


def samples(spec: Operator) -> list[Sample]:
    return list(draw(spec))


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def array(tensor: Any) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.detach().numpy())


def expected(spec: Operator, sample: Sample) -> list[np.ndarray[Any, Any]]:
    """Return the reference's result, computed from copies."""
    copied = sample.copied()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy warns of the mean of an empty array
        return [np.asarray(each) for each in as_list(spec(*copied.args, **copied.kwargs))]


def assert_like(spec: Operator, sample: Sample, got: Any, want: list[np.ndarray[Any, Any]]) -> None:
    results = as_list(got)
    assert len(results) == len(want), sample
    for result, reference in zip(results, want, strict=True):
        assert tuple(result.shape) == reference.shape, sample
        assert str(result.dtype).rpartition(".")[2] == reference.dtype.name, sample
        if not spec.unpredictable:
            bound = TOLERANCE.get(reference.dtype.name, 0.0) * sample.tolerance
            np.testing.assert_allclose(
                array(result), reference, rtol=bound, atol=bound, err_msg=str(sample)
            )


# ---- values --------------------------------------------------------------------------------------
@for_each(OPERATORS)
def test_values(spec: Operator) -> None:
    drawn = samples(spec)
    assert drawn, f"{spec.file.name} gives no samples of {spec.name}"
    for sample in drawn:
        want = expected(spec, sample)
        call = tensors(sample.copied())
        assert_like(spec, sample, operator(spec.name)(*call.args, **call.kwargs), want)


# The shapes of their results depend on values, so no kernel gets results that are allocated before.
DATA_DEPENDENT = {
    *("argwhere", "bincount", "combinations", "index", "index_columns", "index_put"),
    *("masked_scatter", "masked_scatter_", "masked_select", "nms", "nonzero_list", "one_hot"),
    *("repeat_interleave.counts", "repeat_interleave.tensor", "tensor_split.tensor"),
    *("unravel_index", "where.condition"),
}


@for_each([spec for spec in OPERATORS if spec.composite])
def test_a_kernel_of_a_composite_is_called(spec: Operator) -> None:
    outputs: list[list[Any]] = []

    def kernel(*values: Any) -> Any:
        outputs.append(
            [each for value in values[len(spec.schema.arguments) :] for each in as_list(value)]
        )
        return NotImplemented

    with plait_abi.kernel(spec.name, kernel):
        for sample in samples(spec):
            outputs.clear()
            want = expected(spec, sample)
            call = tensors(sample.copied())
            assert_like(spec, sample, operator(spec.name)(*call.args, **call.kwargs), want)
            if spec.name in DATA_DEPENDENT or not any(x.size for x in want):
                continue
            assert outputs, sample
            got = [(tuple(x.shape), str(x.dtype).rpartition(".")[2]) for x in outputs[0]]
            assert got == [(x.shape, x.dtype.name) for x in want], sample


@for_each([spec for spec in OPERATORS if not any(a.writes for a in spec.schema.arguments)])
def test_inputs_stay_as_they_are(spec: Operator) -> None:
    for sample in samples(spec):
        copied = sample.copied()
        call = tensors(copied)
        operator(spec.name)(*call.args, **call.kwargs)
        before: list[Any] = []
        after: list[Any] = []
        sample.mapped(before.append)
        copied.mapped(after.append)
        for x, y in zip(before, after, strict=True):
            np.testing.assert_array_equal(x, y)


@for_each([spec for spec in OPERATORS if spec.kind in ("structured", "reduction", "pointwise")])
def test_layouts_do_not_matter(spec: Operator) -> None:
    """Arrays that are transposed in memory or have gaps give the same results."""
    if (
        any(a.writes for a in spec.schema.arguments)
        or spec.unpredictable
        or spec.name == "as_strided"
    ):
        return
    for sample in samples(spec):
        want = expected(spec, sample)
        for layout in (columns_first, gaps):
            call = tensors(sample.mapped(layout))
            assert_like(spec, sample, operator(spec.name)(*call.args, **call.kwargs), want)


def columns_first(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asfortranarray(x) if x.ndim else x.copy()


def gaps(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if not x.ndim:
        return x.copy()
    wide = np.zeros([2 * n for n in x.shape], x.dtype)
    result = wide[tuple(slice(None, None, 2) for _ in x.shape)]
    result[...] = x
    return result


# ---- forms ---------------------------------------------------------------------------------------
@for_each([spec for spec in OPERATORS if spec.inplace])
def test_in_place(spec: Operator) -> None:
    in_place = operator(spec.schema.base + "_")
    tried = 0
    for sample in samples(spec):
        first = sample.args[0] if sample.args else None
        want = expected(spec, sample)[0]
        if not isinstance(first, np.ndarray) or first.shape != want.shape or 0 in first.strides:
            continue
        copied = sample.copied()
        call = tensors(copied)
        if not np.can_cast(want.dtype, first.dtype, "same_kind") and rank(want.dtype) > rank(
            first.dtype
        ):
            with pytest.raises(pc.DTypeError):
                in_place(*call.args, **call.kwargs)
            continue
        tried += 1
        assert in_place(*call.args, **call.kwargs) is call.args[0]
        with np.errstate(all="ignore"):
            want = want.astype(first.dtype)
        assert_like(spec, sample, call.args[0], [want])
        if not spec.unpredictable:
            bound = TOLERANCE.get(want.dtype.name, 0.0) * sample.tolerance
            np.testing.assert_allclose(copied.args[0], want, rtol=bound, atol=bound)
    assert tried > 0


def rank(dtype: np.dtype[Any]) -> int:
    return ["b", "iu", "f", "c"].index(next(k for k in ("b", "iu", "f", "c") if dtype.kind in k))


def out_of(targets: list[Any]) -> Any:
    return targets[0] if len(targets) == 1 else tuple(targets)


@for_each([spec for spec in OPERATORS if spec.out])
def test_out(spec: Operator) -> None:
    for sample in samples(spec):
        want = expected(spec, sample)
        for layout in (
            np.zeros_like,
            lambda x: np.zeros(0, x.dtype),
            lambda x: gaps(np.zeros_like(x)),
        ):
            call = tensors(sample.copied())
            out = out_of([pc.from_numpy(layout(x)) for x in want])
            result = operator(spec.name)(*call.args, **call.kwargs, out=out)
            assert all(x is y for x, y in zip(as_list(result), as_list(out), strict=True))
            assert_like(spec, sample, out, want)


@for_each([spec for spec in OPERATORS if spec.out])
def test_out_that_does_not_fit(spec: Operator) -> None:
    sample = next(each for each in samples(spec) if all(x.size for x in expected(spec, each)))
    want = expected(spec, sample)
    out = out_of([pc.zeros((*x.shape, 7), dtype=x.dtype.name) for x in want])
    call = tensors(sample.copied())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        operator(spec.name)(*call.args, **call.kwargs, out=out)
    texts = [str(each.message) for each in seen if "was resized" in str(each.message)]
    creates = any(argument.name == "device" for argument in spec.schema.arguments)
    assert bool(texts) != creates  # functions that create tensors resize without a word
    assert all(re.search(rf"was resized.*{spec.schema.base}", text) for text in texts)
    assert_like(spec, sample, out, want)
    out = out_of([pc.from_numpy(np.zeros((*x.shape, 7), x.dtype)) for x in want])
    with pytest.raises(pc.ShapeError, match=spec.schema.base):
        operator(spec.name)(*tensors(sample.copied()).args, **call.kwargs, out=out)


# ---- errors --------------------------------------------------------------------------------------
@for_each(OPERATORS)
def test_errors(spec: Operator) -> None:
    facts: list[ErrorFact] = error_facts(spec)
    assert facts, f"{spec.file.name} names no errors of {spec.name}"
    for fact in facts:
        sample = fact.call(Sampler(0))
        call = tensors(sample)
        with pytest.raises(ERRORS[fact.kind]) as raised:
            operator(spec.name)(*call.args, **call.kwargs)
        text = str(raised.value)
        missing = [part for part in fact.contains if part not in text]
        assert not missing, f"{spec.name}{sample.args}: {text!r} lacks {missing}"


@for_each([spec for spec in OPERATORS if not spec.internal])
def test_no_tensor_at_all(spec: Operator) -> None:
    """Wrong types give a TypeError that names the operator, at every argument."""
    for sample in samples(spec)[:1]:
        call = tensors(sample.copied())
        for i in range(len(call.args)):
            args = [*call.args[:i], object(), *call.args[i + 1 :]]
            with pytest.raises(TypeError, match=spec.schema.base):
                operator(spec.name)(*args, **call.kwargs)


# ---- documentation -------------------------------------------------------------------------------
@for_each([spec for spec in OPERATORS if not spec.internal and ">>>" in spec.doc])
def test_example(spec: Operator) -> None:
    if "import plait_nn" in spec.doc or ", plait_nn" in spec.doc:
        pytest.importorskip("plait_nn")
    test = doctest.DocTestParser().get_doctest(spec.doc, {}, spec.name, str(spec.file), 0)
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=failures.append)
    assert not failures, "".join(failures)


def test_copies_keep_layouts() -> None:
    x = np.broadcast_to(np.arange(12.0).reshape(3, 4)[::-1, ::2].T, (2, 2, 3))
    assert copy_layout(x).strides == x.strides
    np.testing.assert_array_equal(copy_layout(x), x)
