"""Exported functions: a file with a graph and its weights, and functions read from such files."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import inspect
import json
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

import plait_abi
import plait_autograd
import plait_core as pc
import plait_nn
from plait_func.pytree import tree_flatten, tree_unflatten
from plait_graph import _graph
from plait_graph._capture import Argument, Given, Json, Name, Recording, record, selecting
from plait_graph._compilers import new_program
from plait_graph._computation_graph import Graph
from plait_graph._differences import Recordings
from plait_graph._export_sizes import FreeRecording, below_largest, record_at_sizes
from plait_graph._memory import Memory
from plait_graph._optimizers import OptimizerNumbers
from plait_graph._parts import names_defined
from plait_graph._reach import Reach
from plait_graph._size_expressions import relation_text
from plait_graph._size_verification import verify
from plait_graph._values import strides_in_c_order
from plait_graph.passes import merge_equal_nodes, remove_dead_nodes

_KEY = "plait_graph"  # of the graph in the file's metadata


def export(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    path: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    training: bool = False,
    dynamic: Any = None,
    apart: Collection[str] = (),
    refused: Collection[str] = (),
) -> Any:
    """Write a function as a graph, with its weights, to a file that runs without Python.

    The file is one of safetensors: tensors by name, and the graph as text in the metadata under
    ``plait_graph``. `load` runs it from Python, ``plait/run.h`` from C. Its sizes are those of
    `args`, but for those that `dynamic` says are free.

    The function is called two to five times: a graph is what two calls do alike. A step of
    training therefore makes these steps, and the file has the state behind them. The graph is
    written without dead and equal nodes.

    Args:
        function: a module or a function of tensors; with ``training``, a whole step: forward,
            backward and the optimizer's step.
        args: its arguments. Tensors are inputs of the graph; the rest is a part of it.
        path: of the file. Without one the result is a `Loaded` function, which shares the weights.
        kwargs: named arguments.
        training: record with gradients. Without it the function runs under `no_grad`, and what
            it writes to (running means) belongs to the graph all the same.
        dynamic: which sizes of the arguments are free: a dict from names or positions of
            arguments to the names of their free dimensions, such as ``{"x": {0: "batch"}}``, or a
            sequence with an entry for each argument; a `Dim` in the place of a name has a range.
            The function is called with arguments of other sizes, too; tensors and optimizers are
            then as they were before these calls.
        apart: names of operators that have a decomposition: the graph has the calls that it makes.
            Results may differ in their last digits.
        refused: names of operators whose calls are errors, which a traceback shows.

    Raises:
        NotImplementedError: if a call cannot be part of a graph, or is refused.
        RuntimeError: if two calls make other operator calls, or a size cannot be free.
        TypeError: if the result has parts that are no tensors.
        ValueError: if a tensor is an argument twice.

    Example:
        >>> import os, tempfile
        >>> import plait_core as pc
        >>> from plait_graph import export, load
        >>> path = os.path.join(tempfile.mkdtemp(), "double.safetensors")
        >>> export(lambda x: x * 2, (pc.ones(3),), path)
        >>> load(path)(pc.tensor([1.0, 2.0, 3.0]))
        tensor([2., 4., 6.])
    """
    if apart or refused:
        with selecting(set(apart), set(refused)):
            return export(function, args, path, kwargs=kwargs, training=training, dynamic=dynamic)
    if pc.is_tensor(args):
        raise TypeError("export: `args` must be a tuple of arguments; got a tensor: write (x,)")
    args, named = _separate_inputs(args, dict(kwargs or {}))
    recording, numbers = _recorded(function, args, named, training)
    outputs = _output_names(recording)
    weights = _weight_names(function, recording)
    inputs = _input_names(function, args, named)
    graph = _graph_of(recording, numbers, inputs, outputs, weights)
    if dynamic:
        written = set(_graph.Program(json.dumps(graph)).written)
        base = recording, [name for name, known in weights.items() if known in written]
        try:
            free = record_at_sizes(function, args, named, training, dynamic, base)
        except RuntimeError:
            # at its largest value a size may take a way of its own, such as a slice of everything
            smaller = below_largest(function, args, named, training, dynamic)
            if smaller is None:
                raise
            return export(
                function, smaller[0], path, kwargs=smaller[1], training=training, dynamic=dynamic
            )
        graph_of = functools.partial(_graph_of, recording, numbers, inputs, outputs, weights)
        graph = graph_of(verify(free, graph_of, weights))
    used = [entry["name"] for entry in graph["weights"]]
    tensors = {weights[name]: tensor for name, tensor in recording.outside.items()}
    text = json.dumps(graph)
    program = _graph.SizedProgram(text)  # what does not run is not written
    _check_apart(set(program.written), {name: tensors[name] for name in used})
    with plait_autograd.no_grad():
        stored = [tensors[name].detach().contiguous() for name in used]
    if path is None:
        return Loaded(text, dict(zip(used, stored, strict=True)), "export")
    _graph.write_file(os.fspath(path), {_KEY: text}, used, stored)
    return None


def _separate_inputs(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments whose tensors have memory for each element, as the inputs of a graph have.

    Raises:
        ValueError: if a tensor is an argument twice.
    """
    leaves, structure = tree_flatten((args, kwargs))
    known: set[int] = set()
    for at, leaf in enumerate(leaves):
        if not isinstance(leaf, pc.Tensor):
            continue
        if id(leaf) in known:
            raise ValueError(
                "export: a tensor is an argument twice; pass a `clone()` of it, so that the graph "
                "has two inputs"
            )
        known.add(id(leaf))
        if _is_expanded(leaf):
            leaves[at] = leaf.detach().contiguous().requires_grad_(leaf.requires_grad)
    args, kwargs = tree_unflatten(leaves, structure)
    return args, kwargs


