"""`torch.jit._get_trace_graph`: the calls of a program's run as the nodes of a graph.

Tools that count operations read it.

A node has the name of PyTorch's operator (``aten::linear``), its arguments in the order of that
operator, its results with their shapes, and the scope that hooks of modules set. The calls are
those that ``__torch_function__`` sees, so that a function of several steps is one node where it is
one operator in PyTorch. There are no nodes for arithmetic with sizes, and nothing runs the graph.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import plait
from plait_torch import _asking_functions
from plait_torch._torch_function import TorchFunctionMode

__all__ = ["Graph", "Node", "TracingState", "Value", "get_trace_graph", "tracing_state"]


class TensorType:
    """What a value of the graph is: a tensor of these sizes, or another kind of object."""

    def __init__(self, text: str, tensor: Any = None) -> None:
        self._text = text
        self._sizes = None if tensor is None else list(tensor.shape)
        self._strides = None if tensor is None else list(tensor.stride())
        self._dtype = None if tensor is None else tensor.dtype

    def sizes(self) -> list[int] | None:
        """Return the sizes of the tensor."""
        return self._sizes

    def strides(self) -> list[int] | None:
        """Return the strides of the tensor."""
        return self._strides

    def dtype(self) -> Any:
        """Return the dtype of the tensor."""
        return self._dtype

    def kind(self) -> str:
        """Return the name of the type's class."""
        return "TensorType" if self._sizes is not None else f"{self._text.capitalize()}Type"

    def __str__(self) -> str:
        return self._text


class Value:
    """An argument or a result of a node."""

    def __init__(self, node: Node, number: int, value: Any) -> None:
        self._node, self._name = node, f"{number}"
        tensor = isinstance(value, plait.Tensor)
        self._type = TensorType("Tensor" if tensor else type(value).__name__, _if(tensor, value))
        self._constant = None if tensor else value

    def node(self) -> Node:
        """Return the node whose result this is."""
        return self._node

    def isCompleteTensor(self) -> bool:  # noqa: N802 - PyTorch's name
        """Return whether this is a tensor whose sizes are known."""
        return self._type.sizes() is not None

    def type(self) -> TensorType:
        """Return the type."""
        return self._type

    def toIValue(self) -> Any:  # noqa: N802 - PyTorch's name
        """Return the object if this is a constant, else None."""
        return self._constant if self._node.kind() == "prim::Constant" else None

    def debugName(self) -> str:  # noqa: N802 - PyTorch's name
        """Return a name that no other value of the graph has."""
        return self._name


def _if(condition: bool, value: Any) -> Any:
    return value if condition else None


class Node:
    """A call of an operator."""

    def __init__(self, kind: str, inputs: list[Value], scope: str) -> None:
        self._kind, self._inputs, self._scope = kind, inputs, scope
        self._outputs: list[Value] = []

    def kind(self) -> str:
        """Return the name of the operator, such as ``aten::linear``."""
        return self._kind

    def inputs(self) -> Iterator[Value]:
        """Return the arguments."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """Return the results."""
        return iter(self._outputs)

    def inputsSize(self) -> int:  # noqa: N802 - PyTorch's name
        """Return the number of arguments."""
        return len(self._inputs)

    def outputsSize(self) -> int:  # noqa: N802 - PyTorch's name
        """Return the number of results."""
        return len(self._outputs)

    def output(self) -> Value:
        """Return the only result."""
        (result,) = self._outputs
        return result

    def scopeName(self) -> str:  # noqa: N802 - PyTorch's name
        """Return the scopes that were entered at the call, joined by "/"."""
        return self._scope


class TracingState:
    """The scopes of the calls that follow."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    def push_scope(self, name: str) -> None:
        """Enter a scope."""
        self.scopes.append(name)

    def pop_scope(self) -> None:
        """Leave the scope that was entered last."""
        self.scopes.pop()

    def current_scope(self) -> str:
        """Return the scopes that were entered, joined by "/"."""
        return "/".join(self.scopes)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.state: TracingState | None = None


_thread = _Thread()


def tracing_state() -> TracingState | None:
    """Return the state of the trace that this thread makes; None: it makes none."""
    return _thread.state


