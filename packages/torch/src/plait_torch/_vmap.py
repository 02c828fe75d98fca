"""`vmap`: a function of one sample, called once for all samples of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import plait
from plait_core.overrides import watch_thread
from plait_torch._batched_tensor import BatchedTensor, end, enter, leave
from plait_torch._batching import begin
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
    """Return a function that calls `func` once for all samples of its arguments.

    Inside of `func` tensors look like those of one sample; each operator is called for all of them
    by its batching rule (docs/design/0043). Derivatives may be taken inside, outside, or both, and
    calls of `vmap` may be nested.

    Args:
        func: a function of tensors and containers of them. It may not ask for the elements of a
            sample in Python.
        in_dims: the dimension of the samples: one for all arguments, or one for each (nested like
            the argument); None for an argument that all samples share.
        out_dims: the dimension of the samples in the results.
        randomness: "error" refuses operators that draw random numbers, "different" draws anew for
            each sample, "same" once for all.
        chunk_size: the most samples at once; None: all.

    Raises:
        ValueError: if no argument has a dimension of samples, or their sizes differ.
        RuntimeError: if `func` reads the elements of a sample, draws random numbers under "error",
            or writes what differs between samples into a tensor that they share.

    Example:
        >>> import plait
        >>> from plait_torch._vmap import vmap
        >>> vmap(plait.dot)(plait.ones(3, 2), plait.arange(6.0).reshape(3, 2))
        tensor([1., 5., 9.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"vmap: `randomness` must be 'error', 'different' or 'same', got {randomness!r}"
        )
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: `chunk_size` must be positive, got {chunk_size}")

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((list(args), kwargs), is_leaf=_has_samples)
        positional = _dims_of(in_dims, list(args), "in_dims")
        dims = positional + [0] * (len(leaves) - len(positional))
        size = _size(leaves, dims)
        if not size:
            raise ValueError("vmap: at least one sample is required, got a dimension of size 0")
        if any(map(_has_samples, leaves)):
            return _one_by_one(func, leaves, dims, spec, size, out_dims)
        if chunk_size is None or chunk_size >= size:
            return _at_once(func, leaves, dims, spec, size, out_dims, randomness)
        return _in_chunks(func, leaves, dims, spec, size, out_dims, randomness, chunk_size)

    return batched


def _at_once(
    func: Callable[..., Any],
    leaves: list[Any],
    dims: list[Any],
    spec: Any,
    size: int,
    out_dims: Any,
    randomness: str,
) -> Any:
    level = begin(size, randomness)
    before = watch_thread(True) if randomness != "same" else None
    try:
        sample = [
            leaf if dim is None else enter(leaf.movedim(dim, 0), level)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        its_args, its_kwargs = tree_unflatten(sample, spec)
        results, shape = tree_flatten(func(*its_args, **its_kwargs))
    finally:
        if before is not None:
            watch_thread(before)
        end()
    result_dims = _dims_of(out_dims, tree_unflatten(results, shape), "out_dims")
    return tree_unflatten(
        [
            _result(result, dim, level, size)
            for result, dim in zip(results, result_dims, strict=True)
        ],
        shape,
    )


def _result(result: Any, dim: Any, level: int, size: int) -> Any:
    if not plait.is_tensor(result):
        if dim is None:
            return result
        raise ValueError(
            f"vmap: the function must return tensors, got {type(result).__name__}; give None in "
            "`out_dims` for what all samples share"
        )
    if dim is None:
        if isinstance(result, BatchedTensor) and result.level == level:
            raise ValueError("vmap: `out_dims` is None for a result that differs between samples")
        return result
    return leave(result, level, size).movedim(0, dim)


def _in_chunks(
    func: Callable[..., Any],
    leaves: list[Any],
    dims: list[Any],
    spec: Any,
    size: int,
    out_dims: Any,
    randomness: str,
    chunk: int,
) -> Any:
    parts, shape = [], None
    for first in range(0, size, chunk):
        count = min(chunk, size - first)
        some = [
            leaf if dim is None else leaf.narrow(dim, first, count)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        made, shape = tree_flatten(_at_once(func, some, dims, spec, count, out_dims, randomness))
        parts.append(made)
    result_dims = _dims_of(out_dims, tree_unflatten(parts[0], shape), "out_dims")
    return tree_unflatten(
        [
            column[0] if dim is None else plait.cat(column, dim)
            for column, dim in zip(map(list, zip(*parts, strict=True)), result_dims, strict=True)
        ],
        shape,
    )


def _one_by_one(
    func: Callable[..., Any],
    leaves: list[Any],
    dims: list[Any],
    spec: Any,
    size: int,
    out_dims: Any,
) -> Any:
    """Call a function of containers for each sample; their own code takes them apart."""
    results, shape = [], None
    for i in range(size):
        sample = [
            leaf if dim is None else _sample(leaf, dim, i)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        its_args, its_kwargs = tree_unflatten(sample, spec)
        parts, shape = tree_flatten(func(*its_args, **its_kwargs), is_leaf=_has_samples)
        results.append(parts)
    result_dims = _dims_of(out_dims, tree_unflatten(results[0], shape), "out_dims")
    return tree_unflatten(
        [
            _stack(column, dim)
            for column, dim in zip(zip(*results, strict=True), result_dims, strict=True)
        ],
        shape,
    )


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
