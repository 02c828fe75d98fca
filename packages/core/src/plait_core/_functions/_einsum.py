"""`einsum`, computed as products of pairs of operands."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from typing import Any

from plait_abi import ArgumentError
from plait_core._core import Tensor, is_tensor

Label = str
Term = tuple[Any, list[Label]]  # a tensor with the names of its dimensions


def _fail(text: str) -> ArgumentError:
    return ArgumentError(f"einsum: {text}")


def _letter(index: Any) -> str:
    if not isinstance(index, int) or not 0 <= index < 52:
        raise _fail(f"a sublist holds numbers in [0, 52) and `...`; got {index!r}")
    return chr(ord("A") + index) if index < 26 else chr(ord("a") + index - 26)


def _sublists(args: Sequence[Any]) -> tuple[str, list[Any]]:
    """Turn ``x, [0, 1], y, [1, 2], [0, 2]`` into a string and operands."""

    def text(sublist: Sequence[Any]) -> str:
        return "".join("..." if item is Ellipsis else _letter(item) for item in sublist)

    operands = list(args[: len(args) // 2 * 2 : 2])
    equation = ",".join(text(sublist) for sublist in args[1::2])
    if len(args) % 2:
        equation += "->" + text(args[-1])
    return equation, operands


def _parts(term: str, whole: str) -> tuple[str, str, bool]:
    """Return the parts of a term before and after its ellipsis, and whether it has one."""
    before, dots, after = term.partition("...")
    for letter in before + after:
        if not (letter.isascii() and letter.isalpha()):
            raise _fail(f"subscripts are letters; `equation` {whole!r} holds {letter!r}")
    return before, after, bool(dots)


def _named(term: str, ndim: int, at: int, whole: str) -> list[Label]:
    before, after, dots = _parts(term, whole)
    rest = ndim - len(before) - len(after)
    if rest < 0 or (rest and not dots):
        raise _fail(
            f"operand {at} has {ndim} dimensions, and its subscripts {term!r} name "
            f"{'at least ' if dots else ''}{len(before) + len(after)}"
        )
    return [*before, *(f".{rest - i}" for i in range(rest)), *after]


def _output(terms: list[list[Label]], right: str | None, whole: str) -> list[Label]:
    every = [label for term in terms for label in term]
    dots = sorted({x for x in every if x[0] == "."}, key=lambda x: -int(x[1:]))
    if right is None:
        return dots + sorted(x for x in set(every) if x[0] != "." and every.count(x) == 1)
    before, after, has_dots = _parts(right, whole)
    expected = [*before, *(dots if has_dots else []), *after]
    for label in expected:
        if label not in every:
            raise _fail(f"the output of {whole!r} names {label!r}, which no operand has")
        if expected.count(label) > 1:
            raise _fail(f"the output of {whole!r} names {label!r} twice")
    return expected


def _diagonals(tensor: Any, labels: list[Label]) -> Term:
    """Take the diagonal over dimensions that share a name."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if tensor.shape[first] != tensor.shape[second]:
                raise _fail(
                    f"{label!r} stands twice in one operand, for sizes {tensor.shape[first]} and "
                    f"{tensor.shape[second]}"
                )
            tensor = tensor.diagonal(0, first, second)
            labels = [x for i, x in enumerate(labels) if i not in (first, second)] + [label]
    return tensor, labels


