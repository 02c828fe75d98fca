"""`torch.fx.passes`, and names of `torch.fx` that passes of libraries import."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import plait
from plait.nn.utils import fuse_conv_bn_eval
from plait_torch._fx_graph import Graph
from plait_torch._fx_module import GraphModule, symbolic_trace
from plait_torch._fx_node import Node, map_arg

__all__ = [
    "Argument",
    "ArgumentT",
    "BaseArgumentTypes",
    "PassBase",
    "PassManager",
    "PassResult",
    "Target",
    "_CodeOnlyModule",
    "_USER_PRESERVED_ATTRIBUTES_KEY",
    "base_types",
    "compatibility",
    "fuse",
    "get_attr",
    "immutable_dict",
    "immutable_list",
    "remove_dropout",
    "split_module",
]

T = TypeVar("T")
Argument = ArgumentT = Any
Target = Any  # a function, or a name
BaseArgumentTypes = Any
base_types = (str, int, float, bool, complex, plait.dtype, plait.Tensor, plait.device)
immutable_list, immutable_dict = list, dict
# where a `GraphModule` keeps names that a program wants to be copied; in its `meta`
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(plait.nn.Module):
    """A module with the attributes of another."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def compatibility(is_backward_compatible: bool, **options: Any) -> Callable[[T], T]:
    """Return a decorator that returns its argument."""
    return lambda function: function


class PassResult(NamedTuple):
    """A module after a pass, and whether the pass changed it."""

    graph_module: Any
    modified: bool


