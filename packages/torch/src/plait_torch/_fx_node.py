"""`torch.fx.node`: one operation of a graph, its arguments, and the nodes that use its value."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator
from typing import Any

from plait_torch import _fx_names

OPCODES = (
    "placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root",
)  # fmt: skip
_effects: set[Any] = set()


def has_side_effect(fn: Any) -> Any:
    """Mark a function whose calls stay in a graph when nothing uses their results."""
    _effects.add(fn)
    return fn


_side_effectful_functions = _effects


def _get_qualified_name(func: Any) -> str:
    """Return the dotted name of a function, as PyTorch's programs know it.

    Example:
        >>> import operator
        >>> from plait_torch._fx_node import _get_qualified_name
        >>> _get_qualified_name(operator.add), _get_qualified_name(len)
        ('_operator.add', 'builtins.len')
    """
    name = getattr(func, "__qualname__", None) or func.__name__
    module = getattr(func, "__module__", None) or "builtins"
    return f"{module}.{name}"


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Return tuples, lists, dicts and slices rebuilt with `fn` applied to their items.

    Example:
        >>> from plait_torch._fx_node import map_aggregate
        >>> map_aggregate({"a": (1, [2])}, lambda x: x + 1)
        {'a': (2, [3])}
    """
    if isinstance(a, tuple):
        parts = [map_aggregate(each, fn) for each in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_aggregate(each, fn) for each in a]
    if isinstance(a, dict):
        return {key: map_aggregate(each, fn) for key, each in a.items()}
    if isinstance(a, slice):
        return slice(*(map_aggregate(each, fn) for each in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return an argument rebuilt with `fn` applied to each `Node` in it."""
    return map_aggregate(a, lambda each: fn(each) if isinstance(each, Node) else each)


def format_arg(arg: Any) -> str:
    """Return an argument as the text of a graph shows it: nodes with ``%``, texts bare."""
    if isinstance(arg, Node):
        return f"%{arg.name}"
    if isinstance(arg, list):
        return "[" + ", ".join(map(format_arg, arg)) + "]"
    if isinstance(arg, tuple):
        return "(" + ", ".join(map(format_arg, arg)) + ("," if len(arg) == 1 else "") + ")"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {format_arg(each)}" for key, each in arg.items()) + "}"
    return _fx_names.constant(arg, str)


class Node:
    """One operation of a `Graph`: what is called (`op`, `target`) with which `args` and `kwargs`.

    `users` holds the nodes whose arguments name this one, and is kept as arguments change. `meta`
    is a dict for the passes of a program.

    Example:
        >>> from plait_torch._fx_graph import Graph
        >>> import operator
        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(operator.neg, (x,))
        >>> list(x.users), y.all_input_nodes, y.format_node()
        ([neg], [x], '%neg : [num_users=0] = call_function[target=operator.neg](args = (%x,), \
kwargs = {})')
    """

    def __init__(
        self,
        graph: Any,
        name: str,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in OPCODES:
            raise AssertionError(f"Node: op must be one of {', '.join(OPCODES)}; got {op!r}")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._set(args, kwargs)

    # ---- arguments

    def _set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), use), map_arg(dict(kwargs), use)

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments. Assigning others updates `users`."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments. Assigning others updates `users`."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace one positional argument."""
        self.args = (*self.args[:idx], arg, *self.args[idx + 1 :])

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument before the one at `idx`."""
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace one node in the arguments by another."""

        def new(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self._args, new), map_arg(self._kwargs, new))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Replace this node by another in all users for which `delete_user_cb` is true; return the
        users that were.
        """
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # ---- place in the graph

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move `x` in front of this node."""
        if x is self:
            return
        if x.graph is not self.graph:
            raise AssertionError("Node.prepend: the node belongs to another graph")
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move `x` behind this node."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    # ---- questions

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node stays when nothing uses its value."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _effects
        if self.op == "call_method":  # in place
            return str(self.target).endswith("_") and not str(self.target).endswith("__")
        if self.op == "call_module" and self.graph.owning_module is not None:
            module = self.graph.owning_module.get_submodule(self.target)
            return bool(getattr(module, "_is_impure", False))
        return False

    @property
    def stack_trace(self) -> str | None:
        """The text under `meta`'s ``"stack_trace"``."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        return _fx_names.qualified(target).replace("_operator.", "operator.")

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        **options: Any,
    ) -> str | None:
        """Return the node as a line of its graph's text."""
        kind = f"{_fx_names.type_name(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target}{f': {kind}' if kind else ''}")
                return None
            default = f"(default={_fx_names.constant(self.args[0], str)})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self.target}]"
        if self.op == "output":
            if self.type is not None and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {_fx_names.type_name(self.type)}"
            return f"return {_fx_names.constant(self.args[0])}"
        return (
            f"{head}[target={self._pretty_print_target(self.target)}]"
            f"(args = {format_arg(self.args)}, kwargs = {format_arg(self.kwargs)})"
        )

    def __repr__(self) -> str:
        return self.name


def snake(name: str) -> str:
    """Return a name in lower case, with underscores where words begin."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Namespace:
    """Names that are given once: a second ``add`` becomes ``add_1``."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._owners: dict[Any, str] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """Return a free name that is an identifier and no keyword or builtin."""
        if obj is not None and obj in self._owners:
            return self._owners[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, None)
        name = candidate if number is not None else base
        if number is None:
            number = self._counts.get(base, 0)
        while name in self._taken or self._is_reserved(name, obj):
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        self._counts[base] = max(number, self._counts.get(base, 0))
        if obj is not None:
            self._owners[obj] = name
        return name

    @staticmethod
    def _is_reserved(name: str, obj: Any) -> bool:
        return _fx_names.is_reserved(name) or (
            name in vars(builtins) and name not in _MODULES_OF_BUILTINS
        )


_MODULES_OF_BUILTINS = frozenset({"__name__"})


def nodes_in(argument: Any) -> Iterator[Node]:
    """Yield the nodes in an argument."""
    results: list[Node] = []
    map_arg(argument, lambda node: results.append(node))
    yield from results
