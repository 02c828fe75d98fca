"""Values in nested containers, for `torch.func` and `torch.utils._pytree`."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from plait_abi.imports import import_module

__all__ = [
    "SUPPORTED_NODES",
    "Context",
    "FlattenFunc",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "UnflattenFunc",
    "_broadcast_to_and_flatten",
    "_deregister_pytree_node",
    "_dict_flatten",
    "_dict_flatten_with_keys",
    "_dict_unflatten",
    "_get_node_type",
    "_is_leaf",
    "_is_namedtuple_instance",
    "_list_flatten",
    "_list_flatten_with_keys",
    "_list_unflatten",
    "_register_pytree_node",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
]

Context: TypeAlias = Any
PyTree: TypeAlias = Any
FlattenFunc: TypeAlias = Callable[[Any], tuple[list[Any], Any]]
UnflattenFunc: TypeAlias = Callable[[Iterable[Any], Any], Any]
KeyEntry: TypeAlias = Any
KeyPath: TypeAlias = tuple[Any, ...]


class NodeDef(NamedTuple):
    """The functions to flatten and unflatten one type of container."""

    type: Any
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


class TreeSpec(NamedTuple):
    """The structure of containers, for `tree_unflatten`; the type of a leaf is None.

    Example:
        >>> from plait_torch._pytree import tree_structure
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
        """Return the structure of one child."""
        return self.children_specs[index]

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of a tree where this structure has its leaves.

        Raises:
            ValueError: if the tree has another structure above these.
        """
        if self.type is None:
            return [tree]
        found = _get_node_type(tree)
        if found is not self.type:
            raise ValueError(f"flatten_up_to: {self.type} is required; got {found}")
        children, context = _definition(tree).flatten_fn(tree)  # type: ignore[union-attr]
        if len(children) != self.num_children or context != self.context:
            raise ValueError(f"flatten_up_to: the children of {self} are required; got {tree!r}")
        parts = zip(self.children_specs, children, strict=True)
        return [leaf for spec, child in parts for leaf in spec.flatten_up_to(child)]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the containers with other leaves."""
        return tree_unflatten(leaves, self)


class LeafSpec(TreeSpec):
    """The structure of a leaf.

    Example:
        >>> from plait_torch._pytree import LeafSpec, tree_structure
        >>> tree_structure(1) == LeafSpec(), isinstance(tree_structure(1), LeafSpec)
        (True, True)
    """

    __slots__ = ()

    def __new__(cls) -> LeafSpec:
        return tuple.__new__(cls, (None, None, []))


_LEAF = LeafSpec()


def treespec_leaf() -> LeafSpec:
    """Return the structure of a leaf."""
    return LeafSpec()


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


class MappingKey(NamedTuple):
    """A key of a dict in a path."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, parent: Any) -> Any:
        """Return the value of the key."""
        return parent[self.key]


class SequenceKey(NamedTuple):
    """An index of a sequence in a path."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the element at the index."""
        return sequence[self.idx]


class GetAttrKey(NamedTuple):
    """An attribute in a path."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the attribute's value."""
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
        list,
        _sequence_flatten,
        lambda values, context: list(values),
        _sequence_flatten_with_keys,
    ),
    tuple: NodeDef(
        tuple,
        _sequence_flatten,
        lambda values, context: tuple(values),
        _sequence_flatten_with_keys,
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
    keys = options.get("flatten_with_keys_fn")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, keys)


_register_pytree_node = register_pytree_node


def register_sizes() -> None:
    """Let shapes be containers of their sizes; the core, which has their class, is loaded."""
    size = import_module("plait").Size
    SUPPORTED_NODES[size] = NodeDef(
        size,
        _sequence_flatten,
        lambda values, context: tuple(values),
        _sequence_flatten_with_keys,
    )


def _deregister_pytree_node(cls: type[Any]) -> None:
    SUPPORTED_NODES.pop(cls, None)


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
        >>> from plait_torch._pytree import register_dataclass, tree_map
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
    """Return whether a class is one of `namedtuple` or `NamedTuple`."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj: Any) -> bool:
    """Return whether the class of an object is one of `namedtuple` or `NamedTuple`."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Return whether an object, or a class, is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls: Any) -> bool:
    """Return whether a class is a tuple with names that C makes, such as ``return_types.max``."""
    if not isinstance(cls, type) or cls.__bases__ != (tuple,):
        return False
    return isinstance(getattr(cls, "n_sequence_fields", None), int)


def is_structseq_instance(obj: Any) -> bool:
    """Return whether an object is a tuple with names that C makes."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Return whether an object, or a class, is a tuple with names that C makes."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _get_node_type(tree: Any) -> Any:
    """Return the key of a container in `SUPPORTED_NODES`: its class, or `namedtuple`."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES and is_namedtuple_class(kind):
        return namedtuple
    return kind


