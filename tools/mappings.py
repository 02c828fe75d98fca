"""The translations of operators' names to other vocabularies, and the check that each is complete.

A package that translates plait's operators to names of others (aten, NumPy, Python's number slots)
keeps the table in its own code. `MAPPINGS` says of each such file which names its tables must have.
A name that must be there and is not is an error until it is added to the table, or to
`without`, with the reason. A name in a table that is neither an operator nor a name of the other
vocabulary is an error as well. ``tools/check_lists.py`` runs this.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import json
import operator
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from package_graph import ROOT

__all__ = ["MAPPINGS", "Translation", "check", "operators", "pytorch", "violations"]

_NONE = "an operator that it lacks raises an error that names what to call instead"


@dataclasses.dataclass(frozen=True)
class Translation:
    """A file that translates names of operators, and what its tables must have."""

    vocabulary: str
    """What the other names are, for people."""

    tables: tuple[str, ...] = ()
    """The variables with the names. In C++, those in braces behind the variable's name."""

    names: Callable[[], set[str]] = set
    """The names that the tables must have: of operators, or of the vocabulary."""

    others: Callable[[], set[str]] = set
    """Further names that the tables may have: those of the vocabulary."""

    without: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The names that the tables leave out on purpose, each with the reason."""


@functools.cache
def operators(root: pathlib.Path = ROOT) -> tuple[Any, ...]:
    """Return the definitions of all operators, as the sources have them."""
    sys.path.insert(0, str(root / "packages" / "ops" / "src"))
    try:
        return tuple(importlib.import_module("plait_ops.specs").all())
    finally:
        del sys.path[0]


@functools.cache
def pytorch() -> dict[str, set[str]]:
    """Return the stored names of PyTorch that are not those of its modules, by vocabulary."""
    text = (ROOT / "tests" / "torch_names.json").read_text(encoding="utf-8")
    stored = json.loads(text)
    everywhere = {name for names in stored["names"].values() for name in names}
    stored["vocabularies"] |= {"functions": stored["names"][""], "anywhere": everywhere}
    return {name: set(each) for name, each in stored["vocabularies"].items()}


def _bases(*, internal: bool = True) -> set[str]:
    return {each.schema.base for each in operators() if internal or not each.internal}


def _not_in_aten() -> set[str]:
    """Return the operators that reach ``__torch_dispatch__``, as composites do not, and that only
    other parts of PyTorch have. What no part has is in docs/reference/own_names.md.
    """
    reach = {
        each.schema.base for each in operators() if not each.internal and each.kind != "composite"
    }
    return (reach & pytorch()["anywhere"]) - {name.partition(".")[0] for name in pytorch()["aten"]}


def _foreach() -> set[str]:
    """Return the operations of `torch._foreach_*`."""
    return {name.removeprefix("_foreach_").rstrip("_") for name in pytorch()["foreach"]}


def _with_names() -> set[str]:
    """Return the public operators with named results."""
    return {
        each.schema.base
        for each in operators()
        if not each.internal and len(each.schema.results) > 1 and each.schema.results[0].name
    }


def _copied_views() -> set[str]:
    """Return the views of which PyTorch has a function ``NAME_copy``."""
    views = {
        each.schema.base
        for each in operators()
        if any(result.alias and not result.writes for result in each.schema.results)
    }
    return {name for name in views if f"{name}_copy" in pytorch()["functions"]}


def _rules_in_code(random: bool) -> set[str]:
    """Return the operators whose batching rules are code: those that draw, or the others."""
    marked = {each for each in operators() if (each.batching or "").startswith("C")}
    return {each.name for each in marked if each.random == random}


def _in_python() -> set[str]:
    """Return the functions of `operator` that have a sign: those with a form in place, and more."""
    names = set(dir(operator))
    arithmetic = {name for name in names if f"i{name.rstrip('_')}" in names}
    return arithmetic | {"eq", "ge", "gt", "invert", "le", "lt", "ne", "neg", "pos"}


_SLOTS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and_": "bitwise_and",
    "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "neg": "neg", "invert": "bitwise_not",
}  # fmt: skip
"""Python's name of a number slot to the operator that PyTorch runs for it."""


def _in_slots() -> set[str]:
    """Return the operators of Python's slots: a slot without an entry has its own name."""
    return {_SLOTS.get(name, name) for name in _in_python()}


def _ufuncs() -> set[str]:
    """Return NumPy's ufuncs that no operator has the name of: those translate themselves."""
    numpy = importlib.import_module("numpy")
    values = [getattr(numpy, name) for name in dir(numpy)]
    return {each.__name__ for each in values if isinstance(each, numpy.ufunc)} - _bases()


