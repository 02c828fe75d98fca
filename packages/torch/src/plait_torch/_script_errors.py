"""`torch.jit.Error`, which `torch` has as `JITException`: the class of errors of scripts."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["JITException"]


class JITException(Exception):
    """`torch.jit.Error`: an exception raised by code of TorchScript.

    The exception is also of the class that the code raised, as the code runs in Python.
    """

    def __reduce__(self) -> Any:
        kind = type(self)
        if kind is JITException:
            return super().__reduce__()
        return error_again, (kind.__bases__[1], self.args, self.__dict__)


@functools.cache
def _class_of(kind: Any) -> Any:
    return type(kind.__name__, (JITException, kind), {"__module__": kind.__module__})


def error_again(kind: Any, args: tuple[Any, ...], values: dict[str, Any]) -> Exception:
    """Return an error of a class and of `JITException`, with the arguments and attributes.

    Example:
        >>> from plait_torch._script_errors import JITException, error_again
        >>> error = error_again(ValueError, ("no rows",), {})
        >>> isinstance(error, JITException), isinstance(error, ValueError)
        (True, True)
    """
    found = _class_of(kind)
    result: Exception = found.__new__(found, *args)
    result.args = args
    result.__dict__.update(values)
    return result
