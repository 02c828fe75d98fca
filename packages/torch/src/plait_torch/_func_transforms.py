"""Functions of `torch.func` that are no transforms in plait, and `rearrange`."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import plait
from plait_nn._normalization import _BatchNorm

__all__ = ["functionalize", "rearrange", "replace_all_batch_norm_modules_"]

Group = list[str]  # names of dimensions that are one
Side = list["Group | None"]  # None: an ellipsis that is no part of a dimension

_TOKEN = re.compile(r"\.\.\.|[A-Za-z_]\w*|\d+|\S")


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function that does what `func` does.

    PyTorch traces calls without writes in place then. The values, also those of arguments that
    `func` writes, are the same; plait's graphs record writes in place.

    Args:
        func: a function of tensors.
        remove: "mutations" or "mutations_and_views".

    Raises:
        RuntimeError: for another `remove`.

    Example:
        >>> import plait
        >>> from plait_torch._func_transforms import functionalize
        >>> functionalize(lambda x: x.add_(1))(plait.ones(2))
        tensor([2., 2.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize: `remove` must be 'mutations' or 'mutations_and_views', got {remove!r}"
        )

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return call


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let all batch norms of a module use the statistics of each batch; return the module.

    Args:
        root: a module, which is changed.

    Example:
        >>> import plait
        >>> from plait_torch._func_transforms import replace_all_batch_norm_modules_
        >>> replace_all_batch_norm_modules_(plait.nn.BatchNorm1d(2)).running_mean is None
        True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def _groups(side: str, pattern: str) -> Side:
    """Return the dimensions of one side of a pattern."""
    result: Side = []
    inner: Group | None = None
    names: list[str] = []
    for token in _TOKEN.findall(side):
        if token == "(" and inner is None:
            inner = []
        elif token == ")" and inner is not None:
            result.append(inner)
            inner = None
        elif token == "1":
            if inner is None:
                result.append([])
        elif token == "..." or (token.isidentifier() and token == token.strip("_")):
            names.append(token)
            if inner is None:
                result.append(None if token == "..." else [token])
            else:
                inner.append(token)
        else:
            raise ValueError(f"rearrange: {token!r} has no meaning in `pattern` {pattern!r}")
    if inner is not None:
        raise ValueError(f"rearrange: `pattern` {pattern!r} has a parenthesis that is not closed")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"rearrange: {name!r} stands twice in a side of `pattern` {pattern!r}")
    return result


@functools.lru_cache(maxsize=256)
def _sides(pattern: str, known: tuple[str, ...]) -> tuple[Side, Side]:
    """Return both sides of a pattern, which have the same names."""
    if pattern.count("->") != 1:
        raise ValueError(f"rearrange: `pattern` must have one '->', got {pattern!r}")
    left, right = (_groups(side, pattern) for side in pattern.split("->"))
    names, others = (
        {name for group in side for name in (["..."] if group is None else group)}
        for side in (left, right)
    )
    if any("..." in group for group in left if group):
        raise ValueError(
            f"rearrange: an ellipsis in parentheses is for the right side of {pattern!r}"
        )
    if names != others:
        raise ValueError(
            f"rearrange: both sides of `pattern` {pattern!r} must have the same names; "
            f"{sorted(names ^ others)} are on one side"
        )
    for name in known:
        if name not in names:
            raise ValueError(f"rearrange: `pattern` {pattern!r} has no {name!r}")
    return left, right


def _solved(group: Group, size: int, sizes: dict[str, int], pattern: str) -> None:
    """Add the sizes of a group's names to `sizes`, of which one may not be known."""
    unknown = [name for name in group if name not in sizes]
    product = math.prod(sizes[name] for name in group if name in sizes)
    fits = product == size if not unknown else product > 0 and size % product == 0
    if len(unknown) > 1 or not fits:
        raise ValueError(
            f"rearrange: a dimension of size {size} cannot be ({' '.join(group) or 1}) of "
            f"`pattern` {pattern!r} with the sizes { ({n: sizes[n] for n in group if n in sizes}) }"
        )
    if unknown:
        sizes[unknown[0]] = size // product


def rearrange(
    tensor: plait.Tensor | Sequence[plait.Tensor], pattern: str, **axes_lengths: int
) -> plait.Tensor:
    """Permute, split and join the dimensions of a tensor, by names.

    Args:
        tensor: the tensor; of several, which are stacked, their number is the first dimension.
        pattern: the names of the dimensions of `tensor`, ``->``, and those of the result. Names in
            parentheses are one dimension, of which the last name changes fastest; ``...`` stands
            for any number of dimensions, and 1 for one of size 1.
        axes_lengths: sizes of names; all but one of a dimension that is split.

    Raises:
        ValueError: for a pattern that does not fit the tensor.

    Example:
        >>> import plait
        >>> from plait_torch._func_transforms import rearrange
        >>> rearrange(plait.ones(2, 3, 4), "b h w -> w (b h)").shape
        plait.Size([4, 6])
    """
    if not isinstance(tensor, plait.Tensor):
        tensor = plait.stack(list(tensor))
    left, right = _sides(pattern, tuple(axes_lengths))
    free = tensor.ndim - sum(group is not None for group in left)
    if free < 0 or (free and None not in left):
        raise ValueError(
            f"rearrange: `pattern` {pattern!r} is for {len(left)} dimensions, `tensor` has shape "
            f"{tuple(tensor.shape)}"
        )
    rest = [f"...{i}" for i in range(free)]  # names of the dimensions of the ellipsis

    def spread(side: Side) -> list[Group]:
        groups = (
            group for each in side for group in ([[n] for n in rest] if each is None else [each])
        )
        return [
            [n for name in group for n in (rest if name == "..." else [name])] for group in groups
        ]

    dims = spread(left)
    sizes = dict(axes_lengths)
    for group, size in zip(dims, tensor.shape, strict=True):
        _solved(group, size, sizes, pattern)
    split = [name for group in dims for name in group]
    joined = spread(right)
    order = [name for group in joined for name in group]
    shape = [math.prod(sizes[name] for name in group) for group in joined]
    parts = tensor.reshape([sizes[name] for name in split])
    return parts.permute([split.index(name) for name in order]).reshape(shape)
