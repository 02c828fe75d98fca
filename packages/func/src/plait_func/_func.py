"""`torch.func`: derivatives of functions, over plait's engine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import plait_core as pc
from plait_abi.components import require
from plait_func._vmap import vmap
from plait_func.pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from plait_nn import functional_call

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

autograd: Any = require("autograd")

_ENDED = "torch.func: its function has returned"


class _Level:
    """The inputs of one derivative: new tensors with the history of the given ones."""

    def __init__(self, trees: Sequence[Any]) -> None:
        self._recorded = autograd.is_grad_enabled()
        self.trees = [tree_map(self._own, tree) for tree in trees]
        self.leaves = [x for x in tree_leaves(self.trees) if pc.is_tensor(x) and x.requires_grad]
        self._roots: set[Any] = set()
        self._ended: list[bool] = []  # not empty when the function of this level has returned
        self.hide([x for x in self.leaves if x.is_leaf])

    def hide(self, leaves: list[Any]) -> None:
        """Let values for the caller not require grad because of these leaves."""
        for leaf in leaves:
            root = autograd.graph.get_gradient_edge(leaf).node
            root.metadata[_ENDED] = self._ended
            self._roots.add(root)

    def end(self) -> None:
        """Say that no derivative around this one is taken with respect to its inputs."""
        self._ended.append(True)

    def _own(self, leaf: Any) -> Any:
        if not pc.is_tensor(leaf) or not (leaf.dtype.is_floating_point or leaf.dtype.is_complex):
            return leaf
        with autograd.enable_grad():
            own = leaf.view_as(leaf) if leaf.requires_grad else leaf.detach().requires_grad_()
        return own

    def gradients(self, outputs: Any, cotangents: Any = None) -> list[Any]:
        """Return the gradient of each leaf, zeros for unused ones."""
        if pc.is_tensor(outputs) and not outputs.requires_grad:
            return [pc.zeros_like(leaf) for leaf in self.leaves]
        result = autograd.grad(
            outputs, self.leaves, cotangents, create_graph=True, allow_unused=True
        )
        return [
            pc.zeros_like(leaf) if gradient is None else gradient
            for gradient, leaf in zip(result, self.leaves, strict=True)
        ]

    def outside(self, tree: Any) -> Any:
        """Return values for the caller, without the history of this level."""
        ended: set[Any] = set()
        return tree_map(lambda x: x if self._is_followed(x, ended) else x.detach(), tree)

    def _is_followed(self, tensor: Any, ended: set[Any]) -> bool:
        """Return whether a tensor has a history outside of this level.

        `ended` are nodes that lead to none, of this and of other tensors.
        """
        if not pc.is_tensor(tensor) or not tensor.requires_grad:
            return True
        if not self._recorded:
            return False
        if tensor.grad_fn is None:
            return all(tensor is not leaf for leaf in self.leaves)
        seen, stack = set(), [tensor.grad_fn]
        while stack:
            node = stack.pop()
            if node in seen or node in ended:
                continue
            seen.add(node)
            following = [each for each, _ in node.next_functions if each is not None]
            if not following and node.name() == "AccumulateGrad" and not self._is_input(node):
                return True
            stack.extend(following)
        ended |= seen
        return False

    def _is_input(self, node: Any) -> bool:
        """Return whether a leaf is an input of this level, or of one that has ended."""
        return node in self._roots or bool(node.metadata.get(_ENDED))

    def like_trees(self, values: Sequence[Any]) -> list[Any]:
        """Return trees with the structure of the inputs and a value for each leaf."""
        rest = iter(values)
        ours = {id(leaf) for leaf in self.leaves}
        return [
            tree_map(lambda x: next(rest) if id(x) in ours else None, tree) for tree in self.trees
        ]


def _call(
    name: str, func: Callable[..., Any], args: tuple[Any, ...], argnums: Any, kwargs: dict[str, Any]
) -> tuple[_Level, Any]:
    """Call a function with new inputs in the place of some arguments; `name` is for errors."""
    numbers = _numbers(name, argnums, len(args))
    level = _Level([args[number] for number in numbers])
    if not level.leaves and numbers:
        text = ", ".join(map(_describe, tree_leaves([args[number] for number in numbers])))
        raise RuntimeError(
            f"{name}: floating point or complex tensors are required to differentiate for, got "
            + (text or "none")
        )
    replaced = list(args)
    for number, tree in zip(numbers, level.trees, strict=True):
        replaced[number] = tree
    try:
        with autograd.enable_grad():
            return level, func(*replaced, **kwargs)
    finally:
        level.end()


def _numbers(name: str, argnums: Any, count: int) -> tuple[int, ...]:
    """Return the positions of the arguments to differentiate for."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not all(isinstance(each, int) for each in numbers):
        raise RuntimeError(f"{name}: `argnums` must be an int or a tuple of ints, got {argnums!r}")
    if not all(-count <= each < count for each in numbers):
        raise RuntimeError(
            f"{name}: `argnums` {argnums} names an argument that does not exist: {count} were given"
        )
    results = tuple(each % count for each in numbers)
    if len(set(results)) != len(results):
        raise RuntimeError(f"{name}: `argnums` must not name an argument twice, got {argnums}")
    return results


