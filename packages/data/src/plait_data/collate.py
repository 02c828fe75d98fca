"""Collation: lists of samples become batches.

`default_collate` stacks arrays and numbers along a new first dimension and goes through mappings,
sequences, namedtuples and dataclasses. It makes NumPy arrays; `set_batch_converter` registers a
function that converts them to tensors, and `register` adds a collation for another type of samples.
"""

from __future__ import annotations

import copy
import dataclasses
import struct
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from plait_data._arrays import is_array, stack

__all__ = [
    "batch_converter",
    "default_collate",
    "default_convert",
    "register",
    "set_batch_converter",
]

Converter = Callable[[Any], Any]
Collate = Callable[[list[Any]], Any]

# kinds of NumPy dtypes that tensors have too; text and objects are not converted
_NUMERIC = "biufc"
_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_PACKED = {int: ("q", np.dtype(np.int64)), float: ("d", np.dtype(np.float64))}
_converter: Converter | None = None
_registered: dict[type, Collate] = {}
_STACKED: set[type] = set()  # classes of arrays that became a batch


class _UnequalShapesError(ValueError, RuntimeError):
    """Samples of one batch have different shapes; programs for PyTorch catch a RuntimeError."""


def set_batch_converter(converter: Converter | None) -> Converter | None:
    """Register the converter of a batch's NumPy arrays to tensors.

    It applies to arrays of booleans and numbers that the default collation made or, with
    ``batch_size=None``, passes on; never to the result of a ``collate_fn``. ``DataLoader``,
    `default_collate` and `default_convert` take a ``convert`` argument that takes precedence;
    ``convert=numpy.asarray`` keeps NumPy arrays. ``import plait`` and the use of
    ``plait.utils.data`` registers ``plait.from_numpy``, which doesn't copy.

    Args:
        converter: a function of a NumPy array, or None to leave NumPy arrays as they are.

    Returns:
        The converter that was registered before.

    Example:
        >>> import plait_data
        >>> before = plait_data.set_batch_converter(lambda array: array.tolist())
        >>> plait_data.default_collate([1.0, 2.0])
        [1.0, 2.0]
        >>> _ = plait_data.set_batch_converter(before)
    """
    global _converter
    if converter is not None and not callable(converter):
        raise TypeError(
            "set_batch_converter: `converter` must be a function of a NumPy array, or None; "
            f"got {type(converter).__name__}"
        )
    before, _converter = _converter, converter
    return before


def batch_converter() -> Converter | None:
    """Return the converter that `set_batch_converter` registered, or None.

    Example:
        >>> from plait_data.collate import batch_converter, set_batch_converter
        >>> before = batch_converter()
        >>> _ = set_batch_converter(list)
        >>> batch_converter() is list
        True
        >>> _ = set_batch_converter(before)
    """
    return _converter


def register(kind: type, collate: Collate) -> None:
    """Register the collation of samples of type ``kind`` (or of a subclass).

    Args:
        kind: the type; it takes precedence over the rules of `default_collate`.
        collate: a function from the list of samples to the batch.

    Example:
        >>> from fractions import Fraction
        >>> from plait_data import collate
        >>> collate.register(Fraction, lambda samples: [float(f) for f in samples])
        >>> collate.default_collate([(Fraction(1, 2), 3), (Fraction(1, 4), 4)])
        [[0.5, 0.25], array([3, 4])]
    """
    if not isinstance(kind, type) or not callable(collate):
        raise TypeError(
            "register: `kind` must be a type and `collate` a function; "
            f"got {type(kind).__name__} and {type(collate).__name__}"
        )
    _registered[kind] = collate


def default_collate(batch: Sequence[Any], *, convert: Converter | None = None) -> Any:
    """Samples to a batch, each array with a new first dimension of size ``len(batch)``.

    ===========================  ==================================================================
    samples                      batch
    ===========================  ==================================================================
    NumPy arrays of one shape    an array
    another library's arrays     an array of that library, by its ``stack``
    bool, int, float, complex    an array of dtype bool, int64, float64, complex128
    NumPy scalars                an array of their dtype
    str, bytes                   the list of samples
    mappings with the same keys  a mapping of batches, of the same type where possible
    namedtuples, dataclasses     one of the same type, of batches
    sequences of one length      a list of batches, one a position
    ===========================  ==================================================================

    Args:
        batch: at least one sample.
        convert: a function from NumPy arrays to tensors; None: the one of `set_batch_converter`.

    Raises:
        ValueError: no samples, or their shapes, lengths or keys differ.
        TypeError: a type that is not in the table, such as None.

    Example:
        >>> from plait_data import default_collate
        >>> default_collate([{"x": (1, "a")}, {"x": (2, "b")}])
        {'x': [array([1, 2]), ['a', 'b']]}
    """
    samples = list(batch)
    if not samples:
        raise ValueError("default_collate: `batch` must hold at least one sample; got none")
    return _collate(samples, convert or _converter, "sample")


