"""The Jacobian and the Hessian of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import operator
from plait_autograd import _autograd
from plait_autograd._functional_calls import (
    as_tuple,
    finished,
    gradients,
    of_one_number,
    one_or_all,
    run,
    run_forward,
    zeros_like,
)
from plait_autograd._modes import enable_grad

__all__ = ["hessian", "jacobian"]


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
                columns.append(finished(value, outputs, create_graph, False, "jacobian", "result"))
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
            raise RuntimeError(
                'jacobian: strict=True and strategy="forward-mode" exclude each other'
            )
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
                rows.append(finished(value, fresh, create_graph, strict, "jacobian", "input"))
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
    r"""Return :math:`\partial^2 y / \partial x_i \partial x_j` of a function with one number.

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
        first,
        inputs,
        create_graph=create_graph,
        strict=strict,
        strategy=outer_jacobian_strategy,
    )
