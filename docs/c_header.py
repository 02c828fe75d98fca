"""A Sphinx extension: the directive `c-header` shows a C header block by block.

    ```{c-header} ../../packages/abi/src/plait_abi/include/plait/abi.h
    :until: roles
    ```

A block is a comment `/** ... */` at the beginning of a line and the declaration after it. It
becomes a section with the name of the declaration as its title, the text of the comment, and the
declaration, whose members keep their comments. Titles of the form `/* ---- title ---- */` group the
blocks; `:from:` and `:until:` choose some of these groups.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

__all__ = ["Block", "groups", "setup"]

_GROUP = re.compile(r"/\* ---- (.*?) -+ \*/")
_NAMES = (
    r"^\} (\w+);",  # typedef struct ... {
    r"^enum (\w+) \{",
    r"^typedef [^(;]*?(\w+);",
    r"^typedef [^(;]*\(\*(\w+)\)",
    r"^#define (\w+)",
    r"^[\w ]*?\*?(\w+)\(",
)


@dataclasses.dataclass(frozen=True)
class Block:
    """A comment and the declaration after it."""

    comment: str
    declaration: str

    @property
    def name(self) -> str:
        """The declared name; for an enum without one, the first sentence of the comment."""
        for pattern in _NAMES:
            match = re.search(pattern, self.declaration, re.MULTILINE)
            if match:
                return match[1]
        return re.sub(r"(?<!\w)::", "", re.split(r"[.:](?:\s|$)", self.comment)[0])

    @property
    def markdown(self) -> str:
        """The text of the comment, with parameters and the result as a list."""
        parts = re.split(r"(?ms)^(```.*?^```$)", self.comment)  # the odd ones are code
        return "".join(part if i % 2 else _marked(part) for i, part in enumerate(parts))


def _marked(text: str) -> str:
    """Return the text of a comment as Markdown."""
    text = re.sub(r"::(plait_\w+(?:\(\))?|PLAIT_\w+)", r"`\1`", text)
    text = re.sub(r"(?<![`\w])((?:plait|PLAIT)_\w*\*?(?:::\w+)?)(?![`\w])", r"`\1`", text)
    text = re.sub(r"^@param (\w+) ", r"\n- `\1`: ", text, flags=re.MULTILINE)
    return re.sub(r"^@return ", r"\n- returns ", text, flags=re.MULTILINE)


def _text(comment: str) -> str:
    """Return the text of a comment without its marks."""
    lines = comment.strip().removeprefix("/**").removesuffix("*/").splitlines()
    return "\n".join(re.sub(r"^ ?\* ?", "", line).strip() for line in lines).strip()


def _id(name: str) -> str:
    return "c-" + re.sub(r"\W+", "-", name)


def groups(header: str) -> dict[str, list[Block]]:
    """Return the blocks of a header by the title above them; the first title is empty."""
    _, *parts = re.split(r"(?m)^(?=/\*\* )", header.partition("/* PLAIT_ABI_H */")[0])
    result: dict[str, list[Block]] = {"": []}
    title = ""
    for part in parts:
        comment, _, rest = part.partition("*/")
        declaration, *following = re.split(r"(?m)^(?=/\* |#ifdef __cplusplus)", rest)
        result.setdefault(title, []).append(Block(_text(comment), declaration.strip()))
        for text in following:
            if match := _GROUP.match(text):
                title = match[1]
    return result


class Header(SphinxDirective):
    """The directive `c-header`."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "from": directives.unchanged,
        "until": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Return a section for each group, with one for each block."""
        relative, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        with open(path, encoding="utf-8") as file:
            by_title = groups(file.read())
        titles = list(by_title)
        first = titles.index(self.options["from"]) if "from" in self.options else 0
        last = titles.index(self.options["until"]) if "until" in self.options else len(titles)
        result: list[nodes.Node] = []
        for title in titles[first:last]:
            blocks = [self._block(block) for block in by_title[title]]
            result += [self._section(title, blocks)] if title else [n for b in blocks for n in b]
        return result

    def _section(self, title: str, parts: list[list[nodes.Node]]) -> nodes.section:
        section = nodes.section(ids=[_id(title)], names=[title])
        section += nodes.title(title, title[0].upper() + title[1:])
        for part in parts:
            section += part
        return section

    def _block(self, block: Block) -> list[nodes.Node]:
        body = nodes.container()
        text = block.markdown.removeprefix("@file").strip()
        lines = StringList(text.splitlines(), self.get_source_info()[0])
        self.state.nested_parse(lines, self.content_offset, body)
        if block.comment.startswith("@file"):
            return list(body.children)
        name = block.name
        section = nodes.section(ids=[_id(name)], names=[name])
        heading = nodes.Text(name) if " " in name else nodes.literal(name, name)
        section += nodes.title(name, "", heading)
        section += body.children
        section += nodes.literal_block(block.declaration, block.declaration, language="c")
        return [section]


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("c-header", Header)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
