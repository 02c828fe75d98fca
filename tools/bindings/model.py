"""The model of plait's interface that back ends write bindings from; no language is in it.

`load` makes it from the C headers and from ops.json, both of which installed packages have. It is
plain data: ``python tools/bindings model`` writes it as JSON, for generators in other languages.
docs/guides/languages.md explains the parts.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import pathlib
import re
from typing import Any

import declarations
from declarations import Function, Header, Struct, Type

__all__ = ["LIBRARIES", "Model", "Operator", "Parameter", "folders", "load", "plain", "roles"]

HEADERS = (
    ("plait_abi", "dlpack.h"),
    ("plait_abi", "abi.h"),
    ("plait_graph", "run.h"),
)
"""The headers and their packages; each is ``<package>/include/plait/<name>``."""


@dataclasses.dataclass(frozen=True)
class Library:
    """A library that a program loads, from a folder or from ``<package>/lib`` in it.

    One with `processor` is only loaded where the processor has these features. The first one is
    the runtime; the others are given to ``plait_runtime::load`` in their order.
    """

    package: str
    name: str
    optional: bool = False
    processor: tuple[str, ...] = ()


LIBRARIES = (
    Library("plait_abi", "plait_abi"),
    Library("plait_ops", "plait_ops"),
    Library("plait_core", "plait_core"),
    # later kernels are asked first; an installation for one processor has one of the two
    Library("plait_core", "plait_cpu_base", optional=True),
    Library("plait_core", "plait_cpu_avx2", optional=True, processor=("avx2", "fma", "f16c")),
    Library("plait_optim", "plait_optim", optional=True),
    Library("plait_autograd", "plait_autograd", optional=True),
)


@dataclasses.dataclass
class Parameter:
    """An argument of an operator.

    `type` is that of the schema: Tensor, Tensor[], Tensor|Scalar, Scalar, int, int[], float, bool,
    str, dtype, device or Generator. `default` counts if `required` is false.
    """

    name: str
    type: str
    required: bool
    optional: bool = False
    optional_items: bool = False
    keyword_only: bool = False
    length: int = 0
    default: Any = None


@dataclasses.dataclass
class Operator:
    """An operator: `name` is that of the runtime ("max.dim"), `identifier` one without a dot."""

    name: str
    identifier: str
    doc: str
    parameters: list[Parameter]
    results: list[str]
    method: bool = False
    inplace: bool = False


@dataclasses.dataclass
class Model:
    """All that a back end reads."""

    headers: list[Header]
    operators: list[Operator]
    libraries: list[Library]

    def header(self, name: str) -> Header:
        """Return the header of that name."""
        return next(header for header in self.headers if header.name == name)


# sizes of C's types where pointers have eight bytes, as on all systems that plait supports
_SIZES = {
    **{f"{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "char": 1,
    "int": 4,
    "double": 8,
    "float": 4,
}


def _place(sizes: dict[str, tuple[int, int]], type: Type) -> tuple[int, int]:
    """Return the bytes and the alignment of a type."""
    if type.kind in ("pointer", "function"):
        return 8, 8
    if type.kind == "array":
        assert type.to is not None
        size, alignment = _place(sizes, type.to)
        return size * type.length, alignment
    if type.kind == "union":
        parts = [_place(sizes, field.type) for field in type.parameters]
        alignment = max(part[1] for part in parts)
        return -(-max(part[0] for part in parts) // alignment) * alignment, alignment
    if type.name not in sizes:
        raise declarations.HeaderError(f"type {type.name} is used before its declaration")
    return sizes[type.name]


def _lay_out(headers: list[Header]) -> None:
    """Set the offsets of members, and the sizes and alignments of structs."""
    sizes = {name: (size, size) for name, size in _SIZES.items()}
    for header in headers:
        waiting: list[declarations.Alias | Struct] = [*header.aliases, *header.structs]
        while waiting:  # aliases and structs stand in two lists
            later: list[declarations.Alias | Struct] = []
            for each in waiting:
                try:
                    if isinstance(each, Struct):
                        if each.fields:
                            sizes[each.name] = _lay_out_struct(sizes, each)
                    else:
                        sizes[each.name] = _place(sizes, each.type)
                except declarations.HeaderError:
                    if len(waiting) == len(later) + 1:
                        raise
                    later.append(each)
            waiting = later


def _lay_out_struct(sizes: dict[str, tuple[int, int]], struct: Struct) -> tuple[int, int]:
    end, struct.alignment = 0, 1
    for field in struct.fields:
        size, alignment = _place(sizes, field.type)
        field.offset = -(-end // alignment) * alignment
        end = field.offset + size
        struct.alignment = max(struct.alignment, alignment)
    struct.size = -(-end // struct.alignment) * struct.alignment
    return struct.size, struct.alignment


def roles(function: Function) -> list[str]:
    """Return what each parameter of a function in run.h is for.

    "handle": the opened file; "handle_out": where a new one is stored; "string"; "settings": a
    struct that is read, or NULL; "description": a struct that is filled; "data" and
    its "nbytes", also with "_out"; "number" for all others. Bindings treat each of them in one way.
    """
    result: list[str] = []
    for parameter in function.parameters:
        type, target = parameter.type, parameter.type.to
        if target is None:
            behind = result and result[-1] == "data" and parameter.name == "nbytes"
            result.append("nbytes" if behind else "number")
        elif target.kind == "pointer":
            bytes_out = target.to is not None and target.to.name == "void"
            result.append("data_out" if bytes_out else "handle_out")
        elif target.name == "char":
            result.append("string")
        elif target.name == "void":
            result.append("data")
        elif target.name == "uint64_t":
            result.append("nbytes_out")
        elif target.name == "plait_run":
            result.append("handle")
        else:
            result.append("settings" if target.const else "description")
        assert type.kind in ("name", "pointer")
    return result


def returns_status(function: Function) -> bool:
    """Return whether the result of a function in run.h is a status, whose text the handle has.

    A function that can fail stores the text, so its handle is not const.
    """
    if function.result.name != "int":
        return False
    changed = zip(roles(function), function.parameters, strict=True)
    return any(
        role == "handle_out" or (role == "handle" and p.type.to is not None and not p.type.to.const)
        for role, p in changed
    )


def _text(doc: str) -> str:
    """Return a docstring without its examples, which are Python."""
    paragraphs = doc.strip().split("\n\n")
    kept = [text for text in paragraphs if not text.lstrip().startswith(">>>")]
    lines = [line.strip() for line in "\n\n".join(kept).split("\n")]
    return re.sub(r"``", "`", "\n".join(lines)).strip()


def _operator(entry: dict[str, Any]) -> Operator:
    parameters = [
        Parameter(
            argument["name"],
            argument["type"],
            "default" not in argument,
            argument.get("optional", False),
            argument.get("optional_items", False),
            argument.get("keyword_only", False),
            argument.get("length") or 0,
            argument.get("default"),
        )
        for argument in entry["arguments"]
    ]
    return Operator(
        entry["name"],
        entry["name"].replace(".", "_"),
        _text(entry["doc"]),
        parameters,
        [result["type"] for result in entry["results"]],
        "method" in entry["flags"],
        "inplace" in entry["flags"],
    )


def _package(name: str) -> pathlib.Path:
    """Return the folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin:
        raise FileNotFoundError(f"bindings: the package {name} is not installed for this Python")
    return pathlib.Path(spec.origin).parent


