"""The Python features of the engine's package beyond the ABI: hooks, functions, modes.

For packages that work with any engine, such as ``plait-nn``. Programs import the engine itself.
"""

from __future__ import annotations

import sys
from typing import Any

from plait_abi.components import choose, require

__all__ = ["loaded_part", "part"]


def part(name: str) -> Any:
    """Return an attribute of the package of the engine in force, such as ``"Function"``.

    Args:
        name: The name of the part.

    Raises:
        ImportError: no engine is installed; the text says which package to install.
        NotImplementedError: this engine has none of that name.

    Example:
        >>> from plait_core import engine
        >>> engine.part("is_grad_enabled")()
        True
    """
    package = require("autograd")
    result = getattr(package, name, None)
    if result is None:
        raise NotImplementedError(f"{name}: the engine {package.__name__} has none")
    return result


def loaded_part(name: str) -> Any:
    """Return an attribute of the engine's package; None if no engine is loaded, or if it has no
    such attribute.

    Args:
        name: The name of the part.

    Example:
        >>> from plait_core import engine
        >>> engine.loaded_part("no_such_thing") is None
        True
    """
    return getattr(sys.modules.get(choose("autograd")), name, None)