def _sizes(terms: list[Term]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for at, (tensor, labels) in enumerate(terms):
        for label, size in zip(labels, tensor.shape, strict=True):
            old_size = sizes.setdefault(label, size)
            if old_size == 1:
                sizes[label] = size
            elif size not in (old_size, 1):
                raise _fail(
                    f"the dimensions called {label.lstrip('.')!r} have sizes {old_size} and, in "
                    f"operand {at} of shape {tuple(tensor.shape)}, {size}"
                )
    return sizes


def _summed(term: Term, output_labels: set[Label]) -> Term:
    """Sum over the dimensions that neither the output nor other terms have."""
    tensor, labels = term
    sum_dims = [i for i, label in enumerate(labels) if label not in output_labels]
    if sum_dims:
        tensor = tensor.sum(sum_dims, dtype=tensor.dtype)
    return tensor, [label for label in labels if label in output_labels]


def _arranged(term: Term, order: Sequence[Label]) -> Any:
    tensor, labels = term
    return tensor.permute([labels.index(label) for label in order]) if labels else tensor


def _pair(a: Term, b: Term, output_labels: set[Label], sizes: dict[Label, int]) -> Term:
    """Multiply two terms; sum over the dimensions that neither the output nor other terms have."""
    a, b = _summed(a, output_labels | set(b[1])), _summed(b, output_labels | set(a[1]))
    batch, inner, left, right = _roles(a[1], b[1], output_labels)
    result = batch + left + right

    def whole(term: Term) -> Any:  # sizes of 1 that broadcast
        tensor, labels = term
        pairs = zip(labels, tensor.shape, strict=True)
        here = [sizes[label] if label in batch + inner else n for label, n in pairs]
        return tensor if list(tensor.shape) == here else tensor.expand(here)

    if not inner:  # nothing to sum: one product with broadcasting
        x = _arranged(a, batch + left)
        y = _arranged(b, batch + right)
        middle = list(y.shape[: len(batch)]) + [1] * len(left) + list(y.shape[len(batch) :])
        return x.reshape(list(x.shape) + [1] * len(right)) * y.reshape(middle), result
    x, y = whole(a), whole(b)
    here = dict(zip(a[1] + b[1], (*x.shape, *y.shape), strict=True))
    return _product(x, y, _steps(a[1], b[1], result, here)), result


def _cheapest(terms: list[Term], output: list[Label], sizes: dict[Label, int]) -> tuple[int, int]:
    """Return the pair whose product is the smallest; the first one of several."""
    best, cost = (0, 1), math.inf
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            others = {x for k, (_, names) in enumerate(terms) if k not in (i, j) for x in names}
            names = set(terms[i][1]) | set(terms[j][1])
            size = math.prod(sizes[x] for x in names if x in others or x in output)
            if size < cost:
                best, cost = (i, j), size
    return best


def _roles(
    x: list[Label], y: list[Label], output: Collection[Label]
) -> tuple[list[Label], list[Label], list[Label], list[Label]]:
    """Return which names of two operands are batches, are summed over, and are rows and columns."""
    both = [label for label in x if label in y]
    return (
        [label for label in both if label in output],
        [label for label in both if label not in output],
        [label for label in x if label not in both],
        [label for label in y if label not in both],
    )


def _moved(labels: list[Label], order: list[Label]) -> tuple[int, ...] | None:
    """Return the permutation that brings ``labels`` into ``order``, None if they are."""
    return None if labels == order else tuple(labels.index(label) for label in order)


def _steps(x: list[Label], y: list[Label], output: list[Label], sizes: dict[Label, int]) -> Any:
    """Return the steps of a product of matrices: permutation and shape of each operand, shape and
    permutation of the output; None for what changes nothing.
    """
    batch, inner, rows, columns = _roles(x, y, output)

    def size(labels: list[Label]) -> int:
        return math.prod(sizes[label] for label in labels)

    n = (size(batch),) if batch else ()

    result = batch + rows + columns
    # matrices whose sides are single dimensions have their shapes already
    one_each = len(batch) < 2 and len(inner) == 1
    shape_a = None if one_each and len(rows) == 1 else (*n, size(rows), size(inner))
    shape_b = None if one_each and len(columns) == 1 else (*n, size(inner), size(columns))
    single = len(batch) < 2 and len(rows) == len(columns) == 1
    shape = None if single else tuple(sizes[label] for label in result)
    return (
        _moved(x, batch + rows + inner),
        shape_a,
        _moved(y, batch + inner + columns),
        shape_b,
        shape,
        _moved(result, output),
    )


@functools.lru_cache(maxsize=512)
def _one_product(equation: str, a: tuple[int, ...], b: tuple[int, ...]) -> Any:
    """Return the steps of an equation for operands of two shapes that is one product of matrices.

    Return None if it is none, as it has diagonals, sums of one operand or sizes that broadcast.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    subscripts = left.split(",")
    if len(subscripts) != 2:
        return None
    x = _named(subscripts[0], len(a), 0, equation)
    y = _named(subscripts[1], len(b), 1, equation)
    output = _output([x, y], right if arrow else None, equation)
    sizes = dict(zip(x, a, strict=True))
    if len(sizes) < len(x) or len(set(y)) < len(y):
        return None
    if any(sizes.setdefault(label, size) != size for label, size in zip(y, b, strict=True)):
        return None
    _, inner, rows, columns = _roles(x, y, output)
    if not inner or any(label not in output for label in rows + columns):
        return None
    return _steps(x, y, output, sizes)


def _product(a: Any, b: Any, steps: Any) -> Any:
    """Multiply two operands by the steps of `_steps`."""
    order_a, shape_a, order_b, shape_b, shape, order = steps
    if order_a is not None:
        a = a.permute(order_a)
    if shape_a is not None:
        a = a.reshape(shape_a)
    if order_b is not None:
        b = b.permute(order_b)
    if shape_b is not None:
        b = b.reshape(shape_b)
    result = a.matmul(b)
    if shape is not None:
        result = result.reshape(shape)
    return result if order is None else result.permute(order)


def einsum(*args: Any) -> Tensor:
    """Sum products of elements over the dimensions that a string names.

    ``einsum("ij,jk->ik", a, b)`` is ``sum_j a[i, j] * b[j, k]``: every operand has its subscripts,
    letters for its dimensions; a letter that the output does not name is summed over; one that
    stands twice in an operand means its diagonal. ``...`` stands for the dimensions without a
    letter, which broadcast. Without ``->`` the output has the letters that stand once, in
    alphabetical order, after the ellipsis. Several operands are multiplied two by two, the pair
    with the smallest product first.

    Args:
        args: the equation and its operands, or operands each followed by a list of numbers in
            [0, 52) and ``...`` in place of letters, and perhaps such a list for the output.

    Returns:
        The tensor of the named dimensions; operands must have one dtype.

    Raises:
        ArgumentError: for an equation that does not fit its operands.

    Example:
        >>> import plait_core as pc
        >>> a, b = pc.ones(2, 3), pc.ones(3, 4)
        >>> tuple(pc.einsum("ij,jk->ki", a, b).shape)
        (4, 2)
        >>> pc.einsum("ii", pc.tensor([[1, 2], [3, 4]])).item()
        5
        >>> tuple(pc.einsum(a, [0, 1], b, [1, 2]).shape)
        (2, 4)
    """
    if not args:
        raise TypeError("einsum: an equation and operands are required")
    if isinstance(args[0], str):
        equation, operands = args[0], list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        if len(operands) == 2 and is_tensor(operands[0]) and is_tensor(operands[1]):
            a, b = operands
            shapes = tuple(a.shape), tuple(b.shape)
            if all(type(size) is int for shape in shapes for size in shape):  # not while recording
                steps = _one_product(equation, *shapes)
                if steps is not None:
                    product: Tensor = _product(a, b, steps)
                    return product
    else:
        equation, operands = _sublists(args)
    for at, operand in enumerate(operands):
        if not is_tensor(operand):
            raise TypeError(f"einsum: operand {at} must be a Tensor; got {type(operand).__name__}")
    left, arrow, right = equation.replace(" ", "").partition("->")
    subscripts = left.split(",")
    if len(subscripts) != len(operands):
        raise _fail(
            f"`equation` {equation!r} has subscripts for {len(subscripts)} operands; got "
            f"{len(operands)}"
        )
    named = [
        _named(term, tensor.ndim, at, equation)
        for at, (term, tensor) in enumerate(zip(subscripts, operands, strict=True))
    ]
    output = _output(named, right if arrow else None, equation)
    terms = [_diagonals(x, labels) for x, labels in zip(operands, named, strict=True)]
    sizes = _sizes(terms)
    while len(terms) > 1:
        i, j = _cheapest(terms, output, sizes)
        a, b = terms[i], terms[j]
        terms = [term for k, term in enumerate(terms) if k not in (i, j)]
        used = {x for _, labels in terms for x in labels} | set(output)
        terms.append(_pair(a, b, used, sizes))
    result: Tensor = _arranged(_summed(terms[0], set(output)), output)
    return result
