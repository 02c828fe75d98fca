"""The back end for JavaScript: glue in C++ for run.h, a table of the operators, and their types.

bindings/node includes the glue in its addon, and makes functions and methods from the table. The
file of types is for editors and for programs in TypeScript.
"""

from __future__ import annotations

import json

from declarations import Function
from model import Model, Operator, Parameter, returns_status, roles

__all__ = ["emit"]

_PREFIX = "plait_run_"
# functions whose work the addon does when it makes and frees handles, and in its errors; programs
# of Node have files
_OMITTED = {
    *("plait_run_close", "plait_run_error"),
    *("plait_run_open_memory", "plait_run_save_memory"),
}
_RESERVED = {"in", "var", "new", "default", "function", "with", "this", "delete", "typeof"}


def _glue(function: Function) -> list[str]:
    """Return a function of the addon, from the roles of the parameters."""
    name = function.name.removeprefix(_PREFIX)
    before: list[str] = []
    words: list[str] = []
    result = ""
    place = 0  # of the next argument from JavaScript
    for parameter, role in zip(function.parameters, roles(function), strict=True):
        own = parameter.name
        if role == "handle":
            before.append(f"  GraphHandle &graph = c.graph({place});")
            words.append("graph.pointer")
        elif role == "handle_out":
            before.append("  GraphHandle graph;")
            words.append("&graph.pointer")
            result = "c.graph_value(std::move(graph))"
            continue
        elif role == "string":
            before.append(f"  const std::string {own} = c.text({place});")
            words.append(f"{own}.c_str()")
        elif role == "settings":
            before.append(f"  const RunSettings {own}(c, {place});")
            words.append(f"{own}.get()")
        elif role == "data":
            before.append(f"  const Bytes {own} = c.bytes({place});")
            words.append(f"{own}.data")
        elif role == "nbytes":
            words.append(f"{words[-1].removesuffix('.data')}.size")
            continue
        elif role == "description":
            before.append(f"  plait_run_tensor {own} = {{}};")
            before.append(f"  {own}.size = sizeof {own};")
            words.append(f"&{own}")
            result = f"c.description({own})"
            continue
        else:
            before.append(f"  const auto {own} = c.integer<{parameter.type.name}>({place});")
            words.append(own)
        place += 1
    call = f"run_functions().{function.name}({', '.join(words)})"
    if not returns_status(function):
        return [f"napi_value run_{name}(Call &c) {{", *before,
                f"  return c.number_value(double({call}));", "}", ""]  # fmt: skip
    return [f"napi_value run_{name}(Call &c) {{", *before, f"  graph.check({call});",
            f"  return {result or 'c.undefined()'};", "}", ""]  # fmt: skip


def _table(model: Model) -> str:
    """Return a struct with the functions, and one that finds them in the library."""
    names = [each.name for each in model.header("run.h").functions]
    lines = ["// The functions of plait/run.h.", "struct RunFunctions {"]
    lines += [f"  decltype(&::{name}) {name};" for name in names]
    lines += ["};", "", "inline RunFunctions find_functions(void *library) {"]
    lines += ["  RunFunctions f{};", *(f'  find(library, "{name}", &f.{name});' for name in names)]
    return "\n".join([*lines, "  return f;", "}", ""])


def _addon(model: Model) -> str:
    """Return the functions of the addon, and the table with their names."""
    functions = [each for each in model.header("run.h").functions if each.name not in _OMITTED]
    lines = ["// Functions of plait/run.h for JavaScript.", ""]
    lines += [line for each in functions for line in _glue(each)]
    names = [each.name.removeprefix(_PREFIX) for each in functions]
    lines.append("const Entry run_entries[] = {")
    lines += [f'    {{"run_{name}", entry<run_{name}>}},' for name in names]
    return "\n".join([*lines, "};", ""])


def _libraries(model: Model) -> str:
    """Return the rows of the table of libraries, for C++."""
    rows = [
        f'    {{"{each.package}", "{each.name}", {str(each.optional).lower()}, '
        f"{str(bool(each.processor)).lower()}}},"
        for each in model.libraries
    ]
    return "\n".join([*rows, ""])


# operators


def _row(operator: Operator) -> list[object]:
    """Return what the functions in JavaScript need to know; the addon knows the types."""
    names = [p.name for p in operator.parameters]
    positional = sum(not p.keyword_only for p in operator.parameters)
    return [
        operator.name,
        operator.identifier,
        names,
        positional,
        operator.method,
        operator.inplace,
    ]


_TYPES = {
    "Tensor": "Tensor",
    "Tensor[]": "Tensor[]",
    "Tensor|Scalar": "Tensor | Scalar",
    "Scalar": "Scalar",
    "int": "number | bigint",
    "int[]": "number | number[]",
    "float": "number",
    "bool": "boolean",
    "str": "string",
    "dtype": "DType",
    "device": "string",
    "Generator": "Generator",
}


def _type(parameter: Parameter) -> str:
    text = "(Tensor | null)[]" if parameter.optional_items else _TYPES[parameter.type]
    return f"{text} | null" if parameter.optional else text


def _signatures(operator: Operator, *, method: bool) -> list[str]:
    """Return the parameters of a function: options by name, and options by position."""
    parameters = operator.parameters[1:] if method else operator.parameters

    def item(p: Parameter, mark: str = "") -> str:
        name = f"{p.name}_" if p.name in _RESERVED else p.name
        return f"{name}{mark}: {_type(p)}"

    required = [item(p) for p in parameters if p.required]
    options = [p for p in parameters if not p.required]
    if not options:
        return [", ".join(required)]
    members = "; ".join(f"{p.name}?: {_type(p)}" for p in options)
    result = [", ".join([*required, f"options?: {{ {members} }}"])]
    by_position = [item(p, "?") for p in options if not p.keyword_only]
    if by_position:
        result.append(", ".join([*required, *by_position]))
    return result


def _declarations(operator: Operator, *, method: bool) -> list[str]:
    doc = operator.doc.replace("*/", "* /").split("\n")
    lines = ["  /**", *(f"   * {line}".rstrip() for line in doc), "   */"]
    parts = ["Tensor[]" if result == "Tensor[]" else "Tensor" for result in operator.results]
    result = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
    for suffix in ("", "_") if operator.inplace else ("",):
        for signature in _signatures(operator, method=method):
            lines.append(f"  {operator.identifier}{suffix}({signature}): {result};")
    return lines


def emit(model: Model) -> dict[str, str]:
    """Return the files by name."""
    rows = ",\n".join(json.dumps(_row(operator)) for operator in model.operators)
    head = "// [name, identifier, parameters, number by position, is a method, has a form in place]"
    types = ["import { DType, Generator, Scalar, Tensor } from '../index';", ""]
    types += ["/** The operators. Defaults are taken for what is undefined. */"]
    types += ["export interface Operators {"]
    types += [line for each in model.operators for line in _declarations(each, method=False)]
    types += ["}", "", "/** The operators that are methods of tensors. */"]
    types += ["export interface Methods {"]
    methods = [each for each in model.operators if each.method]
    types += [line for each in methods for line in _declarations(each, method=True)]
    return {
        "run_table.inc": _table(model),
        "run_functions.inc": _addon(model),
        "libraries.inc": _libraries(model),
        "operators.js": f"'use strict';\n{head}\nmodule.exports = [\n{rows},\n];\n",
        "operators.d.ts": "\n".join([*types, "}", ""]),
    }
