"""Compiled functions: recorded once, and then run without Python."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import plait_autograd
import plait_core as pc
import plait_nn
from plait_func.pytree import LeafSpec, tree_flatten, tree_unflatten
from plait_graph import _graph
from plait_graph._capture import Json, Name, Recording, record
from plait_graph._differences import difference
from plait_graph._optimizers import OptimizerNumbers

F = TypeVar("F", bound=Callable[..., Any])
_MOST_RECORDINGS = 4  # of one key, until two of them agree


class _Part:
    """A part of a recording that can run: its graph, with its weights."""

    def __init__(
        self,
        recording: Recording,
        nodes: list[Json],
        inputs: list[str],
        outputs: list[str],
        numbers: list[Json],
    ) -> None:
        used = names_in(nodes) | set(outputs)
        given = set(inputs)
        weights = [name for name in recording.outside if name in used and name not in given]
        self.tensors = [recording.outside[name] for name in weights]
        self.graph: Json = {
            "plait_graph": 1,
            "inputs": [recording.types[name] for name in inputs],
            "weights": [recording.types[name] for name in weights],
            "numbers": numbers,
            "nodes": nodes,
            "outputs": ["%" + name for name in outputs],
        }
        self.program = _graph.Program(json.dumps(self.graph))
        self.program.bind(self.tensors)


def names_in(nodes: list[Json]) -> set[str]:
    result: set[str] = set()

    def add(value: Any) -> None:
        if isinstance(value, str):
            result.add(value[1:])
        elif isinstance(value, list):
            for item in value:
                add(item)

    for node in nodes:
        add(node["in"])
        add(node["out"])
    return result


class _Frozen:
    """What is known of calls with one key: recordings, and then programs."""

    def __init__(self, function: Callable[..., Any], modules: list[plait_nn.Module]) -> None:
        self._function, self._modules = function, modules
        self._lock = threading.RLock()
        self._before: Recording | None = None
        self._count = 0
        self._forward: _Part | None = None

    def call(self, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        with self._lock:
            if self._forward is not None and not self._guard.entries_hold():
                self._count, self._before = 0, None
                self._forward = None
            if self._forward is None or not self._holds():
                return self._record(args, kwargs)
            tensors = [leaf for leaf in leaves if isinstance(leaf, pc.Tensor)]
            return self._run([tensors[i] for i in self._positions])

    def guard_for(self, args: tuple[Any, ...]) -> Any:
        """Return what tells whether `args` may go to `call_again`; None if they may not."""
        with self._lock:
            if self._forward is None or not all(isinstance(each, pc.Tensor) for each in args):
                return None
            return _graph.Guard(args, self._entries)

    def call_again(self, args: tuple[Any, ...]) -> Any:
        """Run for arguments for which the guard of `guard_for` holds."""
        with self._lock:
            if self._forward is None or not self._holds():
                return self._record(args, {})
            return self._run([args[i] for i in self._positions])

    def _record(self, args: Any, kwargs: Any) -> Any:
        self._forward = None
        result, recording = record(
            self._function, args, kwargs, differentiate=plait_autograd.is_grad_enabled()
        )
        numbers = OptimizerNumbers(recording)
        before, self._before = self._before, recording
        self._count += 1
        if before is None:
            return result
        problem = difference(before, recording)
        if problem is None:
            self._build(recording, numbers)
        elif self._count >= _MOST_RECORDINGS:
            raise RuntimeError(f"compile: the function cannot be frozen: {problem}")
        return result

    def _build(self, recording: Recording, numbers: OptimizerNumbers) -> None:
        self._recording, self._numbers = recording, numbers
        names = list(dict.fromkeys(recording.inputs))
        self._positions = [recording.inputs.index(name) for name in names]
        results = [str(leaf) for leaf in recording.leaves if isinstance(leaf, Name)]
        made = {name for name in recording.types if name not in recording.outside}
        # a gradient that the function made anew is a result; one that it added to is a weight
        self._new_grads = {
            tensor: grad for tensor, grad in recording.grads.items() if grad in made - set(names)
        }
        self._old_grads = {
            tensor: grad for tensor, grad in recording.grads.items() if grad in recording.outside
        }
        nodes = recording.nodes[: recording.n_forward]
        later = recording.nodes[recording.n_forward :]
        tangents = [name for name in recording.tangents if name]
        local = set(recording.outside) | _names_defined(later)
        self._saved = sorted((names_in(later) | set(recording.gradients.values())) - local)
        self._forward_names = names
        outputs = [*results, *self._new_grads.values(), *self._saved]
        self._n_results = len(results)
        self._is_tensor = isinstance(recording.structure, LeafSpec) and len(results) == 1
        part = _Part(recording, nodes, names, outputs, numbers.entries)
        self._backward: _Part | None = None
        if recording.gradients:
            gradients = list(recording.gradients.values())
            self._backward = _Part(recording, later, [*self._saved, *tangents], gradients, [])
        self._entries = _entries_of(self._modules, list(recording.outside.values()))
        self._guard = _graph.Guard((), self._entries)
        self._forward = part

    def _holds(self) -> bool:
        """Return whether gradients that the program adds to are still those of their tensors."""
        outside = self._recording.outside
        for name, grad in self._old_grads.items():
            now = outside[name].grad
            if now is None or now.data_ptr() != outside[grad].data_ptr():
                return False
        return True

    def _run(self, inputs: list[pc.Tensor]) -> Any:
        assert self._forward is not None
        self._numbers.put(self._forward.program)
        if self._backward is None:
            outputs = self._forward.program.run(inputs)
        else:
            outputs = self._run_recorded(inputs)
        if self._new_grads:
            grads = outputs[self._n_results :]
            for name, grad in zip(self._new_grads, grads, strict=False):
                self._recording.outside[name].grad = grad
        self._numbers.count()
        if self._is_tensor:
            return outputs[0]
        rest = iter(outputs)
        leaves = [next(rest) if isinstance(leaf, Name) else leaf for leaf in self._recording.leaves]
        return tree_unflatten(leaves, self._recording.structure)


    def _run_recorded(self, inputs: list[pc.Tensor]) -> list[pc.Tensor]:
        """Run as one node of the engine, whose derivative is the program of the backward pass."""
        names = dict(zip(self._forward_names, inputs, strict=True))
        sources = [
            names[name] if name in names else self._recording.outside[name]
            for name in self._recording.gradients
        ]
        return list(_Node.apply(self, inputs, *sources))


class _Node(plait_autograd.Function):
    @staticmethod
    def forward(ctx: Any, frozen: _Frozen, inputs: list[pc.Tensor], *sources: pc.Tensor) -> Any:
        assert frozen._forward is not None
        outputs = frozen._forward.program.run(inputs)
        n = frozen._n_results
        results, saved = outputs[:n], outputs[len(outputs) - len(frozen._saved) :]
        ctx.frozen, ctx.inputs = frozen, inputs
        ctx.saved = saved  # values of the program that nobody else has
        ctx.save_for_backward(*sources)  # a write to one of them is an error of backward
        given = zip(results, frozen._recording.tangents, strict=True)
        ctx.mark_non_differentiable(*[result for result, name in given if name is None])
        ctx.set_materialize_grads(True)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *tangents: pc.Tensor) -> Any:
        frozen = ctx.frozen
        ctx.saved_tensors  # noqa: B018 - raises if one was written to
        if plait_autograd.is_grad_enabled():
            raise NotImplementedError(
                "compile: derivatives of derivatives are not compiled; call the function itself"
            )
        given = [
            tangent
            for tangent, name in zip(tangents, frozen._recording.tangents, strict=True)
            if name is not None
        ]
        return (None, None, *frozen._backward.program.run([*ctx.saved, *given]))


def _entries_of(modules: list[plait_nn.Module], tensors: list[pc.Tensor]) -> list[Any]:
    """Return what modules must still have for a program to be theirs: modes and tensors."""
    read = {id(tensor) for tensor in tensors}
    result: list[Any] = []
    for module in modules:
        result.append((module.__dict__, "training", module.training))
        for entries in (module._parameters, module._buffers):
            result += [(entries, name, t) for name, t in entries.items() if id(t) in read]
    return result


def _names_defined(nodes: list[Json]) -> set[str]:
    return names_in([{"in": [], "out": node["out"]} for node in nodes])


class Compiled:
    """A function that runs without Python where it can: what `compile` returns.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import compile
        >>> square = compile(lambda x: x * x + 1, frozen=True)
        >>> [square(pc.tensor([2.0])).item() for _ in range(3)]
        [5.0, 5.0, 5.0]
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._orig_mod = function
        self._entries: dict[Any, _Frozen] = {}
        self._modules = modules_of(function)
        self._last: tuple[Any, _Frozen] | None = None
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        last = self._last
        if last is not None and not kwargs and last[0].holds(args):
            return last[1].call_again(args)
        leaves, structure = tree_flatten((args, kwargs))
        key = (str(structure), _leaf_keys(leaves), self._modes())
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries.setdefault(key, _Frozen(self._orig_mod, self._modules))
        result = entry.call(args, kwargs, leaves)
        guard = None if kwargs else entry.guard_for(args)
        self._last = None if guard is None else (guard, entry)
        return result

    def _modes(self) -> tuple[Any, ...]:
        training = tuple(module.training for module in self._modules)
        return (plait_autograd.is_grad_enabled(), _graph.modes(), pc.get_default_dtype(), training)


