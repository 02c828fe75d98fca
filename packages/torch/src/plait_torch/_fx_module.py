"""`torch.fx.GraphModule`: a module whose `forward` is the code of a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

import plait
from plait import nn
from plait_torch._fx_graph import Graph, PythonCode
from plait_torch._fx_tracing import Tracer

_numbers = itertools.count()


def _assign_attr(value: Any, module: Any, path: str) -> None:
    """Set an attribute below a module, with empty modules on the way."""
    *places, name = path.split(".")
    for place in places:
        if not isinstance(getattr(module, place, None), nn.Module):
            module.add_module(place, nn.Module())
        module = getattr(module, place)
    if isinstance(value, plait.Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Set in one module what another has under a dotted name; what is there stays."""
    source: Any = from_module
    *places, name = target.split(".")
    place_to = to_module
    for place in places:
        source = getattr(source, place)
        if getattr(place_to, place, None) is source:
            return  # the whole module is there
        if not isinstance(getattr(place_to, place, None), nn.Module):
            place_to.add_module(place, nn.Module())
        place_to = getattr(place_to, place)
    value = getattr(source, name)
    if getattr(place_to, name, None) is value:
        return
    if name in getattr(source, "_buffers", {}):
        persistent = name not in source._non_persistent_buffers_set
        place_to.register_buffer(name, value, persistent)
    elif isinstance(value, plait.Tensor) and not isinstance(value, nn.Parameter):
        place_to.register_buffer(name, value)
    else:
        setattr(place_to, name, value)


class GraphModule(nn.Module):
    """A module that runs a `Graph`. It shares parameters, buffers and submodules with `root`.

    Assigning `graph` writes the code again; after changes inside the graph call `recompile`.

    Args:
        root: a module, or a dict of dotted names, that holds what the graph names.
        graph: the graph.
        class_name: the name of the class in texts.

    Example:
        >>> import plait
        >>> from plait_torch._fx_module import symbolic_trace
        >>> traced = symbolic_trace(lambda x: x + 1)
        >>> print(traced.code.strip())
        def forward(self, x):
            add = x + 1;  x = None
            return add
        >>> traced(plait.ones(2))
        tensor([2., 2.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # each has a class of its own, which holds its `forward`
        result = type("GraphModuleImpl", (_plain_class(cls),), {"_is_generated": True})
        result.__module__, result.__qualname__ = cls.__module__, f"{cls.__name__}.GraphModuleImpl"
        return super().__new__(result)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in sorted(dict.fromkeys(targets), key=lambda name: name.count(".")):
                if target not in root:
                    raise RuntimeError(f"GraphModule: the graph needs {target!r}, which `root` "
                                       "does not hold")  # fmt: skip
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"GraphModule: `root` must be a Module or a dict, got {root!r}")
        setattr(self, "graph", graph)  # noqa: B010 - a property that is set below
        self._tracer_cls = graph._lasting_tracer()
        self.meta: dict[str, Any] = {}

    @property
    def graph(self) -> Graph:
        """The graph. Assigning one writes the code again."""
        return self.__dict__["_graph"]  # type: ignore[no-any-return]

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "graph":
            super().__setattr__(name, value)
            return
        if not isinstance(value, Graph):
            raise AssertionError(f"GraphModule.graph: a Graph is required, got {value!r}")
        value.owning_module = self
        self.__dict__["_graph"] = value
        self.recompile()

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return self.__dict__["_code"]  # type: ignore[no-any-return]

    def recompile(self) -> PythonCode:
        """Write the code of the graph again."""
        result = self.graph.python_code("self")
        self.__dict__["_code"] = result.src
        name = f"<eval_with_key>.{next(_numbers)}"
        linecache.cache[name] = (len(result.src), None, result.src.splitlines(True), name)
        space = dict(result.globals)
        exec(compile(result.src, name, "exec"), space)
        type(self).forward = space["forward"]
        return result

    def add_submodule(self, target: str, m: Any) -> bool:
        """Add a module under a dotted name; return whether its place is free of other things."""
        *places, name = target.split(".")
        module: Any = self
        for place in places:
            result = getattr(module, place, None)
            if result is None:
                module.add_module(place, nn.Module())
            elif not isinstance(result, nn.Module):
                return False
            module = getattr(module, place)
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete a submodule; return whether it was there."""
        place, _, name = target.rpartition(".")
        try:
            module = self.get_submodule(place)
        except AttributeError:
            return False
        if name not in module._modules:
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the submodules that the graph neither calls nor reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                atoms = node.target.split(".")
                used.update(".".join(atoms[: i + 1]) for i in range(len(atoms)))
                if node.op == "call_module":
                    inner = self.get_submodule(node.target).named_modules()
                    used.update(f"{node.target}.{name}" for name, _ in inner if name)
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """Print the code as that of a class, and return it."""
        lines = self.code.strip("\n").rstrip(" ").splitlines()
        inner = [lines[0], "    # No stacktrace found for following nodes", *lines[1:]]
        text = f"class {self._get_name()}(torch.nn.Module):\n"
        text += "".join(f"    {line}\n" if line else "\n" for line in inner)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        more = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self.code, more])

    def _state(self) -> dict[str, Any]:
        left = ("_graph", "_code")
        return {key: value for key, value in self.__getstate__().items() if key not in left}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        graph = copy.deepcopy(self.graph, memo)
        result = _restore(
            _plain_class(type(self)), type(self).__name__, copy.deepcopy(self._state(), memo), graph
        )
        memo[id(self)] = result
        return result

    def __copy__(self) -> Any:
        return _restore(
            _plain_class(type(self)), type(self).__name__, dict(self._state()),
            copy.deepcopy(self.graph),
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (
            _plain_class(type(self)), type(self).__name__, self._state(), self.graph,
        )  # fmt: skip

    __reduce_ex__ = lambda self, protocol: self.__reduce__()  # noqa: E731


def _plain_class(cls: Any) -> Any:
    """Return the class from which the classes of instances are made."""
    return next(each for each in cls.__mro__ if "_is_generated" not in vars(each))


def _restore(cls: Any, name: str, state: dict[str, Any], graph: Graph) -> Any:
    result = cls.__new__(cls)
    type(result).__name__ = name
    result.__setstate__(state)
    result.graph = graph
    return result


def _make_graph_module(root: Any, graph: Graph, class_name: str = "GraphModule") -> GraphModule:
    return GraphModule(root, graph, class_name)


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Return a module or a function as a `GraphModule`: it is run once on proxies.

    Args:
        root: the module, or the function.
        concrete_args: values of arguments on which conditions depend.

    Raises:
        TraceError: where the program asks for the value of a proxy.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
