"""Products whose arguments a schema cannot express: chains, blocks, dimensions of two tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from plait_abi import ArgumentError, ShapeError
from plait_abi.binding import operator
from plait_core._core import Tensor, is_tensor


def _written(value: Tensor, out: Tensor | None) -> Tensor:
    """Return a result, in the tensor that the program gave for it, if any."""
    result: Tensor = value if out is None else operator("clone")(value, out=out)
    return result


def _best_splits(sizes: Sequence[int]) -> list[list[int]]:
    """Return where to split each chain ``i..j`` for the fewest multiplications."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            choices = [
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i][j], split[i][j] = min(choices)
    return split


def _chain(matrices: Sequence[Any], split: list[list[int]], i: int, j: int) -> Any:
    if i == j:
        return matrices[i]
    k = split[i][j]
    return _chain(matrices, split, i, k).mm(_chain(matrices, split, k + 1, j))


def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Multiply a chain of matrices in the order that takes the fewest multiplications.

    Args:
        tensors: at least two tensors of 2 dimensions; the first may be a vector, which counts as a
            row, and the last one, which counts as a column; the result has no dimension for it.
        out: the tensor that gets the result.

    Returns:
        ``tensors[0] @ tensors[1] @ ...``.

    Raises:
        ValueError: for fewer than two tensors.
        ShapeError: for tensors with another number of dimensions, or whose sizes do not match.

    Example:
        >>> import plait_core as pc
        >>> pc.linalg.multi_dot([pc.ones(1, 2), pc.ones(2, 3), pc.ones(3)])
        tensor([6.])
    """
    chain: list[Any] = list(tensors)
    if len(chain) < 2:
        raise ArgumentError(f"multi_dot: `tensors` must hold at least 2 tensors; got {len(chain)}")
    first, last = chain[0].ndim == 1, chain[-1].ndim == 1
    if first:
        chain[0] = chain[0].unsqueeze(0)
    if last:
        chain[-1] = chain[-1].unsqueeze(1)
    for at, x in enumerate(chain):
        if x.ndim != 2:
            kind = "1 or 2 dimensions" if at in (0, len(chain) - 1) else "2 dimensions"
            shape = tuple(tensors[at].shape)
            raise _shape_error(f"`tensors[{at}]` must have {kind}; got shape {shape}")
        if at and chain[at - 1].shape[1] != x.shape[0]:
            raise _shape_error(
                f"`tensors[{at}]` of shape {tuple(tensors[at].shape)} does not follow on "
                f"`tensors[{at - 1}]` of shape {tuple(tensors[at - 1].shape)}"
            )
    sizes = [chain[0].shape[0], *(x.shape[1] for x in chain)]
    result = _chain(chain, _best_splits(sizes), 0, len(chain) - 1)
    sizes = [n for n, gone in zip(result.shape, (first, last), strict=True) if not gone]
    return _written(result.reshape(sizes), out)


def _shape_error(text: str) -> Exception:
    error: Exception = ShapeError(f"multi_dot: {text}")
    return error


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Multiply matrices in the order that takes the fewest multiplications: `linalg.multi_dot`.

    Args:
        *matrices: The matrices, at least two.
        out: A tensor for the result, or None.

    Example:
        >>> import plait_core as pc
        >>> tuple(pc.chain_matmul(pc.ones(1, 2), pc.ones(2, 3), pc.ones(3, 4)).shape)
        (1, 4)
    """
    arrays = matrices[0] if len(matrices) == 1 and not is_tensor(matrices[0]) else matrices
    chain: list[Any] = list(arrays)
    if len(chain) == 1:
        return _written(chain[0].clone(), out)
    return multi_dot(chain, out=out)


def block_diag(*tensors: Tensor) -> Tensor:
    """Put matrices on the diagonal of a larger one that is 0 elsewhere.

    Args:
        tensors: tensors of at most 2 dimensions; a vector is one row, a 0-d tensor one element.

    Raises:
        ValueError: for a tensor of more dimensions.

    Example:
        >>> import plait_core as pc
        >>> pc.block_diag(pc.tensor([[1, 2]]), pc.tensor(3)).tolist()
        [[1, 2, 0], [0, 0, 3]]
    """
    arrays = tensors[0] if len(tensors) == 1 and not is_tensor(tensors[0]) else tensors
    blocks: list[Any] = []
    for at, x in enumerate(arrays):
        if x.ndim > 2:
            raise ArgumentError(
                f"block_diag: `tensors[{at}]` must have at most 2 dimensions; got shape "
                f"{tuple(x.shape)}"
            )
        blocks.append(x if x.ndim == 2 else x.reshape(1, math.prod(x.shape)))
    if not blocks:
        empty: Tensor = operator("zeros")((1, 0))
        return empty
    width, before, rows = sum(x.shape[1] for x in blocks), 0, []
    zeros, cat = operator("zeros"), operator("cat")
    for x in blocks:
        height, here = x.shape
        options = {"dtype": x.dtype, "device": x.device}
        left = zeros((height, before), **options)
        right = zeros((height, width - before - here), **options)
        rows.append(cat([left, x, right], 1))
        before += here
    result: Tensor = cat(rows, 0)
    return result


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, *, out: Tensor | None = None) -> Tensor:
    """Sum products over dimensions of two tensors.

    Args:
        a: the first tensor.
        b: the second one, of the same dtype.
        dims: the number of last dimensions of `a` and of first dimensions of `b`; or two lists, the
            dimensions of `a` and, in this order, of `b`.
        out: the tensor that gets the result.

    Returns:
        A tensor of the remaining dimensions of `a` and then of `b`.

    Raises:
        ValueError: for dimensions that they don't have, or twice.
        ShapeError: for dimensions whose sizes differ.

    Example:
        >>> import plait_core as pc
        >>> tuple(pc.tensordot(pc.ones(2, 3), pc.ones(4, 2), ([0], [1])).shape)
        (3, 4)
    """
    if is_tensor(dims):
        dims = dims.tolist()
    if isinstance(dims, (list, tuple)):
        if len(dims) != 2:
            raise ArgumentError(f"tensordot: `dims` must be an int or two lists; got {dims!r}")
        first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
        result = operator("tensordot_over")(a, b, first, second)
    else:
        result = operator("tensordot")(a, b, dims)
    return _written(result, out)
