"""Values in nested containers: their leaves, and the structures around them."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from plait_core import Size

__all__ = [
    "SUPPORTED_NODES",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "SequenceKey",
    "TreeSpec",
    "broadcast_to_and_flatten",
    "is_namedtuple_class",
    "is_structseq_class",
    "key_get",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

Context: TypeAlias = Any
PyTree: TypeAlias = Any
FlattenFunc: TypeAlias = Callable[[Any], tuple[list[Any], Any]]
UnflattenFunc: TypeAlias = Callable[[Iterable[Any], Any], Any]
KeyEntry: TypeAlias = Any
KeyPath: TypeAlias = tuple[Any, ...]


class NodeDef(NamedTuple):
    """The functions to flatten and unflatten one type of container.

    Args:
        type: The type of the node.
        flatten_fn: From an object to its children and a context.
        unflatten_fn: From children and context to an object.
        flatten_with_keys_fn: From an object to pairs of key and child, and a context; or None.

    Example:
        >>> from plait_func.pytree import SUPPORTED_NODES
        >>> SUPPORTED_NODES[tuple].flatten_fn((1, 2))
        ([1, 2], None)
    """

    type: Any
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


class TreeSpec(NamedTuple):
    """The structure of containers, for `tree_unflatten`; the type of a leaf is None.

    Args:
        type: The type of the node.
        context: What a node has besides its children.
        children_specs: The structures of the children.

    Example:
        >>> from plait_func.pytree import tree_structure
        >>> spec = tree_structure({"a": 1, "b": [2, 3]})
        >>> spec
        TreeSpec(dict, ['a', 'b'], [*, TreeSpec(list, None, [*, *])])
        >>> spec.num_leaves, spec.unflatten("xyz")
        (3, {'a': 'x', 'b': ['y', 'z']})
    """

    type: Any
    context: Context
    children_specs: list[TreeSpec]

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        name = getattr(self.type, "__name__", repr(self.type))
        return f"TreeSpec({name}, {self.context!r}, {self.children_specs!r})"

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.type is None else sum(each.num_leaves for each in self.children_specs)

    @property
    def num_nodes(self) -> int:
        """The number of leaves and containers."""
        return 1 + sum(each.num_nodes for each in self.children_specs)

    @property
    def num_children(self) -> int:
        """The number of children of the outermost container."""
        return len(self.children_specs)

    def is_leaf(self) -> bool:
        """Return whether this is a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """Return the structures of the children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """Return the structure of one child.

        Args:
            index: The number of the child.
        """
        return self.children_specs[index]

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of a tree where this structure has its leaves.

        Args:
            tree: A tree that begins as this one.

        Raises:
            ValueError: if the tree has another structure above these.
        """
        if self.type is None:
            return [tree]
        result = _get_node_type(tree)
        if result is not self.type:
            raise ValueError(f"flatten_up_to: {self.type} is required; got {result}")
        children, context = _definition(tree).flatten_fn(tree)  # type: ignore[union-attr]
        if len(children) != self.num_children or context != self.context:
            raise ValueError(f"flatten_up_to: the children of {self} are required; got {tree!r}")
        parts = zip(self.children_specs, children, strict=True)
        return [leaf for spec, child in parts for leaf in spec.flatten_up_to(child)]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the containers with other leaves.

        Args:
            leaves: The leaves, in their order.
        """
        return tree_unflatten(leaves, self)


class LeafSpec(TreeSpec):
    """The structure of a leaf.

    Example:
        >>> from plait_func.pytree import LeafSpec, tree_structure
        >>> tree_structure(1) == LeafSpec(), isinstance(tree_structure(1), LeafSpec)
        (True, True)
    """

    __slots__ = ()

    def __new__(cls) -> LeafSpec:
        return tuple.__new__(cls, (None, None, []))


_LEAF = LeafSpec()


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


class MappingKey(NamedTuple):
    """A key of a dict in a path.

    Args:
        key: The key.

    Example:
        >>> from plait_func.pytree import MappingKey
        >>> str(MappingKey("a")), MappingKey("a").get({"a": 1})
        ("['a']", 1)
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, parent: Any) -> Any:
        """Return the value of the key.

        Args:
            parent: The dict.
        """
        return parent[self.key]


class SequenceKey(NamedTuple):
    """An index of a sequence in a path.

    Args:
        idx: The index.

    Example:
        >>> from plait_func.pytree import SequenceKey
        >>> str(SequenceKey(1)), SequenceKey(1).get([5, 6])
        ('[1]', 6)
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the element at the index.

        Args:
            sequence: The list or tuple.
        """
        return sequence[self.idx]


