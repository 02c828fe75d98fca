"""Derivatives of functions: products with the Jacobian and the Hessian, and these themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import operator
from plait_autograd import _autograd
from plait_autograd._backward import grad
from plait_autograd._modes import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Any, ...]


def _as_tuple(value: Any, function: str, what: str) -> tuple[bool, Tensors]:
    """Return whether it was several, and all of them."""
    if _autograd.is_tensor(value):
        return False, (value,)
    if isinstance(value, (tuple, list)) and all(_autograd.is_tensor(v) for v in value):
        return True, tuple(value)
    raise TypeError(
        f"{function}: {what} must be a tensor or a tuple of tensors, got {type(value).__name__}"
    )


def _fresh(inputs: Tensors, create_graph: bool) -> Tensors:
    """Return inputs to differentiate for: connected with the given ones only for create_graph."""
    return tuple(
        operator("reshape")(x, tuple(x.shape))
        if create_graph and _autograd.requires_grad(x)
        else _autograd.alias(x).requires_grad_()
        for x in inputs
    )


def _zeros_like(x: Any) -> Any:
    return operator("zeros")(tuple(x.shape), dtype=x.dtype, device=x.device)


def _run(
    func: Callable[..., Any], inputs: Any, create_graph: bool, name: str
) -> tuple[bool, Tensors, bool, Tensors]:
    many_in, given = _as_tuple(inputs, name, "`inputs`")
    fresh = _fresh(given, create_graph)
    many_out, outputs = _as_tuple(func(*fresh), name, "the result of `func`")
    return many_in, fresh, many_out, outputs


def _vector(v: Any, like: Tensors, name: str, what: str) -> Tensors:
    """Check a vector against the tensors whose shapes it must have; None for single numbers."""
    if v is None:
        if len(like) == 1 and like[0].numel() == 1:
            return (_zeros_like(like[0]) + 1,)
        raise RuntimeError(f"{name}: `v` may be left out only if {what} is a single number")
    _, vectors = _as_tuple(v, name, "`v`")
    if len(vectors) != len(like):
        raise RuntimeError(
            f"{name}: `v` must have {len(like)} tensors, as {what}; got {len(vectors)}"
        )
    for i, (a, b) in enumerate(zip(vectors, like, strict=True)):
        if tuple(a.shape) != tuple(b.shape):
            raise RuntimeError(
                f"{name}: `v` {i} must have shape {tuple(b.shape)}, as {what}; got {tuple(a.shape)}"
            )
    return vectors


def _gradients(
    outputs: Tensors, inputs: Tensors, vectors: Tensors | None, create: bool, retain: bool = False
) -> Tensors:
    """Return gradients, None where nothing leads; outputs without a history contribute nothing."""
    live = [i for i, y in enumerate(outputs) if _autograd.requires_grad(y)]
    if not live:
        return (None,) * len(inputs)
    found: Tensors = grad(
        [outputs[i] for i in live],
        inputs,
        None if vectors is None else [vectors[i] for i in live],
        retain_graph=retain or create,
        create_graph=create,
        allow_unused=True,
    )
    return found


def _finish(
    found: Tensors, like: Tensors, create: bool, strict: bool, name: str, what: str
) -> Tensors:
    """Put zeros where nothing depended, and cut what is not to be differentiated further."""
    result = []
    for i, (g, x) in enumerate(zip(found, like, strict=True)):
        if g is None and strict:
            raise RuntimeError(f"{name}: with strict=True {what} {i} must take part in the result")
        if create and strict and not _autograd.requires_grad(g):
            raise RuntimeError(
                f"{name}: with strict=True and create_graph=True the derivative for {what} {i} "
                "must depend on the inputs"
            )
        if g is None:
            result.append(_zeros_like(x))
        else:
            result.append(g if create else _autograd.alias(g))
    return tuple(result)


def _one_or_all(many: bool, values: Tensors) -> Any:
    return values if many else values[0]


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    r"""Return ``func(*inputs)`` and :math:`v^T J`, one tensor an input.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.
        v: of the shape of the result; may be left out for a single number.
        create_graph: the result can be differentiated.
        strict: an input that takes no part is an error; otherwise its derivative is zero.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> y, g = pa.functional.vjp(lambda x: x * x, pc.tensor([1.0, 2.0]), pc.ones(2))
        >>> g.tolist()
        [2.0, 4.0]
    """
    with enable_grad():
        many_in, fresh, many_out, outputs = _run(func, inputs, create_graph, "vjp")
        vectors = _vector(v, outputs, "vjp", "the result of `func`")
        found = _gradients(outputs, fresh, vectors, create_graph)
        found = _finish(found, fresh, create_graph, strict, "vjp", "input")
        values = outputs if create_graph else tuple(_autograd.alias(y) for y in outputs)
    return _one_or_all(many_out, values), _one_or_all(many_in, found)


def _double(
    outputs: Tensors, fresh: Tensors, vectors: Tensors, create: bool, strict: bool
) -> Tensors:
    r"""Return :math:`J v`: the derivative of :math:`u^T J` with respect to :math:`u`, times v."""
    dummies = tuple(_zeros_like(y).requires_grad_() for y in outputs)
    rows = _gradients(outputs, fresh, dummies, True)
    kept = [i for i, row in enumerate(rows) if row is not None]
    if not kept:
        return (None,) * len(outputs)
    if strict and len(kept) < len(rows):
        missing = next(i for i, row in enumerate(rows) if row is None)
        raise RuntimeError(f"jvp: with strict=True input {missing} must take part in the result")
    return _gradients(
        tuple(rows[i] for i in kept), dummies, tuple(vectors[i] for i in kept), create, True
    )


def _forward(
    func: Callable[..., Any], inputs: Any, vectors: Tensors, create: bool, name: str
) -> tuple[bool, Tensors, Tensors]:
    r"""Run ``func`` on dual tensors; return whether its results are several, these, and Jv."""
    _, given = _as_tuple(inputs, name, "`inputs`")
    fresh = _fresh(given, create)
    _autograd.enter_level(create)
    try:
        if create:
            fresh = tuple(
                _autograd.make_dual(x, v.to(x.dtype)) for x, v in zip(fresh, vectors, strict=True)
            )
        else:
            for x, v in zip(fresh, vectors, strict=True):
                _autograd.set_tangent(x, v)
        many_out, outputs = _as_tuple(func(*fresh), name, "the result of `func`")
        return many_out, outputs, tuple(_autograd.tangent(y) for y in outputs)
    finally:
        _autograd.exit_level()


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    r"""Return ``func(*inputs)`` and :math:`J v`, one tensor a result.

    It is computed in forward mode (`forward_ad`): ``func`` runs once on dual tensors. Within a
    dual level, with ``strict=True``, or if ``func`` raises NotImplementedError, as an operator or a
    `Function` without a forward derivative does (``func`` then runs anew), it is computed with two
    backward passes: the derivative of :math:`u^T J` with respect to :math:`u`.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.
        v: of the inputs' shapes; may be left out for a single number.
        create_graph: the result can be differentiated.
        strict: a result that depends on no input is an error, and an input that takes no part;
            otherwise derivatives are zero.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> y, t = pa.functional.jvp(lambda x: x * x, pc.tensor([1.0, 2.0]), pc.ones(2))
        >>> t.tolist()
        [2.0, 4.0]
    """
    with enable_grad():
        vectors = _vector(v, _as_tuple(inputs, "jvp", "`inputs`")[1], "jvp", "the inputs")
        try:
            if strict or _autograd.level():  # tangents don't say which input they are from
                raise NotImplementedError
            many_out, outputs, found = _forward(func, inputs, vectors, create_graph, "jvp")
        except NotImplementedError:
            _, fresh, many_out, outputs = _run(func, inputs, create_graph, "jvp")
            found = _double(outputs, fresh, vectors, create_graph, strict)
        found = _finish(found, outputs, create_graph, strict, "jvp", "result")
        values = outputs if create_graph else tuple(_autograd.alias(y) for y in outputs)
    return _one_or_all(many_out, values), _one_or_all(many_out, found)


def _strategy(value: str, name: str, argument: str) -> bool:
    if value not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f'{name}: `{argument}` must be "reverse-mode" or "forward-mode", got {value!r}'
        )
    return value == "forward-mode"


def _forward_jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool) -> Any:
    stack, reshape = operator("stack"), operator("reshape")
    many_in, given = _as_tuple(inputs, "jacobian", "`inputs`")
    blocks = []  # for each input the derivatives of each result
    with enable_grad():
        if not any(x.numel() for x in given):  # there is no direction to go in
            many_out, outputs = _run(func, inputs, create_graph, "jacobian")[2:]
        for i, x in enumerate(given):
            columns = []
            for j in range(int(x.numel())):
                vectors = tuple(_zeros_like(each) for each in given)
                _autograd.set_element(vectors[i], j, 1.0)
                many_out, outputs, found = _forward(func, inputs, vectors, create_graph, "jacobian")
                columns.append(_finish(found, outputs, create_graph, False, "jacobian", "result"))
            blocks.append(columns)
        result = tuple(
            tuple(
                reshape(stack([c[k] for c in columns], dim=-1), (*y.shape, *x.shape))
                if columns
                else operator("zeros")((*y.shape, *x.shape), dtype=y.dtype, device=y.device)
                for columns, x in zip(blocks, given, strict=True)
            )
            for k, y in enumerate(outputs)
        )
    return _one_or_all(many_out, tuple(_one_or_all(many_in, row) for row in result))


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    r"""Return :math:`\partial y / \partial x`, of shape ``(*y.shape, *x.shape)``.

    Several inputs give a tuple, several results a tuple of what each gives. One backward pass is
    run for every element of the results; with ``strategy="forward-mode"`` the function is run on
    dual tensors (`forward_ad`) for every element of the inputs, which are better few.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.
        create_graph: the result can be differentiated.
        strict: an input or result that takes no part is an error; otherwise there are zeros.
        vectorize: accepted as in PyTorch; the loop is the same.
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
        many_in, fresh, many_out, outputs = _run(func, inputs, create_graph, "jacobian")
        result = []
        for k, y in enumerate(outputs):
            if strict and not _autograd.requires_grad(y):
                raise RuntimeError(
                    f"jacobian: with strict=True result {k} must depend on the inputs"
                )
            rows = []
            flat = reshape(y, (-1,))
            for j in range(int(y.numel())):
                found = _gradients((flat[j],), fresh, None, create_graph, True)
                rows.append(_finish(found, fresh, create_graph, strict, "jacobian", "input"))
            result.append(
                tuple(
                    reshape(stack([row[i] for row in rows]), (*y.shape, *x.shape))
                    if rows
                    else operator("zeros")((*y.shape, *x.shape), dtype=x.dtype, device=x.device)
                    for i, x in enumerate(fresh)
                )
            )
    return _one_or_all(many_out, tuple(_one_or_all(many_in, row) for row in result))