def _is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return (is_leaf is not None and is_leaf(tree)) or _definition(tree) is None


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return whether a value is no container."""
    return _is_leaf(tree, is_leaf)


def _definition(value: Any) -> NodeDef | None:
    found = SUPPORTED_NODES.get(type(value))
    if found is not None or not isinstance(value, tuple):
        return found
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
        >>> from plait_torch._pytree import tree_flatten, tree_unflatten
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
    """Return the containers of a `TreeSpec` with other leaves."""
    values = list(leaves)
    rest = iter(values)

    def failure() -> ValueError:
        return ValueError(
            f"tree_unflatten: {treespec.num_leaves} leaves are required; got {len(values)}"
        )

    def build(spec: TreeSpec) -> Any:
        kind, context, parts = spec
        if kind is not None:
            made = [build(part) for part in parts]
            return SUPPORTED_NODES[kind].unflatten_fn(made, context)
        try:
            return next(rest)
        except StopIteration:
            raise failure() from None

    whole = build(treespec)
    for _ in rest:
        raise failure()
    return whole


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
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """Call the function with each leaf; return the containers unchanged."""
    tree_map(func, tree, *rests)
    return tree


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves with their paths, tuples of keys, and the structure.

    Example:
        >>> from plait_torch._pytree import keystr, tree_flatten_with_path
        >>> leaves, spec = tree_flatten_with_path({"a": [1, 2]})
        >>> [(keystr(path), leaf) for path, leaf in leaves]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    found: list[tuple[KeyPath, Any]] = []

    def walk(path: KeyPath, value: Any) -> None:
        node = None if is_leaf is not None and is_leaf(value) else _definition(value)
        if node is None:
            found.append((path, value))
            return
        if node.flatten_with_keys_fn is None:
            raise ValueError(
                f"tree_flatten_with_path: {node.type} is registered without "
                "`flatten_with_keys_fn`, which is required for paths"
            )
        for key, child in node.flatten_with_keys_fn(value)[0]:
            walk((*path, key), child)

    walk((), tree)
    return found, tree_structure(tree, is_leaf)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """Return the leaves with their paths."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Return the containers around ``func(path, leaf, ...)`` of the leaves of one or more trees."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    mapped = (func(*leaf, *rest) for leaf, *rest in zip(leaves, *others, strict=True))
    return tree_unflatten(mapped, spec)


def keystr(kp: KeyPath) -> str:
    """Return a path as Python writes it: ``['a'][0].name``."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what lies at a path within containers."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """Return the leaves of a tree that is a structure's upper part, each as often as the structure
    has leaves below it; None if it is not.

    Example:
        >>> from plait_torch._pytree import _broadcast_to_and_flatten, tree_structure
        >>> _broadcast_to_and_flatten((0, None), tree_structure((1, [2, 3])))
        [0, None, None]
    """
    if _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.type is None or treespec.type is not _get_node_type(tree):
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any, **options: Any) -> Any:
    """Return the containers with ``func(leaf)`` for the leaves of a type."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree, **options)


def tree_map_only_(kind: Any, func: Callable[[Any], Any], tree: Any, **options: Any) -> Any:
    """Call the function with each leaf of a type; return the containers unchanged."""
    tree_map_only(kind, func, tree, **options)
    return tree


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


# the version of the format that `treespec_dumps` writes, which is PyTorch's
_PROTOCOL = 1


def _name_of_type(kind: Any) -> str:
    if kind is import_module("plait").Size:
        return "torch.Size"
    module = "collections" if kind is namedtuple else kind.__module__
    return f"{module}.{kind.__qualname__}"


def _encoded_class(kind: type[Any]) -> dict[str, str]:
    return {"class_module": kind.__module__, "class_name": kind.__qualname__}


def _decoded_class(module: str, name: str) -> Any:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _encoded(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    context: Any
    if spec.type is defaultdict:
        factory, keys = spec.context
        context = {
            "default_factory_module": factory.__module__,
            "default_factory_name": factory.__qualname__,
            "dict_context": keys,
        }
    elif spec.type is namedtuple:
        context = json.dumps(_encoded_class(spec.context))
    else:
        try:
            context = json.dumps(spec.context)
        except TypeError as error:
            raise NotImplementedError(
                f"treespec_dumps: the context of {spec.type.__name__} is not writable as JSON: "
                f"{error}"
            ) from error
    children = [_encoded(each) for each in spec.children_specs]
    return {"type": _name_of_type(spec.type), "context": context, "children_spec": children}


def _decoded(entry: dict[str, Any], kinds: dict[str, Any]) -> TreeSpec:
    if entry["type"] is None:
        return LeafSpec()
    if entry["type"] not in kinds:
        raise NotImplementedError(
            f"treespec_loads: {entry['type']} is not registered as a container"
        )
    kind, context = kinds[entry["type"]], entry["context"]
    if kind is defaultdict:
        parts = (context["default_factory_module"], context["default_factory_name"])
        context = (_decoded_class(*parts), context["dict_context"])
    else:
        context = json.loads(context)
        if kind is namedtuple:
            context = _decoded_class(context["class_module"], context["class_name"])
    return TreeSpec(kind, context, [_decoded(each, kinds) for each in entry["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return a structure as JSON, in PyTorch's format. Named tuples, which PyTorch writes only if
    they are registered, are written with the name of their class.

    Raises:
        ValueError: for another protocol than 1.
        NotImplementedError: if a container's context cannot be written as JSON.

    Example:
        >>> from plait_torch._pytree import tree_structure, treespec_dumps, treespec_loads
        >>> spec = tree_structure({"a": [1, (2, 3)]})
        >>> treespec_loads(treespec_dumps(spec)) == spec
        True
    """
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"treespec_dumps: protocol {_PROTOCOL} is required; got {protocol}")
    return json.dumps([_PROTOCOL, _encoded(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the structure that `treespec_dumps` wrote. Its containers must be registered.

    Raises:
        ValueError: for another protocol than 1.
        NotImplementedError: if a container is not registered.
    """
    protocol, entry = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"treespec_loads: protocol {_PROTOCOL} is required; got {protocol}")
    return _decoded(entry, {_name_of_type(kind): kind for kind in SUPPORTED_NODES})
