"""Derivatives of functions: the Jacobian, the Hessian, and products with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_autograd import _autograd
from plait_autograd._functional_calls import (
    Tensors,
    as_tuple,
    finished,
    gradients,
    of_one_number,
    one_or_all,
    run,
    run_forward,
    vector_for,
    zeros_like,
)
from plait_autograd._jacobian import hessian, jacobian
from plait_autograd._modes import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    r"""Return ``func(*inputs)`` and :math:`v^T J`, one tensor for each input.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.
        v: of the shape of the result; may be left out for a single number.
        create_graph: the result can be differentiated.
        strict: an input that the result does not depend on is an error; otherwise its derivative is
            zero.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> y, g = pa.functional.vjp(lambda x: x * x, pc.tensor([1.0, 2.0]), pc.ones(2))
        >>> g.tolist()
        [2.0, 4.0]
    """
    with enable_grad():
        many_in, fresh, many_out, outputs = run(func, inputs, create_graph, "vjp")
        vectors = vector_for(v, outputs, "vjp", "the result of `func`")
        result = gradients(outputs, fresh, vectors, create_graph)
        result = finished(result, fresh, create_graph, strict, "vjp", "input")
        values = outputs if create_graph else tuple(_autograd.alias(y) for y in outputs)
    return one_or_all(many_out, values), one_or_all(many_in, result)


def _double(
    outputs: Tensors, fresh: Tensors, vectors: Tensors, create: bool, strict: bool
) -> Tensors:
    r"""Return :math:`J v`: the derivative of :math:`u^T J` with respect to :math:`u`, times v."""
    dummies = tuple(zeros_like(y).requires_grad_() for y in outputs)
    rows = gradients(outputs, fresh, dummies, True)
    positions = [i for i, row in enumerate(rows) if row is not None]
    if not positions:
        return (None,) * len(outputs)
    if strict and len(positions) < len(rows):
        missing = next(i for i, row in enumerate(rows) if row is None)
        raise RuntimeError(f"jvp: with strict=True input {missing} must take part in the result")
    return gradients(
        tuple(rows[i] for i in positions),
        dummies,
        tuple(vectors[i] for i in positions),
        create,
        True,
    )


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    r"""Return ``func(*inputs)`` and :math:`J v`, one tensor for each result.

    It is computed in forward mode (`forward_ad`): ``func`` runs once on dual tensors. Within a
    dual level, with ``strict=True``, or if ``func`` raises NotImplementedError, as an operator or a
    `Function` without a forward derivative does (``func`` then runs anew), it is computed with two
    backward passes: the derivative of :math:`u^T J` with respect to :math:`u`.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.
        v: of the inputs' shapes; may be left out for a single number.
        create_graph: the result can be differentiated.
        strict: a result that depends on no input is an error, and so is an unused input; otherwise
            derivatives are zero.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> y, t = pa.functional.jvp(lambda x: x * x, pc.tensor([1.0, 2.0]), pc.ones(2))
        >>> t.tolist()
        [2.0, 4.0]
    """
    with enable_grad():
        vectors = vector_for(v, as_tuple(inputs, "jvp", "`inputs`")[1], "jvp", "the inputs")
        try:
            if strict or _autograd.level():  # a tangent does not tell which inputs it depends on
                raise NotImplementedError
            many_out, outputs, result = run_forward(func, inputs, vectors, create_graph, "jvp")
        except NotImplementedError:
            _, fresh, many_out, outputs = run(func, inputs, create_graph, "jvp")
            result = _double(outputs, fresh, vectors, create_graph, strict)
        result = finished(result, outputs, create_graph, strict, "jvp", "result")
        values = outputs if create_graph else tuple(_autograd.alias(y) for y in outputs)
    return one_or_all(many_out, values), one_or_all(many_out, result)


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    r"""Return ``func(*inputs)`` and :math:`v^T H`, one tensor for each input.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor or a tuple of them.
        v: of the inputs' shapes; may be left out for a single number.
        create_graph: the result can be differentiated.
        strict: an input that the result does not depend on is an error; otherwise its derivative is
            zero.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> y, h = pa.functional.vhp(lambda x: (x**3).sum(), pc.tensor([1.0, 2.0]), pc.ones(2))
        >>> h.tolist()
        [6.0, 12.0]
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    r"""Return ``func(*inputs)`` and :math:`H v`, one tensor for each input.

    As the Hessian is symmetric, :math:`H v` and :math:`v^T H` are the same numbers, and are
    computed in the same way. The arguments are those of `vhp`.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> y, h = pa.functional.hvp(lambda x: (x**3).sum(), pc.tensor([1.0, 2.0]), pc.ones(2))
        >>> h.tolist()
        [6.0, 12.0]
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    with enable_grad():
        many_in, fresh, _, outputs = run(of_one_number(func, name), inputs, create_graph, name)
        vectors = vector_for(v, fresh, name, "the inputs")
        first = gradients(outputs, fresh, None, True)
        positions = [i for i, g in enumerate(first) if g is not None]
        if strict and len(positions) != len(first):
            missing = next(i for i, g in enumerate(first) if g is None)
            raise RuntimeError(f"{name}: with strict=True input {missing} must take part")
        result: Tensors = (None,) * len(fresh)
        if positions:
            rows, seeds = tuple(first[i] for i in positions), tuple(vectors[i] for i in positions)
            result = gradients(rows, fresh, seeds, create_graph)
        result = finished(result, fresh, create_graph, strict, name, "input")
        value = outputs[0] if create_graph else _autograd.alias(outputs[0])
    return value, one_or_all(many_in, result)
