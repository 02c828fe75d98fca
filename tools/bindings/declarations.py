"""Read declarations out of plait's C headers: constants, structs, aliases and functions.

It reads the subset of C that `plait/abi.h`, `plait/dlpack.h` and `plait/run.h` use, and refuses
anything else with the line where it stands. A comment ``/** ... */`` before a declaration, and one
``/**< ... */`` behind it, become its `doc`. Blocks ``#if PLAIT_TARGET >= ...`` are read, as the
target is the header's own version; blocks for C++ are not, nor are inline functions.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

__all__ = [
    "Alias",
    "Constant",
    "Field",
    "Function",
    "Header",
    "HeaderError",
    "Struct",
    "Type",
    "parse",
]


class HeaderError(ValueError):
    """A declaration that the reader does not know."""


@dataclasses.dataclass
class Type:
    """A type, which may be `const`.

    `kind` is "name" (`name`), "pointer" (`to`), "array" (`to`, `length`), "function" for a pointer
    to one (`result`, `parameters`), or "union" (the members are `parameters`).
    """

    kind: str
    name: str = ""
    const: bool = False
    to: Type | None = None
    length: int = 0
    result: Type | None = None
    parameters: list[Field] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Field:
    """A member of a struct, or a parameter of a function, whose name may be empty."""

    name: str
    type: Type
    doc: str = ""
    offset: int = 0


@dataclasses.dataclass
class Constant:
    """A member of an enum, or a macro that is a whole number."""

    name: str
    value: int
    enum: str = ""
    doc: str = ""


@dataclasses.dataclass
class Struct:
    """A struct; one without fields is opaque."""

    name: str
    fields: list[Field]
    doc: str = ""
    size: int = 0
    alignment: int = 0


@dataclasses.dataclass
class Alias:
    """Another name of a type; that of an enum is one of an integer."""

    name: str
    type: Type
    doc: str = ""


@dataclasses.dataclass
class Function:
    """A function that a library exports."""

    name: str
    result: Type
    parameters: list[Field]
    doc: str = ""


@dataclasses.dataclass
class Header:
    """The declarations of a header in their order."""

    name: str
    doc: str = ""
    constants: list[Constant] = dataclasses.field(default_factory=list)
    aliases: list[Alias] = dataclasses.field(default_factory=list)
    structs: list[Struct] = dataclasses.field(default_factory=list)
    functions: list[Function] = dataclasses.field(default_factory=list)


_TOKEN = re.compile(
    r"(?P<doc>/\*\*.*?\*/)|(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>\"[^\"\n]*\")"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<number>\d\w*)|(?P<mark><<|\.\.\.|[^\s\w])",
    re.DOTALL,
)
_MACRO = re.compile(r"#define (\w+) \(*(?:\(\w+\))?(0x[0-9a-fA-F]+|\d+)[uUlL]*\)*$")
_OMITTED = re.compile(r"__attribute__|extern|_API$")


def _without_directives(text: str, constants: list[Constant]) -> str:
    """Return the text without lines of the preprocessor; numbers become constants."""
    lines: list[str] = []
    shown = [True]
    for line in map(str.strip, text.replace("\\\n", " ").split("\n")):
        if line.startswith("#if"):
            shown.append(shown[-1] and "__cplusplus" not in line)
        elif line.startswith("#else"):
            shown[-1] = shown[-2] and not shown[-1]
        elif line.startswith("#endif"):
            shown.pop()
        elif shown[-1] and (match := _MACRO.match(line)):
            constants.append(Constant(match[1], int(match[2], 0)))
        lines.append("" if line.startswith("#") or not shown[-1] else line)
    return "\n".join(lines)


def _doc(comment: str) -> str:
    """Return the text of a comment without its marks."""
    inner = re.sub(r"^/\*\*<?|\*/$", "", comment)
    return "\n".join(re.sub(r"^\s*\* ?", "", line).strip() for line in inner.split("\n")).strip()


class _Reader:
    """The tokens of a header, read from left to right."""

    def __init__(self, name: str, text: str) -> None:
        self.header = Header(name)
        text = _without_directives(text, self.header.constants)
        self.tokens: list[tuple[str, int]] = []
        self.docs: dict[int, str] = {}  # of the token before which, or behind which, it stands
        self.after: dict[int, str] = {}
        for match in _TOKEN.finditer(text):
            if match["comment"]:
                continue
            if match["doc"]:
                behind = match["doc"].startswith("/**<")
                if "@file" in match["doc"]:
                    self.header.doc = _doc(match["doc"]).removeprefix("@file").strip()
                elif behind:
                    self.after[len(self.tokens)] = _doc(match["doc"])
                else:
                    self.docs[len(self.tokens)] = _doc(match["doc"])
                continue
            self.tokens.append((match[0], text.count("\n", 0, match.start()) + 1))
        self.at = 0
        self.values = {constant.name: constant.value for constant in self.header.constants}

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place][0] if place < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek()
        if not token or (expected and token not in expected):
            line = self.tokens[min(self.at, len(self.tokens) - 1)][1]
            wanted = " or ".join(repr(text) for text in expected) or "more"
            raise HeaderError(f"{self.header.name}:{line}: {wanted} is required, got {token!r}")
        self.at += 1
        return token

    def word(self) -> str:
        if not re.match(r"[A-Za-z_]", self.peek()):
            self.take("a name")
        return self.take()

    def accept(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def skip(self, opening: str, closing: str) -> None:
        """Pass over a bracketed part, of which the opening bracket is next."""
        self.take(opening)
        depth = 1
        while depth:
            token = self.take()
            depth += (token == opening) - (token == closing)

    def doc_behind(self, start: int) -> str:
        """Return the comment behind the last token, past a comma or semicolon; or before it."""
        return self.after.get(self.at) or self.docs.get(start, "")

    # expressions of constants

    def number(self) -> int:
        if self.accept("("):
            value = self.number()
            self.take(")")
        elif self.accept("-"):
            return -self.number()
        else:
            token = self.take()
            text = token.rstrip("uUlL")
            if token in self.values:
                value = self.values[token]
            elif re.fullmatch(r"0x[0-9a-fA-F]+|\d+", text):
                value = int(text, 0)
            else:
                self.at -= 1
                self.take("a whole number")
        if self.accept("<<"):
            value <<= self.number()
        return value

    # types

    def base(self) -> Type:
        const = self.accept("const")
        if self.peek() in ("struct", "enum", "union"):
            self.take()
        result = Type("name", self.word(), const)
        if self.accept("const"):
            result.const = True
        return result

    def declarator(self, base: Type) -> Field:
        """Read what stands behind a base type: stars, a name or none, and arrays or parameters."""
        type = base
        while self.accept("*"):
            type = Type("pointer", to=type)
            type.const = self.accept("const")
        if self.peek() == "(" and self.peek(1) == "*":
            self.take("(")
            self.take("*")
            name = self.word()
            self.take(")")
            return Field(name, Type("function", result=type, parameters=self.parameters()))
        name = self.word() if re.match(r"[A-Za-z_]", self.peek()) else ""
        while self.accept("["):
            type = Type("array", to=type, length=self.number())
            self.take("]")
        return Field(name, type)

    def parameters(self) -> list[Field]:
        self.take("(")
        result: list[Field] = []
        if self.peek() == "void" and self.peek(1) == ")":
            self.take()
        while not self.accept(")"):
            if self.accept("..."):
                result.append(Field("...", Type("name", "...")))
            else:
                field = self.declarator(self.base())
                if field.type.kind == "array":  # `T x[3]` is a pointer
                    field.type = Type("pointer", to=field.type.to)
                result.append(field)
            if self.peek() != ")":
                self.take(",")
        return result

    def fields(self) -> Iterator[Field]:
        self.take("{")
        while not self.accept("}"):
            start = self.at
            if self.peek() == "union":
                self.take()
                union = Type("union", parameters=list(self.fields()))
                name = self.word()
                self.take(";")
                yield Field(name, union, self.doc_behind(start))
                continue
            base = self.base()
            group: list[Field] = []
            while True:
                field = self.declarator(base)
                group.append(field)
                last = not self.accept(",")
                if last:
                    self.take(";")
                field.doc = self.after.get(self.at, "")
                if last:
                    break
            text = self.docs.get(start, "") or group[-1].doc
            for field in group:
                field.doc = field.doc or text
                yield field

    # declarations

    def enum(self, name: str, doc: str) -> str:
        self.take("{")
        value = -1
        constants: list[Constant] = []
        while not self.accept("}"):
            start = self.at
            constant = self.word()
            value = self.number() if self.accept("=") else value + 1
            self.values[constant] = value
            if self.peek() != "}":
                self.take(",")
            constants.append(Constant(constant, value, name, self.doc_behind(start)))
        name = self.word() if not name and self.peek() != ";" else name
        for each in constants:
            each.enum = name
        self.header.constants += constants
        if name:
            signed = any(each.value < 0 for each in constants)
            underlying = Type("name", "int32_t" if signed else "uint32_t")
            self.header.aliases.append(Alias(name, underlying, doc))
        return name

    def typedef(self, doc: str) -> None:
        if self.peek() == "enum":
            self.take()
            self.enum(self.word() if self.peek() != "{" else "", doc)
            if self.peek() != ";":
                self.word()
        elif self.peek() == "struct" and "{" in (self.peek(1), self.peek(2)):
            self.take()
            if self.peek() != "{":
                self.word()
            fields = list(self.fields())
            self.header.structs.append(Struct(self.word(), fields, doc))
        elif self.peek() == "struct" and self.peek(1) == self.peek(2):  # typedef struct x x;
            self.take()
            self.word()
            self.header.structs.append(Struct(self.word(), [], doc))
        else:
            field = self.declarator(self.base())
            self.header.aliases.append(Alias(field.name, field.type, doc))
        self.take(";")

    def declaration(self) -> None:
        doc = self.docs.get(self.at, "")
        if self.accept("typedef"):
            self.typedef(doc)
        elif self.peek() == "enum":
            self.take()
            self.enum(self.word() if self.peek() != "{" else "", doc)
            self.take(";")
        elif self.peek() == "struct" and self.peek(2) == ";":
            self.at += 3
        elif self.accept("static"):
            while self.peek() != "{":
                self.take()
            self.skip("{", "}")
        elif _OMITTED.search(self.peek()):
            self.take()
        elif self.peek() == "PLAIT_ASSERT":
            self.take()
            self.skip("(", ")")
            self.take(";")
        else:
            field = self.declarator(self.base())
            parameters = self.parameters()
            self.take(";")
            self.header.functions.append(Function(field.name, field.type, parameters, doc))


def parse(name: str, text: str) -> Header:
    """Return the declarations of a header.

    Raises:
        HeaderError: the reader does not know a declaration.
    """
    reader = _Reader(name, text)
    while reader.at < len(reader.tokens):
        reader.declaration()
    return reader.header
