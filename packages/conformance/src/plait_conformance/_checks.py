"""The checks of one call; their failures name the operator and the case."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import plait_abi
from plait_abi import binding
from plait_conformance._cases import Case, map_arrays
from plait_ops.spec import ErrorFact, Operator

Arrays = list[Any]
RELATIVE = {
    "float16": 1e-2,
    "float32": 2e-5,
    "float64": 1e-10,
    "complex64": 2e-5,
    "complex128": 1e-10,
}


def call(operator: Operator, args: Any, kwargs: Any, suffix: str = "") -> Any:
    """Call the compiled operator; its results are tensors of the loaded package."""
    base, _, overload = operator.name.partition(".")
    name = base + suffix + (f".{overload}" if overload and not suffix else "")
    return plait_abi.operator(name)(*args, **kwargs)


class Host:
    """The place of calls: here, arguments are the arrays, and results are read in place."""

    def put(self, array: Any) -> Any:
        """Return an array of the host in the form of an argument."""
        return array

    def relayouts(self) -> dict[str, Callable[[Any], Any]]:
        """Return names and functions that put an array in other layouts."""
        return relayouts()

    def take(self, results: Any) -> Arrays:
        """Return results as arrays of the host."""
        return as_arrays(results)

    def call(self, operator: Operator, args: Any, kwargs: Any, suffix: str = "") -> Any:
        """Call the operator at this place."""
        return call(operator, args, kwargs, suffix)

    def synchronize(self) -> None:
        """Wait until all calls are done."""


HOST = Host()


def as_arrays(results: Any) -> Arrays:
    """Return the results as a list of NumPy arrays, for tensors of any library."""
    if results is None:
        return []
    if isinstance(results, (tuple, list)):
        return [array for result in results for array in as_arrays(result)]
    if isinstance(results, (np.ndarray, np.generic, bool, int, float, complex)):
        return [np.asarray(results)]
    return [np.from_dlpack(results)]


def arrays_of(value: Any) -> Arrays:
    """Collect the NumPy arrays within arguments, in order."""
    result: Arrays = []

    def note(array: Any) -> Any:
        result.append(array)
        return array

    map_arrays(note, value)
    return result


def expected(case: Case) -> Arrays:
    """Run the spec's NumPy reference."""
    sample = case.fresh()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's warnings about NaN and empty slices
        return as_arrays(
            case.operator.run_reference(case.operator.schema.bind(sample.args, sample.kwargs))
        )


def assert_same(case: Case, got: Arrays, want: Arrays, label: str) -> None:
    """Compare shapes, dtypes and values."""
    assert len(got) == len(want), f"{case}: {label}: {len(got)} results, {len(want)} are expected"
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        where = f"{case}: {label}, result {number}"
        assert a.shape == b.shape, f"{where}: shape {a.shape}, expected {b.shape}"
        assert a.dtype == b.dtype, f"{where}: dtype {a.dtype}, expected {b.dtype}"
        if a.dtype == bool:
            stored = np.asarray(a).view(np.uint8) if a.flags.c_contiguous else np.uint8(0)
            assert np.all(stored <= 1), f"{where}: the bytes of bools are 0 and 1"
    determined = case.operator.determined
    for number, (a, b) in enumerate(zip(determined(*got), determined(*want), strict=True)):
        relative = RELATIVE.get(str(b.dtype), 0.0) * case.sample.tolerance
        where = f"{case}: {label}, result {number}"
        np.testing.assert_allclose(
            a, b, rtol=relative, atol=relative, equal_nan=True, err_msg=where
        )


def check_values(case: Case, where: Host = HOST) -> None:
    """Check that results equal the reference, and that only arguments marked as written change."""
    sample, before = case.fresh(), case.fresh()
    placed: dict[int, Any] = {}

    def put(array: Any) -> Any:
        placed[id(array)] = where.put(array)
        return placed[id(array)]

    args, kwargs = map_arrays(put, sample.args), map_arrays(put, sample.kwargs)
    got = where.take(where.call(case.operator, args, kwargs))
    assert_same(case, got, expected(case), "values")
    written = {argument.name for argument in case.operator.schema.arguments if argument.writes}
    now = case.operator.schema.bind(sample.args, sample.kwargs)
    then = case.operator.schema.bind(before.args, before.kwargs)
    for name in now.keys() - written:
        for array, same in zip(arrays_of([now[name]]), arrays_of([then[name]]), strict=True):
            np.testing.assert_array_equal(
                where.take(placed[id(array)])[0],
                same,
                err_msg=f"{case}: `{name}` was written but has no mark",
            )


