"""The repr of a module, with a line for each submodule, and its form as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Protocol

from plait_nn._nesting import Steps, run

# A line, or a name with the content of its parentheses: labels and texts, each on a line.
Text = str | tuple[str, list[tuple[str, "Text"]]]


class _Module(Protocol):
    """The members of `Module` that these functions use."""

    @property
    def _parameters(self) -> Mapping[str, Any]: ...
    @property
    def _modules(self) -> Mapping[str, Any]: ...

    def _get_name(self) -> str: ...
    def extra_repr(self) -> str: ...


def _indent_rest(text: str, width: int) -> str:
    """Indent all lines but the first."""
    return text.replace("\n", "\n" + " " * width)


_STEPS: dict[Any, Callable[[Any], Steps]] = {}  # what each of our own __repr__ computes


def steps_of_repr(method: Any, steps: Callable[[Any], Steps]) -> None:
    """Note that a method `__repr__` runs these steps, so that it need not be called for them."""
    _STEPS[method] = steps


def text_below(module: Any) -> Steps:
    """Return the text of a module below another one, in steps."""
    return _STEPS.get(getattr(type(module), "__repr__", None), _called)(module)


def _called(module: Any) -> Steps:
    yield from ()  # a generator, as the others are
    return repr(module)


def module_text(module: _Module) -> str:
    """Return the repr of a module."""
    return rendered(run(text_steps(module), "repr"))


def rendered(text: Text) -> str:
    """Return a text with its lines indented, each once."""
    parts: list[str] = []
    waiting: list[tuple[Text, int]] = [(text, 0)]
    while waiting:
        each, width = waiting.pop()
        if isinstance(each, str):
            parts.append(_indent_rest(each, width))
            continue
        name, lines = each
        parts.append(f"{name}(")
        waiting.append(("\n)" if lines else ")", width))
        for label, inner in reversed(lines):
            waiting += [(inner, width + 2), (f"\n{label}", width + 2)]
    return "".join(parts)


def text_steps(module: _Module) -> Steps:
    """Return the text of a module, in steps."""
    extra = module.extra_repr()
    lines: list[tuple[str, Text]] = [("", line) for line in extra.split("\n")] if extra else []
    if len(lines) == 1 and not module._modules:
        return f"{module._get_name()}({extra})"
    for name, child in module._modules.items():
        text = yield text_below(child)
        lines.append((f"({name}): ", text))
    return module._get_name(), lines


def module_html(module: _Module) -> str:
    """Return the module as an HTML tree that can be folded; only the first level is open."""
    text: str = run(_branch(module, "", True), "_repr_html_")[0]
    return text


def _branch(module: _Module, name: str, opened: bool) -> Steps:
    """Return the HTML of a module, and the numbers of elements of its parameters, each once."""
    title = f"<b>{escape(module._get_name())}</b>"
    if name:
        title = f"{escape(name)}: {title}"
    extra = module.extra_repr()
    if extra:
        title += f" <code>{escape(extra)}</code>"
    counts = {id(x): x.numel() for x in module._parameters.values() if x is not None}
    inside = ""
    for key, child in module._modules.items():
        if child is not None:
            text, others = yield _branch(child, key, False)
            inside += text
            counts, fewer = (counts, others) if len(counts) > len(others) else (others, counts)
            counts.update(fewer)
    if not inside:
        return f"<div>{title}</div>", counts
    text = (
        f"<details{' open' if opened else ''}><summary>{title} "
        f"<small>{sum(counts.values()):,} parameters</small></summary>"
        f'<div style="margin-left:1.5em">{inside}</div></details>'
    )
    return text, counts
