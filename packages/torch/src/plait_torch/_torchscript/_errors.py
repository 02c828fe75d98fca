"""The errors of code in TorchScript."""

from __future__ import annotations

import builtins
import functools
from typing import Any


class ScriptError(RuntimeError):
    """Code that is not TorchScript, or that plait cannot run; the text names file and line."""


class JITException(Exception):
    """`torch.jit.Error`: an exception raised by code of TorchScript.

    The exception is also of the class that the code raised, as the code runs in Python.
    """

    def __reduce__(self) -> Any:
        kind = type(self)
        if kind is JITException:
            return super().__reduce__()
        return _error_again, (kind.__bases__[1], self.args, self.__dict__)


@functools.cache
def _class_of(kind: Any) -> Any:
    return type(kind.__name__, (JITException, kind), {"__module__": kind.__module__})


def _error_again(kind: Any, args: tuple[Any, ...], values: dict[str, Any]) -> Exception:
    found = _class_of(kind)
    result: Exception = found.__new__(found, *args)
    result.args = args
    result.__dict__.update(values)
    return result


def script_error(error: Exception) -> Exception:
    """Return an exception of a script's code as one of `JITException` too, or itself.

    Example:
        >>> from plait_torch._torchscript._errors import JITException, script_error
        >>> error = script_error(ValueError("no rows"))
        >>> isinstance(error, JITException), isinstance(error, ValueError), str(error)
        (True, True, 'no rows')
    """
    if isinstance(error, (JITException, ScriptError)):
        return error
    try:
        result = _error_again(type(error), error.args, error.__dict__)
    except TypeError:  # a class that takes no second base, or no arguments of an exception
        return error
    return result.with_traceback(error.__traceback__)


def raised(text: str, kind: str = "") -> Exception:
    """Return the error that ``raise`` of a script means: `JITException` and a built-in class.

    Example:
        >>> raised("no rows", "builtins.ValueError")
        ValueError('no rows')
    """
    found = getattr(builtins, kind.removeprefix("builtins."), None) if kind else None
    if not (isinstance(found, type) and issubclass(found, Exception)):
        found = RuntimeError
    return _error_again(found, (text,), {})
