"""Test data of joining/padding: references in NumPy, sample calls, errors."""

import itertools

import numpy as np

from plait_ops.specs.joining.padding import pad_, pad_backward

_NUMPY = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _widths(ndim, pad):
    """The two numbers of each dimension, the first dimension first."""
    widths = [(0, 0)] * ndim
    for i in range(len(pad) // 2):
        widths[ndim - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return widths


def _cut(array, widths):
    """`array` without the elements that negative numbers cut off."""
    return array[
        tuple(
            slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(widths, array.shape, strict=True)
        )
    ]


@pad_.reference
def _(self, pad, mode="constant", value=0):
    widths = _widths(self.ndim, pad)
    added = [(max(a, 0), max(b, 0)) for a, b in widths]
    if self.ndim == 0:
        return self.copy()
    if mode == "circular":
        return np.pad(_cut(self, widths), added, mode="wrap")
    if mode != "constant" and any(a + b for a, b in added):
        return _cut(np.pad(self, added, mode=_NUMPY[mode]), widths)
    return _cut(np.pad(self, added, constant_values=value), widths)


@pad_backward.reference
def _(grad, input_size, pad, mode):
    places = np.arange(np.prod(input_size)).reshape(input_size)
    copied = pad_.reference_function(places, pad, mode, -1)
    result = np.zeros(np.prod(input_size), grad.dtype)
    np.add.at(result, copied[copied >= 0], grad[copied >= 0])
    return result.reshape(input_size)


_CALLS = (
    ((5,), (2, 1)),
    ((3, 4), (1, 2)),
    ((3, 4), (0, 0, 1, 2)),
    ((2, 4, 5), (1, 1, 2, 0)),
    ((2, 3, 4, 5), (1, 2, 0, 1, 2, 2)),
    ((2, 3, 4), (-1, 2)),
    ((3, 6), (2, -3, -1, 1)),
    ((3, 40), (3, 5, 1, 1)),
    ((30, 3), (1, 1, 1, 1)),
)


@pad_.samples
def _(s):
    for (shape, pad), mode in itertools.product(_CALLS, _NUMPY):
        yield s(s.array(*shape), pad, mode)
        yield s(s.strided(*shape), pad, mode)
    for mode in _NUMPY:
        yield s(s.array(2, 5, 6, 3).transpose(0, 3, 1, 2), (1, 2, 2, 0), mode)
        yield s(s.array(3, 4, dtype="complex64"), (1, 1), mode)
        yield s(s.array(3, 4, dtype="complex128"), (1, 1, 1, 0), mode)
        yield s(s.array(3, 4, dtype="float16"), (1, 1), mode)
        yield s(s.array(3, 4, dtype="int64"), (1, 1), mode)
        yield s(s.array(2, 3) > 0, (1, 1, 0, 1), mode)
        yield s(s.array(0, 4), (1, 2), mode)
        yield s(s.array(2, 3), (), mode)
        yield s(s.array(), (), mode)
        yield s(s.array(4, 3), (-1, -2, -4, 0), mode)
    yield s(s.array(2, 3), (1, 2, 1, 0), "constant", 2.5)
    yield s(s.array(2, 3, dtype="int16"), (1, 2), "constant", -7)
    yield s(s.array(2, 3, dtype="complex64"), (1, 2), "constant", 1 + 2j)
    yield s(s.array(2, 3), (1, 1), "constant", float("nan"))
    yield s(s.array(0, 3), (1, 1, 2, 0), "constant", 1.0)
    yield s(s.array(3), (5, -4), "constant", 1.0)


@pad_backward.samples
def _(s):
    for (shape, pad), mode in itertools.product(_CALLS, _NUMPY):
        wide = [n + a + b for n, (a, b) in zip(shape, _widths(len(shape), pad), strict=True)]
        yield s(s.array(*wide), shape, pad, mode)
        if np.prod(wide) < 64:  # graphs copy an input that has gaps
            yield s(s.strided(*wide), shape, pad, mode)
    for mode in _NUMPY:
        yield s(s.array(1, 4, 5, 2).transpose(0, 3, 1, 2), (1, 2, 3, 3), (1, 1, 1, 0), mode)
        yield s(s.array(3, 6, dtype="complex64"), (3, 4), (1, 1), mode)
        yield s(s.array(3, 6, dtype="float16"), (3, 4), (1, 1), mode)
        yield s(s.array(0, 6), (0, 4), (1, 1), mode)


# ---- errors --------------------------------------------------------------------------------------
pad_.error("ShapeError", lambda s: s(s.array(2, 3), (1, 1, 1)), contains=["`pad`", "(2, 3)"])
pad_.error("ShapeError", lambda s: s(s.array(2), (1, 1, 1, 1)), contains=["`pad`", "at most 1"])
pad_.error(
    "ShapeError", lambda s: s(s.array(2, 3), (-2, -2)), contains=["(-2, -2) cuts more than dim 1"]
)
for mode, limit in (("reflect", 2), ("circular", 3)):
    pad_.error(
        "ShapeError",
        lambda s, mode=mode: s(s.array(2, 3), (4, 0), mode),
        contains=[f"'{mode}' can put at most {limit} elements at dim 1", "(2, 3)", "(4, 0)"],
    )
for mode in ("reflect", "replicate", "circular"):
    pad_.error(
        "ShapeError",
        lambda s, mode=mode: s(s.array(2, 0), (1, 0), mode),
        contains=["can put at most 0 elements at dim 1"],
    )
pad_.error(
    "ValueError", lambda s: s(s.array(2, 3), (1, 1), "mirror"), contains=["`mode`", "mirror"]
)
pad_.error("ValueError", lambda s: s(s.array(3), (2**62, 0)), contains=["`pad`", str(2**62)])
pad_.error("ShapeError", lambda s: s(s.array(9, 9), (2**61, 0)), contains=["`pad`"])
pad_.error(
    "ValueError",
    lambda s: s(s.array(3, dtype="int8"), (1, 0), "constant", 200),
    contains=["`value`", "int8", "200"],
)
pad_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 5), (2, 3), (1, 2), "reflect"),
    contains=["`grad`", "(2, 5)", "(2, 6)"],
)
pad_backward.error(
    "DTypeError",
    lambda s: s(s.array(2, 5, dtype="int64"), (2, 3), (1, 1), "reflect"),
    contains=["`grad`", "int64"],
)