def _describe(value: Any) -> str:
    """Return what an error says of a value."""
    if pc.is_tensor(value):
        return f"a tensor of shape {tuple(value.shape)} and {value.dtype}"
    return type(value).__name__


def _outputs(name: str, value: Any) -> tuple[list[Any], Any]:
    """Return the tensors that a function has returned, and their structure."""
    leaves, spec = tree_flatten(value)
    for each in leaves:
        if not pc.is_tensor(each):
            raise RuntimeError(f"{name}: `func` must return only tensors, got {_describe(each)}")
    return leaves, spec


def _refuse_complex(name: str, role: str, tensors: list[Any]) -> None:
    """Raise for complex tensors, of whose derivative a real row or column is only a part."""
    for i, each in enumerate(tensors):
        if each.is_complex():
            raise RuntimeError(
                f"{name}: all {role} must be real, got {_describe(each)} as {role[:-1]} {i}; use "
                "view_as_real"
            )


def _like(name: str, argument: str, arguments: Any, required: Any, of: str) -> list[Any]:
    """Return the leaves of a tree of vectors, which must be like the tensors that they belong to.

    `required` are leaves and a structure.
    """
    tensors, spec = required
    leaves, structure = tree_flatten(arguments)
    if structure != spec:
        raise RuntimeError(
            f"{name}: `{argument}` must have the structure of {of}, {spec}, got {structure}"
        )
    for i, (each, tensor) in enumerate(zip(leaves, tensors, strict=True)):
        if not pc.is_tensor(each) or each.shape != tensor.shape:
            raise RuntimeError(
                f"{name}: leaf {i} of `{argument}` must have the shape {tuple(tensor.shape)} of "
                f"{of}, got {_describe(each)}"
            )
    return leaves


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the gradient and the result of `func`.

    Args:
        func: returns a tensor of one element, with `has_aux` a pair of it and anything.
        argnums: the arguments to differentiate for; a tuple gives a tuple of gradients.
        has_aux: see `func`; the result is then ``(gradient, (value, aux))``.

    Example:
        >>> import plait_core as pc
        >>> from plait_func import grad_and_value
        >>> grad_and_value(lambda x: (x * x).sum())(pc.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        level, result = _call("grad", func, args, argnums, kwargs)
        value, aux = _parts("grad", result, has_aux)
        if not pc.is_tensor(value) or value.numel() != 1:
            raise RuntimeError(
                f"grad: `func` must return a tensor of one element, got {_describe(value)}"
            )
        with autograd.enable_grad():
            gradients = level.outside(level.like_trees(level.gradients(value)))
        entry = gradients[0] if isinstance(argnums, int) else tuple(gradients)
        seen = level.outside((value, aux)) if has_aux else level.outside(value)
        return entry, seen

    return derived


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the gradient of `func`; it can be differentiated again.

    Args:
        func, argnums, has_aux: see `grad_and_value`; with `has_aux` the result is
            ``(gradient, aux)``.

    Example:
        >>> import plait_core as pc
        >>> from plait_func import grad
        >>> grad(grad(pc.sin))(pc.tensor(0.5)) == -pc.tensor(0.5).sin()
        tensor(True)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return derived


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return ``func(*primals)`` and the function from cotangents to gradients, a tuple of them.

    Args:
        func: The function.
        *primals: The arguments at which it is differentiated.
        has_aux: Whether it returns a pair, whose second part is not differentiated.

    Example:
        >>> import plait_core as pc
        >>> from plait_func import vjp
        >>> y, pull = vjp(pc.exp, pc.zeros(2))
        >>> y, pull(pc.tensor([1.0, 2.0]))
        (tensor([1., 1.]), (tensor([1., 2.]),))
    """
    level, result = _call("vjp", func, primals, tuple(range(len(primals))), {})
    value, aux = _parts("vjp", result, has_aux)
    outputs, spec = _outputs("vjp", value)

    def pull(cotangents: Any) -> tuple[Any, ...]:
        vectors = _like("vjp", "cotangents", cotangents, (outputs, spec), "the outputs")
        pairs = [
            (out, vector) for out, vector in zip(outputs, vectors, strict=True) if out.requires_grad
        ]
        if not pairs:
            return tuple(level.like_trees([pc.zeros_like(leaf) for leaf in level.leaves]))
        recorded, weights = (list(each) for each in zip(*pairs, strict=True))
        with autograd.enable_grad():
            entry = level.gradients(recorded, weights)
        return tuple(level.outside(level.like_trees(entry)))

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

    Args:
        func: a function of tensors, and containers of them, that returns the like.
        primals: its arguments: where the derivative is taken.
        tangents: the direction, with the structure and shapes of the primals.
        strict: raise for a result that does not depend on the primals, instead of a tangent of
            zeros.
        has_aux: `func` returns a pair, of which the second is returned as it is.

    Raises:
        ValueError: if a primal is neither floating point nor complex.
        RuntimeError: if the tangents differ from the primals in structure or shape, a result of
            `func` is not a tensor, or, with `strict`, does not depend on the primals.

    Example:
        >>> import plait_core as pc
        >>> from plait_func import jvp
        >>> jvp(pc.sin, (pc.zeros(2),), (pc.tensor([1.0, 2.0]),))
        (tensor([0., 0.]), tensor([1., 2.]))
    """
    for argument, original in (("primals", primals), ("tangents", tangents)):
        if not isinstance(original, tuple):
            raise RuntimeError(f"jvp: `{argument}` must be a tuple, got {_describe(original)}")
    if not tree_leaves(primals):
        raise RuntimeError("jvp: `primals` must have at least one tensor, got none")
    required = _differentiable("jvp", primals)
    vectors = _like("jvp", "tangents", tangents, required, "the primals")
    level, result = _call("jvp", func, primals, tuple(range(len(primals))), {})
    value, aux = _parts("jvp", result, has_aux)
    outputs, spec = _outputs("jvp", value)
    if strict:
        _check_dependence(level, outputs)
    directions = _linear_map(level, outputs)(vectors)
    seen = level.outside(value)
    tangent = level.outside(tree_unflatten(directions, spec))
    return (seen, tangent, level.outside(aux)) if has_aux else (seen, tangent)


def _check_dependence(level: _Level, outputs: list[Any]) -> None:
    for i, out in enumerate(outputs):
        results: Any = (None,)
        if out.requires_grad:
            results = autograd.grad(
                out, level.leaves, pc.zeros_like(out), retain_graph=True, allow_unused=True
            )
        if all(gradient is None for gradient in results):
            raise RuntimeError(
                f"jvp: leaf {i} of the outputs does not depend on the primals, and `strict` is True"
            )


def _differentiable(name: str, primals: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """Return the leaves of arguments, which must all be tensors with a derivative, and their
    structure.
    """
    leaves, spec = tree_flatten(primals)
    for i, each in enumerate(leaves):
        if not pc.is_tensor(each):
            raise RuntimeError(
                f"{name}: leaf {i} of `primals` must be a tensor, got {_describe(each)}"
            )
        if not (each.dtype.is_floating_point or each.dtype.is_complex):
            raise ValueError(
                f"{name}: leaf {i} of `primals` must be floating point or complex, got "
                f"{_describe(each)}"
            )
    return leaves, spec


def _linear_map(level: _Level, outputs: list[Any]) -> Callable[[list[Any]], list[Any]]:
    """Return the function from a tangent for each input to one for each output.

    The vjp is linear in its cotangents; its own vjp, which does not depend on their values, is the
    derivative in a direction. The backward pass of the function is run here, once.
    """
    recorded = [out for out in outputs if out.requires_grad]
    with autograd.enable_grad():
        cotangents = [pc.zeros_like(out).requires_grad_() for out in recorded]
        level.hide(cotangents)
        pulled = level.gradients(recorded, cotangents) if recorded else []
    # of inputs that are not used the vjp is a constant
    used = [i for i, gradient in enumerate(pulled) if gradient.requires_grad]

    def push(tangents: list[Any]) -> list[Any]:
        result: Any = [None] * len(recorded)
        if used:
            with autograd.enable_grad():
                result = autograd.grad(
                    [pulled[i] for i in used],
                    cotangents,
                    [tangents[i] for i in used],
                    create_graph=True,
                    allow_unused=True,
                )
        rest = iter(result)
        output = [next(rest) if out.requires_grad else None for out in outputs]
        return [
            pc.zeros_like(out) if direction is None else direction
            for out, direction in zip(outputs, output, strict=True)
        ]

    return push


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``func(*primals)`` and the function from tangents to the derivative along them.

    `func` is called once, however often the second function is; that one takes a tangent for each
    of the primals, and keeps what `func` has saved for the derivative. It can be differentiated and
    used in `vmap`.

    Args:
        func: a function of tensors, and containers of them, that returns the like.
        primals: its arguments: where the derivative is taken.

    Raises:
        ValueError: if a primal is neither floating point nor complex.
        RuntimeError: if a primal, or a result of `func`, is not a tensor; from the second function,
            if the tangents differ from the primals in structure, shape or dtype.

    Example:
        >>> import plait_core as pc
        >>> from plait_func import linearize
        >>> y, push = linearize(pc.sin, pc.zeros(2))
        >>> y, push(pc.tensor([1.0, 2.0])), push(pc.ones(2))
        (tensor([0., 0.]), tensor([1., 2.]), tensor([1., 1.]))
    """
    required = _differentiable("linearize", primals)
    level, value = _call("linearize", func, primals, tuple(range(len(primals))), {})
    outputs, spec = _outputs("linearize", value)
    push = _linear_map(level, outputs)

    def jvp_fn(*tangents: Any) -> Any:
        vectors = _like("linearize", "tangents", tangents, required, "the primals")
        for i, (each, primal) in enumerate(zip(vectors, required[0], strict=True)):
            if each.dtype is not primal.dtype:
                raise RuntimeError(
                    f"linearize: leaf {i} of `tangents` must have the dtype {primal.dtype} of the "
                    f"primals, got {each.dtype}"
                )
        return level.outside(tree_unflatten(push(vectors), spec))

    return level.outside(value), jvp_fn


def _parts(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Return the value of a function and what it has returned beside it."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: with `has_aux` the function must return a pair of its value and anything, "
            f"got {_describe(result)}"
        )
    return result


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

    Args:
        func: The function.
        argnums: The number of the argument to differentiate, or several.
        has_aux: Whether it returns a pair, whose second part is not differentiated.
        chunk_size: How many rows are computed at once; None: all.

    Example:
        >>> import plait_core as pc
        >>> from plait_func import jacrev
        >>> jacrev(lambda x: x**2)(pc.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        level, result = _call("jacrev", func, args, argnums, kwargs)
        value, aux = _parts("jacrev", result, has_aux)
        outputs, spec = _outputs("jacrev", value)
        _refuse_complex("jacrev", "inputs", level.leaves)
        _refuse_complex("jacrev", "outputs", outputs)
        with autograd.enable_grad():
            entry = level.outside([level.like_trees(r) for r in _rows(level, outputs, chunk_size)])
        jacobians = [trees[0] if isinstance(argnums, int) else tuple(trees) for trees in entry]
        whole = tree_unflatten(jacobians, spec)
        return (whole, level.outside(aux)) if has_aux else whole

    return derived


def _rows(level: _Level, outputs: list[Any], chunk_size: int | None) -> list[list[Any]]:
    """Return the Jacobian of each output for each leaf: the rows of all in one backward pass.

    A pass for each output would go through what several outputs need once for each of them.
    """
    rows = [[leaf.new_zeros((*out.shape, *leaf.shape)) for leaf in level.leaves] for out in outputs]
    recorded = [i for i, out in enumerate(outputs) if out.requires_grad and out.numel()]
    if not recorded:
        return rows
    tensors = [outputs[i] for i in recorded]
    sizes = [out.numel() for out in tensors]
    result = vmap(lambda *arguments: level.gradients(tensors, arguments), chunk_size=chunk_size)(
        *_basis(tensors, sizes)
    )
    for k, (of_leaf, leaf) in enumerate(zip(result, level.leaves, strict=True)):
        for i, part in zip(recorded, pc.split(of_leaf, sizes), strict=True):
            rows[i][k] = part.reshape(*outputs[i].shape, *leaf.shape)
    return rows


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `func`, by columns, all at once.

    For functions with more outputs than inputs it takes less time than `jacrev`.

    Args:
        func: The function.
        argnums: The number of the argument to differentiate, or several.
        has_aux: Whether it returns a pair, whose second part is not differentiated.
        randomness: Of `vmap`: "error", "same" or "different".

    Example:
        >>> import plait_core as pc
        >>> from plait_func import jacfwd
        >>> jacfwd(lambda x: x**2)(pc.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        numbers = _numbers("jacfwd", argnums, len(args))
        primals = tuple(args[number] for number in numbers)
        leaves, spec = _differentiable("jacfwd", primals)
        _refuse_complex("jacfwd", "inputs", leaves)
        sizes = [leaf.numel() for leaf in leaves]

        def of(*selection: Any) -> Any:
            replaced = list(args)
            for number, value in zip(numbers, selection, strict=True):
                replaced[number] = value
            return func(*replaced, **kwargs)

        def column(*directions: Any) -> Any:
            tangents = tree_unflatten(list(directions), spec)
            result = jvp(of, primals, tangents, has_aux=has_aux)
            return (result[1], result[2]) if has_aux else result[1]

        columns = vmap(column, out_dims=(0, None) if has_aux else 0, randomness=randomness)(
            *_basis(leaves, sizes)
        )
        columns, aux = columns if has_aux else (columns, None)
        outputs, shape = tree_flatten(columns)
        results = [_columns(out, leaves, sizes, spec) for out in outputs]
        whole = tree_unflatten(
            [each[0] if isinstance(argnums, int) else each for each in results], shape
        )
        return (whole, aux) if has_aux else whole

    return derived


def _basis(leaves: list[Any], sizes: list[int]) -> list[Any]:
    """Return for each leaf all directions, those of the other leaves being 0."""
    rows = []
    for i, leaf in enumerate(leaves):
        parts = [
            pc.eye(n, dtype=leaf.dtype) if i == k else pc.zeros(n, sizes[i], dtype=leaf.dtype)
            for k, n in enumerate(sizes)
        ]
        rows.append(pc.cat(parts).reshape(sum(sizes), *leaf.shape))
    return rows


def _columns(out: Any, leaves: list[Any], sizes: list[int], spec: Any) -> Any:
    parts = pc.split(out, sizes)
    moved = [
        part.movedim(0, -1).reshape(*out.shape[1:], *leaf.shape)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return tree_unflatten(moved, spec)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return a function that returns the second derivatives of a `func` of one element.

    Args:
        func: The function.
        argnums: The number of the argument to differentiate, or several.

    Example:
        >>> import plait_core as pc
        >>> from plait_func import hessian
        >>> hessian(lambda x: (x**3).sum())(pc.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of models of one class, stacked by name, for `vmap`.

    Args:
        models: The models, of one class and with equal shapes.

    Example:
        >>> import plait_nn
        >>> from plait_func import stack_module_state
        >>> parameters, buffers = stack_module_state([plait_nn.Linear(2, 1) for _ in range(3)])
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
            name: pc.stack([state[name].detach() for state in states]).requires_grad_(
                first.requires_grad
            )
            for name, first in states[0].items()
        }

    return stacked("named_parameters"), stacked("named_buffers")
