"""Definitions of the registered operators, by exact name: `max.dim` is one, `max` another."""

from __future__ import annotations

import dataclasses
import functools

import plait_abi
from plait_abi import binding
from plait_ops.schema import Schema, parse

__all__ = ["CONTROL_FLOW", "Definition", "definition_of", "has_inplace_form", "has_out_form"]

# Nodes with regions, which are no operators of the runtime: their schemas and numbers of regions.
# All tensors in lists are the inputs of each region. Those of `cond` give the results; of
# `while_loop` the first gives one bool, the second the carried values of the next round. Results
# are new tensors in C order.
CONTROL_FLOW = {
    "cond": ("cond(Tensor predicate, Tensor[] operands) -> Tensor[]", 2),
    "while_loop": ("while_loop(Tensor[] carried, Tensor[] captured) -> Tensor[]", 2),
}


@dataclasses.dataclass(frozen=True)
class Definition:
    """What passes and checks ask about an operator."""

    schema: Schema
    is_random: bool  # it draws random numbers
    is_view: bool  # its results lie in the memory of an argument, always
    is_composite: bool  # it calls others, and may return an argument
    regions: int = 0


@functools.cache
def definition_of(name: str) -> Definition:
    """Return the definition of an operator.

    Raises: ArgumentError if there is none of that exact name.
    """
    if name in CONTROL_FLOW:
        text, regions = CONTROL_FLOW[name]
        return Definition(parse(text), False, False, False, regions)
    flags = {
        flag: name in dict(binding.operators_with(flag)) for flag in ("random", "view", "composite")
    }
    for schema in map(parse, _texts(name)):
        if schema.name == name:
            return Definition(schema, flags["random"], flags["view"], flags["composite"])
    raise plait_abi.ArgumentError(f"graph: there is no operator {name!r}{_advice(name)}")


def _texts(name: str) -> tuple[str, ...]:
    try:
        return plait_abi.operator(name).schemas
    except AttributeError:
        return ()


def _advice(name: str) -> str:
    """Return what to write instead of the name of a form or of several overloads."""
    names = [parse(text).name for text in _texts(name)]
    if not names:
        return "; a plug-in that defines it must be loaded first"
    if name.partition(".")[0].endswith("_"):
        return f"; {names[0]!r} with the form 'inplace' is one"
    return f"; there are {', '.join(map(repr, names))}"


def has_inplace_form(name: str) -> bool:
    """Return whether an operator has the form that writes to its first argument.

    `add` has it, which is `add_`; `copy_` does not, which writes in its only form.
    """
    base, dot, overload = name.partition(".")
    return any(parse(text).name == name for text in _texts(f"{base}_{dot}{overload}"))


def has_out_form(schema: Schema) -> bool:
    """Return whether an operator has the form that writes its results into tensors of before.

    Operators have it that have results, which are new tensors, and that write to no argument.
    """
    are_new = all(r.type == "Tensor" and not r.alias and not r.writes for r in schema.results)
    return bool(schema.results) and are_new and not any(a.writes for a in schema.arguments)
