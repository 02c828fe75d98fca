"""`torch.fx._pytree`: flatten containers by a structure that is known before.

transformers and brevitas use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait.func.pytree import TreeSpec, tree_flatten

__all__ = [
    "SUPPORTED_NODES",
    "SUPPORTED_NODES_EXACT_MATCH",
    "register_pytree_flatten_spec",
    "tree_flatten_spec",
]

# by the class of a container, the function that returns its children
SUPPORTED_NODES: dict[type[Any], Callable[[Any, TreeSpec], list[Any]]] = {
    dict: lambda values, spec: [values[key] for key in spec.context],
    list: lambda values, spec: [values[i] for i in range(spec.num_children)],
    tuple: lambda values, spec: [values[i] for i in range(spec.num_children)],
}
SUPPORTED_NODES_EXACT_MATCH: dict[type[Any], Callable[[Any, TreeSpec], bool] | None] = {
    dict: lambda values, spec: len(values) == spec.num_children,
    list: lambda values, spec: len(values) == spec.num_children,
    tuple: lambda values, spec: len(values) == spec.num_children,
}


def register_pytree_flatten_spec(
    cls: type[Any],
    flatten_fn_spec: Callable[[Any, TreeSpec], list[Any]],
    flatten_fn_exact_match_spec: Callable[[Any, TreeSpec], bool] | None = None,
) -> None:
    """Register the function that returns the children of a container that a structure names.

    Example:
        >>> from plait.func import pytree
        >>> from plait_torch import _fx_pytree
        >>> class Pair:
        ...     def __init__(self, one, two):
        ...         self.one, self.two = one, two
        >>> pytree.register_pytree_node(
        ...     Pair, lambda pair: ([pair.one, pair.two], None), lambda parts, _: Pair(*parts)
        ... )
        >>> spec = pytree.tree_structure(Pair(1, 2))
        >>> _fx_pytree.register_pytree_flatten_spec(Pair, lambda pair, spec: [pair.two, pair.one])
        >>> _fx_pytree.tree_flatten_spec(Pair(3, 4), spec)
        [4, 3]
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """Return the leaves of containers in the order of a structure.

    Raises:
        RuntimeError: if a container of a type without a registered function has another structure.

    Example:
        >>> from plait.func import pytree
        >>> from plait_torch import _fx_pytree
        >>> spec = pytree.tree_structure({"a": 1, "b": (2, 3)})
        >>> _fx_pytree.tree_flatten_spec({"b": (20, 30), "a": 10}, spec)
        [10, 20, 30]
    """
    if spec.type is None:
        return [pytree]
    if spec.type not in SUPPORTED_NODES:
        leaves, result = tree_flatten(pytree)
        if result != spec:
            raise RuntimeError(f"tree_flatten_spec: {spec} is required; got {result}")
        return leaves
    children = SUPPORTED_NODES[spec.type](pytree, spec)
    pairs = zip(children, spec.children_specs, strict=False)
    return [leaf for child, part in pairs for leaf in tree_flatten_spec(child, part)]
