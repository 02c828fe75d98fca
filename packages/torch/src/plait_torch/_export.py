"""`torch.export`: a module as a graph, which plait-graph records; its files are plait's own."""

from __future__ import annotations

import enum
import functools
import inspect
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

import plait
from plait.func.pytree import TreeSpec, tree_flatten, tree_structure, tree_unflatten
from plait_torch._compiler import exporting
from plait_torch._pytree import treespec_dumps, treespec_loads

__all__ = [
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "TensorArgument",
    "export",
    "load",
    "save",
]

_KEY = "torch.export"  # of the interface in a file's metadata
_EXTRA_KEY = "torch.export.extra_files"  # of a dict of texts by name
_NO_STATE = "non-persistent buffer"


class InputKind(enum.Enum):
    """What an input of a graph is."""

    USER_INPUT = 1
    PARAMETER = 2
    BUFFER = 3
    CONSTANT_TENSOR = 4


class OutputKind(enum.Enum):
    """What an output of a graph is."""

    USER_OUTPUT = 1
    BUFFER_MUTATION = 3


@dataclass(frozen=True)
class TensorArgument:
    """A tensor of a graph, by name."""

    name: str


@dataclass(frozen=True)
class InputSpec:
    """An input of a graph: its kind, its name, and the name of the parameter or buffer."""

    kind: InputKind
    arg: TensorArgument
    target: str | None
    persistent: bool | None = None


@dataclass(frozen=True)
class OutputSpec:
    """An output of a graph: its kind, its name, and the name of the buffer that it changes."""

    kind: OutputKind
    arg: TensorArgument
    target: str | None


