"""`vmap`: a function of one sample, called once for all samples of a batch."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import plait_core as pc
from plait_func import _layer
from plait_func._batched_tensor import enter, leave, samples_of
from plait_func._batching import within
from plait_func._generator_states import GeneratorStates
from plait_func.pytree import tree_flatten, tree_unflatten
from plait_nn import Parameter


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
    calls of `vmap` may be nested. Of a batch of 0 samples the results have 0 samples.

    An int tensor that differs between samples is an array of indices, also without dimensions: in
    ``x[i, :, [0, 1]]`` what `i` and the list select comes first, while an int that all samples
    share leaves the list in its place.

    A tensor that `func` makes without the samples, such as ``zeros(3)``, is one that they share,
    until a value that differs between samples, or a random number of each, is written to it.

    Args:
        func: a function of tensors and containers of them. It may not ask for the elements of a
            sample in Python.
        in_dims: the dimension of the samples: one for all arguments, or one for each (nested like
            the argument); None for an argument that all samples share, as those by keyword are.
        out_dims: the dimension of the samples in the results.
        randomness: "error" refuses operators that draw random numbers, "different" draws anew for
            each sample, "same" once for all.
        chunk_size: the most samples at once; None: all.

    Raises:
        ValueError: if no argument has a dimension of samples, or their sizes differ.
        RuntimeError: if `func` reads the elements of a sample, draws random numbers under "error",
            writes what differs between samples into a tensor that they share, or calls
            `backward()`.

    Example:
        >>> import plait_core as pc
        >>> from plait_func import vmap
        >>> vmap(pc.dot)(pc.ones(3, 2), pc.arange(6.0).reshape(3, 2))
        tensor([1., 5., 9.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"vmap: `randomness` must be 'error', 'different' or 'same', got {randomness!r}"
        )
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"vmap: `chunk_size` must be a positive int or None, got {chunk_size!r}")

    def batched(*args: Any, **kwargs: Any) -> Any:
        if chunk_size is not None:
            return _general(func, args, kwargs, in_dims, out_dims, randomness, chunk_size)
        return _layer.vmap(func, args, kwargs, in_dims, out_dims, randomness, _general, _results)

    _describe(batched, func)
    return batched


_ANNOTATIONS = "__annotate__" if sys.version_info >= (3, 14) else "__annotations__"
_Operator = type(pc.exp)


def _describe(function: Any, wrapped: Any) -> None:
    """Do the same as `functools.wraps` in less time: programs call ``vmap(f)(x)`` in loops."""
    if type(wrapped) is FunctionType:
        setattr(function, _ANNOTATIONS, getattr(wrapped, _ANNOTATIONS))
        function.__dict__.update(wrapped.__dict__)
    elif type(wrapped) is not _Operator:
        functools.update_wrapper(function, wrapped)
        return
    function.__name__, function.__qualname__ = wrapped.__name__, wrapped.__qualname__
    function.__module__, function.__doc__ = wrapped.__module__, wrapped.__doc__
    function.__wrapped__ = wrapped


def _general(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None = None,
) -> Any:
    """Call a function for all samples of arguments of any kind."""
    call = _Arguments(args, kwargs, in_dims)
    if call.spec is not None and any(map(_has_samples, call.leaves)):
        return _one_by_one(func, call, out_dims, randomness)
    if chunk_size is None or chunk_size >= call.size:
        return _at_once(func, call, out_dims, randomness)
    return _in_chunks(func, call, out_dims, randomness, chunk_size)


class _Arguments:
    """The leaves of a call's arguments, and the dimension of the samples in each leaf."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], in_dims: Any) -> None:
        self.spec, self.kwargs = None, kwargs
        if not all(map(_is_plain, args)):
            self.leaves, self.spec = tree_flatten(list(args), is_leaf=_has_samples)
        else:
            self.leaves = list(args)
        self.dims = _dims_of(in_dims, args, "in_dims")
        self.size = _size(self.leaves, self.dims)

    def call(self, func: Callable[..., Any], change: Callable[[Any, int], Any]) -> Any:
        """Call a function; `change` replaces each leaf that has samples."""
        leaves = [
            leaf if dim is None else change(leaf, dim)
            for leaf, dim in zip(self.leaves, self.dims, strict=True)
        ]
        args = leaves if self.spec is None else tree_unflatten(leaves, self.spec)
        return func(*args, **self.kwargs)

    def part(self, first: int, count: int) -> _Arguments:
        """Return the arguments with some of the samples."""
        chunk = copy.copy(self)
        chunk.size = count
        chunk.leaves = [
            leaf if dim is None else leaf.narrow(dim, first, count)
            for leaf, dim in zip(self.leaves, self.dims, strict=True)
        ]
        return chunk


def _is_plain(value: Any) -> bool:
    """Return whether a value is a tensor, so a leaf; this needs no look into the registry."""
    return isinstance(value, pc.Tensor)


def _each_result(change: Callable[[Any, Any], Any], results: Any, out_dims: Any) -> Any:
    """Apply `change` to each leaf of `results` and its dimension; return the same structure.

    A leaf may be a column: the values of one result in several calls.
    """
    if _is_plain(results) or _is_column(results):
        if isinstance(out_dims, tuple) and len(out_dims) == 1:
            (out_dims,) = out_dims
        if isinstance(out_dims, int):
            return change(results, out_dims)
    leaves, spec = tree_flatten(results, is_leaf=_is_column)
    dims = _dims_of(out_dims, results, "out_dims")
    return tree_unflatten(list(map(change, leaves, dims)), spec)


class _Column(list[Any]):
    """The values of one result in several calls."""


