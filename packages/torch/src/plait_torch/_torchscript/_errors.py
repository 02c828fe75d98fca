"""The errors of code in TorchScript."""

from __future__ import annotations

import builtins

from plait_torch._script_errors import JITException, error_again


class ScriptError(RuntimeError):
    """Code that is not TorchScript, or that plait cannot run; the text names file and line."""


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
        result = error_again(type(error), error.args, error.__dict__)
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
    return error_again(found, (text,), {})