@dataclass(frozen=True)
class ExportGraphSignature:
    """Names of what a graph reads and gives: of parameters and buffers those of the module.

    Example:
        >>> import plait
        >>> from plait_torch._export import export
        >>> signature = export(plait.nn.Linear(2, 1), (plait.ones(3, 2),)).graph_signature
        >>> signature.user_inputs, signature.parameters, signature.user_outputs
        (('input',), ('weight', 'bias'), ('output',))
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, kind: InputKind) -> dict[str, str]:
        specs = (spec for spec in self.input_specs if spec.kind is kind)
        return {spec.arg.name: spec.target or spec.arg.name for spec in specs}

    def _outputs(self, kind: OutputKind) -> dict[str, str]:
        specs = (spec for spec in self.output_specs if spec.kind is kind)
        return {spec.arg.name: spec.target or spec.arg.name for spec in specs}

    @property
    def user_inputs(self) -> tuple[str, ...]:
        """The names of the tensors that a call gives."""
        return tuple(self._inputs(InputKind.USER_INPUT))

    @property
    def user_outputs(self) -> tuple[str, ...]:
        """The names of the results."""
        return tuple(self._outputs(OutputKind.USER_OUTPUT))

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """The module's name of each input that is a parameter."""
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """The module's name of each input that is a buffer."""
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """The name of each constant."""
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """The module's name of each buffer that the graph changes."""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The module's names of parameters."""
        return tuple(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """The module's names of buffers."""
        return tuple(self.inputs_to_buffers.values())

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The module's names of buffers that no `state_dict` has."""
        return tuple(
            spec.target or ""
            for spec in self.input_specs
            if spec.kind is InputKind.BUFFER and not spec.persistent
        )

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of constants."""
        return tuple(self.inputs_to_lifted_tensor_constants.values())


class CallSpec(NamedTuple):
    """The containers of a program's arguments, ``(args, kwargs)``, and of its result."""

    in_spec: TreeSpec
    out_spec: TreeSpec


class Dim:
    """The size of a dimension that stays free, for ``dynamic_shapes``.

    Args:
        name: equal names are equal sizes.
        min, max: its range.
    """

    class _Hint(enum.Enum):
        AUTO = "AUTO"
        DYNAMIC = "DYNAMIC"
        STATIC = "STATIC"

    AUTO, DYNAMIC, STATIC = _Hint.AUTO, _Hint.DYNAMIC, _Hint.STATIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise ValueError(f"Dim: `name` must be an identifier, got {name!r}")
        self.__name__, self.min, self.max = name, min or 0, max

    def __repr__(self) -> str:
        return f"Dim({self.__name__!r}, min={self.min}, max={self.max})"


def _graphs() -> ModuleType:
    """Import the package that records graphs."""
    try:
        import plait_graph
    except ModuleNotFoundError as error:
        if error.name != "plait_graph":
            raise
        raise ModuleNotFoundError(
            "torch.export: the package plait-graph is not installed (pip install plait-graph)",
            name="plait_graph",
        ) from None
    return plait_graph


@dataclass
class _Interface:
    """How calls of a program look: containers, and what is no tensor."""

    inputs: TreeSpec  # of (args, kwargs)
    outputs: TreeSpec
    others: list[tuple[int, Any]]  # leaves of the arguments that are no tensors, with their places
    kinds: dict[str, str]  # "parameter", "buffer" or _NO_STATE by the module's name
    constants: list[tuple[int, Any]] = field(default_factory=list)  # as `others`, of the results

    def to_json(self) -> str:
        specs = {key: treespec_dumps(getattr(self, key)) for key in ("inputs", "outputs")}
        return json.dumps(
            {**specs, "others": self.others, "kinds": self.kinds, "constants": self.constants}
        )

    @classmethod
    def from_json(cls, text: str) -> _Interface:
        form = json.loads(text)
        inputs, outputs = (treespec_loads(form[key]) for key in ("inputs", "outputs"))
        others = [(int(place), value) for place, value in form["others"]]
        kinds = {str(name): str(kind) for name, kind in form["kinds"].items()}
        constants = [(int(place), value) for place, value in form.get("constants", [])]
        if any(not 0 <= place < inputs.num_leaves for place, _ in others):
            raise ValueError("there is no such argument")
        if any(not 0 <= place < outputs.num_leaves for place, _ in constants):
            raise ValueError("there is no such result")
        return cls(inputs, outputs, others, kinds, constants)

    @classmethod
    def of_tensors(cls, n_inputs: int, n_outputs: int) -> _Interface:
        """Return that of a function of tensors, for a file that `torch.export` did not write."""
        result: Any = 0 if n_outputs == 1 else (0,) * n_outputs
        inputs = tree_structure(((0,) * n_inputs, {}))
        return cls(inputs, tree_structure(result), [], {})

    def result(self, tensors: Sequence[Any]) -> Any:
        """Return the result of a call, whose tensors are given."""
        leaves = list(tensors)
        for place, value in sorted(self.constants, key=lambda constant: constant[0]):
            leaves.insert(place, value)
        return tree_unflatten(leaves, self.outputs)

    def tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the tensors of a call; the rest must be that of the example."""
        leaves, structure = tree_flatten((args, kwargs))
        if structure != self.inputs:
            raise ValueError(
                f"ExportedProgram: the arguments must be {self.inputs}, as in the example; "
                f"got {structure}"
            )
        others = dict(self.others)
        for place, value in self.others:
            if leaves[place] != value or type(leaves[place]) is not type(value):
                raise ValueError(
                    f"ExportedProgram: the argument {place} was {value!r} in the example, which is "
                    f"a part of the graph; got {leaves[place]!r}"
                )
        return [leaf for place, leaf in enumerate(leaves) if place not in others]


class ExportedProgram:
    """A graph with its weights: what `export` returns.

    Attributes:
        graph: of `plait_graph.Graph`; it prints one line for each operator call.
        graph_signature: the names of what it reads and gives.
        state_dict: the parameters and persistent buffers that it reads, by the module's name.
        constants: other tensors that it reads, also buffers that are not persistent.
        call_spec: the containers of arguments and results.
        example_inputs: the arguments and named arguments; None for a program from a file.

    Example:
        >>> import plait
        >>> from plait_torch._export import export
        >>> program = export(plait.nn.ReLU(), (plait.ones(2),))
        >>> program.module()(plait.tensor([-1.0, 2.0]))
        tensor([0., 2.])
        >>> print(program.graph)
        inputs   %input float32[2]
        %output = relu(%input)
        outputs  %output
    """

    def __init__(self, run: Any, interface: _Interface, example_inputs: Any = None) -> None:
        self._run, self._interface = run, interface
        self.example_inputs = example_inputs
        self.graph = run.graph
        kinds = interface.kinds
        self.state_dict = {
            name: run.weights[name]
            for name, kind in kinds.items()
            if name in run.weights and kind != _NO_STATE
        }
        self.constants = {
            name: each for name, each in run.weights.items() if name not in self.state_dict
        }
        self.call_spec = CallSpec(interface.inputs, interface.outputs)
        self.range_constraints: dict[Any, Any] = {}
        self.graph_signature = _signature(run, kinds)

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """The tensors of `constants`, an older name of it."""
        return self.constants

    def module(self, check_guards: bool = True) -> plait.nn.Module:
        """Return a module that runs the graph, with the parameters and buffers of the program.

        It can be trained: while gradients are recorded its operators are called one by one.
        """
        return _Unlifted(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(args, kwargs, None)

    def _call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], weights: Mapping[str, Any] | None
    ) -> Any:
        tensors = self._interface.tensors(args, kwargs)
        if weights is None:
            result = self._run(*tensors)
            results = [result] if isinstance(result, plait.Tensor) else list(result)
        else:
            from plait_graph.interpreter import run_graph

            if not self.graph.sizes:
                for value, tensor in zip(self.graph.inputs, tensors, strict=True):
                    _check_input(value, tensor)
            results = run_graph(self.graph, tensors, {**self.constants, **weights})
        return self._interface.result(results)

    def run_decompositions(self, decomp_table: Any = None) -> ExportedProgram:
        """Return the program: its operators are those that kernels compute."""
        return self

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield the parameters that the graph reads."""
        names = self.graph_signature.parameters
        yield from ((name, self.state_dict[name]) for name in names)

    def parameters(self) -> Iterator[Any]:
        """Yield the parameters that the graph reads."""
        yield from (each for _, each in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Yield the buffers that the graph reads."""
        yield from ((name, self._run.weights[name]) for name in self.graph_signature.buffers)

    def buffers(self) -> Iterator[Any]:
        """Yield the buffers that the graph reads."""
        yield from (each for _, each in self.named_buffers())

    @functools.cached_property
    def graph_module(self) -> Any:
        """The graph as a `torch.fx.GraphModule`, whose nodes call ``torch.ops.aten``.

        It gets parameters, buffers, constants and inputs in the order of `graph_signature`. With
        free sizes, branches or loops it raises NotImplementedError.
        """
        from plait_torch._exported_graph import graph_module_of

        return graph_module_of(self)

    def __str__(self) -> str:
        return f"ExportedProgram:\n{self.graph}\nGraph signature: {self.graph_signature}"


def _check_input(value: Any, tensor: Any) -> None:
    if tuple(tensor.shape) != value.shape:
        raise ValueError(
            f"ExportedProgram: the input {value.name} is of shape {tuple(tensor.shape)}; the graph "
            f"is for {value.shape}. `dynamic_shapes` of torch.export.export leaves sizes free"
        )


class _Unlifted(plait.nn.Module):
    """The module of a program."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        self.__dict__["_program"] = program
        kinds, weights = program._interface.kinds, program._run.weights
        self._names = [name for name in kinds if name in weights]
        for name in self._names:
            *parts, last = name.split(".")
            owner: plait.nn.Module = self
            for part in parts:
                if part not in owner._modules:
                    owner.add_module(part, plait.nn.Module())
                inner = owner._modules[part]
                assert inner is not None
                owner = inner
            if kinds[name] == "parameter":
                owner.register_parameter(last, plait.nn.Parameter(weights[name]))
            else:
                owner.register_buffer(last, weights[name], persistent=kinds[name] != _NO_STATE)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        program: ExportedProgram = self.__dict__["_program"]
        own = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        weights = {name: own[name] for name in self._names}
        same = all(
            each.data_ptr() == program._run.weights[name].data_ptr()
            and each.dtype == program._run.weights[name].dtype
            for name, each in weights.items()
        )
        records = plait.is_grad_enabled() and any(
            leaf.requires_grad
            for leaf in (*weights.values(), *tree_flatten((args, kwargs))[0])
            if isinstance(leaf, plait.Tensor)
        )
        return program._call(args, kwargs, weights if records or not same else None)


def _signature(run: Any, kinds: Mapping[str, str]) -> ExportGraphSignature:
    graph, inputs = run.graph, []
    names = [name for name in kinds if name in run.weights]
    for name in (*names, *(name for name in run.weights if name not in kinds)):
        kind, prefix = {
            "parameter": (InputKind.PARAMETER, "p_"),
            "buffer": (InputKind.BUFFER, "b_"),
            _NO_STATE: (InputKind.BUFFER, "b_"),
        }.get(kinds.get(name, ""), (InputKind.CONSTANT_TENSOR, "c_"))
        argument = TensorArgument(prefix + name.replace(".", "_"))
        persistent = kinds[name] != _NO_STATE if kind is InputKind.BUFFER else None
        inputs.append(InputSpec(kind, argument, name, persistent))
    for value in graph.inputs:
        inputs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(value.name), None))
    outputs = [
        OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(name), name) for name in run.written
    ]
    for value in graph.outputs:
        outputs.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(value.name), None))
    return ExportGraphSignature(inputs, outputs)