class Graph:
    """The calls of a run, in their order."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._inputs: list[Value] = []
        self._count = 0
        self._values: dict[int, tuple[Any, Value]] = {}
        self._parameters = Node("prim::Param", [], "")

    def nodes(self) -> Iterator[Node]:
        """Return the nodes, in the order of the calls."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        """Return the tensors that no node made."""
        return iter(self._inputs)

    def add(self, kind: str, arguments: list[Any], result: Any, scope: str) -> None:
        """Add a call."""
        node = Node(kind, [self._value(each, scope) for each in arguments], scope)
        self._nodes.append(node)
        for each in result if isinstance(result, (tuple, list)) else (result,):
            node._outputs.append(self._new(node, each))

    def remove_unused(self, results: Any) -> None:
        """Remove the nodes that these results do not need; writes in place stay."""
        needed: set[Value] = set()
        todo = [results]
        while todo:
            each = todo.pop()
            if isinstance(each, plait.Tensor) and id(each) in self._values:
                needed.add(self._values[id(each)][1])
            elif isinstance(each, dict):
                todo += each.values()
            elif isinstance(each, (tuple, list)):
                todo += each
        nodes = []
        for node in reversed(self._nodes):
            if node.kind().endswith("_") or not needed.isdisjoint(node.outputs()):
                nodes.append(node)
                needed.update(node.inputs())
        self._nodes = nodes[::-1]

    def _new(self, node: Node, value: Any) -> Value:
        self._count += 1
        result = Value(node, self._count, value)
        if isinstance(value, plait.Tensor):
            self._values[id(value)] = (weakref.ref(value), result)
        return result

    def _value(self, value: Any, scope: str) -> Value:
        if isinstance(value, plait.Tensor):
            entry = self._values.get(id(value))
            if entry is not None and entry[0]() is value:
                return entry[1]
            result = self._new(self._parameters, value)
            self._inputs.append(result)
            return result
        several = isinstance(value, (tuple, list))
        inputs = [self._value(each, scope) for each in value] if several else []
        node = Node("prim::ListConstruct" if several else "prim::Constant", inputs, scope)
        self._nodes.append(node)
        node._outputs.append(self._new(node, list(value) if several else value))
        return node._outputs[0]


# PyTorch's operators that have another name than the function
_NAMES = {
    "cross_entropy": "cross_entropy_loss",
    "true_divide": "div",
    "truediv": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
}
# functions that are written in Python in PyTorch: their steps are nodes
_COMPOSED = frozenset(
    (
        *("gumbel_softmax", "local_response_norm", "lp_pool1d", "lp_pool2d", "lp_pool3d"),
        *("multi_head_attention_forward", "normalize", "softsign", "tanhshrink"),
    )
)
# the order of the arguments of PyTorch's operators, where the functions have another
_ORDERS = {
    "batch_norm": "input weight bias running_mean running_var training momentum eps",
    "instance_norm": "input weight bias running_mean running_var use_input_stats momentum eps",
    "group_norm": "input num_groups weight bias eps",
    "layer_norm": "input normalized_shape weight bias eps",
    "embedding": "weight input padding_idx scale_grad_by_freq sparse",
    "dropout": "input p training",
    "softmax": "input dim dtype",
    "log_softmax": "input dim dtype",
}
_UPSAMPLED = {
    "nearest": "upsample_nearest{}d",
    "nearest-exact": "_upsample_nearest_exact{}d",
    "linear": "upsample_linear{}d",
    "bilinear": "upsample_bilinear{}d",
    "trilinear": "upsample_trilinear{}d",
    "bicubic": "upsample_bicubic{}d",
}


def _bound(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments by name, with defaults."""
    try:
        call = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return {**{f"{i}": each for i, each in enumerate(args)}, **kwargs}
    call.apply_defaults()
    return dict(call.arguments)


def _convolution(name: str, values: dict[str, Any]) -> list[Any]:
    transposed = "transpose" in name
    dims = int(name[-2])

    def spread(value: Any) -> Any:
        return [value] * dims if isinstance(value, int) else value

    numbers = [spread(values.get(each, 1)) for each in ("stride", "padding", "dilation")]
    padding = spread(values.get("output_padding", 0))
    start = [values[each] for each in ("input", "weight", "bias")]
    groups = values.get("groups", 1)
    return [*start, *numbers, transposed, padding, groups, False, False, True, True]


