"""Captures: a function runs, and its operator calls are recorded."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Set
from typing import Any

import plait_abi
import plait_autograd
import plait_core as pc
import plait_nn
from plait_func.pytree import tree_flatten, tree_unflatten
from plait_graph import _graph
from plait_graph._symbolic_size import SizeReads, SymbolicSize, plain_sizes

Json = dict[str, Any]


class NotOneNode(Exception):
    """Gradients of a function are not those that one node of the engine can give."""


class Name(str):
    """The name of a tensor that the program computes, in the place of the tensor."""


class Given(str):
    """The name of a tensor that the function reads, and returns itself."""


class Argument(int):
    """The number of a tensor that the function got, and returns itself."""


@dataclasses.dataclass
class Step:
    """A step of an optimizer during a capture: its nodes are those from `begin` to `end`."""

    optimizer: Any
    groups: list[tuple[dict[str, Any], list[pc.Tensor]]]  # with the parameters that have gradients
    begin: int
    end: int


@dataclasses.dataclass
class Recording:
    """What one call of a function did.

    Args:
        capture: what recorded it, which knows the memory of its tensors.
        nodes: the operator calls, as a graph has them.
        types: descriptions of all values, by name.
        inputs: the names of the function's tensors, in their order.
        given: these tensors.
        outside: other tensors that the calls read or wrote, by name.
        structure: that of the result, for `tree_unflatten`.
        leaves: the parts of the result: a `Name`, `Given` or `Argument` for each tensor, or what
            they are.
        grads: names of the gradients of tensors that the function left in ``.grad``, by the
            tensor's name.
        steps: what optimizers did.
        n_forward: the number of nodes before those of the derivative that `record` adds.
        gradients: names of the inputs' gradients, by the input's name; empty without them.
        tangents: names of the gradients of the results with a `Name`, or None.
        failures: why such a result has no derivative, or "".
        modules: those that were called.
    """

    capture: Any
    nodes: list[Json]
    types: dict[str, Json]
    inputs: list[str]
    given: list[pc.Tensor]
    outside: dict[str, pc.Tensor]
    structure: Any
    leaves: list[Any]
    grads: dict[str, str]
    steps: list[Step]
    n_forward: int
    gradients: dict[str, str]
    tangents: list[str | None]
    failures: list[str]
    modules: list[plait_nn.Module]

    @property
    def made(self) -> set[str]:
        """The names of values that operator calls made."""
        return self.types.keys() - self.outside.keys() - set(self.inputs)


current_capture = _graph.current_capture


_thread = threading.local()  # `selection`: which operators captures take apart, and refuse


class _Ended(threading.local):
    """Captures of this thread that are still in use, as their recordings are compared."""

    def __init__(self) -> None:
        self.captures: weakref.WeakSet[Any] = weakref.WeakSet()


_ended = _Ended()


def is_recording() -> bool:
    """Return whether a capture runs on this thread."""
    return current_capture() is not None


def description(name: str, tensor: pc.Tensor) -> Json:
    """Return the entry of a tensor in the lists of a graph."""
    return {
        "name": name,
        "dtype": str(tensor.dtype).rpartition(".")[2],
        "shape": plain_sizes(tensor.shape),
        "strides": plain_sizes(tensor.stride()),
        "device": str(tensor.device),
    }


def new_capture(is_region: bool = False) -> Any:
    """Return a capture, which records the operators that `selecting` says."""
    capture = _graph.Capture(is_region)
    selection = getattr(_thread, "selection", None)
    if selection is not None:
        capture.select(*selection)
    return capture


def is_selecting() -> bool:
    """Return whether `selecting` is in force on this thread."""
    return getattr(_thread, "selection", None) is not None


@contextlib.contextmanager
def selecting(apart: Set[str], refused: Set[str] = frozenset()) -> Iterator[None]:
    """Let captures of this thread record the decompositions of some operators in their place.

    Args:
        apart: the operators that are taken apart; they must have a decomposition.
        refused: operators whose calls are errors.
    """
    before = getattr(_thread, "selection", None)
    _thread.selection = (set(apart), set(refused))
    try:
        yield
    finally:
        _thread.selection = before


def running(capture: Any, reads: SizeReads | None = None) -> Any:
    """Return a context within which a capture records the calls of this thread; one that runs
    already pauses.

    Args:
        capture: what records.
        reads: gets what Python does with sizes; None: it goes to where it went before.
    """
    return _graph.Running(capture, None if reads is None else reads.read)


@contextlib.contextmanager
def _optimizer_steps(capture: Any) -> Iterator[list[Step]]:
    steps: list[Step] = []
    optim = sys.modules.get("plait_optim")
    if optim is None:
        yield steps
        return

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_recording():
            pairs = [
                (group, [p for p in group["params"] if p.grad is not None])
                for group in optimizer.param_groups
            ]
            groups = [(group, params) for group, params in pairs if params]
            steps.append(Step(optimizer, groups, capture.size, -1))

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_recording():
            steps[-1].end = capture.size

    with (
        optim.register_optimizer_step_pre_hook(before),
        optim.register_optimizer_step_post_hook(after),
    ):
        yield steps


@contextlib.contextmanager
def _called_modules() -> Iterator[list[plait_nn.Module]]:
    modules: dict[int, plait_nn.Module] = {}

    def note(module: plait_nn.Module, args: Any) -> None:
        if is_recording():
            modules[id(module)] = module

    result: list[plait_nn.Module] = []
    with plait_nn.register_module_forward_pre_hook(note, only_watches=True):
        yield result
    result += modules.values()


def _history(tensors: list[pc.Tensor]) -> list[tuple[bool, Any]]:
    return [(tensor.requires_grad, tensor.grad_fn) for tensor in tensors]


@functools.cache
def _follow_comparisons() -> None:
    _graph.observe_comparisons(plait_abi.paths("plait_ops")["libplait_ops.so"])


def record(
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
    *,
    differentiate: bool,
    keeps_copies: bool = False,
    reads: SizeReads | None = None,
) -> Any:
    """Call a function and record it; return the result and the `Recording`.

    The recording is None if gradients of the function are not those that one node can give.

    Args:
        differentiate: also record a backward pass from the results that require grad, if there
            are some, to the tensors that the function got or read.
        keeps_copies: the capture keeps a copy of each value, as it is behind its node.
        reads: gets what the function does with sizes.

    Raises:
        NotImplementedError: if a call cannot be part of a graph.
    """
    given = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, pc.Tensor)]
    for each in list(_ended.captures):
        each.forget_dead()  # the results of earlier calls that nobody kept
    capture = new_capture()
    if keeps_copies:
        capture.keep_copies()
    if reads is not None:
        _follow_comparisons()
        capture.follow_sizes()
    inputs = [capture.name_of(tensor) for tensor in given]
    capture.end_arguments()
    before = _history(given)
    with _optimizer_steps(capture) as steps:
        with _called_modules() as modules, running(capture, reads):
            result = function(*args, **kwargs)
        leaves, structure = tree_flatten(result)
        if any(type(leaf) is SymbolicSize for leaf in leaves):
            leaves = [int(leaf) if type(leaf) is SymbolicSize else leaf for leaf in leaves]
            result = tree_unflatten(leaves, structure)
        own = [leaf for leaf in leaves if isinstance(leaf, pc.Tensor)]
        names = [capture.name_of(tensor) for tensor in own]
        n_nodes = n_forward = capture.size  # a result may be a view that no operator made
        places = _given_back(capture, own, names, given)
        computed = [t for t, place in zip(own, places, strict=True) if type(place) is Name]
        gradients: dict[str, str] = {}
        tangents: list[str | None] = [None] * len(computed)
        failures = [""] * len(computed)
        if differentiate and not steps and any(tensor.requires_grad for tensor in computed):
            try:
                found = _record_backward(capture, computed, reads)
            except NotOneNode:
                return result, None
            if found is not None:
                gradients, tangents, failures = found
                n_nodes = capture.size
    if reads is not None:
        reads.is_open = False
        reads.comparisons = capture.comparisons
    changed = _history(given) != before
    problem = capture.problem
    if not problem and changed:
        problem = "the function writes to an argument and changes its history"
    if problem:
        raise NotImplementedError(f"compile: {problem}")
    _ended.captures.add(capture)
    outside, types = _outside(capture)
    types |= {each["name"]: each for each in json.loads(capture.values)}
    rest = iter(places)
    return result, Recording(
        capture=capture,
        nodes=json.loads(capture.nodes)[:n_nodes],
        types=types,
        inputs=inputs,
        given=given,
        outside={name: tensor for name, tensor in outside.items() if name not in set(inputs)},
        structure=structure,
        leaves=[next(rest) if isinstance(leaf, pc.Tensor) else leaf for leaf in leaves],
        grads=_grads(capture, outside),
        steps=steps,
        n_forward=n_forward,
        gradients=gradients,
        tangents=tangents,
        failures=failures,
        modules=modules,
    )


def _given_back(
    capture: Any, results: list[pc.Tensor], names: list[str], given: list[pc.Tensor]
) -> list[Name | Given | Argument]:
    """Return what stands for each result: the very objects that the function got or reads, or the
    name of what it computed.
    """
    read = {name: tensor for name, tensor, _ in capture.outside}
    result: list[Name | Given | Argument] = []
    for name, tensor in zip(names, results, strict=True):
        number = next((i for i, each in enumerate(given) if each is tensor), None)
        if number is not None:
            result.append(Argument(number))
        else:
            result.append(Given(name) if read.get(name) is tensor else Name(name))
    return result


def _outside(capture: Any) -> tuple[dict[str, pc.Tensor], dict[str, Json]]:
    """Return the tensors that no operator made, and what they were when they were first seen."""
    tensors: dict[str, pc.Tensor] = {}
    types: dict[str, Json] = {}
    for name, tensor, text in capture.outside:
        tensors[name], types[name] = tensor, json.loads(text)
        if types[name] != description(name, tensor):
            raise NotImplementedError(
                "compile: the function changes the shape, strides or dtype of a tensor in place, "
                "as by squeeze_() or `.data`; a graph has tensors that stay as they are"
            )
    return tensors, types


def _grads(capture: Any, tensors: dict[str, pc.Tensor]) -> dict[str, str]:
    result: dict[str, str] = {}
    for name, tensor in tensors.items():
        if tensor.requires_grad and tensor.is_leaf and tensor.grad is not None:
            grad = capture.find(tensor.grad)
            if grad:
                result[name] = grad
    return result


def _record_backward(
    capture: Any, results: list[pc.Tensor], reads: SizeReads | None
) -> tuple[dict[str, str], list[str | None], list[str]] | None:
    """Record the gradients of what the function got and read.

    None if no result has a derivative: the function has had its own backward pass.
    """
    sources = {name: tensor for name, tensor, _ in capture.outside if tensor.requires_grad}
    if any(map(plait_autograd.has_hooks, sources.values())):
        raise NotOneNode  # the gradients that they give back would get to them again
    failures = [_failure(tensor, list(sources.values())) for tensor in results]
    recorded = [
        tensor
        for tensor, failure in zip(results, failures, strict=True)
        if tensor.requires_grad and not failure
    ]
    if not recorded or not sources:
        return None
    with plait_autograd.no_grad():
        given = [pc.ones_like(tensor) for tensor in recorded]
    names = iter([capture.name_of(tensor) for tensor in given])
    with running(capture, reads):
        grads = plait_autograd.grad(
            recorded, list(sources.values()), given, retain_graph=True, allow_unused=True
        )
    known = {id(tensor) for tensor in recorded}
    tangents = [next(names) if id(tensor) in known else None for tensor in results]
    pairs = zip(sources, grads, strict=True)
    gradients = {name: capture.name_of(grad) for name, grad in pairs if grad is not None}
    return gradients, tangents, failures


def _failure(result: pc.Tensor, sources: list[pc.Tensor]) -> str:
    """Return why the gradient of a result cannot be computed: its history is gone, or a value of it
    was written over. "" if it can be, or if there is none.
    """
    if not result.requires_grad or not sources:
        return ""
    try:
        plait_autograd.grad(
            [result], sources, [pc.ones_like(result)], retain_graph=True, allow_unused=True
        )
    except RuntimeError as error:
        return str(error)
    return ""