def export(
    mod: plait.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: Sequence[str] = (),
    **options: Any,
) -> ExportedProgram:
    """Record a module as a graph, by `plait_graph.export`: see there what a graph may contain.

    The module is called two to four times, without gradients, in the mode that it is in.

    Args:
        mod: the module, whose parameters and buffers the program shares.
        args, kwargs: the arguments of an example call. Numbers, strings and None are parts of the
            graph, as they are among the results.
        dynamic_shapes: which sizes stay free; by name of the argument, or as the arguments are.
        strict, preserve_module_call_signature, options: have no effect.

    Raises:
        ModuleNotFoundError: without the package plait-graph.
        NotImplementedError: if a call cannot be part of a graph.

    Example:
        >>> import plait
        >>> from plait_torch._export import export
        >>> program = export(plait.nn.Linear(2, 1), (plait.ones(3, 2),))
        >>> list(program.state_dict)
        ['weight', 'bias']
    """
    if not isinstance(mod, plait.nn.Module):
        raise ValueError(
            "Expected `mod` to be an instance of `torch.nn.Module`, got " + type(mod).__name__
        )
    if not isinstance(args, tuple):
        raise TypeError(f"torch.export.export: `args` must be a tuple, got {type(args).__name__}")
    named = dict(kwargs or {})
    leaves, structure = tree_flatten((args, named))
    tensors = [leaf for leaf in leaves if isinstance(leaf, plait.Tensor)]
    if len({id(tensor) for tensor in tensors}) < len(tensors):
        raise ValueError(
            "torch.export.export: a tensor is an argument twice; pass a `clone()` of it, so that "
            "the graph has two inputs"
        )
    graphs = _graphs()
    results: list[tuple[TreeSpec, list[tuple[int, Any]]]] = []

    def tensors_of(module: Any, given: Any, result: Any) -> list[Any]:
        leaves, structure = tree_flatten(result)
        constants = [
            (place, int(leaf) if type(leaf) is not bool and isinstance(leaf, int) else leaf)
            for place, leaf in enumerate(leaves)
            if not isinstance(leaf, plait.Tensor)
        ]
        results.append((structure, constants))
        return [leaf for leaf in leaves if isinstance(leaf, plait.Tensor)]

    handle = mod.register_forward_hook(tensors_of)
    exporting.now = True
    try:
        run = graphs.export(mod, args, kwargs=named, **free_sizes(graphs, dynamic_shapes))
    finally:
        exporting.now = False
        handle.remove()
    kinds = {name: "parameter" for name, _ in mod.named_parameters()}
    for name, _ in mod.named_buffers():
        owner, _, last = name.rpartition(".")
        is_transient = last in mod.get_submodule(owner)._non_persistent_buffers_set
        kinds[name] = _NO_STATE if is_transient else "buffer"
    others = [
        (place, leaf) for place, leaf in enumerate(leaves) if not isinstance(leaf, plait.Tensor)
    ]
    read = {name: kind for name, kind in kinds.items() if name in run.weights}
    outputs, constants = results[0]
    interface = _Interface(structure, outputs, others, read, constants)
    return ExportedProgram(run, interface, (args, named))


