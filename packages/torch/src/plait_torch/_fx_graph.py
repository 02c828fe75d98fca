"""`torch.fx.graph`: a list of operations, and the Python code that it stands for."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import plait
from plait_torch import _fx_names
from plait_torch._fx_node import Namespace, Node, map_aggregate, map_arg, snake

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|",
    "xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
_UNARY = {"neg": "-", "pos": "+", "invert": "~"}


@dataclass
class PythonCode:
    """Source text, and the names that it needs."""

    src: str
    globals: dict[str, Any]


class Names:
    """The `torch` of generated code: the very targets of the graph, then the names of `torch`."""

    def __init__(self, place: str = "torch") -> None:
        self._place = place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from plait_torch._finder import installed

        with installed():
            return getattr(importlib.import_module(self._place), name)


class CodeGen:
    """How a graph becomes code. Only the ordinary way is there."""


class _NodeList:
    """The nodes of a graph in order, or in reverse order."""

    def __init__(self, graph: Graph, forward: bool = True) -> None:
        self._graph, self._forward = graph, forward

    def __len__(self) -> int:
        return self._graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._next if self._forward else root._prev
        while node is not root:
            # the next is read afterwards: passes insert and erase while they walk
            if not node._erased:
                yield node
            node = node._next if self._forward else node._prev

    def __reversed__(self) -> _NodeList:
        return _NodeList(self._graph, not self._forward)


class InsertPoint:
    """Where a graph's next nodes go; as a context, the place before it is restored at its end."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._graph._insert = self._before


