"""Signatures of the operators for a package with a Tensor: functions, methods, namespaces."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from keyword import iskeyword
from typing import TypeGuard

from plait_ops.glossary import shown_name
from plait_ops.schema import Argument, Result
from plait_ops.spec import NAMESPACES, Operator

__all__ = ["emit", "python_signature"]

TYPES = {
    "Tensor": "Tensor",
    "Tensor|Scalar": "Tensor | Number",
    "Tensor[]": "Sequence[Tensor]",
    "Scalar": "Number",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "dtype": "DTypeLike",
    "device": "DeviceLike",
    "Generator": "Generator",
    "int[]": "Sequence[int] | int",
    "float[]": "Sequence[float]",
}


def _type(argument: Argument) -> str:
    text = TYPES[argument.type]
    if argument.optional_items:
        text = "Sequence[Tensor | None]"
    if argument.length:
        text = TYPES["int[]"]
    return text + (" | None" if argument.optional else "")


def _parameter(argument: Argument, name: str) -> str:
    default = ""
    if argument.has_default:
        value = argument.default
        plain = value is None or not (
            argument.type == "dtype" or value in (float("inf"), float("-inf"))
        )
        default = f" = {value!r}" if plain else " = ..."
    return f"{name}: {_type(argument)}{default}"


@dataclasses.dataclass(frozen=True)
class Signature:
    """A parameter list; `star` separates positional and keyword parameters."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...] = ()
    star: str = "*"

    def __str__(self) -> str:
        star = (self.star,) if self.keywords or self.star != "*" else ()
        return ", ".join((*self.positional, *star, *self.keywords))

    def with_keywords(self, *keywords: str) -> Signature:
        """Return the signature with more keyword parameters."""
        return dataclasses.replace(self, keywords=(*self.keywords, *keywords))


def _signatures(operator: Operator, method: bool) -> list[Signature]:
    """Return the parameter lists.

    If arguments have a second name, there is a list with the first names and one with the second.
    An argument that is a list of ints can be the last of its list as ``*name``.
    """
    arguments = operator.schema.arguments[1 if method else 0 :]
    receiver = ("self",) if method else ()
    positional = [each for each in arguments if not each.keyword_only]
    keywords = [each for each in arguments if each.keyword_only]

    def parameters(arguments: Sequence[Argument], second: bool = False) -> tuple[str, ...]:
        return tuple(
            _parameter(each, each.second if second and _usable(each.second) else each.name)
            for each in arguments
        )

    signatures = [
        Signature((*receiver, *parameters(positional, second)), parameters(keywords, second))
        for second in (False, True)
    ]
    signatures = list(dict.fromkeys(signatures))
    varargs = next((i for i, each in enumerate(arguments) if each.varargs), None)
    if varargs is not None:
        before = (*receiver, *parameters(arguments[:varargs]))
        star = f"*{arguments[varargs].name}: int"
        signatures.append(Signature(before, parameters(keywords), star))
    return signatures


def _usable(name: str | None) -> TypeGuard[str]:
    """Return whether a string can be the name of a parameter in Python."""
    return name is not None and not iskeyword(name)


def _kind(result: Result) -> str:
    return "tuple[Tensor, ...]" if result.type == "Tensor[]" else "Tensor"


def _result(operator: Operator) -> str:
    results = operator.schema.results
    if not results:
        return "None"
    if len(results) == 1:
        return _kind(results[0])
    if all(result.name for result in results):
        return f"return_types.{operator.schema.base}"
    return f"tuple[{', '.join(map(_kind, results))}]"


def _return_types(operators: Sequence[Operator]) -> str:
    """Return the class that holds a NamedTuple for each operator of several results with names."""
    fields = {
        operator.schema.base: operator.schema.results
        for operator in operators
        if len(operator.schema.results) > 1 and all(each.name for each in operator.schema.results)
    }
    classes = [
        f"    class {base}(NamedTuple):\n"
        + "".join(f"        {result.name}: {_kind(result)}\n" for result in results)
        for base, results in fields.items()
    ]
    return "class return_types:\n" + "\n".join(classes) + "\n"


def _with_requires_grad(signature: Signature, operator: Operator) -> Signature:
    """Add ``requires_grad`` to operators that make tensors on a device."""
    devices = any(argument.type == "device" for argument in operator.schema.arguments)
    if not devices or len(operator.schema.results) != 1:
        return signature
    return signature.with_keywords(
        "layout: Any = None", "pin_memory: bool = False", "requires_grad: bool = False"
    )


def _with_out(signature: Signature, operator: Operator) -> Signature:
    signature = _with_requires_grad(signature, operator)
    if not operator.out:
        return signature
    kind = "Tensor" if len(operator.schema.results) == 1 else "tuple[Tensor, ...]"
    return signature.with_keywords(f"out: {kind} | None = None")


def python_signature(operator: Operator, call: str) -> str:
    """Return a signature as Python writes it: ``plait.relu(input: Tensor) -> Tensor``.

    Args:
        operator: the operator.
        call: how it is called; a method, such as ``Tensor.view``, has no first argument.
    """
    arguments = operator.schema.arguments[1 if call.startswith("Tensor.") else 0 :]
    shown = [(_parameter(each, shown_name(each)), each.keyword_only) for each in arguments]
    signature = Signature(
        tuple(text for text, keyword in shown if not keyword),
        tuple(text for text, keyword in shown if keyword),
    )
    full = _with_out(signature, operator)
    kinds = [_kind(each) for each in operator.schema.results]
    result = f"tuple[{', '.join(kinds)}]" if len(kinds) > 1 else "".join(kinds) or "None"
    line = f"{call}({full}) -> {result}"
    if len(line) <= 90:
        return line
    star = ("*",) if full.keywords else ()
    lines = (f"    {each},\n" for each in (*full.positional, *star, *full.keywords))
    return f"{call}(\n{''.join(lines)}) -> {result}"


def _namespace_of(operator: Operator) -> tuple[str, str]:
    """Return the namespace of an operator, empty for the package itself, and its name there."""
    space, _, name = operator.schema.base.partition("_")
    return (space, name) if space in NAMESPACES and name else ("", operator.schema.base)


def _text(operators: Sequence[Operator], method: bool, namespace: str = "") -> str:
    by_name: dict[str, list[tuple[str, str, str]]] = {}
    for operator in operators:
        space, base = _namespace_of(operator)
        if space != namespace:
            continue
        plain, in_place = ("method", "method") if method else ("function", "function_")
        summary = " ".join(operator.doc.partition("\n\n")[0].split())
        for signature in _signatures(operator, method):
            if plain in operator.variants:
                by_name.setdefault(base, []).append(
                    (str(_with_out(signature, operator)), _result(operator), summary)
                )
            if operator.inplace and in_place in operator.variants:
                by_name.setdefault(base + "_", []).append(
                    (str(signature), "Tensor", summary + " In place.")
                )
    indent = "    " if method else ""
    lines = []
    for name, entries in by_name.items():
        for parameters, result, summary in entries:
            if len(entries) > 1:
                lines.append(f"{indent}@overload")
            lines.append(f"{indent}def {name}({parameters}) -> {result}:")
            lines.append(f'{indent}    """{summary}"""')
    return "\n".join(lines) + "\n"


def emit(operators: Sequence[Operator]) -> dict[str, str]:
    """Return the files by name."""
    spaces = {f"{name}.pyi": _text(operators, False, name) for name in NAMESPACES}
    return {
        "functions.pyi": _text(operators, False),
        "methods.pyi": _text(operators, True),
        "return_types.pyi": _return_types(operators),
        **spaces,
    }
