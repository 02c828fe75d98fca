"""What the engine's package offers in Python beyond the ABI: hooks, functions, modes.

For packages that know no engine by name, such as ``plait-nn``. Programs import the engine itself.
"""

from __future__ import annotations

from typing import Any

from plait_abi.components import require

__all__ = ["part"]


def part(name: str) -> Any:
    """Return an attribute of the package of the engine in force, such as ``"Function"``.

    Raises:
        ImportError: no engine is installed; the text says which package to install.
        NotImplementedError: this engine has none of that name.

    Example:
        >>> from plait_core import engine
        >>> engine.part("is_grad_enabled")()
        True
    """
    package = require("autograd")
    found = getattr(package, name, None)
    if found is None:
        raise NotImplementedError(f"{name}: the engine {package.__name__} has none")
    return found