def _is_expanded(tensor: pc.Tensor) -> bool:
    return any(n > 1 and s == 0 for n, s in zip(tensor.shape, tensor.stride(), strict=True))


def _recorded(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], training: bool
) -> tuple[Recording, OptimizerNumbers]:
    recordings = Recordings("export")
    while True:
        with plait_autograd.set_grad_enabled(training):
            _, recording = record(function, args, kwargs, differentiate=False)
        numbers = OptimizerNumbers(recording)
        if recordings.agree(recording) is not None:
            break
    if numbers.computed:
        raise NotImplementedError(
            f"export: the optimizer computes {numbers.computed[0]} for each step in Python; a file "
            "has numbers that grow by the same at each step"
        )
    return recording, numbers


def _input_names(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[str]:
    """Return a name for each tensor: that of the parameter, with a place in its container."""
    target = function.forward if isinstance(function, plait_nn.Module) else function
    try:
        bound = inspect.signature(target).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {f"input{i}": value for i, value in enumerate((*args, *kwargs.values()))}
    result: list[str] = []
    for name, value in bound.items():
        tensors = [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, pc.Tensor)]
        single = len(tensors) == 1
        result += [name if single else f"{name}.{i}" for i in range(len(tensors))]
    return result


def _output_names(recording: Recording) -> list[str]:
    others = [leaf for leaf in recording.leaves if type(leaf) not in (Name, Given, Argument)]
    if others:
        other = others[0]
        raise TypeError(
            f"export: a result is {type(other).__name__}; a graph returns tensors, in containers"
        )
    n = len(recording.leaves)
    return ["output"] if n == 1 else [f"output.{i}" for i in range(n)]


