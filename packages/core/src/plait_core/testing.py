"""Comparisons for tests, with errors that say how far apart two values are.

>>> import plait_core as pc
>>> from plait_core.testing import assert_close
>>> assert_close(pc.tensor([1.0, 2.0]), pc.tensor([1.0, 2.0 + 1e-7]))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from plait_abi import binding
from plait_core._core import Tensor, is_tensor
from plait_core._creation import tensor
from plait_core._namespaces import shown as _shown
from plait_core._promotion import promote_types
from plait_core._sparse._compressed import CompressedTensor
from plait_core._sparse._coordinates import SparseTensor
from plait_core._tensor._memory_formats import strided

__all__ = ["assert_close"]
__dir__ = _shown(globals())

# (rtol, atol) of each dtype, a few rounding errors; other dtypes must be equal
_SPARSE = (SparseTensor, CompressedTensor)
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


class _Rules(NamedTuple):
    rtol: float | None
    atol: float | None
    equal_nan: bool
    subclasses: bool
    device: bool
    dtype: bool
    layout: bool
    stride: bool


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise unless ``|actual - expected| <= atol + rtol * |expected|`` holds for all elements.

    Args:
        actual, expected: tensors, arrays or numbers, or sequences and mappings of these.
        allow_subclasses: whether tensors of different classes are compared.
        rtol, atol: both or neither; None: by the dtype, 1.3e-6 and 1e-5 for float32, 1e-7 and 1e-7
            for float64, 1e-3 and 1e-5 for float16, 1.6e-2 and 1e-5 for bfloat16, 0 for the rest.
        equal_nan: whether NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride: whether these must be the same.
        msg: the text of the error, or a function that gets plait's text and returns another.

    Raises:
        AssertionError: if they are not close, or differ in shape, dtype, device or layout.
        ValueError: if only one of `rtol` and `atol` is given.
        TypeError: for a value that is not a tensor, array or number.

    Example:
        >>> import plait_core as pc
        >>> try:
        ...     pc.testing.assert_close(pc.tensor([1.0, 2.0]), pc.tensor([1.0, 2.5]))
        ... except AssertionError as error:
        ...     print(error)
        assert_close: 1 of 2 elements differ (50.0%)
        greatest absolute difference: 0.5 at (1,), 1e-05 is allowed
        greatest relative difference: 0.2 at (1,), 1.3e-06 is allowed
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: `rtol` and `atol` must both be given, or neither")
    rules = _Rules(
        rtol,
        atol,
        equal_nan,
        allow_subclasses,
        check_device,
        check_dtype,
        check_layout,
        check_stride,
    )
    try:
        _compare(actual, expected, rules, "")
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def _compare(actual: Any, expected: Any, rules: _Rules, path: str) -> None:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            _fail(path, f"keys differ: {sorted(map(str, actual))}, {sorted(map(str, expected))}")
        for key in actual:
            _compare(actual[key], expected[key], rules, f"{path}[{key!r}]")
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            _fail(path, f"lengths differ: {len(actual)} and {len(expected)}")
        for i, (one, other) in enumerate(zip(actual, expected, strict=True)):
            _compare(one, other, rules, f"{path}[{i}]")
    elif actual is None and expected is None:
        return
    else:
        if not rules.subclasses and type(actual) is not type(expected):
            kinds = f"{type(actual).__name__} and {type(expected).__name__}"
            raise TypeError(f"assert_close: values of one class are required, got {kinds}{path}")
        if is_tensor(actual) != is_tensor(expected) and not (
            isinstance(actual, _SPARSE) or isinstance(expected, _SPARSE)
        ):
            kinds = f"{type(actual).__name__} and {type(expected).__name__}"
            raise TypeError(f"assert_close: values of one kind are required, got {kinds}{path}")
        _compare_tensors(actual, expected, rules, path)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _fail(path: str, text: str) -> None:
    raise AssertionError(f"assert_close{f' at {path}' if path else ''}: {text}")


def _as_tensor(value: Any, argument: str) -> Tensor:
    if isinstance(value, _SPARSE):
        return value.to_dense().detach()
    if is_tensor(value):
        return value.detach()  # type: ignore[no-any-return]
    if isinstance(value, (bool, int, float, complex)):
        return tensor(value, dtype="float64" if type(value) is float else None, device="cpu")
    if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
        return tensor(value)
    raise TypeError(
        f"assert_close: `{argument}` must be a tensor, an array or a number, got "
        f"{type(value).__name__}"
    )


def _compare_tensors(actual: Any, expected: Any, rules: _Rules, path: str) -> None:
    a, b = _as_tensor(actual, "actual"), _as_tensor(expected, "expected")
    if tuple(a.shape) != tuple(b.shape):
        _fail(path, f"shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")
    layouts = [getattr(value, "layout", strided) for value in (actual, expected)]
    if rules.layout and layouts[0] != layouts[1]:
        _fail(path, f"layouts differ: {layouts[0]!r} and {layouts[1]!r}")
    if rules.device and a.device != b.device:
        _fail(path, f"devices differ: {a.device} and {b.device}")
    both_tensors = is_tensor(actual) or isinstance(actual, _SPARSE)
    if rules.dtype and both_tensors and a.dtype is not b.dtype:
        _fail(path, f"dtypes differ: {a.dtype.name} and {b.dtype.name}")
    if rules.stride and a.stride() != b.stride():
        _fail(path, f"strides differ: {a.stride()} and {b.stride()}")
    if rules.rtol is None or rules.atol is None:
        tolerances = [_TOLERANCES.get(each.dtype.name, (0.0, 0.0)) for each in (a, b)]
        rtol, atol = (max(pair) for pair in zip(*tolerances, strict=True))
    else:
        rtol, atol = rules.rtol, rules.atol
    if a.numel():
        _compare_elements(a, b, rtol, atol, rules.equal_nan, path)


def _compare_elements(
    a: Tensor, b: Tensor, rtol: float, atol: float, equal_nan: bool, path: str
) -> None:
    common = promote_types(a.dtype, b.dtype)
    if common.name.startswith("float8"):  # no operator computes with it
        common = binding.dtype("float32")
    a, b = a.to("cpu", common), b.to("cpu", common)
    close = binding.operator("isclose")(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    wrong = int((~close).sum())
    if not wrong:
        return
    wide = "complex128" if common.is_complex else "float64"
    difference = (a.to(wide) - b.to(wide)).abs()
    relative = difference / b.to(wide).abs()
    share = f"{wrong} of {a.numel()} elements differ ({100 * wrong / a.numel():.1f}%)"
    lines = [share]
    for kind, values, allowed in (("absolute", difference, atol), ("relative", relative, rtol)):
        where = int(values.masked_fill(close, -1.0).nan_to_num(float("inf")).argmax())
        at: list[int] = []
        for size in reversed(a.shape):
            where, rest = divmod(where, size)
            at.insert(0, rest)
        most = float(values[tuple(at)])
        lines.append(
            f"greatest {kind} difference: {most:.6g} at {tuple(at)}, {allowed:g} is allowed"
        )
    _fail(path, "\n".join(lines))
