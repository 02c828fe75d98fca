"""`torch._higher_order_ops`: scans with an associative function, and loops.

transformers uses it for recurrent models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait
from plait.func.pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan", "while_loop"]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> tuple[Any, ...]:
    """Call ``x = body_fn(*x)`` while ``cond_fn(*x)`` is true; return x.

    Example:
        >>> import plait
        >>> from plait_torch._scan import while_loop
        >>> inputs = (plait.tensor(0), plait.ones(2))
        >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), inputs)
        (tensor(3), tensor([8., 8.]))
    """
    values = tuple(carried_inputs)
    while bool(cond_fn(*values)):
        values = tuple(body_fn(*values))
    return values


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
    **options: Any,
) -> Any:
    """Return ``x[0], f(x[0], x[1]), f(f(x[0], x[1]), x[2]), ...`` along a dimension.

    The operation must be associative: it is called with many elements at once, in about
    ``2 log2(n)`` rounds.

    Args:
        combine_fn: a function of two trees of tensors like `xs` that returns one.
        xs: tensors, also in containers, of one length along `dim`.
        dim: the dimension.
        reverse: begin at the end.
        combine_mode: has no effect.

    Example:
        >>> import plait
        >>> from plait_torch._scan import associative_scan
        >>> associative_scan(lambda a, b: a * b, plait.arange(1, 6), 0)
        tensor([  1,   2,   6,  24, 120])
    """
    leaves, spec = tree_flatten(xs)
    if not leaves:
        return xs
    if any(leaf.shape[dim] != leaves[0].shape[dim] for leaf in leaves):
        raise ValueError("associative_scan: tensors of one length along `dim` are required")
    if reverse:
        leaves = [leaf.flip(dim) for leaf in leaves]

    def combine(one: list[Any], two: list[Any]) -> list[Any]:
        return tree_flatten(combine_fn(tree_unflatten(one, spec), tree_unflatten(two, spec)))[0]

    result = _scan(combine, leaves, dim)
    return tree_unflatten([leaf.flip(dim) for leaf in result] if reverse else result, spec)


def _part(leaves: list[Any], dim: int, start: int, stop: int, step: int) -> list[Any]:
    index = plait.arange(start, stop, step)
    return [leaf.index_select(dim, index) for leaf in leaves]


def _scan(combine: Callable[..., list[Any]], leaves: list[Any], dim: int) -> list[Any]:
    length = leaves[0].shape[dim]
    if length < 2:
        return leaves
    # the scan of pairs of neighbours, and the elements between from one more combination
    pairs = combine(_part(leaves, dim, 0, length - 1, 2), _part(leaves, dim, 1, length, 2))
    odd = _scan(combine, pairs, dim)
    first = _part(leaves, dim, 0, 1, 1)
    if length == 2:
        return [plait.cat(both, dim) for both in zip(first, odd, strict=True)]
    after = _part(leaves, dim, 2, length, 2)
    count = after[0].shape[dim]
    even = combine(_part(odd, dim, 0, count, 1), after)
    even = [plait.cat(both, dim) for both in zip(first, even, strict=True)]
    return [_alternating(one, two, dim, length) for one, two in zip(even, odd, strict=True)]


def _alternating(even: Any, odd: Any, dim: int, length: int) -> Any:
    """Return the interleaved elements of two tensors."""
    together = plait.cat([even, odd], dim)
    n = even.shape[dim]
    order = [i // 2 if i % 2 == 0 else n + i // 2 for i in range(length)]
    return together.index_select(dim, plait.tensor(order))