def _weight_names(function: Callable[..., Any], recording: Recording) -> dict[str, str]:
    """Return names of tensors for those of the recording: as the module has them."""
    known: dict[int, str] = {}
    modules = Reach(function).modules
    inner = {id(child) for module in modules for child in module.children()}
    roots = [m for m in modules if id(m) not in inner and (m.state_dict() or m is function)]
    for i, root in enumerate(roots):
        prefix = f"{i}." if len(roots) > 1 else ""
        for name, tensor in (*root.named_parameters(), *root.named_buffers()):
            known.setdefault(id(tensor), prefix + name)
    for k, step in enumerate(recording.steps):
        kind = type(step.optimizer).__name__.lower()
        for parameter, state in step.optimizer.state.items():
            owner = known.get(id(parameter), "parameter")
            for key, value in state.items():
                if isinstance(value, pc.Tensor):
                    known.setdefault(id(value), f"{kind}.{k}.{key}.{owner}")
    taken: set[str] = set()
    return {
        name: _free_name(known.get(id(tensor), "constant"), taken)
        for name, tensor in recording.outside.items()
    }


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not in `taken`, with a number if need be, and add it."""
    result, n = name, 1
    while result in taken:
        result, n = f"{name}.{n}", n + 1
    taken.add(result)
    return result


def _graph_of(
    recording: Recording,
    numbers: OptimizerNumbers,
    input_names: list[str],
    output_names: list[str],
    weight_names: dict[str, str],
    free: FreeRecording | None = None,
) -> Json:
    results = [
        recording.inputs[leaf] if isinstance(leaf, Argument) else str(leaf)
        for leaf in recording.leaves
    ]
    inputs = list(dict.fromkeys(recording.inputs))
    graph = _simplified(
        {
            "plait_graph": 1,
            **_sizes_of(free),
            "inputs": [
                recording.types[name] if free is None else free.template.symbolic_type(name)
                for name in inputs
            ],
            "weights": [_dense(recording.types[name]) for name in recording.outside],
            "numbers": numbers.entries,
            "nodes": (recording.nodes if free is None else free.template.symbolic_nodes())[
                : recording.n_forward
            ],
            "outputs": ["%" + name for name in results],
        }
    )
    names = dict(weight_names)
    taken = {*names.values(), *(number["name"] for number in graph["numbers"])}
    # a merged node returns another value, so that names of outputs are given behind the passes
    outputs = [output[1:] for output in graph["outputs"]]
    others = sorted(names_defined(graph["nodes"]))
    olds, news = [*recording.inputs, *outputs, *others], [*input_names, *output_names, *others]
    for old, new in zip(olds, news, strict=True):
        if old not in names:
            names[old] = _free_name(new, taken)
    for key in ("inputs", "weights"):
        graph[key] = [{**entry, "name": names[entry["name"]]} for entry in graph[key]]
    graph["nodes"] = _renamed(graph["nodes"], names)
    if free is not None:
        graph["shapes"] = {names[name]: shape for name, shape in graph["shapes"].items()}
    graph["outputs"] = _renamed(graph["outputs"], names)
    return graph


def _sizes_of(free: FreeRecording | None) -> Json:
    if free is None:
        return {}
    return {
        "sizes": {name: dataclasses.asdict(size) for name, size in free.sizes.items()},
        "guards": [relation_text(guard) for guard in free.guards],
        "shapes": free.template.symbolic_shapes(),
    }


def _simplified(graph: Json) -> Json:
    """Return a graph without dead and equal nodes, and without weights that no node reads."""
    merged = merge_equal_nodes(Graph.from_json(json.dumps(graph)))
    result: Json = json.loads(remove_dead_nodes(merged).to_json())
    return result


def _dense(entry: Json) -> Json:
    """Return the entry of a weight as the file stores it: in C order."""
    return {key: value for key, value in entry.items() if key != "strides"}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str) and value.startswith("%"):
        return "%" + names.get(value[1:], value[1:])  # a number keeps its name
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if isinstance(value, dict):
        return {
            key: _renamed(item, names) if key in ("in", "out") else item
            for key, item in value.items()
        }
    return value


def _check_apart(written: set[str], tensors: Mapping[str, pc.Tensor]) -> None:
    """Refuse weights that share memory, if one of them is written to: a file has them apart."""
    spans: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        spans.setdefault(tensor.untyped_storage().data_ptr(), []).append(name)
    for names in spans.values():
        if len(names) > 1 and written.intersection(names):
            raise NotImplementedError(
                f"export: {names[0]} and {names[1]} share memory, and the function writes to it; "
                "a file would store them separately"
            )


class Loaded:
    """A function that `load` read from a file.

    Its weights are `weights`, by name; writing to them changes the function. Other texts of the
    file are `metadata`, by key.

    Args:
        text: The program as text.
        tensors: Its constants by name.
        path: The file.
        metadata: Other texts of the file; or None.

    Example:
        >>> import os, tempfile
        >>> import plait_core as pc
        >>> from plait_graph import export, load
        >>> path = os.path.join(tempfile.mkdtemp(), "sum.safetensors")
        >>> export(lambda x, y: (x + y, x - y), (pc.ones(2), pc.ones(2)), path)
        >>> load(path)(pc.ones(2), pc.ones(2))
        (tensor([2., 2.]), tensor([0., 0.]))
    """

    def __init__(
        self,
        text: str,
        tensors: Mapping[str, pc.Tensor],
        path: str,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self.text = text
        self.metadata = dict(metadata or {})
        _bring_operators(text)
        has_sizes = _graph.has_free_sizes(text)
        self._program: Any = _graph.SizedProgram(text) if has_sizes else new_program(text)
        missing = [name for name in self._program.weights if name not in tensors]
        if missing:
            raise ValueError(f"load: {path} has no tensor {missing[0]!r}, which its graph reads")
        self.weights = {name: tensors[name] for name in self._program.weights}
        for weight in json.loads(text).get("weights", []):  # a file has no devices, its graph has
            name = weight["name"]
            self.weights[name] = self.weights[name].to(weight.get("device", "cpu"))
        self._program.bind(list(self.weights.values()))

    @property
    def graph(self) -> Graph:
        """The graph of the file; changes to it do not change the function.

        Example:
            >>> import os, tempfile
            >>> import plait_core as pc
            >>> from plait_graph import export, load
            >>> path = os.path.join(tempfile.mkdtemp(), "relu.safetensors")
            >>> export(lambda x: (x + 1).relu(), (pc.ones(2),), path)
            >>> [node.op for node in load(path).graph.nodes]
            ['add', 'relu']
        """
        return Graph.from_json(self.text)

    @property
    def compiler(self) -> str:
        """The name of the compiler whose program it is: plait-graph's own, or another one.

        Example:
            >>> import plait_core as pc
            >>> from plait_graph import export
            >>> export(lambda x: x + 1, (pc.ones(1),)).compiler
            'plait_graph'
        """
        return str(getattr(self._program, "compiler", "plait_graph"))

    @property
    def written(self) -> list[str]:
        """The names of the weights to which a call writes, such as running means.

        Example:
            >>> import plait_core as pc
            >>> from plait_graph import export
            >>> count = pc.zeros(1)
            >>> export(lambda x: count.add_(x), (pc.ones(1),)).written
            ['constant']
        """
        return list(self._program.written)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the function as it is now to a file: graph, weights, numbers and metadata.

        Args:
            path: The file.

        Example:
            >>> import os, tempfile
            >>> import plait_core as pc
            >>> from plait_graph import export, load
            >>> path = os.path.join(tempfile.mkdtemp(), "half.safetensors")
            >>> half = export(lambda x: x / 2, (pc.ones(2),))
            >>> half.metadata["author"] = "me"
            >>> half.save(path)
            >>> load(path)(pc.tensor([4.0, 6.0])), load(path).metadata
            (tensor([2., 3.]), {'author': 'me'})
        """
        graph, values = json.loads(self.text), self._program.numbers
        for entry in graph.get("numbers", ()):
            entry["value"] = values[entry["name"]]
        texts = {**self.metadata, _KEY: json.dumps(graph)}
        tensors = list(self.weights.values())
        _graph.write_file(os.fspath(path), texts, list(self.weights), tensors)

    def __call__(self, *inputs: pc.Tensor) -> Any:
        try:
            outputs = self._program.run(inputs)
        except ValueError:
            copies = self._in_layout(inputs)
            if copies is None:
                raise
            outputs = self._program.run(copies)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _in_layout(self, inputs: tuple[pc.Tensor, ...]) -> tuple[pc.Tensor, ...] | None:
        """Return copies of inputs with the strides of the graph; None where none is needed, or the
        graph writes to one.
        """
        graph = self.graph
        if len(inputs) != len(graph.inputs):
            return None
        memory = Memory(graph)
        result = list(inputs)
        for at, (value, tensor) in enumerate(zip(graph.inputs, inputs, strict=True)):
            strides = value.strides or strides_in_c_order(tensor.shape)
            if tensor.dim() != len(strides) or tensor.stride() == strides:
                continue
            numbers = [n for n in strides if isinstance(n, int)]
            if memory.of(value) in memory.written or len(numbers) < len(strides):
                return None
            with plait_autograd.no_grad():
                copy = pc.empty_strided(
                    tensor.shape, numbers, dtype=tensor.dtype, device=tensor.device
                )
                result[at] = copy.copy_(tensor)
        return None if all(a is b for a, b in zip(result, inputs, strict=True)) else tuple(result)


