"""`torch.testing._comparison`: the steps of `assert_close`, for programs with rules of their own.

Pairs of values are made from the classes that a program lists: the first one that takes two values
compares them. A program adds a class for its own kind of values. torchvision's tests use it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import plait
from plait.testing import assert_close

__all__ = [
    "BooleanPair",
    "ErrorMeta",
    "NonePair",
    "NumberPair",
    "ObjectPair",
    "Pair",
    "TensorLikePair",
    "UnsupportedInputs",
    "assert_equal",
    "not_close_error_metas",
    "originate_pairs",
]


class ErrorMeta(Exception):
    """An error that a comparison found: its type, its text and where in the values it is."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> None:
        super().__init__(msg)
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """Return the error, with another text if one is given."""
        where = "".join(f"[{part!r}]" for part in self.id)
        text = f"{self.msg}\n\nThe failure occurred for item {where}" if where else self.msg
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        return self.type(text)


class UnsupportedInputs(Exception):
    """Raised by a pair's constructor for values that it does not compare."""


class Pair:
    """Two values to compare. Subclasses have `compare`, and refuse values of other kinds."""

    def __init__(
        self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **unknown_parameters: Any
    ) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: Any) -> None:
        if not all(isinstance(value, cls) for value in inputs):
            raise UnsupportedInputs

    def _fail(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=id or self.id)

    def compare(self) -> None:
        """Raise an `ErrorMeta` if the values differ."""
        raise NotImplementedError(f"{type(self).__name__} has no `compare`")