class Graph:
    """A list of `Node` s, from placeholders to one output.

    Example:
        >>> import plait, plait_torch
        >>> from plait_torch._fx_graph import Graph
        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(plait.relu, (x,))
        >>> _ = graph.output(y)
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
            return relu
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._namespace = Namespace()
        self._len = 0
        self._insert: Callable[[Node], None] = self._root.prepend
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self.owning_module = owning_module

    @property
    def nodes(self) -> Any:
        """The nodes in order; `reversed` and `len` work."""
        return _NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the nodes with an op, and a target if one is given."""
        if op == "call_function" and target is None:
            raise AssertionError("find_nodes: a call_function needs a target")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """Return the node that holds the result."""
        return self.find_nodes(op="output")[0]

    # ---- making nodes

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node and insert it at the insert point."""
        name = self._namespace.create_name(name or self._target_to_str(target))
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """Make the node of an argument of the graph."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Make a node that reads an attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Make a node that calls a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node that calls a method of its first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node that calls a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Make the node of the result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _target_to_str(self, target: Any) -> str:
        if isinstance(target, str):
            operation = target.strip("_") if re.fullmatch(r"__\w+__", target) else target
        else:
            operation = getattr(target, "__name__", type(target).__name__)
        return snake(operation)

    # ---- copying and erasing

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Make a copy of a node of any graph, with its arguments' nodes mapped."""
        copy = self.create_node(
            node.op,
            node.target,
            map_arg(node.args, arg_transform),
            map_arg(node.kwargs, arg_transform),
            node.name,
            node.type,
        )
        copy.meta = dict(node.meta)
        return copy

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False
    ) -> Any:
        """Copy the nodes of a graph that are not in `val_map`; return the copied result."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        graph = Graph(tracer_cls=self._tracer_cls)
        values: dict[Node, Any] = {}
        result = graph.graph_copy(self, values, return_output_node=True)
        if result is not None:
            output = graph.output(result[0], result[1].type)
            output.meta = dict(result[1].meta)
        return graph

    def __getstate__(self) -> dict[str, Any]:
        def mark(value: Any) -> Any:
            return _Reference(value.name) if isinstance(value, Node) else value

        rows = [
            (n.name, n.op, _fx_names.pickled(n.target),
             map_aggregate(n.args, mark), map_aggregate(n.kwargs, mark),
             n.type, {key: value for key, value in n.meta.items() if key == "tensor_meta"})
            for n in self.nodes
        ]  # fmt: skip
        return {"rows": rows, "tracer": self._lasting_tracer()}

    def _lasting_tracer(self) -> Any:
        """Return the class of the tracer, or None if no pickle can name it."""
        kind = self._tracer_cls
        return None if kind is None or "<locals>" in kind.__qualname__ else kind

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(tracer_cls=state["tracer"])  # type: ignore[misc]
        nodes: dict[str, Node] = {}

        def find(value: Any) -> Any:
            return nodes[value.name] if isinstance(value, _Reference) else value

        for name, op, target, args, kwargs, kind, meta in state["rows"]:
            nodes[name] = self.create_node(
                op,
                _fx_names.unpickled(target),
                map_aggregate(args, find),
                map_aggregate(kwargs, find),
                name,
                kind,
            )
            nodes[name].meta = meta

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses.

        Raises:
            RuntimeError: if a node uses it.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._set((), {})
        before, after = to_erase._prev, to_erase._next
        before._next, after._prev = after, before  # its own links stay, for loops over the nodes
        to_erase._erased = True
        self._len -= 1

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase the nodes that nothing uses and that have no effects; return whether any was."""
        self.lint()
        impure = is_impure_node or Node.is_impure
        before = self._len
        for node in reversed(list(self.nodes)):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._len != before

    def inserting_before(self, n: Node | None = None) -> InsertPoint:
        """Let nodes be made in front of `n`, at the beginning without one: from this call on, or
        with ``with`` until the block ends.
        """
        if n is None:
            return self.inserting_after(self._root)
        return InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> InsertPoint:
        """Let nodes be made directly behind `n`, so that the last one made is the first there; at
        the end without one. It lasts as long as that of `inserting_before`.
        """
        if n is None:
            return self.inserting_before(self._root)
        return InsertPoint(self, n.append)

    def lint(self) -> None:
        """Check names, order and targets.

        Raises:
            RuntimeError: for a node that is used before it is there, a name that is there twice,
                or a target that the owning module does not have.
        """
        seen: dict[Node, None] = {}
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node.name}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                        "Please check that Nodes in the graph are topologically ordered"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen[node] = None
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                result = self.owning_module
                for atom in node.target.split("."):
                    if not hasattr(result, atom):
                        raise RuntimeError(
                            f"Node {node} target {node.target} references nonexistent attribute "
                            f"{atom}"
                        )
                    result = getattr(result, atom)

    # ---- text

    def __str__(self) -> str:
        names: list[str] = []
        kind = [""]
        lines = [n.format_node(maybe_return_typename=kind) for n in self.nodes]
        return f"graph({', '.join(names)}){kind[0]}:" + "".join(f"\n    {each}" for each in lines)

    __repr__ = object.__repr__

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[str(x) for x in (n.op, n.name, n.target, n.args, n.kwargs)] for n in self.nodes]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, ["-" * width for width in widths])
        for row in rows:
            print("  ".join(map(str.ljust, row, widths)).rstrip())

    def on_generate_code(self, make_transformer: Any) -> Any:
        """Not there: code is generated one way."""
        raise NotImplementedError("Graph.on_generate_code: code is generated one way")

    def python_code(self, root_module: str = "self", **options: Any) -> PythonCode:
        """Return the graph as the source of a function ``forward``, and the names in it."""
        return _Writer(self, root_module).write()


@dataclass(frozen=True)
class _Reference:
    """A node in a pickle."""

    name: str


