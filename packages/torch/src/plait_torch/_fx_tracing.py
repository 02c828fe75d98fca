"""`torch.fx`: proxies, and the tracer that runs a module on them."""

from __future__ import annotations

import enum
import inspect
import math
import operator
from types import FunctionType
from typing import Any

import plait
from plait import nn
from plait_torch import _asking_functions, _fx_recording
from plait_torch._cpython import unpacked
from plait_torch._fx_graph import Graph
from plait_torch._fx_node import Node


class TraceError(ValueError):
    """What a trace cannot record: a condition or a loop on a value that is unknown."""


class _Placeholder:
    """The mark of `concrete_args` for values that remain arguments."""

    def __repr__(self) -> str:
        return "PH"


PH = _Placeholder()


def is_fx_tracing() -> bool:
    """Return whether this thread traces."""
    return _fx_recording.current.get() is not None


class TracerBase:
    """What proxies ask to record an operation. `graph` is the graph that grows."""

    graph: Graph
    trace_asserts = False
    proxy_buffer_attributes = False

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node of arguments that hold nodes."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """Return a proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Any = None,
    ) -> Any:
        """Record an operation on arguments that hold proxies; return its proxy."""
        node = self.create_node(
            kind, target, self.create_arg(tuple(args)), self.create_arg(dict(kwargs)), name,
            type_expr,
        )  # fmt: skip
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """Return an argument with nodes in the place of proxies.

        Raises:
            NotImplementedError: for objects that a graph cannot hold.
        """
        if isinstance(a, (tuple, list, slice)):
            if isinstance(a, slice):
                return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
            parts = [self.create_arg(each) for each in a]
            if isinstance(a, list):
                return parts
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, dict):
            for key in a:
                if isinstance(key, Proxy):
                    raise RuntimeError(f"create_arg: a key of a dict cannot be a proxy, got {key}")
            return {key: self.create_arg(each) for key, each in a.items()}
        if isinstance(a, Proxy):
            return a.node
        plain = (Node, str, int, float, complex, bool, range, type(None), type(Ellipsis),
                 plait.dtype, plait.device, enum.Enum)  # fmt: skip
        if isinstance(a, plain) or type(a) in _KINDS:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Refuse the truth of a proxy. A subclass may know it."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Any:
        """Yield the parts where a program unpacks them (``a, b = proxy``); refuse loops."""
        frame = inspect.currentframe()
        # the frames of this method, of Proxy.__iter__, and of the program
        caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
        if caller is not None:
            count = unpacked(caller)
            if count is not None:
                return iter([_item(obj, i) for i in range(count)])
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. Write the length in the program "
            "(`for i in range(3): x[i]`), or put the loop into a function that `torch.fx.wrap` "
            "marks"
        )

    def keys(self, obj: Proxy) -> Any:
        """Record the keys of a mapping."""
        return Attribute(obj, "keys")()


def _item(proxy: Any, index: int) -> Any:
    return proxy[index]


