"""Parts of tensors as boxes of indices: where one begins, and its sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Box = tuple[tuple[int, ...], tuple[int, ...]]  # first index and size in each dimension

_MOST = 1_000_000  # comparisons of boxes, which only a forged index needs


def text_of(first: Sequence[int], sizes: Sequence[int]) -> str:
    """Return a box as Python writes an index.

    Example:
        >>> text_of((2, 0), (2, 3))
        '[2:4, 0:3]'
    """
    return "[" + ", ".join(f"{a}:{a + n}" for a, n in zip(first, sizes, strict=True)) + "]"


def common(one: Box, other: Box) -> Box | None:
    """Return the box that is in both; None if there is none."""
    first, sizes = [], []
    for a, n, b, m in zip(one[0], one[1], other[0], other[1], strict=True):
        begin, end = max(a, b), min(a + n, b + m)
        if begin >= end:
            return None
        first.append(begin)
        sizes.append(end - begin)
    return tuple(first), tuple(sizes)


def _without(box: Box, part: Box) -> list[Box]:
    """Return the boxes that remain of one without a box in it."""
    rest = []
    first, sizes = list(box[0]), list(box[1])
    for dim, (a, n) in enumerate(zip(*part, strict=True)):
        for begin, end in ((first[dim], a), (a + n, first[dim] + sizes[dim])):
            if begin < end:
                piece = [*first[:dim], begin, *first[dim + 1 :]]
                width = [*sizes[:dim], end - begin, *sizes[dim + 1 :]]
                rest.append((tuple(piece), tuple(width)))
        first[dim], sizes[dim] = a, n
    return rest


def first_hole(box: Box, parts: Iterable[Box], name: str = "the tensor") -> Box | None:
    """Return a part of a box that is in none of `parts`; None if they cover it.

    Raises:
        ValueError: it would take too long; `name` is that of the tensor.

    Example:
        >>> first_hole(((0, 0), (4, 3)), [((0, 0), (2, 3)), ((3, 0), (1, 3))])
        ((2, 0), (1, 3))
    """
    if 0 in box[1]:
        return None
    left, compared = [box], 0
    for part in sorted(parts):
        rest: list[Box] = []
        for each in left:
            shared = common(each, part)
            rest += [each] if shared is None else _without(each, shared)
        left = rest
        if not left:
            return None
        compared += len(left)
        if compared > _MOST:
            raise ValueError(f"the parts of {name} overlap or leave holes in too many ways")
    return left[0]
