"""`torch.func`: derivatives of functions, over plait's engine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import plait
from plait.nn import functional_call
from plait_torch._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from plait_torch._vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]


class _Level:
    """The inputs of one derivative: new tensors with the history of the given ones."""

    def __init__(self, trees: Sequence[Any]) -> None:
        self._recorded = plait.is_grad_enabled()
        self.trees = [tree_map(self._own, tree) for tree in trees]
        self.leaves = [x for x in tree_leaves(self.trees) if plait.is_tensor(x) and x.requires_grad]
        roots = [x for x in self.leaves if x.is_leaf]
        self._roots = {plait.autograd.graph.get_gradient_edge(x).node for x in roots}

    def _own(self, leaf: Any) -> Any:
        if not plait.is_tensor(leaf) or not (leaf.dtype.is_floating_point or leaf.dtype.is_complex):
            return leaf
        with plait.enable_grad():
            own = leaf.view_as(leaf) if leaf.requires_grad else leaf.detach().requires_grad_()
        return own

    def gradients(self, outputs: Any, cotangents: Any = None) -> list[Any]:
        """Return the gradient of each leaf, zeros for unused ones."""
        found = plait.autograd.grad(
            outputs, self.leaves, cotangents, create_graph=True, allow_unused=True
        )
        return [
            plait.zeros_like(leaf) if gradient is None else gradient
            for gradient, leaf in zip(found, self.leaves, strict=True)
        ]

    def outside(self, tree: Any) -> Any:
        """Return values for the caller, without the history of this level."""
        return tree_map(lambda x: x if self._is_followed(x) else x.detach(), tree)

    def _is_followed(self, tensor: Any) -> bool:
        if not plait.is_tensor(tensor) or not tensor.requires_grad:
            return True
        if not self._recorded:
            return False
        if tensor.grad_fn is None:
            return all(tensor is not leaf for leaf in self.leaves)
        seen, stack = set(), [tensor.grad_fn]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            following = [each for each, _ in node.next_functions if each is not None]
            if not following and node.name() == "AccumulateGrad" and node not in self._roots:
                return True
            stack.extend(following)
        return False

    def like_trees(self, values: Sequence[Any]) -> list[Any]:
        """Return trees with the structure of the inputs and a value for each leaf."""
        rest = iter(values)
        ours = {id(leaf) for leaf in self.leaves}
        return [
            tree_map(lambda x: next(rest) if id(x) in ours else None, tree) for tree in self.trees
        ]


def _call(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Any, kwargs: dict[str, Any]
) -> tuple[_Level, Any]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    try:
        level = _Level([args[number] for number in numbers])
    except IndexError:
        raise RuntimeError(
            f"torch.func: `argnums` {argnums} names an argument that does not exist: "
            f"{len(args)} were given"
        ) from None
    replaced = list(args)
    for number, tree in zip(numbers, level.trees, strict=True):
        replaced[number] = tree
    with plait.enable_grad():
        return level, func(*replaced, **kwargs)


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the gradient and the result of `func`.

    Args:
        func: returns a tensor of one element, with `has_aux` a pair of it and anything.
        argnums: the arguments to differentiate for; a tuple gives a tuple of gradients.
        has_aux: see `func`; the result is then ``(gradient, (value, aux))``.

    Example:
        >>> import plait
        >>> from plait_torch._func import grad_and_value
        >>> grad_and_value(lambda x: (x * x).sum())(plait.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        level, result = _call(func, args, argnums, kwargs)
        value, aux = result if has_aux else (result, None)
        if not plait.is_tensor(value) or value.numel() != 1:
            shown = tuple(value.shape) if plait.is_tensor(value) else type(value).__name__
            raise RuntimeError(f"grad: `func` must return a tensor of one element, got {shown}")
        with plait.enable_grad():
            gradients = level.outside(level.like_trees(level.gradients(value)))
        found = gradients[0] if isinstance(argnums, int) else tuple(gradients)
        seen = level.outside((value, aux)) if has_aux else level.outside(value)
        return found, seen

    return derived


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the gradient of `func`; it can be differentiated again.

    Args:
        func, argnums, has_aux: see `grad_and_value`; with `has_aux` the result is
            ``(gradient, aux)``.

    Example:
        >>> import plait
        >>> from plait_torch._func import grad
        >>> grad(grad(plait.sin))(plait.tensor(0.5)) == -plait.tensor(0.5).sin()
        tensor(True)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return derived


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return ``func(*primals)`` and the function from cotangents to gradients, a tuple of them.

    Example:
        >>> import plait
        >>> from plait_torch._func import vjp
        >>> y, pull = vjp(plait.exp, plait.zeros(2))
        >>> y, pull(plait.tensor([1.0, 2.0]))
        (tensor([1., 1.]), (tensor([1., 2.]),))
    """
    level, result = _call(func, primals, tuple(range(len(primals))), {})
    value, aux = result if has_aux else (result, None)

    def pull(cotangents: Any) -> tuple[Any, ...]:
        pairs = [
            (out, cotangent)
            for out, cotangent in zip(tree_leaves(value), tree_leaves(cotangents), strict=True)
            if out.requires_grad
        ]
        if not pairs:
            return tuple(level.like_trees([plait.zeros_like(leaf) for leaf in level.leaves]))
        outputs, vectors = (list(each) for each in zip(*pairs, strict=True))
        with plait.enable_grad():
            found = level.gradients(outputs, vectors)
        return tuple(level.outside(level.like_trees(found)))

    seen = level.outside(value)
    return (seen, pull, level.outside(aux)) if has_aux else (seen, pull)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """Return ``func(*primals)`` and its derivative in the direction of the tangents.

    It is computed as the derivative of the vjp with respect to its cotangent, so that it can be
    differentiated again.

    Example:
        >>> import plait
        >>> from plait_torch._func import jvp
        >>> jvp(plait.sin, (plait.zeros(2),), (plait.tensor([1.0, 2.0]),))
        (tensor([0., 0.]), tensor([1., 2.]))
    """
    level, result = _call(func, primals, tuple(range(len(primals))), {})
    value, aux = result if has_aux else (result, None)
    outputs, spec = tree_flatten(value)
    vectors = tree_leaves(tangents)
    with plait.enable_grad():
        directions = []
        for out in outputs:
            if not out.requires_grad:
                directions.append(plait.zeros_like(out))
                continue
            dual = plait.zeros_like(out).requires_grad_()
            pulled = level.gradients(out, dual)
            product = sum((g * v).sum() for g, v in zip(pulled, vectors, strict=True))
            (direction,) = (
                plait.autograd.grad(product, dual, create_graph=True, allow_unused=True)
                if plait.is_tensor(product) and product.requires_grad
                else (None,)
            )
            zero = plait.zeros_like(out)
            directions.append(zero if direction is None else direction)
    seen = level.outside(value)
    tangent = level.outside(tree_unflatten(directions, spec))
    return (seen, tangent, level.outside(aux)) if has_aux else (seen, tangent)


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `func`, computed by backward passes.

    Its shape is that of the output followed by that of the argument. All rows are computed in one
    pass, or at most `chunk_size` at once.

    Example:
        >>> import plait
        >>> from plait_torch._func import jacrev
        >>> jacrev(lambda x: x**2)(plait.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        level, result = _call(func, args, argnums, kwargs)
        value, aux = result if has_aux else (result, None)
        outputs, spec = tree_flatten(value)
        jacobians = []
        with plait.enable_grad():
            for out in outputs:
                trees = level.outside(level.like_trees(_rows(level, out, chunk_size)))
                jacobians.append(trees[0] if isinstance(argnums, int) else tuple(trees))
        whole = tree_unflatten(jacobians, spec)
        return (whole, level.outside(aux)) if has_aux else whole

    return derived


def _rows(level: _Level, out: Any, chunk_size: int | None) -> list[Any]:
    """Return the Jacobian of a tensor for each leaf: all its rows in one backward pass."""
    if not out.requires_grad or not out.numel():
        return [leaf.new_zeros((*out.shape, *leaf.shape)) for leaf in level.leaves]
    rows = plait.eye(out.numel(), dtype=out.dtype).reshape(out.numel(), *out.shape)
    found = vmap(lambda row: level.gradients(out, row), chunk_size=chunk_size)(rows)
    return [
        rows_of.reshape(*out.shape, *leaf.shape)
        for rows_of, leaf in zip(found, level.leaves, strict=True)
    ]


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `func`, by columns, all at once.

    For functions with more outputs than inputs it takes less time than `jacrev`.

    Example:
        >>> import plait
        >>> from plait_torch._func import jacfwd
        >>> jacfwd(lambda x: x**2)(plait.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        primals = tuple(args[number] for number in numbers)
        leaves, spec = tree_flatten(primals)
        sizes = [leaf.numel() for leaf in leaves]

        def of(*chosen: Any) -> Any:
            replaced = list(args)
            for number, value in zip(numbers, chosen, strict=True):
                replaced[number] = value
            return func(*replaced, **kwargs)

        def column(*directions: Any) -> Any:
            tangents = tree_unflatten(list(directions), spec)
            made = jvp(of, primals, tangents, has_aux=has_aux)
            return (made[1], made[2]) if has_aux else made[1]

        columns = vmap(column, out_dims=(0, None) if has_aux else 0, randomness=randomness)(
            *_basis(leaves, sizes)
        )
        columns, aux = columns if has_aux else (columns, None)
        outputs, shape = tree_flatten(columns)
        found = [_columns(out, leaves, sizes, spec) for out in outputs]
        whole = tree_unflatten(
            [each[0] if isinstance(argnums, int) else each for each in found], shape
        )
        return (whole, aux) if has_aux else whole

    return derived


def _basis(leaves: list[Any], sizes: list[int]) -> list[Any]:
    """Return for each leaf all directions, those of the other leaves being 0."""
    rows = []
    for i, leaf in enumerate(leaves):
        parts = [
            plait.eye(n, dtype=leaf.dtype) if i == k else plait.zeros(n, sizes[i], dtype=leaf.dtype)
            for k, n in enumerate(sizes)
        ]
        rows.append(plait.cat(parts).reshape(sum(sizes), *leaf.shape))
    return rows


def _columns(out: Any, leaves: list[Any], sizes: list[int], spec: Any) -> Any:
    parts = plait.split(out, sizes)
    moved = [
        part.movedim(0, -1).reshape(*out.shape[1:], *leaf.shape)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return tree_unflatten(moved, spec)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return a function that returns the second derivatives of a `func` of one element.

    Example:
        >>> import plait
        >>> from plait_torch._func import hessian
        >>> hessian(lambda x: (x**3).sum())(plait.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of models of one class, stacked by name, for `vmap`.

    Example:
        >>> import plait
        >>> from plait_torch._func import stack_module_state
        >>> parameters, buffers = stack_module_state([plait.nn.Linear(2, 1) for _ in range(3)])
        >>> parameters["weight"].shape, buffers
        (plait.Size([3, 1, 2]), {})
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: at least one model is required, got none")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: models of one class are required")

    def stacked(kind: str) -> dict[str, Any]:
        states = [dict(getattr(model, kind)()) for model in models]
        return {
            name: plait.stack([state[name].detach() for state in states]).requires_grad_(
                first.requires_grad
            )
            for name, first in states[0].items()
        }

    return stacked("named_parameters"), stacked("named_buffers")