def _collate(samples: Sequence[Any], convert: Converter | None, where: str) -> Any:
    first = samples[0]
    kind = type(first)
    if _registered:
        for base in kind.__mro__:
            if base in _registered:
                return _registered[base](list(samples))
    # the most frequent types first, by identity: each check takes part of a microsecond
    if kind is int or kind is float:
        return _converted(_numbers(samples, where), convert)
    if kind is tuple or kind is list:
        return _sequence(samples, convert, where)
    if kind is dict:
        return _mapping(samples, convert, where)
    if kind in _STACKED or is_array(first):
        return _converted(_stacked(samples, where), convert)
    if isinstance(first, (bool, int, float, complex, np.generic)):
        return _converted(_numbers(samples, where), convert)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return _mapping(samples, convert, where)
    if _is_namedtuple(first):
        parts = zip(first._fields, _columns(samples, where), strict=True)
        return kind(*(_collate(column, convert, f"{where}.{name}") for name, column in parts))
    if isinstance(first, Sequence):
        return _sequence(samples, convert, where)
    if dataclasses.is_dataclass(first):
        return _dataclass(samples, convert, where)
    raise TypeError(
        "default_collate: samples must consist of arrays, numbers, strings, mappings, sequences, "
        f"namedtuples or dataclasses; {where} is a {kind.__module__}.{kind.__qualname__}"
    )


def _sequence(samples: Sequence[Any], convert: Converter | None, where: str) -> list[Any]:
    columns = enumerate(_columns(samples, where))
    return [_collate(column, convert, f"{where}[{i}]") for i, column in columns]


def _stacked(samples: Sequence[Any], where: str) -> Any:
    kind = type(samples[0])
    if kind is not np.ndarray and set(map(type, samples)) == {kind}:
        try:  # most are of one shape, which the library itself looks at
            batch = stack(samples)
        except (ValueError, RuntimeError):
            pass
        else:
            _STACKED.add(kind)
            return batch
    try:
        shapes = {sample.shape for sample in samples}
    except AttributeError:
        kinds = sorted({type(sample).__name__ for sample in samples})
        raise TypeError(
            f"default_collate: {where} must be an array in each sample of a batch; "
            f"got {', '.join(kinds)}"
        ) from None
    if len(shapes) > 1:
        text = ", ".join(map(str, sorted(shapes)[:4]))
        raise _UnequalShapesError(
            f"default_collate: {where} must have one shape in all samples of a batch; "
            f"got {text} (a `collate_fn` can pad them)"
        )
    return stack(samples)


def _numbers(samples: Sequence[Any], where: str) -> Any:
    kind = type(samples[0])
    if kind in _PACKED:
        # `np.array` looks for the common type of all first, which takes two times as long.
        code, dtype = _PACKED[kind]
        array: Any = np.empty(len(samples), dtype)
        try:
            struct.pack_into(f"{len(samples)}{code}", array, 0, *samples)
            return array
        except (struct.error, TypeError, ValueError, RuntimeError, OverflowError):
            if kind is float:  # NumPy would accept text and None as numbers
                raise _no_numbers(samples, where) from None
    try:
        array = np.array(samples)
    except (TypeError, ValueError, OverflowError) as error:
        raise _no_numbers(samples, where) from error
    if array.ndim != 1 or array.dtype.kind not in _kinds(samples):
        raise _no_numbers(samples, where)
    return array


def _kinds(samples: Sequence[Any]) -> str:
    """The kinds of dtypes that represent the numbers exactly."""
    # Of integers that no type of 64 bits holds NumPy makes uint64, floats or objects.
    if all(isinstance(sample, (int, np.integer)) for sample in samples):
        return "bi" if isinstance(samples[0], int) else "biu"
    return _NUMERIC if isinstance(samples[0], _NUMBERS) else "USMmVO"


