"""`torch.utils._pytree`: PyTorch's names beyond those of `plait.func.pytree`."""

from __future__ import annotations

import importlib
import json
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from plait.func.pytree import (
    SUPPORTED_NODES,
    LeafSpec,
    TreeSpec,
    broadcast_to_and_flatten,
    is_namedtuple_class,
    is_structseq_class,
    register_pytree_node,
    tree_is_leaf,
    tree_leaves,
    tree_map,
)
from plait_core import Size

__all__ = [
    "Context",
    "FlattenFunc",
    "KeyEntry",
    "KeyPath",
    "PyTree",
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
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_instance",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_iter",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
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

_, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys = SUPPORTED_NODES[dict]
_, _list_flatten, _list_unflatten, _list_flatten_with_keys = SUPPORTED_NODES[list]
_broadcast_to_and_flatten = broadcast_to_and_flatten
_register_pytree_node = register_pytree_node
_is_leaf = tree_is_leaf


def _deregister_pytree_node(cls: type[Any]) -> None:
    SUPPORTED_NODES.pop(cls, None)


def is_namedtuple_instance(obj: Any) -> bool:
    """Return whether the class of an object is one of `namedtuple` or `NamedTuple`."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Return whether an object, or a class, is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_instance(obj: Any) -> bool:
    """Return whether an object is a tuple with names that C makes."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Return whether an object, or a class, is a tuple with names that C makes."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _get_node_type(tree: Any) -> Any:
    """Return the key of a container in `SUPPORTED_NODES`: its class, or `namedtuple`."""
    kind = type(tree)
    return namedtuple if kind not in SUPPORTED_NODES and is_namedtuple_class(kind) else kind


def treespec_leaf() -> LeafSpec:
    """Return the structure of a leaf."""
    return LeafSpec()


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    """Return an iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """Call the function with each leaf; return the containers unchanged."""
    tree_map(func, tree, *rests)
    return tree


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
    if kind is Size:
        return "torch.Size"
    module = "collections" if kind is namedtuple else kind.__module__
    return f"{module}.{kind.__qualname__}"


def _encoded_class(kind: type[Any]) -> dict[str, str]:
    return {"class_module": kind.__module__, "class_name": kind.__qualname__}


def _decoded_class(module: str, name: str) -> Any:
    result: Any = importlib.import_module(module)
    for part in name.split("."):
        result = getattr(result, part)
    return result


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
        >>> from plait.func.pytree import tree_structure
        >>> from plait_torch._pytree import treespec_dumps, treespec_loads
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