def check_unpredictable(case: Case, where: Host = HOST) -> None:
    """Results have the reference's shapes and dtypes; random values are the same for the same seed,
    for any old content of the memory of the results.
    """
    want, result = expected(case), []
    for fill in (None, 0):
        sample = case.fresh()
        bound = case.operator.schema.bind(sample.args, sample.kwargs)
        for argument in case.operator.schema.arguments:
            if argument.writes and fill is not None and argument.name in bound:
                bound[argument.name][...] = fill
        for generator in binding.default_generators():  # devices may have one of their own
            generator.manual_seed(0)
        args, kwargs = map_arrays(where.put, sample.args), map_arrays(where.put, sample.kwargs)
        result.append(where.take(where.call(case.operator, args, kwargs)))
    for number, (a, b, c) in enumerate(zip(*result, want, strict=True)):
        place = f"{case}: result {number}"
        assert a.shape == c.shape, f"{place}: shape {a.shape}, expected {c.shape}"
        assert a.dtype == c.dtype, f"{place}: dtype {a.dtype}, expected {c.dtype}"
        if case.operator.random:
            np.testing.assert_array_equal(a, b, err_msg=f"{place}: from the same seed")


def relayouts() -> dict[str, Callable[[Any], Any]]:
    """Return names of layouts, and functions that copy an array to them."""

    def spread(array: Any) -> Any:
        if array.ndim == 0:
            return array
        wide = np.zeros(tuple(2 * size for size in array.shape), array.dtype)
        view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
        view[...] = array
        return view

    def backwards(array: Any) -> Any:
        flip = tuple(slice(None, None, -1) for _ in array.shape)
        return np.ascontiguousarray(array[flip])[flip] if array.ndim else array

    return {
        "columns first": lambda array: np.array(array, order="F"),  # keeps 0-d arrays
        "every other element": spread,
        "backwards": backwards,
    }


def check_layouts(case: Case, where: Host = HOST) -> None:
    """Check that the same elements in other layouts give the same results."""
    if any(argument.writes for argument in case.operator.schema.arguments):
        return
    want = expected(case)
    for name, relayout in where.relayouts().items():
        sample = case.fresh()
        args, kwargs = map_arrays(relayout, sample.args), map_arrays(relayout, sample.kwargs)
        assert_same(case, where.take(where.call(case.operator, args, kwargs)), want, name)


def check_out(case: Case, where: Host = HOST) -> None:
    """Check that `out=` receives the results."""
    if not case.operator.out:
        return
    want, sample = expected(case), case.fresh()
    targets = tuple(where.put(np.zeros(array.shape, array.dtype)) for array in want)
    out = targets[0] if len(targets) == 1 else targets
    args, kwargs = map_arrays(where.put, sample.args), map_arrays(where.put, sample.kwargs)
    where.call(case.operator, args, {**kwargs, "out": out})
    assert_same(case, where.take(targets), want, "out=")


def check_inplace(case: Case, where: Host = HOST) -> None:
    """Check that the in-place form writes to its first argument, if shape and dtype allow it."""
    if not case.operator.inplace:
        return
    want, sample = expected(case), case.fresh()
    first = sample.args[0] if sample.args else None
    if (
        not isinstance(first, np.ndarray)
        or first.shape != want[0].shape
        or first.dtype != want[0].dtype
    ):
        return
    target = where.put(np.array(first))
    args, kwargs = map_arrays(where.put, sample.args[1:]), map_arrays(where.put, sample.kwargs)
    where.call(case.operator, (target, *args), kwargs, suffix="_")
    assert_same(case, where.take(target), want, "in-place form")


def check_error(operator: Operator, fact: ErrorFact, sample: Any, where: Host = HOST) -> str:
    """Check that an invalid call raises the stated kind of error, with all facts in its text.

    Returns:
        The text.
    """
    args, kwargs = map_arrays(where.put, sample.args), map_arrays(where.put, sample.kwargs)
    try:
        where.call(operator, args, kwargs)
        where.synchronize()
    except Exception as error:
        if isinstance(error, NotImplementedError) and fact.kind != "NotImplementedError":
            raise
        kinds = {cls.__name__ for cls in type(error).__mro__}
        assert fact.kind in kinds, (
            f"{operator.name}: {type(error).__name__} instead of {fact.kind}: {error}"
        )
        text = str(error)
        missing = [part for part in fact.contains if str(part) not in text]
        assert not missing, f"{operator.name}: the text lacks {missing}: {text}"
        return text
    raise AssertionError(f"{operator.name}: no error where {fact.kind} is required")
