"""Backward passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plait_abi import ArgumentError, operator
from plait_autograd._autograd import accumulate, grad_fn, is_tensor, run_pass
from plait_autograd._edge import GradientEdge, tensor_at
from plait_autograd._function import Function

RETAIN, CREATE, ALLOW_UNUSED, ACCUMULATE = 1, 2, 4, 8


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    r"""Add the derivatives of ``tensors`` to the ``.grad`` of the leaves that they depend on.

    For results :math:`y_k` with gradients :math:`g_k`, every leaf :math:`x` gets
    :math:`x.grad \leftarrow x.grad + \sum_k g_k^T\,\partial y_k/\partial x`. The first gradient of
    a leaf becomes its ``.grad`` without a copy if nothing else refers to it.

    Args:
        tensors: a result or a sequence of them.
        grad_tensors: the gradient of each, of its shape; None stands for 1 where a result has one
            element.
        retain_graph: keep the saved values, so that another backward pass may follow; the default
            is ``create_graph``.
        create_graph: record the pass itself, for higher derivatives. Then ``x.grad`` keeps a graph
            alive that keeps ``x`` alive: set it to None in the end, or use `grad`, which makes no
            such cycle.
        inputs: add to the ``.grad`` of these tensors alone. They need not be leaves: those that
            are none retain their gradient from now on, as by ``retain_grad()``.

    Raises:
        RuntimeError: a result does not require grad or needs a gradient; a derivative is missing;
            a value that a derivative needs was overwritten, or freed by an earlier pass.
        ShapeError: a gradient has another shape than its result.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(3, requires_grad=True)
        >>> pa.backward(x * 2, pc.tensor([1.0, 2.0, 3.0]))
        >>> x.grad.tolist()
        [2.0, 4.0, 6.0]
    """
    if Function._backward_check is not None:
        Function._backward_check()
    roots = _tensors(tensors, "backward", "tensors")
    gradients = _gradients(grad_tensors, len(roots), "backward", "grad_tensors")
    flags = _flags(retain_graph, create_graph) | ALLOW_UNUSED
    if inputs is None:
        run_pass(roots, gradients, None, flags)
        return
    targets = _tensors(inputs, "backward", "inputs")
    # they get their gradients, and leaves run their hooks, during the pass
    leaves = [grad_fn(tensor) is None for tensor in targets]
    for tensor, leaf in zip(targets, leaves, strict=True):
        if not leaf:
            tensor.retain_grad()
    results = run_pass(roots, gradients, targets, flags | ACCUMULATE)
    for tensor, leaf, result in zip(targets, leaves, results, strict=True):
        if leaf and result is not None:  # of an engine that does not know the flag
            accumulate(tensor, result, create_graph)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    r"""Return the derivatives of ``outputs`` with respect to ``inputs``; no ``.grad`` changes.

    Computes :math:`\sum_k g_k^T\,\partial y_k/\partial x_i` for every input :math:`x_i`, and
    evaluates only the nodes between outputs and inputs.

    Args:
        outputs: a result or a sequence of them.
        inputs: a tensor, a sequence of them or a dict with tensors for values; they need not be
            leaves.
        grad_outputs: the gradient of each output; None stands for 1 where it has one element.
        retain_graph: keep the saved values; the default is ``create_graph``.
        create_graph: record the pass, so that its results can be differentiated. They require grad
            also where their derivatives are zero. An exception are results that a `Function` or a
            hook computed from unrecorded values.
        only_inputs: for PyTorch's signature; must be True. `backward` adds to other leaves.
        allow_unused: return None for inputs that the outputs do not depend on; otherwise they are
            an error, or get zeros if the outputs were computed from gradients of a recorded pass.
            The default is ``materialize_grads``.
        is_grads_batched: every entry of ``grad_outputs`` has an additional first dimension, of the
            same size for all. One pass is run for each index of it, and the results are stacked;
            this saves code, not time.
        materialize_grads: zeros instead of None.

    Returns:
        A tuple with a gradient for each input, of its shape and dtype; a dict for a dict.

    Raises:
        RuntimeError: an error of `backward`, or an input that was not used.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.tensor(3.0, requires_grad=True)
        >>> (first,) = pa.grad(x * x * x, x, create_graph=True)
        >>> (second,) = pa.grad(first, x)
        >>> first.item(), second.item()
        (27.0, 18.0)
    """
    if not only_inputs:
        raise ValueError("grad: `only_inputs` must be True; backward() adds to all leaves")
    if isinstance(inputs, Mapping):
        each = tuple(inputs.values())
        options = (retain_graph, create_graph, True, allow_unused, is_grads_batched)
        named = grad(outputs, each, grad_outputs, *options, materialize_grads)
        return dict(zip(inputs, named, strict=True))
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: `allow_unused` must not be False with materialize_grads=True")
    roots = _tensors(outputs, "grad", "outputs")
    targets = _tensors(inputs, "grad", "inputs")
    gradients = _gradients(grad_outputs, len(roots), "grad", "grad_outputs")
    flags = _flags(retain_graph, create_graph)
    if allow_unused or materialize_grads:
        flags |= ALLOW_UNUSED
    if is_grads_batched:
        result = _batched(roots, gradients, targets, flags)
    else:
        result = run_pass(roots, gradients, targets, flags)
    if not materialize_grads:
        return result
    n = (int(_batch(gradients)),) if is_grads_batched else ()
    return tuple(
        operator("zeros")((*n, *x.shape), dtype=x.dtype, device=x.device) if g is None else g
        for x, g in zip(targets, result, strict=True)
    )


def _batch(gradients: tuple[Any, ...] | None) -> int:
    """Return the size of the first dimension that all of the gradients have."""
    sizes = {None if g is None or not g.shape else g.shape[0] for g in gradients or (None,)}
    size = sizes.pop()
    if sizes or size is None:
        raise ValueError(
            "grad: with is_grads_batched=True every entry of `grad_outputs` must be a tensor with "
            "a first dimension of one size for all"
        )
    return int(size)


def _batched(
    roots: tuple[Any, ...], gradients: tuple[Any, ...] | None, inputs: tuple[Any, ...], flags: int
) -> tuple[Any, ...]:
    size = _batch(gradients)
    if size == 0:
        raise ValueError("grad: with is_grads_batched=True the batch must not be empty")
    rows = []
    for i in range(size):
        last = i == size - 1
        rows.append(
            run_pass(
                roots,
                tuple(g[i] for g in gradients or ()),
                inputs,
                flags if last else flags | RETAIN,
            )
        )
    stack = operator("stack")
    return tuple(
        None if columns[0] is None else stack(list(columns)) for columns in zip(*rows, strict=True)
    )


def _tensors(value: Any, function: str, name: str) -> tuple[Any, ...]:
    if is_tensor(value):
        return (value,)
    result = (value,) if isinstance(value, GradientEdge) else _sequence(value, function, name)
    if not result:
        raise ValueError(f"{function}: `{name}` must not be empty")
    return tuple(tensor_at(each) for each in result)


def _gradients(value: Any, n: int, function: str, name: str) -> tuple[Any, ...] | None:
    if value is None:
        return None
    result = (value,) if is_tensor(value) else _sequence(value, function, name)
    if len(result) != n:
        raise ArgumentError(
            f"{function}: `{name}` must have one entry for each result; got {len(result)} for {n}"
        )
    return result


def _sequence(value: Any, function: str, name: str) -> tuple[Any, ...]:
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        return tuple(value)
    raise TypeError(
        f"{function}: `{name}` must be a tensor or a sequence of tensors, "
        f"got {type(value).__name__}"
    )


def _flags(retain_graph: bool | None, create_graph: bool) -> int:
    retain = create_graph if retain_graph is None else retain_graph
    return (RETAIN if retain else 0) | (CREATE if create_graph else 0)
