"""Values in nested containers, for `torch.func` and `torch.utils._pytree`."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "SUPPORTED_NODES",
    "Context",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "_dict_flatten",
    "_dict_flatten_with_keys",
    "_dict_unflatten",
    "_register_pytree_node",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]

Context: TypeAlias = Any
PyTree: TypeAlias = Any


class NodeDef(NamedTuple):
    """The functions to flatten and unflatten one type of container."""

    type: type[Any]
    flatten_fn: Callable[[Any], tuple[list[Any], Context]]
    unflatten_fn: Callable[[Iterable[Any], Context], Any]


class TreeSpec(NamedTuple):
    """The structure of containers, for `tree_unflatten`; the type of a leaf is None."""

    type: type[Any] | None
    context: Context
    children_specs: list[TreeSpec]

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.type is None else sum(each.num_leaves for each in self.children_specs)

    def is_leaf(self) -> bool:
        """Return whether this is a leaf."""
        return self.type is None


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


class MappingKey(NamedTuple):
    """A key of a dict in a path."""

    key: Any


class SequenceKey(NamedTuple):
    """An index of a sequence in a path."""

    idx: int


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _ordered_unflatten(values: Iterable[Any], context: Context) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _default_flatten(d: defaultdict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), (d.default_factory, list(d))


def _default_unflatten(values: Iterable[Any], context: Context) -> defaultdict[Any, Any]:
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _sequence_flatten(values: Any) -> tuple[list[Any], Context]:
    return list(values), None


SUPPORTED_NODES: dict[type[Any], NodeDef] = {
    dict: NodeDef(dict, _dict_flatten, _dict_unflatten),
    OrderedDict: NodeDef(OrderedDict, _dict_flatten, _ordered_unflatten),
    defaultdict: NodeDef(defaultdict, _default_flatten, _default_unflatten),
    list: NodeDef(list, _sequence_flatten, lambda values, context: list(values)),
    tuple: NodeDef(tuple, _sequence_flatten, lambda values, context: tuple(values)),
    deque: NodeDef(
        deque,
        lambda values: (list(values), values.maxlen),
        lambda values, context: deque(values, maxlen=context),
    ),
}


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[list[Any], Context]],
    unflatten_fn: Callable[[Iterable[Any], Context], Any],
    **options: Any,
) -> None:
    """Register a type of container with its functions to flatten and unflatten it.

    Example:
        >>> from plait_torch._pytree import register_pytree_node, tree_map
        >>> class Pair:
        ...     def __init__(self, one, two):
        ...         self.one, self.two = one, two
        >>> register_pytree_node(
        ...     Pair, lambda pair: ([pair.one, pair.two], None), lambda parts, _: Pair(*parts)
        ... )
        >>> tree_map(str, [Pair(1, 2)])[0].two
        '2'
    """
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _definition(value: Any) -> NodeDef | None:
    kind = type(value)
    if kind not in SUPPORTED_NODES and isinstance(value, tuple) and hasattr(value, "_fields"):
        return NodeDef(kind, _sequence_flatten, lambda values, context: kind(*values))
    return SUPPORTED_NODES.get(kind)


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of containers in order, and the structure for `tree_unflatten`.

    Containers are dicts, lists, tuples, deques, and the types of `register_pytree_node`.

    Args:
        tree: nested containers.
        is_leaf: a function that returns whether a container counts as a leaf.

    Example:
        >>> from plait_torch._pytree import tree_flatten, tree_unflatten
        >>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
        >>> leaves, tree_unflatten([x * 10 for x in leaves], spec)
        ([1, 2, 3], {'a': 10, 'b': (20, [30])})
    """
    leaves: list[Any] = []

    def walk(value: Any) -> TreeSpec:
        node = None if is_leaf is not None and is_leaf(value) else _definition(value)
        if node is None:
            leaves.append(value)
            return TreeSpec(None, None, [])
        children, context = node.flatten_fn(value)
        return TreeSpec(node.type, context, [walk(child) for child in children])

    return leaves, walk(tree)


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """Return the containers of a `TreeSpec` with other leaves."""
    rest = iter(leaves)

    def build(spec: TreeSpec) -> Any:
        if spec.type is None:
            return next(rest)
        values = [build(part) for part in spec.children_specs]
        node = SUPPORTED_NODES.get(spec.type)
        return spec.type(*values) if node is None else node.unflatten_fn(values, spec.context)

    return build(treespec)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    """Return an iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Return the structure for `tree_unflatten`."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Return the containers around ``func(leaf, ...)`` of the leaves of one or more trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """Call the function with each leaf; return the containers unchanged."""
    tree_map(func, tree, *rests)
    return tree


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any, **options: Any) -> Any:
    """Return the containers with ``func(leaf)`` for the leaves of a type."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree, **options)


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether a predicate is true for all leaves."""
    return all(map(pred, tree_leaves(tree)))


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether a predicate is true for at least one leaf."""
    return any(map(pred, tree_leaves(tree)))


def tree_all_only(kind: Any, pred: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether a predicate is true for all leaves of a type."""
    return all(pred(leaf) for leaf in tree_leaves(tree) if isinstance(leaf, kind))


def tree_any_only(kind: Any, pred: Callable[[Any], bool], tree: Any) -> bool:
    """Return whether a predicate is true for at least one leaf of a type."""
    return any(pred(leaf) for leaf in tree_leaves(tree) if isinstance(leaf, kind))
