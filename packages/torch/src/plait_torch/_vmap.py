"""`vmap`: a function of samples, called for each sample of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import plait
from plait_torch._pytree import tree_flatten, tree_unflatten

__all__ = ["vmap"]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that calls `func` for each sample of its arguments and stacks the results.

    Values and derivatives are those of PyTorch, which calls the function once for all samples. Here
    a loop calls it for each sample, which takes more time.

    Args:
        func: a function of tensors and containers of them.
        in_dims: the dimension of the samples: one for all arguments, or one for each (nested like
            the argument); None for an argument that all samples share.
        out_dims: the dimension of the samples in the results.
        randomness: random functions draw anew for each sample, which is "different"; "same" is not
            supported, and "error" is not enforced.
        chunk_size: has no effect.

    Raises:
        ValueError: if no argument has a dimension of samples, or their sizes differ.

    Example:
        >>> import plait
        >>> from plait_torch._vmap import vmap
        >>> vmap(plait.dot)(plait.ones(3, 2), plait.arange(6.0).reshape(3, 2))
        tensor([1., 5., 9.])
    """
    if randomness == "same":
        raise NotImplementedError("vmap: randomness='same' is not there; draw outside of `func`")

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((list(args), kwargs), is_leaf=_has_samples)
        positional = _dims_of(in_dims, list(args), "in_dims")
        dims = positional + [0] * (len(leaves) - len(positional))
        size = _size(leaves, dims)
        results, shape = [], None
        for i in range(size):
            sample = [
                leaf if dim is None else _sample(leaf, dim, i)
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            its_args, its_kwargs = tree_unflatten(sample, spec)
            parts, shape = tree_flatten(func(*its_args, **its_kwargs), is_leaf=_has_samples)
            results.append(parts)
        if not results:
            raise ValueError("vmap: at least one sample is required, got a dimension of size 0")
        whole = tree_unflatten(results[0], shape)
        result_dims = _dims_of(out_dims, whole, "out_dims")
        return tree_unflatten(
            [
                _stack(column, dim)
                for column, dim in zip(zip(*results, strict=True), result_dims, strict=True)
            ],
            shape,
        )

    return batched


def _has_samples(value: Any) -> bool:
    """Return whether a container takes part as a whole: one of tensors with a common batch."""
    return hasattr(type(value), "_add_batch_dim")


def _is_value(leaf: Any) -> bool:
    return plait.is_tensor(leaf) or _has_samples(leaf)


def _sample(leaf: Any, dim: int, index: int) -> Any:
    if plait.is_tensor(leaf):
        return leaf.select(dim, index)
    return leaf[(slice(None),) * (dim % leaf.dim()) + (index,)]


def _stack(column: Any, dim: Any) -> Any:
    if dim is None:
        return column[0]
    values = [each if _is_value(each) else plait.tensor(each) for each in column]
    return plait.stack(values, dim)


def _dims_of(dims: Any, tree: Any, argument: str) -> list[Any]:
    """Return a dimension for each leaf: `dims` is one dimension, or containers with the outer
    structure of the tree.
    """
    if dims is None or isinstance(dims, int):
        return [
            dims if argument == "out_dims" or _is_value(leaf) else None
            for leaf in tree_flatten(tree, is_leaf=_has_samples)[0]
        ]
    inner = list(tree.values()) if isinstance(tree, dict) else tree
    each = list(dims.values()) if isinstance(dims, dict) else dims
    if not isinstance(inner, (list, tuple)) or len(inner) != len(each):
        raise ValueError(f"vmap: `{argument}` must have the structure of the values, got {dims!r}")
    found: list[Any] = []
    for dim, part in zip(each, inner, strict=True):
        found += _dims_of(dim, part, argument)
    return found


def _size(leaves: list[Any], dims: list[Any]) -> int:
    sizes = set()
    for index, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not _is_value(leaf) or not -leaf.dim() <= dim < leaf.dim():
            shown = tuple(leaf.shape) if plait.is_tensor(leaf) else type(leaf).__name__
            raise ValueError(f"vmap: leaf {index} has no dimension {dim}: {shown}")
        sizes.add(leaf.shape[dim])
    if len(sizes) != 1:
        raise ValueError(
            "vmap: one number of samples is required, got "
            + (f"sizes {sorted(sizes)}" if sizes else "no tensor with `in_dims` other than None")
        )
    return int(sizes.pop())