def _number(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    def single(*inputs: Any) -> Any:
        y = func(*inputs)
        if not _autograd.is_tensor(y) or y.numel() != 1:
            got = tuple(y.shape) if _autograd.is_tensor(y) else type(y).__name__
            raise RuntimeError(f"{name}: `func` must return one number; got {got}")
        return operator("reshape")(y, ())

    return single


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
        vectorize: accepted as in PyTorch; the loop is the same.
        outer_jacobian_strategy: how the gradient is differentiated: ``"reverse-mode"`` or
            ``"forward-mode"``, which cannot be strict.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.functional.hessian(lambda x: (x**3).sum(), pc.tensor([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    many, _ = _as_tuple(inputs, "hessian", "`inputs`")
    single = _number(func, "hessian")

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


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    r"""Return ``func(*inputs)`` and :math:`v^T H`, one tensor an input.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor or a tuple of them.
        v: of the inputs' shapes; may be left out for a single number.
        create_graph: the result can be differentiated.
        strict: an input that takes no part is an error; otherwise its derivative is zero.

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
    r"""Return ``func(*inputs)`` and :math:`H v`, one tensor an input.

    The Hessian is symmetric: :math:`H v` and :math:`v^T H` are the same numbers, computed in the
    same way. Arguments as `vhp`.

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
        many_in, fresh, _, outputs = _run(_number(func, name), inputs, create_graph, name)
        vectors = _vector(v, fresh, name, "the inputs")
        first = _gradients(outputs, fresh, None, True)
        kept = [i for i, g in enumerate(first) if g is not None]
        if strict and len(kept) != len(first):
            missing = next(i for i, g in enumerate(first) if g is None)
            raise RuntimeError(f"{name}: with strict=True input {missing} must take part")
        found: Tensors = (None,) * len(fresh)
        if kept:
            rows, given = tuple(first[i] for i in kept), tuple(vectors[i] for i in kept)
            found = _gradients(rows, fresh, given, create_graph)
        found = _finish(found, fresh, create_graph, strict, name, "input")
        value = outputs[0] if create_graph else _autograd.alias(outputs[0])
    return value, _one_or_all(many_in, found)