_CORE, _TORCH = "packages/core/src/plait_core", "packages/torch/src/plait_torch"

_ATEN = "the names that code of TorchScript uses, PyTorch's"
_SCRIPT = f"{_TORCH}/_torchscript"


def _aten() -> set[str]:
    """Return the names of PyTorch's operators, as TorchScript has them."""
    return set((ROOT / _SCRIPT / "aten_names.txt").read_text().split())


def _saved_values() -> set[str]:
    """Return the names of the attributes of PyTorch's nodes, and of the nodes."""
    text = (ROOT / _TORCH / "_saved_values.py").read_text()
    table = text.partition('_TABLE = """')[2].partition('"""')[0]
    return {*table.replace(":", " ").split(), "none"}  # `approximate` of gelu


_ONNX = "packages/onnx/src/plait_onnx"
MAPPINGS: dict[str, Translation] = {
    f"{_ONNX}/_operators/_pointwise.py": Translation("operators of ONNX with one operand"),
    f"{_ONNX}/_lowering.py": Translation("views that ONNX says by sizes: it has no strides"),
    f"{_SCRIPT}/_numbers.py": Translation(_ATEN, ("TABLE",), others=_aten),
    f"{_SCRIPT}/_rewritten.py": Translation(_ATEN, ("_NAMED",), others=_aten),
    f"{_SCRIPT}/_spelling.py": Translation(_ATEN, ("SPELLED",), others=_aten),
    f"{_TORCH}/_node_names.py": Translation(
        "operators that are one step of PyTorch's graph of derivatives", ("STEPS",)
    ),
    f"{_TORCH}/_saved_values.py": Translation(
        "attributes of PyTorch's nodes, by what the operators here keep",
        ("_SOURCES",),
        others=_saved_values,
    ),
    "packages/core/cpp/python/autocast.cpp": Translation(
        "what PyTorch's autocast casts: its decision, no fact of an operator",
        ("to_short", "to_float32"),
    ),
    "packages/core/cpp/python/tensor/operators.cpp": Translation(
        "Python's slots for numbers and sequences",
        ("operator_names",),
        _in_slots,
        without={
            "concat": "tensors are no sequences: `+` adds",
            "pos": "`+x` is the same tensor; there is nothing to compute",
        },
    ),
    f"{_CORE}/_numpy/_functions.py": Translation(
        "names of NumPy",
        ("_NAMES", "_REDUCTIONS"),
        _ufuncs,
        without={
            "bitwise_count": "NumPy computes it",
            "cbrt": "NumPy computes it",
            "divmod": "two operators, in `__array_ufunc__`",
            "isnat": "plait has no dates",
            "matvec": "NumPy computes it",
            "modf": "NumPy computes it",
            "spacing": "NumPy computes it",
            "vecdot": "NumPy computes it",
            "vecmat": "NumPy computes it",
        },
    ),
    f"{_CORE}/_sparse/_coordinates.py": Translation(
        f"functions for COO tensors; {_NONE}", ("_CALLS", "_ON_BOXES")
    ),
    f"{_CORE}/_sparse/_compressed.py": Translation(
        f"methods of compressed tensors; {_NONE}", ("_METHODS",)
    ),
    f"{_TORCH}/_aten.py": Translation(
        "names and overloads of aten",
        ("_BY_OPERANDS", "_OVERLOADS", "_SPECIAL"),
        _not_in_aten,
        lambda: {name.partition(".")[2] or "default" for name in pytorch()["aten"]} | {"to"},
        without={
            "unravel_index": "computed in Python by PyTorch",
            "softsign": "of several operators in PyTorch",
            "tanhshrink": "of several operators in PyTorch",
        },
    ),
    f"{_TORCH}/_foreach.py": Translation(
        "names of torch._foreach_*",
        ("_UNARY", "_BINARY", "_BOUNDED", "_TERNARY", "_REDUCED"),
        _foreach,
    ),
    f"{_TORCH}/_fx_graph.py": Translation(
        "Python's operators in printed graphs",
        ("_BINARY", "_UNARY"),
        _in_python,
        without={"concat": "PyTorch prints it as a call"},
    ),
    f"{_TORCH}/_fx_names.py": Translation(
        "where torch.fx finds functions",
        ("_OF_NN", "_OF_TORCH", "_OF_FUNCTIONAL"),
        lambda: pytorch()["functions in C++"] | pytorch()["functions in Python"],
        without={
            **dict.fromkeys(
                ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"),
                "of torch.overrides",
            ),
            "istft": "a function in C++ in PyTorch",
            "logsigmoid": "`functions` has it: PyTorch calls it log_sigmoid there",
            "native_channel_shuffle": "plait has no operator of that name",
            "pca_lowrank": "torch.pca_lowrank in code, which is the same function",
            "svd_lowrank": "torch.svd_lowrank in code, which is the same function",
        },
    ),
    f"{_TORCH}/_return_types.py": Translation(
        "classes of torch.return_types", ("_ALONG", "_OF_MATRIX", "_OTHERS", "_NAMES"), _with_names
    ),
    f"{_TORCH}/_view_copies.py": Translation(
        "names of torch.*_copy",
        ("_VIEWS",),
        _copied_views,
        without={
            "narrow": "an operator: narrow_copy",
            "slice": "a function of that file: its arguments differ",
        },
    ),
    "packages/func/src/plait_func/_batching_rules.py": Translation(
        "rules in code, which definitions mark", ("_CODE",), lambda: _rules_in_code(random=False)
    ),
    "packages/func/src/plait_func/_batched_draws.py": Translation(
        "rules of operators that draw", ("_CODE",), lambda: _rules_in_code(random=True)
    ),
    "packages/distributed/src/plait_distributed/tensor/_rules.py": Translation(
        "rules in code, which definitions mark",
        ("_CODE",),
        lambda: {each.name for each in operators() if (each.sharding or "").startswith("C")},
    ),
}
"""Files that may list operators."""


