"""Tests of the words in Python against NumPy; `test_meta` compares the C++ versions with these."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from plait_ops import words
from plait_ops.words import Fault, Meta
from plait_ops.words.meta import Size


def meta(array: np.ndarray[Any, Any]) -> Meta:
    return Meta(
        array.shape, array.dtype.name, tuple(step // array.itemsize for step in array.strides)
    )


def test_view_strides_find_every_view_that_exists() -> None:
    """A view exists exactly where NumPy's reshape shares memory."""
    rng = random.Random(3)
    shapes = [
        (),
        (1,),
        (6,),
        (2, 3),
        (3, 2),
        (1, 6),
        (6, 1),
        (2, 1, 3),
        (12,),
        (3, 4),
        (2, 2, 3),
        (2, 6),
        (1, 12, 1),
    ]
    result = 0
    for _ in range(3000):
        base = np.arange(48).reshape(rng.choice([(48,), (4, 12), (2, 3, 8), (2, 2, 3, 4)]))
        for axis in range(base.ndim):
            cut = rng.choice(
                [slice(None), slice(None, None, 2), slice(None, None, -1), slice(0, 1), slice(1, 3)]
            )
            base = base[(slice(None),) * axis + (cut,)]
        base = base.transpose(rng.sample(range(base.ndim), base.ndim))
        size = rng.choice(
            [shape for shape in shapes if np.prod(shape) == base.size] or [(base.size,)]
        )
        shares = base.size > 0 and np.shares_memory(base.reshape(size), base)
        assert words.viewable(meta(base), size) == shares, (base.shape, base.strides, size)
        if shares and base.size > 1:
            result += 1
            strides = words.view_strides(meta(base), size)
            looked = np.lib.stride_tricks.as_strided(
                base, size, [step * base.itemsize for step in strides]
            )
            np.testing.assert_array_equal(looked, base.reshape(size))
    assert result > 500


def test_broadcast_is_numpy_s() -> None:
    shapes = [(), (1,), (3,), (2, 3), (2, 1), (0,), (1, 3), (4, 1, 1)]
    for a, b in itertools.product(shapes, shapes):
        try:
            want = np.broadcast_shapes(a, b)
        except ValueError:
            with words.calling("f", {}), pytest.raises(Fault, match="f: shapes must broadcast"):
                words.broadcast("a", a, "b", b)
        else:
            assert tuple(words.broadcast("a", a, "b", b)) == want


def test_slices_are_python_s() -> None:
    values = [None, 0, 1, 3, 5, 9, -1, -3, -5, -9]
    for size, start, end in itertools.product((0, 1, 5), values, values):
        for step in (1, 2, 7, -1, -2, -7):
            want = list(range(size))[start:end:step]
            assert words.slice_count(start, end, step, size) == len(want)
            if want:
                assert words.slice_start(start, step, size) == want[0]


def test_dense_strides_keep_the_order() -> None:
    x = np.zeros((2, 3, 4)).transpose(2, 0, 1)
    assert words.dense_strides(meta(x)) == [1, 12, 4]
    assert words.dense_strides(meta(x[::2])) == [1, 6, 2]
    assert words.dense_strides(meta(np.zeros((2, 3))[::-1])) == [3, 1]


@pytest.mark.parametrize(
    ("size", "shape", "want"),
    [
        ((-1,), (2, 3), [6]),
        ((3, -1), (2, 3), [3, 2]),
        ((6,), (2, 3), [6]),
        ((0, 5), (0,), [0, 5]),
        ((), (), []),
    ],
)
def test_infer_size(size: tuple[int, ...], shape: tuple[int, ...], want: list[int]) -> None:
    assert words.infer_size("size", size, shape) == want


def test_a_reduction_of_nothing_named_is_of_all() -> None:
    assert words.reduce_dims("dim", None, (2, 3)) == [0, 1]
    assert words.reduce_dims("dim", (), (2, 3)) == [0, 1]
    assert words.reduce_dims("dim", (-1,), ()) == [0]
    assert words.reduced((2, 3, 4), [0, 2], False) == [3]
    assert words.reduced((2, 3, 4), [0, 2], True) == [1, 3, 1]


def test_a_shape_joins_with_lists() -> None:
    size = Size((2, 3))
    assert size[:1] + [5] + size[1:] == [2, 5, 3]  # noqa: RUF005
    assert [1] + size == (1, 2, 3)  # noqa: RUF005
    assert size != [2, 4]
    assert repr(size) == "(2, 3)"
