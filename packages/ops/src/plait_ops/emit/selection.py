"""The C++ of some operators alone, for a runtime that neither differentiates nor documents."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence

from plait_ops import lower, specs
from plait_ops.emit import functions, kernels, register
from plait_ops.emit.primitives import WORDS
from plait_ops.lower import ir
from plait_ops.spec import Operator, Pointwise

__all__ = ["closure", "emit"]


def _called(operator: Operator, with_kernel: Collection[str]) -> set[str]:
    """Return the identifiers of the operators that shape function and decomposition may call."""
    names: set[str] = set()
    operator = _plain(operator, with_kernel)
    for function, translate in (
        (operator.shape_function, lower.shape),
        (operator.decompose_function, lower.decompose),
    ):
        for node in ir.walk(translate(operator).body) if function is not None else ():
            if isinstance(node, ir.OperatorCall):
                names.add(node.operator)
                if node.operator == "div":  # without `rounding_mode`
                    names.add("true_divide")
            elif isinstance(node, ir.Call):
                names.update(WORDS.get(node.function, ()))
    return names


def closure(names: Iterable[str], with_kernel: Collection[str] = ()) -> list[Operator]:
    """Return the operators of the names, and all that these call, in the order of the specs.

    Args:
        names: of operators, such as ``"arange.start"``; names that no spec has are left out.
        with_kernel: names of those whose kernels serve all calls, so that decompositions are
            left out. A composite keeps its own: it has no shape function.

    Example:
        >>> from plait_ops.emit.selection import closure
        >>> [operator.name for operator in closure(["relu"])]
        ['relu', 'le', 'where']
        >>> [operator.name for operator in closure(["relu"], with_kernel=["relu"])]
        ['relu']
    """
    operators = list(specs.all())
    by_identifier = {each.identifier: each for each in operators}
    todo = [each for each in operators if each.name in set(names)]
    found: set[str] = set()
    while todo:
        operator = todo.pop()
        if operator.identifier in found:
            continue
        found.add(operator.identifier)
        todo += [by_identifier[name] for name in sorted(_called(operator, with_kernel))]
    return [each for each in operators if each.identifier in found]


def emit(
    operators: Sequence[Operator], names: Sequence[str] = (), with_kernel: Collection[str] = ()
) -> dict[str, str]:
    """Return the files by name: definitions, and units of pointwise kernels below ``kernels/``.

    The definitions have shape functions and decompositions, no derivatives, rules, costs or
    documentation.

    Args:
        operators: that are defined.
        names: identifiers that the enumeration `Op` has too, without a definition: those of
            functions that the operators do not call.
        with_kernel: as for `closure`.

    Example:
        >>> from plait_ops.emit.selection import closure, emit
        >>> "kernels/slices.cpp" in emit(closure(["relu"]))
        True
    """
    plain = [_plain(operator, with_kernel) for operator in operators]
    files = functions.emit(plain)
    files |= {f"kernels/{name}": text for name, text in kernels.emit(operators).items()}
    for name in [name for name, text in files.items() if "(" not in text]:
        if name.startswith(("functions_", "kernels/pointwise_")):
            del files[name]  # a unit without operators
    return files | register.emit(plain, documented=False, absent=names)


def _plain(operator: Operator, with_kernel: Collection[str]) -> Operator:
    result = copy.copy(operator)
    result.vjps, result.jvp_function, result.cost_function = [], None, None
    result.batching = result.sharding = ""
    has_shape = operator.shape_function is not None or isinstance(operator, Pointwise)
    if operator.name in with_kernel and has_shape:
        result.decompose_function = None
    return result
