"""The repr of a module, with a line for each submodule, and its form as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Protocol

__all__ = ["indent_rest", "module_html", "module_text"]


class _Module(Protocol):
    """The members of `Module` that these functions use."""

    @property
    def _modules(self) -> Mapping[str, Any]: ...

    def _get_name(self) -> str: ...
    def extra_repr(self) -> str: ...
    def parameters(self) -> Iterator[Any]: ...


def indent_rest(text: str, width: int = 2) -> str:
    """Indent all lines but the first."""
    return text.replace("\n", "\n" + " " * width)


def module_text(module: _Module) -> str:
    """Return the repr of a module."""
    extra = module.extra_repr()
    lines = extra.split("\n") if extra else []
    children = [f"({name}): {indent_rest(repr(m))}" for name, m in module._modules.items()]
    if len(lines) == 1 and not children:
        return f"{module._get_name()}({lines[0]})"
    lines += children
    body = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
    return f"{module._get_name()}({body})"


def module_html(module: _Module) -> str:
    """Return the module as an HTML tree that can be folded; only the first level is open."""
    return _branch(module, "", True)


def _branch(module: _Module, name: str, opened: bool) -> str:
    children = [(key, child) for key, child in module._modules.items() if child is not None]
    title = f"<b>{escape(module._get_name())}</b>"
    if name:
        title = f"{escape(name)}: {title}"
    extra = module.extra_repr()
    if extra:
        title += f" <code>{escape(extra)}</code>"
    if not children:
        return f"<div>{title}</div>"
    count = sum(parameter.numel() for parameter in module.parameters())
    inside = "".join(_branch(child, key, False) for key, child in children)
    return (
        f"<details{' open' if opened else ''}><summary>{title} "
        f"<small>{count:,} parameters</small></summary>"
        f'<div style="margin-left:1.5em">{inside}</div></details>'
    )
