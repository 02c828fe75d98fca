"""Derivatives of functions: the Jacobian, the Hessian, and products with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import operator
from plait_autograd import _autograd
from plait_autograd._functional_calls import (
    Tensors,
    as_tuple,
    finish,
    gradients,
    of_one_number,
    one_or_all,
    run,
    run_forward,
    vector_for,
    zeros_like,
)
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
        result = finish(result, fresh, create_graph, strict, "vjp", "input")
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
        raise RuntimeError(
            f"jvp: with strict=True input {missing} must be used to compute the result"
        )
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
        result = finish(result, outputs, create_graph, strict, "jvp", "result")
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

    Args:
        v: The vector, of the shape of the inputs.
        create_graph: Whether the result can be differentiated.
        strict: Whether an input that does not matter is an error.

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
        result = finish(result, fresh, create_graph, strict, name, "input")
        value = outputs[0] if create_graph else _autograd.alias(outputs[0])
    return value, one_or_all(many_in, result)


def _strategy(value: str, name: str, argument: str) -> bool:
    if value not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f'{name}: `{argument}` must be "reverse-mode" or "forward-mode", got {value!r}'
        )
    return value == "forward-mode"


def _forward_jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool) -> Any:
    stack, reshape = operator("stack"), operator("reshape")
    many_in, values = as_tuple(inputs, "jacobian", "`inputs`")
    blocks = []  # for each input the derivatives of each result
    with enable_grad():
        if not any(x.numel() for x in values):  # the input has no elements
            many_out, outputs = run(func, inputs, create_graph, "jacobian")[2:]
        for i, x in enumerate(values):
            columns = []
            for j in range(int(x.numel())):
                vectors = tuple(zeros_like(each) for each in values)
                _autograd.set_element(vectors[i], j, 1.0)
                many_out, outputs, value = run_forward(
                    func, inputs, vectors, create_graph, "jacobian"
                )
                columns.append(finish(value, outputs, create_graph, False, "jacobian", "result"))
            blocks.append(columns)
        result = tuple(
            tuple(
                reshape(stack([c[k] for c in columns], dim=-1), (*y.shape, *x.shape))
                if columns
                else operator("zeros")((*y.shape, *x.shape), dtype=y.dtype, device=y.device)
                for columns, x in zip(blocks, values, strict=True)
            )
            for k, y in enumerate(outputs)
        )
    return one_or_all(many_out, tuple(one_or_all(many_in, row) for row in result))


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    r"""Return :math:`\partial y / \partial x`, of shape ``(*y.shape, *x.shape)``.

    Several inputs give a tuple, several results a tuple of these. One backward pass is
    run for every element of the results; with ``strategy="forward-mode"`` the function is run on
    dual tensors (`forward_ad`) for every element of the inputs, which is faster for few inputs.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.
        create_graph: the result can be differentiated.
        strict: an input or result that is independent of the others is an error; otherwise its
            derivatives are zeros.
        vectorize: accepted for PyTorch's signature; it changes nothing.
        strategy: ``"reverse-mode"`` or ``"forward-mode"``, which cannot be strict.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.functional.jacobian(lambda x: x * x, pc.tensor([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    if _strategy(strategy, "jacobian", "strategy"):
        if strict:
            raise RuntimeError('jacobian: strict=True needs strategy="reverse-mode"')
        return _forward_jacobian(func, inputs, create_graph)
    stack, reshape = operator("stack"), operator("reshape")
    with enable_grad():
        many_in, fresh, many_out, outputs = run(func, inputs, create_graph, "jacobian")
        result = []
        for k, y in enumerate(outputs):
            if strict and not _autograd.requires_grad(y):
                raise RuntimeError(
                    f"jacobian: with strict=True result {k} must depend on the inputs"
                )
            rows = []
            flat = reshape(y, (-1,))
            for j in range(int(y.numel())):
                value = gradients((flat[j],), fresh, None, create_graph, True)
                rows.append(finish(value, fresh, create_graph, strict, "jacobian", "input"))
            result.append(
                tuple(
                    reshape(stack([row[i] for row in rows]), (*y.shape, *x.shape))
                    if rows
                    else operator("zeros")((*y.shape, *x.shape), dtype=x.dtype, device=x.device)
                    for i, x in enumerate(fresh)
                )
            )
    return one_or_all(many_out, tuple(one_or_all(many_in, row) for row in result))


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    r"""Return :math:`\partial^2 y / \partial x_i \partial x_j` of a function to a number.

    For inputs a and b the result is a tuple of tuples; that for (a, b) has the shape
    ``(*a.shape, *b.shape)``.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor or a tuple of them.
        create_graph: the result can be differentiated.
        strict: as in `jacobian`.
        vectorize: accepted for PyTorch's signature; it changes nothing.
        outer_jacobian_strategy: how the gradient is differentiated: ``"reverse-mode"`` or
            ``"forward-mode"``, which cannot be strict.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.functional.hessian(lambda x: (x**3).sum(), pc.tensor([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    many, _ = as_tuple(inputs, "hessian", "`inputs`")
    single = of_one_number(func, "hessian")

    def first(*values: Any) -> Any:
        return jacobian(single, values if many else values[0], create_graph=True, strict=strict)

    _strategy(outer_jacobian_strategy, "hessian", "outer_jacobian_strategy")
    return jacobian(
        first, inputs, create_graph=create_graph, strict=strict, strategy=outer_jacobian_strategy
    )
