"""Batching and sharding rules of operators as data.

A batching rule says how `vmap` calls an operator for all samples of a batch (docs/design/0043), a
sharding rule how DTensors call it on the parts of several ranks (docs/design/0039). A rule is a
text: a letter for its kind, then one for each argument.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from plait_ops.schema import Argument, Schema

__all__ = ["BATCHING", "SHARDING", "batching", "sharding"]

BATCHING = {
    "pointwise": "p",
    "reduction": "x",
    "leading": "s",
    "dimensions": "d",
    "matrices": "m",
    "new dimension": "n",
    "rows": "r",
    "code": "C",
    "leading, code": "S",
    "mm": "M",
    "bmm": "B",
    "mv": "V",
    "dot": "D",
    "view": "W",
    "expand": "E",
    "permute": "P",
    "t": "T",
    "loss": "L",
    "loss_backward": "K",
    "linear": "N",
}
"""Kinds of batching rules and their letters. Those with capital letters are rules in code."""

SHARDING = {"elements": "e", "sum": "+", "mean": "a", "max": "^", "min": "v", "code": "C"}
"""Kinds of sharding rules and their letters."""

_ACTIONS = {
    "same": ".",
    "aligned": "s",
    "all": "a",
    "dims": "d",
    "sizes": "z",
    "reduced": "x",
    "reduced or none": "y",
    "rows": "r",
    "sizes of rows": "q",
    "code": "!",
}
_DIMS = ("dim", "dim0", "dim1", "dim2", "dims")
_SIZES = ("size", "input_size")


def _leading(argument: Argument) -> str:
    if argument.name in _DIMS:
        return "dims"
    if argument.name in _SIZES and argument.type.endswith("[]"):
        return "sizes"
    # the memory format of a sample is not that of the batch
    return "code" if argument.name == "memory_format" else "all"


def _rows(argument: Argument) -> str:
    if argument.name in _SIZES:
        return "sizes of rows"
    return "rows" if argument.is_tensor else "same"


def _reduction(schema: Schema, argument: Argument) -> str:
    if argument is schema.arguments[0]:
        # an operator that has no `dim` reduces all elements: code calls its form with `dim`
        return "all" if any(each.name == "dim" for each in schema.arguments) else "code"
    return "reduced" if argument.name == "dim" else "same"


def _action(kind: str, schema: Schema, argument: Argument) -> str:
    """Return the default action of a rule with an argument."""
    if kind == "pointwise":
        return "aligned"
    if kind == "reduction":
        return _reduction(schema, argument)
    if kind == "rows":
        return _rows(argument)
    return _leading(argument) if BATCHING[kind].islower() else "same"


def batching(schema: Schema, kind: str, actions: Mapping[str, str]) -> str:
    """Return the batching rule of an operator as a text.

    Raises:
        ValueError: for another kind or action, or an unknown argument.
    """
    if kind not in BATCHING:
        raise ValueError(f"a batching rule is one of {', '.join(BATCHING)}; got {kind!r}")
    for name, action in actions.items():
        if action not in _ACTIONS or name not in [each.name for each in schema.arguments]:
            raise ValueError(f"a batching rule cannot do {action!r} with `{name}`")
    letters = (
        _ACTIONS[actions.get(each.name, _action(kind, schema, each))] for each in schema.arguments
    )
    return BATCHING[kind] + "".join(letters)


def sharding(
    schema: Schema,
    kind: str,
    linear: Collection[str],
    nonlinear: Collection[str],
    dims: Collection[str],
) -> str:
    """Return the sharding rule of an operator as a text: the letter of an argument is "l" for a
    tensor in which results are linear, "e" for another tensor, "n" for what must be None for
    results to be linear, "d" for dimensions along which elements depend on each other, "." else.

    Raises:
        ValueError: for another kind, or an unknown argument.
    """
    if kind not in SHARDING:
        raise ValueError(f"a sharding rule is one of {', '.join(SHARDING)}; got {kind!r}")
    letters = {each.name: "e" if each.is_tensor else "." for each in schema.arguments}
    for letter, before, names in (("l", "e", linear), ("n", ".", nonlinear), ("d", ".", dims)):
        for name in names:
            if letters.get(name) != before:
                raise ValueError(f"a sharding rule cannot have {name!r} as {letter!r}")
            letters[name] = letter
    return SHARDING[kind] + "".join(letters.values())