def free_sizes(graphs: ModuleType, shapes: Any) -> dict[str, Any]:
    """Return the argument for `plait_graph.export` that leaves sizes free."""
    names: list[str] = []  # of all free dimensions

    def plain(spec: Any) -> Any:
        if isinstance(spec, Mapping):
            return {key: plain(each) for key, each in spec.items()}
        if isinstance(spec, (list, tuple)):
            return [plain(each) for each in spec]
        if spec is None or spec is Dim.STATIC or isinstance(spec, int):
            return None
        names.append(spec.__name__ if isinstance(spec, Dim) else f"s{len(names)}")
        if "dynamic" not in inspect.signature(graphs.export).parameters:
            raise NotImplementedError(
                "torch.export.export: `dynamic_shapes`: this version of plait-graph has graphs of "
                "fixed sizes; export a graph for each size"
            )
        if isinstance(spec, Dim):
            limits = {"min": spec.min or None, "max": spec.max}
            given = {key: value for key, value in limits.items() if value is not None}
            return graphs.Dim(spec.__name__, **given)
        if spec in (Dim.AUTO, Dim.DYNAMIC):
            return graphs.Dim(names[-1])
        raise TypeError(
            f"torch.export.export: `dynamic_shapes` has Dim, None or an int, got {spec!r}"
        )

    result = plain(shapes)
    return {"dynamic": result} if names else {}


