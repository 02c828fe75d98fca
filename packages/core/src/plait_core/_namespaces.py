"""Namespaces by prefix: the operator ``linalg_solve`` is `plait.linalg.solve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import binding

__all__ = ["NAMESPACES", "defined_later", "fill", "in_namespace", "shown"]

NAMESPACES = ("fft", "linalg", "special")


def in_namespace(name: str) -> bool:
    """Return whether an operator belongs to a namespace and not to `plait_core` itself."""
    return name.partition("_")[0] in NAMESPACES and "_" in name.rstrip("_")


def defined_later(name: str) -> Any:
    """Return the operator of a plug-in that came after this package, where it is a function; None
    for another name.
    """
    variants = dict(binding.operator_names()).get(name, "")
    return binding.operator(name) if "function" in variants else None


def fill(module: dict[str, Any], prefix: str) -> Callable[[str], Any]:
    """Put the operators whose names begin with ``prefix`` into a module's globals.

    Returns:
        The module's ``__getattr__``, which finds operators that a plug-in defined later.
    """
    own = set(module)
    for name, variants in binding.operator_names():
        short = name.removeprefix(prefix)
        if short != name and "function" in variants and short not in own:
            module[short] = binding.operator(name)
            module["__all__"].append(short)

    def find(name: str) -> Any:
        operator = defined_later(prefix + name)
        if operator is None:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        return operator

    return find


def shown(module: dict[str, Any]) -> Callable[[], list[str]]:
    """Return the ``__dir__`` of a module: its public names, without its own imports."""

    def names() -> list[str]:
        own = (name for name in module if name.startswith("__") and name != "__all__")
        return sorted({*module["__all__"], *own})

    return names