def folders() -> list[pathlib.Path]:
    """Return the folders in which the packages with libraries lie, for PLAIT_LIBRARIES."""
    packages = ["plait_graph", *(each.package for each in LIBRARIES)]
    return list(dict.fromkeys(_package(name).parent for name in packages))


def include_folders() -> list[pathlib.Path]:
    """Return the folders with the headers, for a compiler's ``-I``."""
    return [_package(package) / "include" for package in dict(HEADERS)]


def load() -> Model:
    """Return the model of the installed packages."""
    headers = []
    for package, name in HEADERS:
        path = _package(package) / "include" / "plait" / name
        headers.append(declarations.parse(name, path.read_text()))
    _lay_out(headers)
    table = json.loads((_package("plait_ops") / "ops.json").read_text())
    entries = [entry for entry in table["operators"] if not entry["internal"]]
    return Model(headers, [_operator(entry) for entry in entries], list(LIBRARIES))


def plain(value: Any) -> Any:
    """Return dataclasses as dicts, without members that are None or empty."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {name: member for name, member in members.items() if member not in (None, "", [])}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def c_of_layout(model: Model) -> str:
    """Return a C program whose compilation fails if a size or an offset is not C's."""
    lines = ["#include <stddef.h>"]
    lines += [f"#include <plait/{header.name}>" for header in model.headers]
    for header in model.headers:
        for struct in header.structs:
            if not struct.fields:
                continue
            facts = [f"sizeof({struct.name}) == {struct.size}"]
            facts += [f"offsetof({struct.name}, {f.name}) == {f.offset}" for f in struct.fields]
            lines += [f'_Static_assert({fact}, "{struct.name}");' for fact in facts]
        lines += [
            f'_Static_assert({each.name} == {_c_number(each.value)}, "{each.name}");'
            for each in header.constants
        ]
    return "\n".join(lines) + "\n"


def _c_number(value: int) -> str:
    return f"{value}ULL" if value >= 1 << 63 else f"{value}LL"