def _leaf_keys(leaves: list[Any]) -> tuple[Any, ...]:
    keys: list[Any] = []
    first: dict[int, int] = {}
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, pc.Tensor):
            same = first.setdefault(id(leaf), i)
            shape, strides = tuple(leaf.shape), leaf.stride()
            keys.append((same, leaf.dtype, shape, strides, leaf.device, leaf.requires_grad))
        else:
            try:
                hash(leaf)
            except TypeError:
                raise TypeError(
                    f"compile: an argument of the type {type(leaf).__name__} cannot be compared "
                    "with that of another call; pass tensors, numbers, strings, or containers of "
                    "them"
                ) from None
            keys.append((type(leaf), leaf))
    return tuple(keys)


def modules_of(function: Any) -> list[plait_nn.Module]:
    """Return the modules that a function is, or reads: bound, in its closure, or global."""
    found: list[Any] = [function, getattr(function, "__self__", None)]
    inner = getattr(function, "__func__", function)
    for cell in getattr(inner, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            pass  # it has no value yet
    code, space = getattr(inner, "__code__", None), getattr(inner, "__globals__", {})
    found += [space[name] for name in getattr(code, "co_names", ()) if name in space]
    result: dict[int, plait_nn.Module] = {}
    for each in found:
        if isinstance(each, plait_nn.Module):
            result.update({id(module): module for module in each.modules()})
    return list(result.values())


def compile(function: Callable[..., Any] | None = None, *, frozen: bool = False) -> Any:
    """Return a function that is recorded by its first calls, and then runs without Python.

    Calls with arguments of other shapes, dtypes, devices or values, or in other modes, are
    recorded anew. The first two calls of each kind are those of the function itself, and are
    compared: a graph is the same at each call.

    Args:
        function: a function of tensors, a module, or a whole step of training.
        frozen: must be True: Python does not run in later calls, so that what it does besides
            calls of operators, such as printing or counting, happens in the first calls alone.

    Raises:
        NotImplementedError: without ``frozen=True``, or if a call cannot be part of a graph.
        RuntimeError: if calls with the same arguments make other operator calls.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import compile
        >>> @compile(frozen=True)
        ... def norm(x):
        ...     return (x * x).sum().sqrt()
        >>> [norm(pc.tensor([3.0, 4.0])).item() for _ in range(3)]
        [5.0, 5.0, 5.0]
    """
    if not frozen:
        raise NotImplementedError(
            "compile: frozen=True is required: a compiled function runs without Python"
        )
    if function is None:
        return functools.partial(compile, frozen=frozen)
    return Compiled(function)
