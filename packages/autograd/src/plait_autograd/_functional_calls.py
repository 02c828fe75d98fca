"""Shared by the functions of `functional`: calls on new inputs, and gradients with zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import operator
from plait_autograd import _autograd
from plait_autograd._backward import grad

Tensors = tuple[Any, ...]


def as_tuple(value: Any, function: str, subject: str) -> tuple[bool, Tensors]:
    """Return whether a value is a sequence, and its items as a tuple."""
    if _autograd.is_tensor(value):
        return False, (value,)
    if isinstance(value, (tuple, list)) and all(_autograd.is_tensor(v) for v in value):
        return True, tuple(value)
    raise TypeError(
        f"{function}: {subject} must be a tensor or a tuple of tensors, got {type(value).__name__}"
    )


def _fresh(inputs: Tensors, create_graph: bool) -> Tensors:
    """Return new inputs to differentiate for; with create_graph they depend on the given ones.

    They come from methods, so that tensors of a derived class stay instances of it.
    """
    return tuple(
        x.view_as(x) if create_graph and _autograd.requires_grad(x) else x.detach().requires_grad_()
        for x in inputs
    )


def zeros_like(x: Any) -> Any:
    """Return zeros of the shape, dtype and device of ``x``."""
    return operator("zeros")(tuple(x.shape), dtype=x.dtype, device=x.device)


def run(
    func: Callable[..., Any], inputs: Any, create_graph: bool, name: str
) -> tuple[bool, Tensors, bool, Tensors]:
    """Call ``func`` on new inputs; return (several, tensors) for the inputs and for the results."""
    many_in, values = as_tuple(inputs, name, "`inputs`")
    fresh = _fresh(values, create_graph)
    many_out, outputs = as_tuple(func(*fresh), name, "the result of `func`")
    return many_in, fresh, many_out, outputs


def vector_for(v: Any, like: Tensors, name: str, subject: str) -> Tensors:
    """Return a vector after a check of its shapes; None stands for 1 for a single number."""
    if v is None:
        if len(like) == 1 and like[0].numel() == 1:
            return (zeros_like(like[0]) + 1,)
        raise RuntimeError(f"{name}: `v` may be left out only if {subject} is a single number")
    _, vectors = as_tuple(v, name, "`v`")
    if len(vectors) != len(like):
        raise RuntimeError(
            f"{name}: `v` must have {len(like)} tensors, as {subject}; got {len(vectors)}"
        )
    for i, (a, b) in enumerate(zip(vectors, like, strict=True)):
        if tuple(a.shape) != tuple(b.shape):
            raise RuntimeError(
                f"{name}: `v` {i} must have shape {tuple(b.shape)}, as {subject}; "
                f"got {tuple(a.shape)}"
            )
    return vectors


def gradients(
    outputs: Tensors, inputs: Tensors, vectors: Tensors | None, create: bool, retain: bool = False
) -> Tensors:
    """Return gradients, None for unused inputs; outputs without a history contribute nothing."""
    live = [i for i, y in enumerate(outputs) if _autograd.requires_grad(y)]
    if not live:
        return (None,) * len(inputs)
    result: Tensors = grad(
        [outputs[i] for i in live],
        inputs,
        None if vectors is None else [vectors[i] for i in live],
        retain_graph=retain or create,
        create_graph=create,
        allow_unused=True,
    )
    return result


def _varies(g: Any) -> bool:
    """Return whether a recorded derivative depends on tensors; a linear function's does not."""
    node = _autograd.grad_fn(g)
    return _autograd.requires_grad(g) and (node is None or bool(node.next_functions))


def finish(
    derivatives: Tensors, like: Tensors, create: bool, strict: bool, name: str, subject: str
) -> Tensors:
    """Replace None by zeros, and detach the results without create_graph, and constants."""
    result = []
    for i, (g, x) in enumerate(zip(derivatives, like, strict=True)):
        if g is None and strict:
            raise RuntimeError(
                f"{name}: with strict=True {subject} {i} must be used to compute the result"
            )
        if create and strict and not _varies(g):
            raise RuntimeError(
                f"{name}: with strict=True and create_graph=True the derivative for {subject} {i} "
                "must depend on the inputs"
            )
        if g is None:
            result.append(zeros_like(x))
        else:
            result.append(g if create and _varies(g) else _autograd.alias(g))
    return tuple(result)


def one_or_all(many: bool, values: Tensors) -> Any:
    """Return a tuple for several values, else the value itself."""
    return values if many else values[0]


def run_forward(
    func: Callable[..., Any], inputs: Any, vectors: Tensors, create: bool, name: str
) -> tuple[bool, Tensors, Tensors]:
    r"""Run ``func`` on dual tensors; return whether it has several results, the results, and Jv."""
    _, values = as_tuple(inputs, name, "`inputs`")
    fresh = _fresh(values, create)
    _autograd.enter_level(create)
    try:
        if create:
            fresh = tuple(
                _autograd.make_dual(x, v.to(x.dtype)) for x, v in zip(fresh, vectors, strict=True)
            )
        else:
            for x, v in zip(fresh, vectors, strict=True):
                _autograd.set_tangent(x, v)
        many_out, outputs = as_tuple(func(*fresh), name, "the result of `func`")
        return many_out, outputs, tuple(_autograd.tangent(y) for y in outputs)
    finally:
        _autograd.exit_level()


def of_one_number(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return ``func`` with its result, which must be one number, reshaped to ()."""

    def single(*inputs: Any) -> Any:
        y = func(*inputs)
        if not _autograd.is_tensor(y) or y.numel() != 1:
            got = tuple(y.shape) if _autograd.is_tensor(y) else type(y).__name__
            raise RuntimeError(f"{name}: `func` must return one number; got {got}")
        return operator("reshape")(y, ())

    return single
