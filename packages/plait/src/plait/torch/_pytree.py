"""Values in nested containers, for `torch.func` and `torch.utils._pytree`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = ["tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_unflatten"]


def tree_flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of dicts, lists and tuples in order, and what `tree_unflatten` needs.

    Example:
        >>> from plait.torch._pytree import tree_flatten, tree_unflatten
        >>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
        >>> leaves, tree_unflatten([x * 10 for x in leaves], spec)
        ([1, 2, 3], {'a': 10, 'b': (20, [30])})
    """
    leaves: list[Any] = []

    def walk(value: Any) -> Any:
        if type(value) in (dict, OrderedDict):
            return (type(value), list(value), [walk(each) for each in value.values()])
        if type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
            return (type(value), None, [walk(each) for each in value])
        leaves.append(value)
        return None

    return leaves, walk(tree)


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """Return the containers that `tree_flatten` took apart, around other leaves."""
    rest = iter(leaves)

    def build(spec: Any) -> Any:
        if spec is None:
            return next(rest)
        kind, keys, parts = spec
        values = [build(part) for part in parts]
        if keys is not None:
            return kind(zip(keys, values, strict=True))
        return kind(*values) if hasattr(kind, "_fields") else kind(values)

    return build(treespec)


def tree_leaves(tree: Any) -> list[Any]:
    """Return the leaves in order."""
    return tree_flatten(tree)[0]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """Return the containers around ``func(leaf, ...)`` of the leaves of one or more trees."""
    leaves, spec = tree_flatten(tree)
    others = [tree_leaves(rest) for rest in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """Return the containers with ``func(leaf)`` for the leaves of a type."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree)