class ObjectPair(Pair):
    """Values of any kind, compared by ``==``."""

    def compare(self) -> None:
        """Raise unless the values are equal."""
        try:
            equal = self.actual == self.expected
        except Exception as error:
            text = f"{self.actual} == {self.expected} failed with: {error}"
            raise ErrorMeta(ValueError, text, id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Two values, of which one is None."""

    def __init__(self, actual: Any, expected: Any, **options: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **options)

    def compare(self) -> None:
        """Raise unless both are None."""
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


def _numpy(name: str) -> tuple[Any, ...]:
    """Return a class of NumPy's scalars; none if nothing imported it."""
    numpy = sys.modules.get("numpy")
    return () if numpy is None else (getattr(numpy, name),)


class BooleanPair(Pair):
    """Two truth values, of Python or NumPy."""

    def __init__(self, actual: Any, expected: Any, **options: Any) -> None:
        self._check_inputs_isinstance(actual, expected, cls=(bool, *_numpy("bool_")))
        super().__init__(bool(actual), bool(expected), **options)

    def compare(self) -> None:
        """Raise unless they are the same."""
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Two numbers, of Python or NumPy; by default those of one type only are close."""

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **options: Any,
    ) -> None:
        self._check_inputs_isinstance(
            actual, expected, cls=(int, float, complex, *_numpy("number"))
        )
        numbers = [
            value.item() if hasattr(value, "item") else value for value in (actual, expected)
        ]
        super().__init__(*numbers, **options)
        kinds = {type(value) for value in numbers}
        kind = next(each for each in (complex, float, int) if each in kinds or each is int)
        defaults = {complex: (1e-7, 1e-7), float: (1e-7, 1e-7), int: (0.0, 0.0)}[kind]
        self.rtol, self.atol = _tolerances(rtol, atol, defaults)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    def compare(self) -> None:
        """Raise unless the numbers are close."""
        one, two = self.actual, self.expected
        if self.check_dtype and type(one) is not type(two):
            self._fail(AssertionError, f"The (d)types do not match: {type(one)} != {type(two)}.")
        if one == two or (self.equal_nan and one != one and two != two):
            return
        difference = abs(one - two)
        if math.isfinite(abs(two)) and difference <= self.atol + self.rtol * abs(two):
            return
        self._fail(
            AssertionError,
            f"Scalars are not close!\n\nExpected {two} but got {one}.\n"
            f"Absolute difference: {difference} (up to {self.atol} allowed)",
        )


def _tolerances(
    rtol: float | None, atol: float | None, defaults: tuple[float, float]
) -> tuple[float, float]:
    if (rtol is None) != (atol is None):
        raise ErrorMeta(ValueError, "rtol and atol must both be given, or neither")
    return defaults if rtol is None or atol is None else (rtol, atol)


class TensorLikePair(Pair):
    """Two tensors, or what `torch.as_tensor` makes tensors of."""

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **options: Any,
    ) -> None:
        actual, expected = self._process_inputs(
            actual, expected, id=id, allow_subclasses=allow_subclasses
        )
        super().__init__(actual, expected, id=id, **options)
        if (rtol is None) != (atol is None):
            raise ErrorMeta(ValueError, "rtol and atol must both be given, or neither", id=id)
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: tuple[Any, ...], allow_subclasses: bool
    ) -> tuple[Any, Any]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            self._inputs_not_supported()
        return self._to_tensor(actual), self._to_tensor(expected)

    def _to_tensor(self, tensor_like: Any) -> Any:
        if isinstance(tensor_like, plait.Tensor) or hasattr(tensor_like, "layout"):
            return tensor_like
        try:
            return plait.as_tensor(tensor_like)
        except Exception:
            self._inputs_not_supported()

    def compare(self) -> None:
        """Raise unless the tensors are close and alike."""
        self._compare_attributes(self.actual, self.expected)
        self._compare_values(*self._equalize_attributes(self.actual, self.expected))

    def _compare_attributes(self, actual: Any, expected: Any) -> None:
        requests = [("shape", True), ("device", self.check_device), ("dtype", self.check_dtype)]
        for name, required in [*requests, ("layout", self.check_layout)]:
            one, two = getattr(actual, name), getattr(expected, name)
            if required and one != two:
                message = f"The values for attribute '{name}' do not match: {one} != {two}."
                self._fail(AssertionError, message)
        if self.check_stride and actual.stride() != expected.stride():
            one, two = actual.stride(), expected.stride()
            self._fail(AssertionError, f"The strides do not match: {one} != {two}.")

    def _equalize_attributes(self, actual: Any, expected: Any) -> tuple[Any, Any]:
        if actual.layout != expected.layout:
            actual, expected = actual.to_dense(), expected.to_dense()
        if actual.dtype != expected.dtype:
            common = plait.promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(common), expected.to(common)
        return actual, expected

    def _compare_values(self, actual: Any, expected: Any) -> None:
        rules: dict[str, Any] = {"check_dtype": False, "check_layout": False, "check_device": False}
        rules |= {"rtol": self.rtol, "atol": self.atol, "equal_nan": self.equal_nan}
        try:
            assert_close(actual, expected, **rules)
        except AssertionError as error:
            text = str(error).partition(": ")[2]
            self._fail(AssertionError, f"Tensor-likes are not close!\n\n{text}")


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: tuple[Any, ...] = (),
    **options: Any,
) -> list[Pair]:
    """Return the pairs of two values, or of the items of two sequences or mappings.

    Raises:
        ErrorMeta: if they hold different numbers or keys, or no class of `pair_types` takes a pair.
    """
    kinds: dict[str, Any] = {"pair_types": pair_types, "sequence_types": sequence_types,
             "mapping_types": mapping_types}  # fmt: skip
    values = (actual, expected)
    if all(isinstance(value, sequence_types) and not isinstance(value, str) for value in values):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, text, id=id)
        keys: Any = range(len(actual))
    elif all(isinstance(value, mapping_types) for value in values):
        if set(actual) != set(expected):
            missing, more = sorted(set(expected) - set(actual)), sorted(set(actual) - set(expected))
            text = f"The keys of the mappings do not match: missing {missing}, additional {more}"
            raise ErrorMeta(AssertionError, text, id=id)
        keys = list(actual)
    else:
        for kind in pair_types:
            try:
                return [kind(actual, expected, id=id, **options)]
            except UnsupportedInputs:
                continue
        text = f"No comparison pair takes values of types {type(actual)} and {type(expected)}."
        raise ErrorMeta(TypeError, text, id=id)
    results: list[Pair] = []
    for key in keys:
        results += originate_pairs(actual[key], expected[key], id=(*id, key), **kinds, **options)
    return results


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """Return the errors of all pairs of two values; an empty list if all are close.

    Example:
        >>> import plait
        >>> from plait_torch._comparison import TensorLikePair, not_close_error_metas
        >>> (found,) = not_close_error_metas(
        ...     [plait.ones(1)], [plait.zeros(1)], pair_types=(TensorLikePair,)
        ... )
        >>> found.id
        (0,)
    """
    try:
        pairs = originate_pairs(
            actual,
            expected,
            pair_types=pair_types,
            sequence_types=sequence_types,
            mapping_types=mapping_types,
            **options,
        )
    except ErrorMeta as error:
        return [error]
    results = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as error:
            results.append(error)
    return results


def assert_equal(
    actual: Any, expected: Any, *, msg: str | Callable[[str], str] | None = None, **options: Any
) -> None:
    """Raise the first error of `not_close_error_metas`."""
    for error in not_close_error_metas(actual, expected, **options):
        raise error.to_error(msg)