def _is_column(value: Any) -> bool:
    return isinstance(value, _Column) or _has_samples(value)


def _columns(calls: list[Any]) -> Any:
    """Return the results of several calls as one, with a column for each leaf."""
    rows = [tree_flatten(each, is_leaf=_has_samples) for each in calls]
    columns = map(_Column, zip(*(leaves for leaves, _ in rows), strict=True))
    return tree_unflatten(list(columns), rows[0][1])


def _at_once(func: Callable[..., Any], call: _Arguments, out_dims: Any, randomness: str) -> Any:
    def inside(level: int) -> tuple[Any, int]:
        return call.call(func, lambda leaf, dim: enter(_moved(leaf, dim, 0), level)), level

    results, level = within(call.size, randomness, inside)
    return _results(results, out_dims, level, call.size)


def _results(results: Any, out_dims: Any, level: int, size: int) -> Any:
    """Convert a function's results for all samples to those of the call of `vmap`."""
    return _each_result(lambda result, dim: _result(result, dim, level, size), results, out_dims)


def _moved(tensor: Any, source: int, destination: int) -> Any:
    return tensor if source == destination else tensor.movedim(source, destination)


def _result(result: Any, dim: Any, level: int, size: int) -> Any:
    if not pc.is_tensor(result):
        if dim is None:
            return result
        raise ValueError(
            f"vmap: the function must return tensors, got {type(result).__name__}; give None in "
            "`out_dims` for what all samples share"
        )
    if dim is None:
        if samples_of(result, level) is not None:
            raise ValueError("vmap: `out_dims` is None for a result that differs between samples")
        return result
    return _moved(leave(result, level, size), 0, dim)


def _in_chunks(
    func: Callable[..., Any], call: _Arguments, out_dims: Any, randomness: str, chunk: int
) -> Any:
    parts = []
    states = GeneratorStates()
    for first in range(0, call.size, chunk):
        some = call.part(first, min(chunk, call.size - first))
        if randomness == "same":
            states.restore()
        parts.append(_at_once(func, some, out_dims, randomness))
    return _each_result(
        lambda column, dim: column[0] if dim is None else pc.cat(column, dim),
        _columns(parts),
        out_dims,
    )


def _one_by_one(func: Callable[..., Any], call: _Arguments, out_dims: Any, randomness: str) -> Any:
    """Call a function of containers once for each sample; `container[index]` is a sample."""
    if not call.size:
        raise NotImplementedError("vmap: containers with a batch of 0 samples are not supported")
    states = GeneratorStates()
    parts = []
    for i in range(call.size):
        if randomness == "same":
            states.restore()

        def one(level: int, i: int = i) -> Any:
            return call.call(func, lambda leaf, dim: _sample(leaf, dim, i))

        # nothing is batched here; `within` refuses random operators if `randomness` is "error"
        parts.append(within(1, randomness, one) if randomness == "error" else one(0))
    return _each_result(_stack, _columns(parts), out_dims)


# common types that are not containers with samples
_PLAIN_TYPES = frozenset({pc.Tensor, Parameter, dict, list, tuple, int, float, str})


def _has_samples(value: Any) -> bool:
    """Return whether a value is a container of tensors that has samples itself."""
    kind = type(value)
    return kind not in _PLAIN_TYPES and hasattr(kind, "_add_batch_dim")


def _is_value(leaf: Any) -> bool:
    return pc.is_tensor(leaf) or _has_samples(leaf)


def _sample(leaf: Any, dim: int, index: int) -> Any:
    if pc.is_tensor(leaf):
        return leaf.select(dim, index)
    return leaf[(slice(None),) * (dim % leaf.dim()) + (index,)]


def _stack(column: Any, dim: Any) -> Any:
    if dim is None:
        return column[0]
    values = [each if _is_value(each) else pc.tensor(each) for each in column]
    return pc.stack(values, dim)


def _dims_of(dims: Any, tree: Any, argument: str) -> list[Any]:
    """Return a dimension for each leaf: `dims` is one dimension, or containers with the outer
    structure of the tree.
    """
    if dims is None or isinstance(dims, int):
        if isinstance(tree, tuple) and all(map(_is_plain, tree)):
            return [dims] * len(tree)
        return [
            dims if argument == "out_dims" or _is_value(leaf) else None
            for leaf in tree_flatten(tree, is_leaf=_is_column)[0]
        ]
    inner = list(tree.values()) if isinstance(tree, dict) else tree
    each = list(dims.values()) if isinstance(dims, dict) else dims
    same = isinstance(inner, (list, tuple)) and isinstance(each, (list, tuple))
    if isinstance(tree, dict) and isinstance(dims, dict) and tree.keys() != dims.keys():
        same = False
    if not same or len(inner) != len(each):
        raise ValueError(f"vmap: `{argument}` must have the structure of the values, got {dims!r}")
    results: list[Any] = []
    for dim, part in zip(each, inner, strict=True):
        results += _dims_of(dim, part, argument)
    return results


def _size(leaves: list[Any], dims: list[Any]) -> int:
    sizes = set()
    for index, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        shape = leaf.shape if _is_value(leaf) else ()
        if not -len(shape) <= dim < len(shape):
            description = tuple(leaf.shape) if pc.is_tensor(leaf) else type(leaf).__name__
            raise ValueError(f"vmap: leaf {index} has no dimension {dim}: {description}")
        sizes.add(shape[dim])
    if len(sizes) != 1:
        raise ValueError(
            "vmap: one number of samples is required, got "
            + (f"sizes {sorted(sizes)}" if sizes else "no tensor with `in_dims` other than None")
        )
    return int(sizes.pop())