def _strings(node: ast.AST, tables: Mapping[str, ast.expr]) -> Iterator[str]:
    """Yield the strings of a table: its own, and those of tables that it names."""
    if isinstance(node, (ast.GeneratorExp, ast.DictComp)):  # f"linalg_{name}" for name in TABLE
        key = node.key if isinstance(node, ast.DictComp) else node.elt
        first = key.values[0] if isinstance(key, ast.JoinedStr) else None
        prefix = str(first.value) if isinstance(first, ast.Constant) else ""
        yield from (f"{prefix}{name}" for name in _strings(node.generators[0].iter, tables))
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.Name):
        yield from _strings(tables[node.id], tables) if node.id in tables else ()
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _strings(child, tables)


def _names(text: str, python: bool, variables: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the names in each of the tables that a file's text has."""
    if not python:
        bodies = {
            each: re.search(rf"\b{each}\b[^;]*?\{{(.*?)\}};", text, re.S) for each in variables
        }
        return {
            each: set(re.findall(r'\{"(\w+)"', body[1])) for each, body in bodies.items() if body
        }
    tables: dict[str, ast.expr] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            tables[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            tables[node.target.id] = node.value
    return {
        each: {name for name in _strings(tables[each], tables) if re.fullmatch(r"[\w.]+", name)}
        for each in variables
        if each in tables
    }


def violations(where: str, text: str, translation: Translation) -> Iterator[str]:
    """Yield a line for each name that a mapping lacks, has for nothing, or leaves out in vain.

    Args:
        where: the file, for the lines.
        text: its text.
        translation: its requirements.
    """
    tables = _names(text, where.endswith(".py"), translation.tables)
    missing = ", ".join(sorted(set(translation.tables) - set(tables)))
    if missing:
        yield f"{where}: there is no table {missing}: correct tools/mappings.py"
        return
    names, listed = translation.names(), set[str]().union(*tables.values())
    known = names | translation.others() | {each.name for each in operators()}
    known |= {f"{base}{end}" for base in _bases() for end in ("", "_")}
    for name in sorted(names - listed - set(translation.without)):
        yield (
            f"{where}: `{name}` is missing ({translation.vocabulary}). Add it to "
            f"{' or '.join(translation.tables)} there, or to `without` of that file in "
            "tools/mappings.py, with the reason"
        )
    for table, each in tables.items():
        for name in sorted(each - known):
            yield f"{where}: {table}: `{name}` is no operator and no name of the vocabulary"
    for name in sorted(set(translation.without) - (names - listed)):
        yield (
            f"tools/mappings.py: {where}: `without` has `{name}`, which the tables have or need "
            "not have: take it out"
        )


def check() -> list[str]:
    """Return the violations of all mappings."""
    return [
        line
        for where, translation in MAPPINGS.items()
        for line in violations(where, (ROOT / where).read_text(encoding="utf-8"), translation)
    ]
