"""The rule that a `Function` has for `vmap` itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import plait_core as pc
from plait_func import _layer
from plait_func._batched_tensor import (
    enter,
    find_level,
    leave,
    level_of,
    samples_of,
    with_own_history,
)
from plait_func.pytree import broadcast_to_and_flatten, tree_flatten, tree_unflatten


class VmapInfo(NamedTuple):
    """The description of the call of `vmap` for the rule of a `Function`."""

    batch_size: int
    randomness: str


def serve_function(function: type[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the rule of a function for the innermost call of `vmap` that has samples among its
    arguments; NotImplemented if there are none.

    The rule runs outside of that call of `vmap`, with the history of the samples.
    """
    leaves, spec = tree_flatten(args)
    results = [each for each in map(level_of, leaves) if each is not None]
    if not results:
        return NotImplemented
    name = function.__name__
    if kwargs:
        raise TypeError(f"{name}: within vmap a function with a rule takes no keyword arguments")
    if function.generate_vmap_rule:
        raise RuntimeError(
            f"{name}: it has a static method vmap, so `generate_vmap_rule` must not be True"
        )
    samples, level = max(results, key=lambda each: each[1])
    size = samples.shape[0]
    entered = find_level(level)
    info = VmapInfo(size, "error" if entered is None else entered.randomness)
    inputs = [with_own_history(leaf, level, size) for leaf in leaves]
    dims = [None if _samples(leaf, level) is None else 0 for leaf in inputs]
    values = [
        leaf if dim is None else leave(leaf, level, size)
        for leaf, dim in zip(inputs, dims, strict=True)
    ]
    in_dims, arguments = tree_unflatten(dims, spec), tree_unflatten(values, spec)
    result = _layer.outside(level, lambda: function.vmap(info, tuple(in_dims), *arguments))
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: vmap must return a pair of its outputs and their dimensions of samples, got "
            f"{type(result).__name__}"
        )
    return _entered(name, *result, level, size)


def _samples(leaf: Any, level: int) -> Any:
    return samples_of(leaf, level) if pc.is_tensor(leaf) else None


def _entered(name: str, outputs: Any, out_dims: Any, level: int, size: int) -> Any:
    """Return what a rule has returned as tensors of a sample."""
    leaves, spec = tree_flatten(outputs)
    dims = broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            f"{name}: the dimensions that vmap returns must have the structure of its outputs, got "
            f"{out_dims!r}"
        )
    result = []
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None or not pc.is_tensor(leaf):
            result.append(leaf)
            continue
        if not -leaf.ndim <= dim < leaf.ndim or leaf.shape[dim] != size:
            raise RuntimeError(
                f"{name}: vmap says that dimension {dim} of an output has the {size} samples, and "
                f"its shape is {tuple(leaf.shape)}"
            )
        result.append(enter(leaf.movedim(dim, 0), level))
    return tree_unflatten(result, spec)
