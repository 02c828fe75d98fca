"""`torch.fx.Interpreter` and `Transformer`: a graph is run node by node."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from plait_torch._fx_graph import Graph
from plait_torch._fx_module import GraphModule
from plait_torch._fx_node import Node, map_arg
from plait_torch._fx_tracing import Proxy, Tracer


class Interpreter:
    """Runs a graph node by node; subclasses override the method of an op.

    Args:
        module: the `GraphModule`, or the module that holds what `graph` names.
        garbage_collect_values: drop values after their last use.
        graph: the graph, if it is not the module's.

    Example:
        >>> import plait
        >>> from plait_torch._fx_interpreter import Interpreter
        >>> from plait_torch._fx_module import symbolic_trace
        >>> Interpreter(symbolic_trace(lambda x: x * 2)).run(plait.ones(2))
        tensor([2., 2.])
    """

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph: Graph = graph if graph is not None else module.graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    self.user_to_last_uses.setdefault(node, []).append(used)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:  # fmt: skip
        """Run the graph on arguments and return its result. Nodes in `initial_env` are not run."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            if self.garbage_collect_values:
                for done in self.user_to_last_uses.get(node, ()):
                    del self.env[done]
            if node.op == "output":
                return self.env[node]
        return None

    def run_node(self, n: Node) -> Any:
        """Run one node: call the method that its op names."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the next argument of `run`, or the default.

        Raises:
            RuntimeError: if there is neither.
        """
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
        raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not "
                           "passed in!")  # fmt: skip

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return what the module has under a dotted name."""
        result = self.module
        for atom in target.split("."):
            result = getattr(result, atom)
        return result

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """Return a node's arguments with values in the place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return arguments with values in the place of nodes."""
        return map_arg(args, lambda node: self.env[node])


class _TransformerTracer(Tracer):
    def __init__(self, graph: Graph, root: Any) -> None:
        super().__init__()
        self.graph, self.root = graph, root
        self._parameters = {id(value): name for name, value in root.named_parameters()}
        self._buffers = {id(value): name for name, value in root.named_buffers()}
        self._tensors: dict[int, str] = {}

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """An `Interpreter` that computes a graph: what its methods return are proxies.

    Example:
        >>> import operator, plait
        >>> from plait_torch._fx_interpreter import Transformer
        >>> from plait_torch._fx_module import symbolic_trace
        >>> class Doubled(Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(target, args, kwargs) * 2
        >>> Doubled(symbolic_trace(lambda x: x + 1)).transform()(plait.ones(1))
        tensor([4.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.tracer = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Make a placeholder."""
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Record the attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Record the call of a submodule."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Record the call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Run the graph on proxies; return a module with the recorded graph."""
        # functions stay themselves, for methods that compare targets with them
        result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
