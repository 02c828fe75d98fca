"""Hundreds of random index expressions, read and written, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc

SHAPES: list[tuple[int, ...]] = [(), (4,), (3, 4), (2, 3, 4), (2, 1, 3, 2), (0, 3), (3, 0, 2)]


class Keys:
    """Draws index expressions that have the same meaning in NumPy and PyTorch.

    Where they don't: an int beside arrays is a view first for PyTorch, an array for NumPy; so an
    int stands beside arrays only where all of them are together, which comes to the same.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def slice(self, size: int) -> slice:
        low, high = (
            None if self.rng.integers(3) == 0 else int(self.rng.integers(-size - 2, size + 3))
            for _ in range(2)
        )
        return slice(low, high, self.pick(None, 1, 2, 3, -1, -2, -3))

    def ints(self, size: int, shape: tuple[int, ...]) -> Any:
        """Draw integers as an array, a tensor, a list, or a range."""
        values = self.rng.integers(-size, size, shape)
        form = self.pick("array", "tensor", "list", "narrow", "range")
        if form == "range" and len(shape) == 1:
            first = int(self.rng.integers(0, size))
            values = (np.arange(shape[0]) + first) % size
            if (np.diff(values) == 1).all():
                return range(int(first), int(first) + shape[0])
        if form == "list":
            return values.tolist() if values.size else values
        if form == "narrow":
            return values.astype(self.pick("int8", "int16", "int32"))
        return pc.tensor(values) if form == "tensor" else values

    def mask(self, shape: tuple[int, ...], count: int | None) -> Any:
        """Draw a mask; with `count` one with so many True elements."""
        values = self.rng.random(shape) < 0.6
        if count is not None:
            order = self.rng.permutation(values.size)
            values = (order < count).reshape(shape)
        return pc.tensor(values) if self.rng.integers(2) else values

    def basic(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        key: list[Any] = []
        at = 0
        while at < len(shape):
            kind = self.pick("int", "slice", "slice", "none", "dots", "end")
            if kind == "end":
                break
            if kind == "none":
                key.append(None)
            elif kind == "dots" and Ellipsis not in key:
                key.append(...)
                at += int(self.rng.integers(0, len(shape) - at + 1))
            elif kind == "int" and shape[at]:
                form = self.pick(int, np.int64, np.int32, pc.tensor)
                key.append(form(int(self.rng.integers(-shape[at], shape[at]))))
                at += 1
            else:
                key.append(self.slice(shape[at]))
                at += 1
        if Ellipsis in key:  # what stands behind the dots counts from the end
            behind = [item for item in key[key.index(...) + 1 :] if item is not None]
            for offset, item in enumerate(reversed(behind)):
                size = shape[len(shape) - 1 - offset]
                if not isinstance(item, slice) and not -size <= int(item) < size:
                    return (...,)
        return tuple(key)

    def arrays(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Draw slices, None and several arrays and masks that broadcast together."""
        masks = self.rng.integers(2) == 0
        count = int(self.rng.integers(0, 3))
        common: tuple[int, ...] = tuple(self.rng.integers(0, 4, self.rng.integers(1, 3)))
        key: list[Any] = []
        at = 0
        while at < len(shape):
            kind = self.pick("array", "array", "mask", "slice", "none")
            if kind == "none" and len(key) < 5:
                key.append(None)
            elif kind == "array" and shape[at]:
                expected = (self.pick(1, count),) if masks else self.narrowed(common)
                key.append(self.ints(shape[at], expected))
                at += 1
            elif kind == "mask" and masks:
                width = int(self.rng.integers(1, len(shape) - at + 1))
                size = int(np.prod(shape[at : at + width]))
                key.append(self.mask(shape[at : at + width], min(count, size)))
                at += width
            else:
                key.append(self.slice(shape[at]))
                at += 1
        return tuple(key)

    def narrowed(self, common: tuple[int, ...]) -> tuple[int, ...]:
        """Draw a shape that broadcasts to this one."""
        result = tuple(self.pick(1, size) for size in common)
        return result[int(self.rng.integers(0, len(result))) :] or (1,)

    def adjacent(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Draw ints and arrays that stand side by side."""
        if not shape:
            return (self.pick(True, False, None),)
        key: list[Any] = []
        for size in shape[: int(self.rng.integers(1, len(shape) + 1))]:
            if size == 0:
                return tuple(key) or (slice(None),)
            key.append(self.pick(int(self.rng.integers(-size, size)), self.ints(size, (2,))))
        return tuple(key)

    def whole(self, shape: tuple[int, ...]) -> Any:
        """Draw a mask of the whole shape, or of its first dimensions, alone or with True beside."""
        mask = self.mask(shape[: int(self.rng.integers(0, len(shape) + 1))], None)
        return self.pick(mask, (mask,), (..., None, mask) if np.ndim(mask) == len(shape) else mask)


def numpy_key(key: Any) -> Any:
    """Return a key with its tensors as NumPy arrays."""
    if isinstance(key, tuple):
        return tuple(numpy_key(item) for item in key)
    if isinstance(key, range):
        return list(key)
    return key.numpy() if isinstance(key, pc.Tensor) else key


def drawn(seed: int) -> Iterator[tuple[tuple[int, ...], Any]]:
    keys = Keys(seed)
    for shape in SHAPES:
        for draw in (keys.basic, keys.arrays, keys.arrays, keys.adjacent, keys.whole):
            yield shape, draw(shape)


def laid_out(array: Any, layout: str) -> Any:
    """The same elements dense, reversed, or with gaps, as a NumPy array and never shared."""
    if layout == "dense" or not array.ndim:
        return array.copy()
    if layout == "backwards":
        flip = tuple(slice(None, None, -1) for _ in array.shape)
        return np.ascontiguousarray(array[flip])[flip]
    wide = np.zeros([2 * n for n in array.shape], array.dtype)
    result = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    result[...] = array
    return result


def expected(array: Any, key: Any) -> Any:
    try:
        return array[numpy_key(key)]
    except IndexError as error:
        return error


@pytest.mark.parametrize("layout", ["dense", "backwards", "gaps"])
@pytest.mark.parametrize("seed", range(20))
def test_reading(seed: int, layout: str) -> None:
    tried = 0
    for shape, key in drawn(seed):
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        x = pc.from_numpy(laid_out(array, layout))
        want = expected(array, key)
        if isinstance(want, IndexError):
            with pytest.raises((IndexError, ValueError)):
                x[key]
            continue
        got = x[key]
        assert got.shape == want.shape, (shape, key)
        np.testing.assert_array_equal(got.numpy(), want, err_msg=repr((shape, key)))
        tried += 1
    assert tried > 10


@pytest.mark.parametrize("layout", ["dense", "backwards", "gaps"])
@pytest.mark.parametrize("seed", range(20))
def test_writing(seed: int, layout: str) -> None:
    rng = np.random.default_rng(seed + 1000)
    for shape, key in drawn(seed):
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        want = expected(array, key)
        if isinstance(want, IndexError):
            continue
        full = rng.integers(100, 200, want.shape)
        narrow = full[..., :1] if full.ndim and full.size else full
        for value in (7, full, pc.tensor(full), narrow, full[None] if full.ndim else full):
            a, x = array.copy(), pc.from_numpy(laid_out(array, layout))
            one_value = np.ndim(value) == 0
            plain = value.numpy() if isinstance(value, pc.Tensor) else value
            if not one_value and repeats(array, key):
                continue  # which of several values stays is not said
            try:
                a[numpy_key(key)] = plain
            except (TypeError, ValueError):  # NumPy wants fewer dimensions for a mask alone
                assert np.ndim(value) > full.ndim, (shape, key)
                continue
            x[key] = value
            np.testing.assert_array_equal(x.numpy(), a, err_msg=repr((shape, key)))


def repeats(array: Any, key: Any) -> bool:
    """Return whether a key selects an element several times."""
    named = np.arange(array.size).reshape(array.shape)[numpy_key(key)]
    return bool(np.unique(named).size < np.size(named))


@pytest.mark.parametrize("seed", range(10))
def test_adding_and_accumulating(seed: int) -> None:
    for shape, key in drawn(seed):
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        want = expected(array, key)
        if isinstance(want, IndexError):
            continue
        a, x = array.copy(), pc.tensor(array)
        a[numpy_key(key)] += 3
        x[key] += 3
        np.testing.assert_array_equal(x.numpy(), a, err_msg=repr((shape, key)))


@pytest.mark.parametrize("seed", range(20))
def test_index_put_accumulates_every_addend(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, 3))
    array = rng.random(shape).astype("float32")
    common = tuple(rng.integers(1, 5, 2))
    dims = sorted(rng.permutation(3)[: int(rng.integers(1, 4))])
    indices = [rng.integers(-shape[d], shape[d], common) if d in dims else None for d in range(3)]
    key = tuple(slice(None) if each is None else each for each in indices)
    values = rng.random(array[key].shape).astype("float32")
    a, x = array.copy(), pc.tensor(array)
    plain: Any = key
    np.add.at(a, plain, values)
    arguments = [None if each is None else pc.tensor(each) for each in indices]
    assert x.index_put_(arguments, pc.tensor(values), accumulate=True) is x
    np.testing.assert_allclose(x.numpy(), a, rtol=1e-5)


def test_a_large_mask_and_many_rows() -> None:
    rng = np.random.default_rng(0)
    array = rng.random((300, 400))
    x = pc.tensor(array)
    for view, same in ((x, array), (x.T, array.T), (x[::2, ::-3], array[::2, ::-3])):
        mask = same > 0.5
        np.testing.assert_array_equal(view[pc.tensor(mask)].numpy(), same[mask])
    rows = rng.integers(0, 300, 1000)
    np.testing.assert_array_equal(x[rows].numpy(), array[rows])
    np.testing.assert_array_equal(x[:, rows % 7].numpy(), array[:, rows % 7])
    x[rows], array[rows] = 1.5, 1.5
    np.testing.assert_array_equal(x.numpy(), array)