def _bring_operators(text: str) -> None:
    """Load the operators of optimizers, if a graph has one and the package is installed."""
    if '_step"' in text and importlib.util.find_spec("plait_optim"):
        plait_abi.load(plait_abi.paths("plait_optim")["libplait_optim.so"])


def load(path: str | os.PathLike[str]) -> Loaded:
    """Read a function that `export` wrote. The file is data: nothing of it is executed.

    Args:
        path: The file.

    Raises:
        ValueError: if the file is damaged, or has no graph that this version can run.

    Example:
        >>> import os, tempfile
        >>> import plait_core as pc
        >>> from plait_graph import export, load
        >>> path = os.path.join(tempfile.mkdtemp(), "negative.safetensors")
        >>> export(lambda x: -x, (pc.ones(2),), path)
        >>> load(path)(pc.tensor([1.0, -2.0]))
        tensor([-1.,  2.])
    """
    name = os.fspath(path)
    texts, tensors = _graph.read_file(name)
    if _KEY not in texts:
        raise ValueError(f"load: {name} has no graph; `plait.load` reads its tensors")
    try:
        return Loaded(texts.pop(_KEY), tensors, name, texts)
    except (IndexError, TypeError, RuntimeError) as error:  # of an operator, for a node's arguments
        if isinstance(error, ValueError) and not isinstance(error, IndexError):
            raise
        raise ValueError(f"load: {name} has a node that cannot run: {error}") from error