class GraphAppendingTracer(TracerBase):
    """A tracer that appends to a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


_KINDS = {type(getattr(plait, name)) for name in ("contiguous_format", "strided")
          if hasattr(plait, name)}  # fmt: skip


class Proxy:
    """A value that is unknown while a program is traced: what is done with it becomes nodes.

    Example:
        >>> from plait_torch._fx_graph import Graph
        >>> from plait_torch._fx_tracing import Proxy
        >>> graph = Graph()
        >>> x = Proxy(graph.placeholder("x"))
        >>> ((x + 1).relu()).node
        relu
    """

    _is_fx_proxy = True

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer or GraphAppendingTracer(node.graph)
        self.node = node
        if isinstance(self.tracer, GraphAppendingTracer):  # no trace lets functions record
            _asking_functions.ask_last(_record_outside)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __plait_function__(self, function: Any, args: Any, kwargs: Any) -> Any:
        return _record(_fx_recording.tracer_of(args, kwargs) or self.tracer, function, args, kwargs)

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None
    ) -> Any:
        tracer = _fx_recording.tracer_of(args or (), kwargs or {})
        return tracer.create_proxy("call_function", orig_method, args or (), kwargs or {})

    def __iter__(self) -> Any:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __deepcopy__(self, memo: Any) -> Any:
        raise TraceError("a Proxy cannot be copied: its value is unknown while a program is traced")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("'Proxy' object does not support item assignment")

    def keys(self) -> Any:
        """Record the keys of a mapping."""
        return self.tracer.keys(self)

    __hash__ = object.__hash__


def _record(tracer: Any, function: Any, args: Any, kwargs: Any) -> Any:
    first = args[0] if args else None
    if isinstance(first, (plait.Tensor, Proxy)) and not _is_function(function):
        return tracer.create_proxy("call_method", function.__name__, args, kwargs)
    return tracer.create_proxy(
        "call_function", function, *_fx_recording.arguments(function, args, kwargs)
    )


def _record_outside(function: Any, args: Any, kwargs: Any) -> Any:
    """Record a call of a function in Python on proxies outside of a trace."""
    tracer = _fx_recording.tracer_of(args, kwargs)
    return _record(tracer, function, args, kwargs) if tracer else NotImplemented


def _is_function(function: Any) -> bool:
    """Return whether `torch` or one of its namespaces has the operator as a function."""
    from plait_torch import _fx_names

    return id(function) in _fx_names.functions()


class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, else a node that reads it."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}
            ).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name


def _forward(function: Any) -> Any:
    def method(self: Any, *args: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, *args), {})

    return method


def _reflected(function: Any) -> Any:
    name = function.__name__.strip("_")

    def method(self: Any, other: Any) -> Any:
        plain = isinstance(other, plait.Tensor) and not isinstance(other, nn.Parameter)
        if plain and hasattr(plait.Tensor, name):  # as PyTorch: the method of the constant
            return self.tracer.create_proxy("call_method", name, (other, self), {})
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and_",
    "or_", "xor",
):  # fmt: skip
    _function = getattr(operator, _name)
    setattr(Proxy, f"__{_name.strip('_')}__", _forward(_function))
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_function))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert", "getitem"):
    setattr(Proxy, f"__{_name}__", _forward(getattr(operator, _name)))


class Tracer(TracerBase):
    """Runs a module on proxies and writes down what it does.

    Subclasses change what is written: `is_leaf_module` says which modules stay calls,
    `create_proxy`, `call_module` and `placeholder` are called for what they say.

    Args:
        autowrap_modules: modules whose functions are recorded as they are; `math` always is.
        autowrap_functions: functions that are recorded as they are.

    Example:
        >>> from plait import nn
        >>> from plait_torch._fx_tracing import Tracer
        >>> graph = Tracer().trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_module', 'call_module', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[Any, ...] = (),
        autowrap_functions: tuple[Any, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._extra = [*autowrap_functions]
        for module in autowrap_modules:
            self._extra += [f for n, f in vars(module).items()
                            if callable(f) and not n.startswith("_")]  # fmt: skip
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None
        # read by programs that write `trace` anew; `wrap` and `recording` do without them
        self._autowrap_search: list[Any] = [math, *autowrap_modules]
        self._autowrap_function_ids = {id(function) for function in self._extra}

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Return whether a module stays a call: those of `torch.nn` do, but for `Sequential`."""
        home = type(m).__module__
        ours = home.startswith(("plait_nn", "plait.nn", "torch.nn", "torch.ao.nn"))
        return ours and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """Return the name of a submodule.

        Raises:
            NameError: if the root does not hold it.
        """
        for name, each in self.root.named_modules():
            if each is mod:
                return str(name)
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
        """Record the call of a leaf, or trace into the module."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def read(self, name: str, value: Any) -> Any:
        """Return what a module's attribute is while it is traced: a parameter is a proxy."""
        return self.getattr(name, value, self._proxies)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return a proxy for a parameter (for a buffer with `proxy_buffer_attributes`)."""
        kinds: list[tuple[type[plait.Tensor], dict[int, str]]] = [(nn.Parameter, self._parameters)]
        if self.proxy_buffer_attributes:
            kinds.append((plait.Tensor, self._buffers))
        for kind, names in kinds:
            path = names.get(id(attr_val)) if isinstance(attr_val, kind) else None
            if path is not None:
                if path not in parameter_proxy_cache:
                    parameter_proxy_cache[path] = self.create_proxy("get_attr", path, (), {})
                return parameter_proxy_cache[path]
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """Return an argument with nodes in the place of proxies, tensors and modules."""
        if isinstance(a, plait.Tensor):
            path = self._parameters.get(id(a)) or self._buffers.get(id(a))
            if path is None and isinstance(a, nn.Parameter):
                raise NameError("parameter is not a member of this module")
            path = path or self._tensors.get(id(a))
            if path is None:
                number = 0
                while hasattr(self.root, f"_tensor_constant{number}"):
                    number += 1
                path = f"_tensor_constant{number}"
                object.__setattr__(self.root, path, a)
                self._tensors[id(a)] = path
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or a function.

        Args:
            root: the module, or the function.
            concrete_args: values of arguments that are no placeholders: what depends on them is
                decided at the trace.

        Raises:
            TraceError: where the program asks for the value of a proxy.
        """
        if isinstance(root, nn.Module):
            self.root = root
            function = getattr(type(root), getattr(self, "traced_func_name", "forward"))
        else:
            self.root, function = nn.Module(), root
        self.graph = Graph(tracer_cls=type(self))
        is_module = isinstance(root, nn.Module)
        plain, args = self.create_args_for_root(function, is_module, concrete_args)
        spaces = [vars(module) for module in self.root.modules()]
        spaces.append(getattr(plain, "__globals__", {}))
        with _fx_recording.recording(self, self._extra), _fx_recording.swapped(*spaces):
            result = self.create_arg(plain(*args))
        # as PyTorch: the code of functions with other than plain parameters says no result
        self.create_node("output", "output", (result,), {}, type_expr=_annotation(plain, "return"))
        return self.graph

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: dict[str, Any] | None = None
    ) -> tuple[Any, list[Any]]:
        """Make the placeholders of a trace, in `graph`, and learn the names of the root's tensors.

        Args:
            root_fn: the function to trace.
            is_module: whether it is a method, of `root`.
            concrete_args: values of arguments that are no placeholders.

        Returns:
            The function with all its parameters positional, and its arguments.
        """
        self._proxies: dict[str, Any] = {}
        self._parameters: dict[int, str] = {}
        self._buffers: dict[int, str] = {}
        self._tensors: dict[int, str] = {}
        for name, value in self.root.named_parameters():
            self._parameters.setdefault(id(value), name)
        for name, value in self.root.named_buffers():
            self._buffers.setdefault(id(value), name)
        for prefix, module in self.root.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, plait.Tensor):
                    self._tensors[id(value)] = f"{prefix}.{name}" if prefix else name
        plain = inspect.unwrap(root_fn)
        return _all_positional(plain), self._arguments(plain, is_module, concrete_args or {})

    def _arguments(self, function: Any, is_method: bool, concrete: dict[str, Any]) -> list[Any]:
        args: list[Any] = []
        parameters = list(inspect.signature(function).parameters.values())
        if is_method:
            args, parameters = [self.root], parameters[1:]
        rank = {"VAR_POSITIONAL": 1, "VAR_KEYWORD": 2}
        result: dict[str, Any] = {}
        count = 0
        for each in sorted(parameters, key=lambda p: rank.get(p.kind.name, 0)):
            star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(each.kind.name, "")
            kind = _annotation(function, each.name)
            default = () if each.default is each.empty else (self.create_arg(each.default),)
            if each.name in concrete and concrete[each.name] is not PH:
                count += 1
                value = result[each.name] = concrete[each.name]
                proxy = self.create_proxy("placeholder", f"{each.name}_{count}", default, {})
                self._hold(each.name, proxy, value)
            else:
                result[each.name] = self.create_proxy(
                    "placeholder", star + each.name, default, {}, type_expr=kind
                )
        args += [result[name] for name in result]
        return args

    def _hold(self, name: str, proxy: Any, value: Any) -> None:
        from plait_torch._checks import _assert

        if isinstance(value, (bool, int, float)):
            text = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", _assert, (proxy == value, text), {})


def _annotation(function: Any, name: str) -> Any:
    """Return what an annotation means, also of one written as text; None if it says nothing."""
    result = getattr(function, "__annotations__", {}).get(name)
    if isinstance(result, str):
        try:
            result = eval(result, getattr(function, "__globals__", {}))
        except Exception:  # names that are there for type checkers only
            return None
    return None if result is Any else result


_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _all_positional(function: Any) -> Any:
    """Return the function with all its parameters positional, those with stars too: each is then
    one proxy.
    """
    if not isinstance(function, FunctionType):
        return function
    code = function.__code__
    if not code.co_kwonlyargcount and not code.co_flags & _STARS:
        return function
    stars = [flag for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS) if code.co_flags & flag]
    plain = code.replace(
        co_argcount=code.co_argcount + code.co_kwonlyargcount + len(stars),
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~sum(stars),
    )
    return FunctionType(plain, function.__globals__, function.__name__, None, function.__closure__)