class GetAttrKey(NamedTuple):
    """An attribute in a path.

    Args:
        name: The attribute's name.

    Example:
        >>> from plait_func.pytree import GetAttrKey
        >>> str(GetAttrKey("real")), GetAttrKey("real").get(2.0)
        ('.real', 2.0)
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the attribute's value.

        Args:
            obj: The object that has the attribute.
        """
        return getattr(obj, self.name)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _ordered_unflatten(values: Iterable[Any], context: Context) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _default_flatten(d: defaultdict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), (d.default_factory, list(d))


def _default_unflatten(values: Iterable[Any], context: Context) -> defaultdict[Any, Any]:
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _list_flatten(d: list[Any]) -> tuple[list[Any], Context]:
    return list(d), None


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[tuple[SequenceKey, Any]], Context]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _default_flatten_with_keys(d: defaultdict[Any, Any]) -> tuple[list[Any], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], (d.default_factory, list(d))


def _sequence_flatten(values: Any) -> tuple[list[Any], Context]:
    return list(values), None


def _sequence_flatten_with_keys(values: Any) -> tuple[list[Any], Context]:
    return [(SequenceKey(i), value) for i, value in enumerate(values)], None


def _deque_flatten_with_keys(values: deque[Any]) -> tuple[list[Any], Context]:
    return _sequence_flatten_with_keys(values)[0], values.maxlen


def _fields_flatten_with_keys(values: Any) -> tuple[list[Any], Context]:
    return [(GetAttrKey(name), getattr(values, name)) for name in values._fields], type(values)


SUPPORTED_NODES: dict[Any, NodeDef] = {
    dict: NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    OrderedDict: NodeDef(OrderedDict, _dict_flatten, _ordered_unflatten, _dict_flatten_with_keys),
    defaultdict: NodeDef(
        defaultdict, _default_flatten, _default_unflatten, _default_flatten_with_keys
    ),
    list: NodeDef(
        list, _sequence_flatten, lambda values, context: list(values), _sequence_flatten_with_keys
    ),
    tuple: NodeDef(
        tuple, _sequence_flatten, lambda values, context: tuple(values), _sequence_flatten_with_keys
    ),
    Size: NodeDef(
        Size, _sequence_flatten, lambda values, context: tuple(values), _sequence_flatten_with_keys
    ),
    namedtuple: NodeDef(
        namedtuple,
        lambda values: (list(values), type(values)),
        lambda values, context: context(*values),
        _fields_flatten_with_keys,
    ),
    deque: NodeDef(
        deque,
        lambda values: (list(values), values.maxlen),
        lambda values, context: deque(values, maxlen=context),
        _deque_flatten_with_keys,
    ),
}


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[list[Any], Context]],
    unflatten_fn: Callable[[Iterable[Any], Context], Any],
    **options: Any,
) -> None:
    """Register a type of container with its functions to flatten and unflatten it.

    Args:
        cls: The type.
        flatten_fn: From an object to its children and a context.
        unflatten_fn: From children and context to an object.
        **options: `serialized_type_name` and others of PyTorch; they change nothing.

    Example:
        >>> from plait_func.pytree import register_pytree_node, tree_map
        >>> class Pair:
        ...     def __init__(self, one, two):
        ...         self.one, self.two = one, two
        >>> register_pytree_node(
        ...     Pair, lambda pair: ([pair.one, pair.two], None), lambda parts, _: Pair(*parts)
        ... )
        >>> tree_map(str, [Pair(1, 2)])[0].two
        '2'
    """
    keys = options.get("flatten_with_keys_fn")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, keys)