def _no_numbers(samples: Sequence[Any], where: str) -> TypeError:
    kinds = sorted({type(sample).__name__ for sample in samples})
    return TypeError(
        f"default_collate: {where} must be a number that fits 64 bits in each sample of a batch; "
        f"got {', '.join(kinds)}"
    )


def _mapping(samples: Sequence[Any], convert: Converter | None, where: str) -> Any:
    first = samples[0]
    keys = first.keys()
    # Exactly dicts are compared by their lengths here and by look-up below, in less time. Other
    # mappings may invent missing keys (Counter, defaultdict).
    if set(map(type, samples)) != {dict} or len(set(map(len, samples))) > 1:
        for sample in samples:
            if not isinstance(sample, Mapping) or sample.keys() != keys:
                raise _unequal_keys(first, sample, where)
    try:
        columns = {key: [sample[key] for sample in samples] for key in first}
    except KeyError:
        other = next(sample for sample in samples if sample.keys() != keys)
        raise _unequal_keys(first, other, where) from None
    batches = {
        key: _collate(column, convert, f"{where}[{key!r}]") for key, column in columns.items()
    }
    return _like_mapping(first, batches)


def _unequal_keys(first: Any, other: Any, where: str) -> ValueError:
    keys = list(other) if isinstance(other, Mapping) else type(other).__name__
    return ValueError(
        f"default_collate: {where} must have the same keys in all samples of a batch; "
        f"got {list(first)} and {keys}"
    )


def _like_mapping(first: Any, columns: dict[Any, Any]) -> Any:
    if type(first) is dict:
        return columns
    try:
        if isinstance(first, MutableMapping):
            # keeps other attributes of the object, such as a default factory
            clone = copy.copy(first)
            clone.update(columns)
            return clone
        return type(first)(columns)
    except TypeError:  # its constructor takes other arguments
        return columns


def _dataclass(samples: Sequence[Any], convert: Converter | None, where: str) -> Any:
    # a copy, without a call of __post_init__, which is for samples and not for batches
    clone = copy.copy(samples[0])
    for field in dataclasses.fields(clone):
        column = [getattr(sample, field.name) for sample in samples]
        batch = _collate(column, convert, f"{where}.{field.name}")
        object.__setattr__(clone, field.name, batch)
    return clone


def _columns(samples: Sequence[Any], where: str) -> Iterable[Sequence[Any]]:
    """The samples transposed; lengths must agree."""
    try:
        # Transposed before the first column is collated, so that the errors here are of lengths.
        return list(zip(*samples, strict=True))
    except (TypeError, ValueError):
        lengths = {len(s) if isinstance(s, Sequence) else type(s).__name__ for s in samples}
        raise ValueError(
            f"default_collate: {where} must have one length in all samples of a batch; "
            f"got {', '.join(sorted(map(str, lengths)))}"
        ) from None


def _is_namedtuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _converted(array: Any, convert: Converter | None) -> Any:
    if convert is None or not isinstance(array, np.ndarray) or array.dtype.kind not in _NUMERIC:
        return array
    return convert(array)


def default_convert(data: Any, *, convert: Converter | None = None) -> Any:
    """One sample with its NumPy arrays converted; a loader with ``batch_size=None`` applies it.

    Goes through mappings, sequences, namedtuples and dataclasses like `default_collate`; numbers
    and strings stay what they are. Arrays are passed to the converter without a copy.

    Args:
        data: the sample.
        convert: a function from NumPy arrays to tensors; None: the one of `set_batch_converter`.

    Example:
        >>> import numpy as np
        >>> from plait_data import default_convert
        >>> default_convert({"x": np.arange(2), "id": 7}, convert=np.ndarray.tolist)
        {'x': [0, 1], 'id': 7}
    """
    convert = convert or _converter
    return data if convert is None else _convert(data, convert)


def _convert(data: Any, convert: Converter) -> Any:
    if isinstance(data, np.generic):
        return _converted(np.asarray(data), convert)
    if is_array(data):
        return _converted(data, convert)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: _convert(data[key], convert) for key in data})
    if _is_namedtuple(data):
        return type(data)(*(_convert(item, convert) for item in data))
    if isinstance(data, Sequence):
        return [_convert(item, convert) for item in data]
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        clone = copy.copy(data)
        for field in dataclasses.fields(data):
            object.__setattr__(clone, field.name, _convert(getattr(data, field.name), convert))
        return clone
    return data
