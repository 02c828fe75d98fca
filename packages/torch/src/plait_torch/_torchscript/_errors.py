"""The errors of code in TorchScript."""

from __future__ import annotations

import builtins


class ScriptError(RuntimeError):
    """Code that is not TorchScript, or that plait cannot run; the text names file and line."""


def raised(text: str, kind: str = "") -> Exception:
    """Return the error that ``raise`` of a script means: a built-in class, else PyTorch's.

    Example:
        >>> raised("no rows", "builtins.ValueError")
        ValueError('no rows')
    """
    found = getattr(builtins, kind.removeprefix("builtins."), None) if kind else None
    if isinstance(found, type) and issubclass(found, Exception):
        return found(text)
    return RuntimeError(text)