class _Writer:
    """One run of `Graph.python_code`."""

    def __init__(self, graph: Graph, root_module: str) -> None:
        self._graph, self._root = graph, root_module
        self._torch = Names()
        self._globals: dict[str, Any] = {
            "inf": float("inf"), "nan": float("nan"), "NoneType": type(None),
            "torch": self._torch, "device": plait.device,
        }  # fmt: skip
        self._taken = Namespace()

    def _global(self, hint: str, value: Any) -> str:
        """Return the expression by which the code names a value."""
        if hint.startswith("builtins."):
            return hint[9:]
        if hint.startswith("torch."):
            *places, name = hint.split(".")[1:]
            result: Any = self._torch
            path = "torch"
            for place in places:
                path = f"{path}.{place}"
                if place not in vars(result):
                    setattr(result, place, Names(path))
                result = vars(result)[place]
            setattr(result, name, value)
            return hint
        name = re.sub(r"\W", "_", hint)
        base, number = name, 0
        while name in self._globals and self._globals[name] is not value:
            number += 1
            name = f"{base}_{number}"
        self._globals[name] = value
        return name

    def _type(self, kind: Any) -> str:
        if kind is None:
            return ""
        name = _fx_names.type_name(kind)
        if kind is plait.Tensor or getattr(kind, "__module__", "") == "builtins":
            return name if not isinstance(kind, str) else self._global(name, kind)
        return self._global(name.replace(".", "_"), kind)

    def _value(self, value: Any) -> str:
        if isinstance(value, Node):
            return value.name
        if hasattr(type(value), "_fields"):
            name = self._global(f"{type(value).__module__}_{type(value).__name__}", type(value))
            return f"{name}({', '.join(map(self._value, value))})"
        if type(value) in (tuple, list, dict, slice):
            return _fx_names.constant(map_aggregate(value, self._leaf))
        return _fx_names.constant(self._leaf(value))

    def _leaf(self, value: Any) -> Any:
        plain = (Node, str, int, float, complex, type(None), type(Ellipsis), plait.dtype,
                 plait.device)  # fmt: skip
        if isinstance(value, plain) or _fx_names.constant(value).startswith("torch."):
            return value
        if isinstance(value, range):
            return value
        return _Named(self._global(f"_constant_{type(value).__name__}", value))

    def _arguments(self, args: Any, kwargs: Any) -> str:
        return ", ".join(
            [*map(self._value, args), *(f"{k} = {self._value(v)}" for k, v in kwargs.items())]
        )

    def _attribute(self, path: str) -> str:
        result = self._root
        for atom in path.split("."):
            result = f"{result}.{atom}" if atom.isidentifier() else f'getattr({result}, "{atom}")'
        return result

    def _call(self, node: Node) -> str:
        args = node.args
        if node.op == "call_module":
            return f"{self._attribute(node.target)}({self._arguments(args, node.kwargs)})"
        if node.op == "call_method":
            rest = self._arguments(args[1:], node.kwargs)
            first = self._value(args[0])
            return f"{first if isinstance(args[0], Node) else f'({first})'}.{node.target}({rest})"
        name = getattr(node.target, "__name__", "")
        if getattr(node.target, "__module__", None) == "_operator" and not node.kwargs:
            if name in _BINARY and len(args) == 2:
                return f"{self._value(args[0])} {_BINARY[name]} {self._value(args[1])}"
            if name in _UNARY and len(args) == 1:
                return f"{_UNARY[name]}{self._value(args[0])}"
            if name == "getitem" and len(args) == 2:
                return f"{self._value(args[0])}[{self._value(args[1])}]"
        if node.target is getattr and len(args) == 2 and str(args[1]).isidentifier():
            return f"{self._value(args[0])}.{args[1]}"
        function = self._global(_fx_names.qualified(node.target), node.target)
        return f"{function}({self._arguments(args, node.kwargs)})"

    def _last_uses(self) -> dict[Node, list[Node]]:
        last: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self._graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    last.setdefault(node, []).append(used)
        return last

    def write(self) -> PythonCode:
        last = self._last_uses()
        parameters, body, returns = [], [], ""
        for node in self._graph.nodes:
            kind = self._type(node.type)
            label = f"{node.name}{f' : {kind}' if kind else ''}"
            if node.op == "placeholder":
                default = f" = {self._value(node.args[0])}" if node.args else ""
                parameters.append(f"{node.target}{f' : {kind}' if kind else ''}{default}")
                plain = node.target.replace("*", "")
                line = f"{node.name} = {plain}" if plain != node.name else ""
                if line:
                    body.append(line)
                continue
            if node.op == "output":
                returns = f" -> {kind}" if kind else ""
                body.append(f"return {self._value(node.args[0])}")
                continue
            line = (
                f"{label} = {self._attribute(node.target)}"
                if node.op == "get_attr"
                else f"{label} = {self._call(node)}"
            )
            done = [*last.get(node, ()), *(() if node.users else (node,))]
            if done:
                line += ";  " + " = ".join(n.name for n in done) + " = None"
            body.append(line)
        head = f"def forward({', '.join([self._root, *parameters])}){returns}:"
        text = "".join(f"    {line}\n" for line in body or ["pass"])
        return PythonCode(f"\n\n\n{head}\n{text}    ", self._globals)


class _Named:
    """A constant that the code names."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name