def _index(key: Any) -> str:
    """The name of the operator that an index is in PyTorch: that of its last step."""
    last = key[-1] if isinstance(key, tuple) and key else key
    if isinstance(last, slice):
        return "slice"
    return "unsqueeze" if last is None else "select" if isinstance(last, int) else "index"


def _call(function: Any, args: Any, kwargs: Any) -> tuple[str, list[Any]]:
    """Return the name of PyTorch's operator, and its arguments."""
    name: str = getattr(function, "__name__", "")
    if name in ("__getitem__", "__setitem__"):
        return ("index_put_" if name == "__setitem__" else _index(args[1])), list(args[:1])
    if name.startswith("conv") and name[-1] == "d":
        return "_convolution", _convolution(name, _bound(function, args, kwargs))
    if name in ("interpolate", "upsample"):
        values = _bound(function, args, kwargs)
        kind = _UPSAMPLED.get(values.get("mode", "nearest"), "upsample_nearest{}d")
        return kind.format(args[0].ndim - 2), list(values.values())
    if name.startswith("__"):
        inner = name.strip("_")
        right = inner.startswith("r") and inner[1:] in ("add", "sub", "mul", "truediv", "pow")
        in_place = inner.startswith("i") and inner[1:] in ("add", "sub", "mul", "truediv", "pow")
        inner = inner[1:] if right or in_place else inner
        operands = list(args[:2])
        if right and inner in ("truediv", "pow"):
            operands.reverse()
        return _NAMES.get(inner, inner) + ("_" if in_place else ""), operands
    if name in _ORDERS:
        values = _bound(function, args, kwargs)
        order = [values.get(each) for each in _ORDERS[name].split()]
        extra = (
            [True] if name in ("batch_norm", "instance_norm", "group_norm", "layer_norm") else []
        )
        return name, [*order, *extra]
    arguments: list[Any] = [*args, *(each for key, each in kwargs.items() if key != "inplace")]
    in_place = bool(kwargs.get("inplace"))
    if name == "einsum":
        factors = args[1] if isinstance(args[1], (tuple, list)) else args[1:]
        arguments = [args[0], list(factors), None]
    return _NAMES.get(name, name) + ("_" if in_place else ""), arguments


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(isinstance(each, plait.Tensor) for each in value)
    return isinstance(value, plait.Tensor)


class _Recorder(TorchFunctionMode):
    """Adds the calls of this thread to a graph."""

    def __init__(self, graph: Graph, state: TracingState) -> None:
        super().__init__()
        self.graph, self.state = graph, state

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _COMPOSED:
            with self:
                return _asking_functions.own(func)(*args, **kwargs)
        result = func(*args, **kwargs)
        if name not in ("__get__", "__set__", "detach") and _holds_tensors(result):
            operator, arguments = _call(func, args, kwargs)
            self.graph.add(f"aten::{operator}", arguments, result, self.state.current_scope())
        return result


def get_trace_graph(
    f: Callable[..., Any],
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> Any:
    """Call a module or a function, and return the graph of its calls and its result.

    Args:
        f: a module or a function.
        args: the arguments, a tuple or one of them.
        kwargs: the arguments by name.
        strict, _force_outplace: have no effect.
        return_inputs: return the tensors among the arguments, too.
        _return_inputs_states: the same.

    Example:
        >>> import plait, plait_torch
        >>> with plait_torch.installed():
        ...     from plait_torch._traced_graph import get_trace_graph
        ...     graph, _ = get_trace_graph(plait.nn.Linear(3, 2), (plait.ones(1, 3),))
        >>> [(node.kind(), node.output().type().sizes()) for node in graph.nodes()]
        [('aten::linear', [1, 2])]
    """
    if not isinstance(args, tuple):
        args = (args,)
    graph, state = Graph(), TracingState()
    before, _thread.state = _thread.state, state
    try:
        with _Recorder(graph, state):
            result = f(*args, **(kwargs or {}))
    finally:
        _thread.state = before
    graph.remove_unused(result)
    if return_inputs or _return_inputs_states:
        return graph, result, [each for each in args if isinstance(each, plait.Tensor)]
    return graph, result