def register_dataclass(
    cls: type[Any],
    *,
    field_names: Sequence[str] | None = None,
    drop_field_names: Sequence[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Register a dataclass as a container of its fields.

    Args:
        cls: the class.
        field_names: the fields whose values count; None is all but the dropped ones.
        drop_field_names: fields that are left out, which the class must have defaults for.
        serialized_type_name: has no effect.

    Raises:
        ValueError: if the class is no dataclass, or does not have such fields.

    Example:
        >>> from dataclasses import dataclass
        >>> from plait_func.pytree import register_dataclass, tree_map
        >>> @dataclass
        ... class Point:
        ...     x: int
        ...     y: int
        >>> register_dataclass(Point)
        >>> tree_map(lambda number: number * 10, [Point(1, 2)])
        [Point(x=10, y=20)]
    """
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"register_dataclass: a dataclass is required; got {cls!r}")
    there = [each.name for each in dataclasses.fields(cls) if each.init]
    dropped = set(drop_field_names or ())
    names = list(field_names) if field_names is not None else [n for n in there if n not in dropped]
    if unknown := (set(names) | dropped) - set(there):
        raise ValueError(f"register_dataclass: {cls.__name__} has no field {sorted(unknown)[0]!r}")

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        return [getattr(obj, name) for name in names], None

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Context]:
        return [(GetAttrKey(name), getattr(obj, name)) for name in names], None

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        return cls(**dict(zip(names, values, strict=True)))

    SUPPORTED_NODES[cls] = NodeDef(cls, flatten, unflatten, flatten_with_keys)


def is_namedtuple_class(cls: Any) -> bool:
    """Return whether a class ``cls`` is one of `namedtuple` or `NamedTuple`.

    Example:
        >>> from plait_func.pytree import NodeDef, is_namedtuple_class
        >>> is_namedtuple_class(NodeDef), is_namedtuple_class(tuple)
        (True, False)
    """
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_structseq_class(cls: Any) -> bool:
    """Return whether a class ``cls`` is a tuple with names that C makes: ``return_types.max``.

    Example:
        >>> import time
        >>> from plait_func.pytree import is_structseq_class
        >>> is_structseq_class(time.struct_time), is_structseq_class(tuple)
        (True, False)
    """
    if not isinstance(cls, type) or cls.__bases__ != (tuple,):
        return False
    return isinstance(getattr(cls, "n_sequence_fields", None), int)


def _get_node_type(tree: Any) -> Any:
    """Return the key of a container in `SUPPORTED_NODES`: its class, or `namedtuple`."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES and is_namedtuple_class(kind):
        return namedtuple
    return kind


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return whether a value is no container.

    Args:
        tree: A tree of tuples, lists, dicts and registered types.
        is_leaf: A function that says of a node whether it counts as a leaf; or None.

    Example:
        >>> from plait_func.pytree import tree_is_leaf
        >>> tree_is_leaf(1), tree_is_leaf([1])
        (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or _definition(tree) is None


def _definition(value: Any) -> NodeDef | None:
    result = SUPPORTED_NODES.get(type(value))
    if result is not None or not isinstance(value, tuple):
        return result
    kind = _get_node_type(value)
    if kind not in SUPPORTED_NODES and is_structseq_class(kind):
        SUPPORTED_NODES[kind] = NodeDef(
            kind,
            _sequence_flatten,
            lambda values, context: kind(list(values)),
            _sequence_flatten_with_keys,
        )
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
        >>> from plait_func.pytree import tree_flatten, tree_unflatten
        >>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
        >>> leaves, tree_unflatten([x * 10 for x in leaves], spec)
        ([1, 2, 3], {'a': 10, 'b': (20, [30])})
    """
    leaves: list[Any] = []
    make = tuple.__new__  # what TreeSpec(...) does, in a third of the time

    def walk(value: Any) -> TreeSpec:
        node = None if is_leaf is not None and is_leaf(value) else _definition(value)
        if node is None:
            leaves.append(value)
            return _LEAF
        children, context = node.flatten_fn(value)
        return make(TreeSpec, (node.type, context, [walk(child) for child in children]))

    return leaves, walk(tree)


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """Return the containers of a `TreeSpec` with other leaves.

    Args:
        leaves: The leaves in order.
        treespec: The structure of a tree.

    Example:
        >>> from plait_func.pytree import tree_structure, tree_unflatten
        >>> tree_unflatten("xyz", tree_structure([0, (0, 0)]))
        ['x', ('y', 'z')]
    """
    values = list(leaves)
    rest = iter(values)

    def failure() -> ValueError:
        return ValueError(
            f"tree_unflatten: {treespec.num_leaves} leaves are required; got {len(values)}"
        )

    def build(spec: TreeSpec) -> Any:
        kind, context, parts = spec
        if kind is not None:
            result = [build(part) for part in parts]
            return SUPPORTED_NODES[kind].unflatten_fn(result, context)
        try:
            return next(rest)
        except StopIteration:
            raise failure() from None

    whole = build(treespec)
    for _ in rest:
        raise failure()
    return whole


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves in order.

    Args:
        tree: A tree of tuples, lists, dicts and registered types.
        is_leaf: A function that says of a node whether it counts as a leaf; or None.

    Example:
        >>> from plait_func.pytree import tree_leaves
        >>> tree_leaves({"a": 1, "b": (2, [3])})
        [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Return the structure for `tree_unflatten`.

    Args:
        tree: A tree of tuples, lists, dicts and registered types.
        is_leaf: A function that says of a node whether it counts as a leaf; or None.

    Example:
        >>> from plait_func.pytree import tree_structure
        >>> tree_structure([1, (2, 3)])
        TreeSpec(list, None, [*, TreeSpec(tuple, None, [*, *])])
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Return the containers around ``func(leaf, ...)`` of the leaves of one or more trees.

    Args:
        func: Called with each leaf.
        tree: A tree of tuples, lists, dicts and registered types.
        *rests: More trees, of the same structure; their leaves are further arguments.
        is_leaf: A function that says of a node whether it counts as a leaf; or None.

    Example:
        >>> from plait_func.pytree import tree_map
        >>> tree_map(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})
        {'a': [11, 22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves with their paths, tuples of keys, and the structure.

    Args:
        tree: A tree of tuples, lists, dicts and registered types.
        is_leaf: A function that says of a node whether it counts as a leaf; or None.

    Example:
        >>> from plait_func.pytree import keystr, tree_flatten_with_path
        >>> leaves, spec = tree_flatten_with_path({"a": [1, 2]})
        >>> [(keystr(path), leaf) for path, leaf in leaves]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    results: list[tuple[KeyPath, Any]] = []

    def walk(path: KeyPath, value: Any) -> None:
        node = None if is_leaf is not None and is_leaf(value) else _definition(value)
        if node is None:
            results.append((path, value))
            return
        if node.flatten_with_keys_fn is None:
            raise ValueError(
                f"tree_flatten_with_path: {node.type} is registered without "
                "`flatten_with_keys_fn`, which is required for paths"
            )
        for key, child in node.flatten_with_keys_fn(value)[0]:
            walk((*path, key), child)

    walk((), tree)
    return results, tree_structure(tree, is_leaf)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """Return the leaves with their paths.

    Args:
        tree: A tree of tuples, lists, dicts and registered types.
        is_leaf: A function that says of a node whether it counts as a leaf; or None.

    Example:
        >>> from plait_func.pytree import keystr, tree_leaves_with_path
        >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path([1, (2,)])]
        [('[0]', 1), ('[1][0]', 2)]
    """
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Return the containers around ``func(path, leaf, ...)`` of the leaves of one or more trees.

    Args:
        func: Called with each leaf.
        tree: A tree of tuples, lists, dicts and registered types.
        *rests: More trees, of the same structure; their leaves are further arguments.
        is_leaf: A function that says of a node whether it counts as a leaf; or None.

    Example:
        >>> from plait_func.pytree import keystr, tree_map_with_path
        >>> tree_map_with_path(lambda path, leaf: f"{keystr(path)} = {leaf}", {"a": [1]})
        {'a': ["['a'][0] = 1"]}
    """
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    mapped = (func(*leaf, *rest) for leaf, *rest in zip(leaves, *others, strict=True))
    return tree_unflatten(mapped, spec)


def keystr(kp: KeyPath) -> str:
    """Return a path as Python writes it: ``['a'][0].name``.

    Args:
        kp: A path: a tuple of keys.

    Example:
        >>> from plait_func.pytree import MappingKey, SequenceKey, keystr
        >>> keystr((MappingKey("a"), SequenceKey(0)))
        "['a'][0]"
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what lies at a path within containers.

    Args:
        obj: The tree or a part of it.
        kp: A path: a tuple of keys.

    Example:
        >>> from plait_func.pytree import MappingKey, SequenceKey, key_get
        >>> key_get({"a": [5, 6]}, (MappingKey("a"), SequenceKey(1)))
        6
    """
    for key in kp:
        obj = key.get(obj)
    return obj


def broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """Return the leaves of a tree that is a structure's upper part, each as often as the structure
    has leaves below it; None if it is not.

    Args:
        tree: A tree of tuples, lists, dicts and registered types.
        treespec: The structure of a tree.
        is_leaf: A function that says of a node whether it counts as a leaf; or None.

    Example:
        >>> from plait_func.pytree import broadcast_to_and_flatten, tree_structure
        >>> broadcast_to_and_flatten((0, None), tree_structure((1, [2, 3])))
        [0, None, None]
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.type is None or treespec.type is not _get_node_type(tree):
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    results: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        results += part
    return results
