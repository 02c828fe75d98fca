"""`torch._check` and similar functions: conditions in code for PyTorch's compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "_assert",
    "_assert_async",
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_tensor_all_with",
    "_check_type",
    "_check_value",
    "_check_with",
]


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError unless the condition holds.

    Example:
        >>> from plait_torch._checks import _assert
        >>> _assert(1 < 2, "order")
    """
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Any, assert_msg: str = "Assertion failed") -> None:
    """Raise RuntimeError unless a tensor of one element is true."""
    if not bool(input):
        raise RuntimeError(assert_msg)


def _check_with(
    error_type: type[Exception], cond: Any, message: Callable[[], str] | None = None
) -> None:
    """Raise an error of a type unless the condition holds; the text is made only then.

    Example:
        >>> from plait_torch._checks import _check_with
        >>> _check_with(KeyError, False, lambda: "no such key")
        Traceback (most recent call last):
        KeyError: 'no such key'
    """
    if not cond:
        raise error_type(message() if callable(message) else message or "Expected cond to be True")


def _kind(error_type: type[Exception], name: str) -> Callable[..., None]:
    def check(cond: Any, message: Callable[[], str] | None = None) -> None:
        _check_with(error_type, cond, message)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise {error_type.__name__} unless the condition holds."
    return check


_check = _kind(RuntimeError, "_check")
_check_index = _kind(IndexError, "_check_index")
_check_value = _kind(ValueError, "_check_value")
_check_type = _kind(TypeError, "_check_type")
_check_not_implemented = _kind(NotImplementedError, "_check_not_implemented")


def _check_tensor_all_with(
    error_type: type[Exception], cond: Any, message: Callable[[], str] | None = None
) -> None:
    """Raise an error of a type unless all elements of a tensor of bools are true."""
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError unless all elements of a tensor of bools are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: Any, message: Callable[[], str] | None = None, *, max: Any = None) -> None:
    """Raise RuntimeError unless the number is a length, at most `max`."""
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)