class PassBase:
    """A pass over a `GraphModule`: a subclass defines `call`, and maybe `requires` and `ensures`.

    Example:
        >>> from plait_torch._fx_module import symbolic_trace
        >>> from plait_torch._fx_passes import PassBase, PassResult
        >>> class Count(PassBase):
        ...     def call(self, graph_module):
        ...         print(len(graph_module.graph.nodes), "nodes")
        ...         return PassResult(graph_module, False)
        >>> Count()(symbolic_trace(lambda x: x + 1)).modified
        3 nodes
        False
    """

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    def call(self, graph_module: Any) -> PassResult | None:
        """Change the module; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}: a pass must define `call`")

    def requires(self, graph_module: Any) -> None:
        """Check the module before the pass."""

    def ensures(self, graph_module: Any) -> None:
        """Check the module after the pass."""


class PassManager:
    """Runs passes in order, again until none changes the module or `steps` is reached.

    Example:
        >>> from plait_torch._fx_module import symbolic_trace
        >>> from plait_torch._fx_passes import PassManager, PassResult
        >>> manager = PassManager(passes=[lambda module: PassResult(module, False)])
        >>> manager(symbolic_trace(lambda x: x + 1)).modified
        False
    """

    def __init__(
        self,
        passes: list[Callable[[Any], PassResult | None]] | None = None,
        constraints: Any = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        if constraints:
            raise NotImplementedError("PassManager: give the passes in the wanted order")
        self.passes, self.steps = list(passes or []), 1 if steps is None else steps

    def add_pass(self, _pass: Callable[[Any], PassResult | None]) -> None:
        """Add a pass at the end."""
        self.passes.append(_pass)

    def __call__(self, module: Any) -> PassResult:
        changed = False
        for _ in range(self.steps):
            modified = False
            for each in self.passes:
                result = each(module)
                if result is None:
                    raise TypeError(f"PassManager: the pass {each} must return a PassResult")
                module, modified = result.graph_module, modified or result.modified
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)


def _submodules(module: Any) -> dict[str, Any]:
    return dict(module.named_modules())


def get_attr(module: Any, target: str) -> Any:
    """Return the attribute of a module with a dotted name."""
    for name in target.split("."):
        module = getattr(module, name)
    return module


def _replace(module: Any, target: str, new: Any) -> None:
    place, _, name = target.rpartition(".")
    setattr(module.get_submodule(place), name, new)


_PAIRS = {
    plait.nn.Conv1d: plait.nn.BatchNorm1d,
    plait.nn.Conv2d: plait.nn.BatchNorm2d,
    plait.nn.Conv3d: plait.nn.BatchNorm3d,
}


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> Any:
    """Return a traced model whose convolutions contain the batch norms after them.

    Args:
        model: a module in evaluation mode.
        inplace: change the model's own modules.
        no_trace: the model is a `GraphModule` already.

    Example:
        >>> import plait
        >>> from plait_torch._fx_passes import fuse
        >>> model = plait.nn.Sequential(plait.nn.Conv2d(1, 2, 3), plait.nn.BatchNorm2d(2)).eval()
        >>> [node.op for node in fuse(model).graph.nodes]
        ['placeholder', 'call_module', 'output']
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace else symbolic_trace(model)
    modules = _submodules(traced)
    for node in list(traced.graph.nodes):
        before = node.args[0] if node.args else None
        if node.op != "call_module" or not isinstance(before, Node):
            continue
        norm: Any = modules[node.target]
        conv: Any = modules.get(before.target)
        fits = before.op == "call_module" and _PAIRS.get(type(conv)) is type(norm)
        if not fits or len(before.users) > 1 or not norm.track_running_stats:
            continue
        fused = fuse_conv_bn_eval(conv, norm)
        _replace(traced, before.target, fused)
        modules[before.target] = fused
        node.replace_all_uses_with(before)
        traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def remove_dropout(model: Any) -> Any:
    """Return the traced model without its dropout modules.

    Example:
        >>> import plait
        >>> from plait_torch._fx_passes import remove_dropout
        >>> model = plait.nn.Sequential(plait.nn.Linear(1, 1), plait.nn.Dropout())
        >>> [node.op for node in remove_dropout(model).graph.nodes]
        ['placeholder', 'call_module', 'output']
    """
    traced = symbolic_trace(model)
    modules = _submodules(traced)
    for node in list(traced.graph.nodes):
        if node.op == "call_module" and isinstance(modules[node.target], plait.nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


class _Partition:
    """The nodes of one part, its inputs and its outputs."""

    def __init__(self, name: str) -> None:
        self.name = f"submod_{name}"
        self.graph = Graph()
        self.copies: dict[Node, Node] = {}
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.needs: dict[str, None] = {}
        self.nodes: list[Node] = []


def _partitions(nodes: list[Node], callback: Callable[[Node], Any]) -> dict[str, _Partition]:
    """Return the parts by their names, with the values that one passes to another."""
    parts: dict[str, _Partition] = {}
    place = {}
    for node in nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = str(callback(node))
        place[node] = name
        parts.setdefault(name, _Partition(name)).nodes.append(node)
    for node in nodes:
        for used in node.all_input_nodes:
            source, target = place.get(used), place.get(node)
            if source != target:
                if source is not None:
                    parts[source].outputs[used] = None
                if target is not None:
                    parts[target].inputs[used] = None
                if source is not None and target is not None:
                    parts[target].needs[source] = None
    return parts


def _ordered(parts: dict[str, _Partition]) -> list[_Partition]:
    """Return the parts so that each comes after those it needs."""
    results: dict[str, _Partition] = {}
    waiting = dict(parts)
    while waiting:
        ready = [name for name, part in waiting.items() if all(n in results for n in part.needs)]
        if not ready:
            raise RuntimeError("cycle exists between partitions!")
        results[ready[0]] = waiting.pop(ready[0])
    return list(results.values())


def split_module(
    m: Any, root_m: Any, split_callback: Callable[[Node], Any], *args: Any, **options: Any
) -> GraphModule:
    """Return a module of submodules ``submod_0``, ..., each with the nodes of one part.

    Args:
        m: a `GraphModule`.
        root_m: the module with the attributes that the graph uses.
        split_callback: a function from a node to the number or name of its part.
        args, options: have no effect.

    Raises:
        RuntimeError: if parts need each other.

    Example:
        >>> import plait
        >>> from plait_torch._fx_module import symbolic_trace
        >>> from plait_torch._fx_passes import split_module
        >>> traced = symbolic_trace(lambda x: (x + 1) * 2)
        >>> parts = iter([0, 1])
        >>> made = split_module(traced, traced, lambda node: next(parts))
        >>> [name for name, _ in made.named_children()], made(plait.ones(1))
        (['submod_0', 'submod_1'], tensor([4.]))
    """
    nodes = list(m.graph.nodes)
    whole, values = Graph(), {}
    for node in nodes:
        if node.op == "placeholder":
            values[node] = whole.node_copy(node)
    children: dict[str, Any] = {}
    for node in nodes:  # attributes of the module itself stay outside of the parts
        if node.op == "get_attr":
            values[node] = whole.node_copy(node)
            children[str(node.target)] = get_attr(root_m, str(node.target))
    for part in _ordered(_partitions(nodes, split_callback)):
        for node in part.inputs:
            part.copies[node] = part.graph.placeholder(node.name)
        for node in part.nodes:
            part.copies[node] = part.graph.node_copy(node, part.copies.__getitem__)
        outputs = list(part.outputs)
        output = tuple(part.copies[node] for node in outputs)
        part.graph.output(output[0] if len(output) == 1 else output)
        children[part.name] = GraphModule(root_m, part.graph)
        called = whole.call_module(part.name, tuple(values[node] for node in part.inputs))
        for i, node in enumerate(outputs):
            values[node] = called if len(outputs) == 1 else _item(whole, called, i)
    result = next(node for node in nodes if node.op == "output").args[0]
    whole.output(map_arg(result, values.__getitem__))
    return GraphModule(children, whole)


def _item(graph: Graph, node: Node, index: int) -> Node:
    return graph.call_function(operator.getitem, (node, index))