def save(
    ep: ExportedProgram,
    f: str | os.PathLike[str] | io.IOBase,
    *,
    extra_files: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Write a program to a file, or to an object with ``write``.

    The file is one of safetensors, as `plait_graph.export` writes it, and not PyTorch's archive:
    PyTorch cannot read it; ``plait/run.h`` runs it from C.

    Args:
        ep: the program.
        f: the path, or the object.
        extra_files: texts by name, or their bytes in UTF-8, which `load` gives back.
        options: have no effect.

    Raises:
        TypeError: if a part of the arguments cannot be written as text.

    Example:
        >>> import os, tempfile
        >>> import plait
        >>> from plait_torch._export import export, load, save
        >>> path = os.path.join(tempfile.mkdtemp(), "relu.safetensors")
        >>> save(export(plait.nn.ReLU(), (plait.ones(2),)), path)
        >>> load(path).module()(plait.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    ep._run.metadata[_KEY] = ep._interface.to_json()
    texts = {
        str(name): text.decode() if isinstance(text, bytes) else str(text)
        for name, text in (extra_files or {}).items()
    }
    ep._run.metadata.pop(_EXTRA_KEY, None)
    if texts:
        ep._run.metadata[_EXTRA_KEY] = json.dumps(texts)
    if isinstance(f, (str, os.PathLike)):
        ep._run.save(f)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program")
        ep._run.save(path)
        with open(path, "rb") as file:
            f.write(file.read())


def load(
    f: str | os.PathLike[str] | io.IOBase,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: Any = None,
) -> ExportedProgram:
    """Read a program that `save` or `plait_graph.export` wrote. Nothing of the file is executed.

    Args:
        f: the path, or an object with ``read``.
        extra_files: a dict whose keys get the texts that `save` got under these names.
        expected_opset_version: has no effect.

    Raises:
        RuntimeError: if the file has no text of such a name.
        ValueError: if the file is damaged, has no graph, or is an archive of PyTorch (``.pt2``).
    """
    graphs = _graphs()
    if isinstance(f, (str, os.PathLike)):
        program = _loaded(graphs.load, os.fspath(f))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            with open(path, "wb") as file:
                file.write(f.read())
            program = _loaded(graphs.load, path)
    if extra_files:
        texts = json.loads(program._run.metadata.get(_EXTRA_KEY, "{}"))
        for name in extra_files:
            if name not in texts:
                raise RuntimeError(f"torch.export.load: the file has no extra file {name!r}")
            extra_files[name] = texts[name]
    return program


def _loaded(read: Callable[[str], Any], path: str) -> ExportedProgram:
    with open(path, "rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise ValueError(
                f"torch.export.load: {path} is an archive of PyTorch (.pt2), which plait does not "
                "read; export the module again under plait: its files are of safetensors"
            )
    run = read(path)
    text = run.metadata.get(_KEY)
    if text is None:
        graph = run.graph
        interface = _Interface.of_tensors(len(graph.inputs), len(graph.outputs))
    else:
        try:
            interface = _Interface.from_json(text)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"torch.export.load: {path}: {_KEY} is damaged: {error}") from error
    return ExportedProgram(run, interface)
