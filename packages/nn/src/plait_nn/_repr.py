"""The text of a module: its arguments, and its submodules one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait_nn._module import Module

__all__ = ["indent_rest", "module_text"]


def indent_rest(text: str, width: int = 2) -> str:
    """Indent all lines but the first."""
    return text.replace("\n", "\n" + " " * width)


def module_text(module: Module) -> str:
    """Return the repr of a module."""
    extra = module.extra_repr()
    lines = extra.split("\n") if extra else []
    children = [f"({name}): {indent_rest(repr(m))}" for name, m in module._modules.items()]
    if len(lines) == 1 and not children:
        return f"{module._get_name()}({lines[0]})"
    lines += children
    body = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
    return f"{module._get_name()}({body})"
