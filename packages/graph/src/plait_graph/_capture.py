"""Captures: a function runs, and its operator calls are recorded."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import plait_autograd
import plait_core as pc
from plait_func.pytree import tree_flatten
from plait_graph import _graph

Json = dict[str, Any]


class Name(str):
    """The name of a tensor, in the place of the tensor."""



@dataclasses.dataclass
class Step:
    """A step of an optimizer during a capture: its nodes are those from `begin` to `end`."""

    optimizer: Any
    begin: int
    end: int


@dataclasses.dataclass
class Recording:
    """What one call of a function did.

    Args:
        nodes: the operator calls, as a graph has them.
        types: descriptions of the values that they made, by name.
        inputs: the names of the function's tensors.
        outside: other tensors that the calls read or wrote, by name.
        structure: that of the result, for `tree_unflatten`.
        leaves: the parts of the result, with a `Name` for each tensor.
        grads: names of the gradients of tensors in `outside`, by the name of the tensor.
        steps: what optimizers did.
        n_forward: the number of nodes before those of the derivative that `record` adds.
        gradients: names of the inputs' gradients, by the input's name; empty without them.
        tangents: names of the gradients of the results.
    """

    nodes: list[Json]
    types: dict[str, Json]
    inputs: list[str]
    outside: dict[str, pc.Tensor]
    structure: Any
    leaves: list[Any]
    grads: dict[str, str]
    steps: list[Step]
    n_forward: int
    gradients: dict[str, str]
    tangents: list[str | None]


def description(name: str, tensor: pc.Tensor) -> Json:
    """Return the entry of a tensor in the lists of a graph."""
    return {
        "name": name,
        "dtype": str(tensor.dtype).rpartition(".")[2],
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "device": str(tensor.device),
    }


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    # the engine may run derivatives on several threads; their calls would be in no order
    before = pc.get_num_threads()
    pc.set_num_threads(1)
    try:
        yield
    finally:
        pc.set_num_threads(before)


@contextlib.contextmanager
def _optimizer_steps(capture: Any) -> Iterator[list[Step]]:
    steps: list[Step] = []
    optim = sys.modules.get("plait_optim")
    if optim is None:
        yield steps
        return

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        steps.append(Step(optimizer, capture.size, -1))

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        steps[-1].end = capture.size

    with (
        optim.register_optimizer_step_pre_hook(before),
        optim.register_optimizer_step_post_hook(after),
    ):
        yield steps


def record(function: Callable[..., Any], args: Any, kwargs: Any, *, differentiate: bool) -> Any:
    """Call a function and record it; return the result and the `Recording`.

    Args:
        differentiate: also record a backward pass from the results that require grad, if there
            are some, to the tensors that the function got or read.

    Raises:
        NotImplementedError: if a call cannot be part of a graph.
    """
    tensors = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, pc.Tensor)]
    capture = _graph.Capture()
    inputs = [capture.name_of(tensor) for tensor in tensors]
    with _one_thread(), _optimizer_steps(capture) as steps:
        capture.start()
        try:
            result = function(*args, **kwargs)
            n_forward = n_nodes = capture.size
            leaves, structure = tree_flatten(result)
            results = [leaf for leaf in leaves if isinstance(leaf, pc.Tensor)]
            names = [Name(capture.name_of(tensor)) for tensor in results]
            gradients: dict[str, str] = {}
            tangents: list[str | None] = []
            if differentiate and not steps:
                gradients, tangents = _record_backward(capture, results)
                n_nodes = capture.size if gradients else n_forward
        finally:
            capture.stop()
    if capture.problem:
        raise NotImplementedError(f"compile: {capture.problem}")
    outside = dict(capture.outside)
    rest = iter(names)
    given = set(inputs)
    nodes = json.loads(capture.nodes)[:n_nodes]
    types = {each["name"]: each for each in json.loads(capture.values)}
    types |= {name: description(name, tensor) for name, tensor in outside.items()}
    grads = {}
    for name, tensor in list(outside.items()):
        if tensor.requires_grad and tensor.is_leaf and tensor.grad is not None:
            grads[name] = capture.find(tensor.grad)
    grads = {name: grad for name, grad in grads.items() if grad}
    return result, Recording(
        nodes=nodes,
        types=types,
        inputs=inputs,
        outside={name: tensor for name, tensor in outside.items() if name not in given},
        structure=structure,
        leaves=[next(rest) if isinstance(leaf, pc.Tensor) else leaf for leaf in leaves],
        grads=grads,
        steps=steps,
        n_forward=n_forward,
        gradients=gradients,
        tangents=tangents,
    )


def _record_backward(
    capture: Any, results: list[pc.Tensor]
) -> tuple[dict[str, str], list[str | None]]:
    """Record the gradients of what the function got and read; nothing if it has had its own
    backward pass, so that there is no history.
    """
    recorded = [tensor for tensor in results if tensor.requires_grad]
    sources = {name: tensor for name, tensor in capture.outside if tensor.requires_grad}
    if not recorded or not sources:
        return {}, []
    capture.stop()  # these are the caller's
    with plait_autograd.no_grad():
        given = [pc.ones_like(tensor) for tensor in recorded]
    capture.start()
    names = iter([capture.name_of(tensor) for tensor in given])
    try:
        grads = plait_autograd.grad(
            recorded, list(sources.values()), given, retain_graph=True, allow_unused=True
        )
    except RuntimeError:
        return {}, []
    tangents = [next(names) if tensor.requires_grad else None for tensor in results]
    pairs = zip(sources, grads, strict=True)
    return {name: capture.name_of(grad) for name, grad in pairs if grad is not None}, tangents
