"""Data types of the standard, and their promotion, in which 0-d arrays count like others."""

from __future__ import annotations

from typing import Any

from plait_abi import DTypeError, binding
from plait_core import _dtypes
from plait_core._core import Tensor, get_default_dtype, is_tensor

DType = binding.dtype

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
kinds: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}


class _Info:
    """The result of `finfo` and `iinfo`: the fields of the standard, with `dtype` a dtype."""

    def __init__(self, limits: Any, fields: tuple[str, ...]) -> None:
        self.dtype = binding.dtype(limits.dtype)
        self.__dict__.update({field: getattr(limits, field) for field in fields})

    def __repr__(self) -> str:
        return f"info({', '.join(f'{key}={value}' for key, value in vars(self).items())})"


def finfo(type: Any, /) -> Any:
    """Return the range and precision of a floating-point dtype, or of the dtype of an array."""
    info = _dtypes.finfo(type.dtype if is_tensor(type) else type)
    return _Info(info, ("bits", "eps", "max", "min", "smallest_normal"))


def iinfo(type: Any, /) -> Any:
    """Return the range of an integer dtype, or of the dtype of an array."""
    info = _dtypes.iinfo(type.dtype if is_tensor(type) else type)
    return _Info(info, ("bits", "max", "min"))


def _named(name: str) -> DType:
    return binding.dtype(name)


def _integers(a: DType, b: DType) -> DType:
    if a.is_signed == b.is_signed:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned.itemsize == 8:
        raise DTypeError(f"result_type: {a.name} and {b.name} have no common dtype")
    return _named(f"int{16 * unsigned.itemsize}")


def promote(a: DType, b: DType) -> DType:
    """Return the common dtype of two dtypes by the standard's tables.

    Raises:
        DTypeError: for uint64 with a signed integer, for which there is none.
    """
    if a is b or b is _dtypes.bool_:
        return a
    if a is _dtypes.bool_:
        return b
    if a.is_complex or b.is_complex:
        wide_one = any(d.name in ("float64", "complex128") for d in (a, b))
        return _named("complex128" if wide_one else "complex64")
    if a.is_floating_point and b.is_floating_point:
        if a.itemsize == b.itemsize:
            return _named("float32")  # float16 with bfloat16
        return a if a.itemsize > b.itemsize else b
    if a.is_floating_point or b.is_floating_point:
        return a if a.is_floating_point else b
    return _integers(a, b)


def _of_number(value: Any, other: DType | None) -> DType:
    """Return the dtype of a Python number in an operation with `other`."""
    if isinstance(value, bool):
        return other or _dtypes.bool_
    if isinstance(value, int):
        return _dtypes.int64 if other is None or other is _dtypes.bool_ else other
    inexact = other is not None and (other.is_floating_point or other.is_complex)
    real = other if inexact else get_default_dtype()
    assert real is not None
    if isinstance(value, float):
        return real
    return promote(real, _dtypes.complex64)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype of a result of arrays, dtypes and Python numbers.

    Raises:
        ValueError: if nothing is given.
        DTypeError: for uint64 with a signed integer.
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type: at least one array, dtype or number is required")
    result: DType | None = None
    numbers = []
    for each in arrays_and_dtypes:
        if isinstance(each, (bool, int, float, complex)):
            numbers.append(each)
            continue
        dtype = each.dtype if is_tensor(each) else binding.dtype(each)
        result = dtype if result is None else promote(result, dtype)
    for number in numbers:
        result = _of_number(number, result)
    assert result is not None
    return result


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether promotion can cast `from_`, an array or a dtype, to the dtype `to`."""
    source, target = from_.dtype if is_tensor(from_) else binding.dtype(from_), binding.dtype(to)
    try:
        return promote(source, target) is target
    except DTypeError:
        return False


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a kind: the name of one, another dtype, or a tuple of these.

    Raises:
        ValueError: for a kind that the standard doesn't know.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in kinds:
            raise ValueError(f"isdtype: `kind` must be one of {sorted(kinds)}, got {kind!r}")
        halves = ("float16", "bfloat16") if kind in ("real floating", "numeric") else ()
        return binding.dtype(dtype).name in kinds[kind] + halves
    return binding.dtype(dtype) is binding.dtype(kind)


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return the array in another dtype; with ``copy=False`` itself if it has it already."""
    return x.to(device=device, dtype=binding.dtype(dtype), copy=copy)


def wide(x: Tensor, dtype: Any) -> DType:
    """Return the dtype of sums and products of `x` if `dtype` is None."""
    if dtype is not None:
        return binding.dtype(dtype)
    if x.dtype.name in _UNSIGNED:
        return _dtypes.uint64
    return _dtypes.int64 if x.dtype.name in (*_SIGNED, "bool") else x.dtype
