"""x[key] and x[key] = value against NumPy, on hand-made and random keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc

ARRAY = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)

BASIC: list[Any] = [
    0, -1, 1, (1, 2), (0, -1, 3, 2), (), ..., None, slice(None), (..., 0), (0, ..., 0),
    slice(1, None), (slice(None), slice(None, None, -1)), (slice(None), slice(2, 0, -1)),
    (..., slice(None, None, 2)), (..., slice(-3, -1)), (None, 0, None, ..., None),
    (slice(5, 2), 0), (slice(0, 100), slice(-100, 2)), (..., slice(None, None, -3)),
    (slice(None), slice(1, 1)), (0, slice(None), None, slice(3, None, -2)), np.int64(1),
    (np.int32(0), np.array(1)), (slice(None), slice(np.int64(1), None)),
]  # fmt: skip

ADVANCED: list[Any] = [
    [0, 1, 0], ([0, 1], [2, 0]), (slice(None), [0, 2]), (slice(None), [0, -1], [3, 1]),
    ([0, 1], slice(None), [3, 1]), (..., [0, 4, 2]), ([[0, 1], [1, 0]],),
    (slice(None), [[0, 2]], None),
    (None, [1, 0]), ([0], slice(None, None, -1)), (slice(None), [0, 1], slice(None), [0, 1]),
    np.array([1, 0]), (np.array([[0], [1]]), np.array([0, 2])), ARRAY > 50, ARRAY[..., 0] % 2 == 0,
    np.array([True, False]), (slice(None), np.array([True, False, True])),
    (np.array([False, True]), [0]),
    ([], ), (slice(None), []), (slice(None), slice(None), np.ones((4, 5), bool)),
    ([True, False],), True, False, (0, True), np.array(True),
    np.array([1], np.uint8), np.array([0, 1], np.int32),
]  # fmt: skip


def tensors(key: Any) -> Any:
    """Return a key with its arrays as tensors."""
    if isinstance(key, tuple):
        return tuple(tensors(item) for item in key)
    return pc.tensor(key) if isinstance(key, (np.ndarray, list)) and np.size(key) else key


@pytest.mark.parametrize("key", BASIC, ids=repr)
def test_basic_indexing_gives_views(key: Any) -> None:
    x = pc.from_numpy(ARRAY.copy())
    expected = ARRAY[key]
    result = x[key]
    np.testing.assert_array_equal(result.numpy(), expected)
    assert result.shape == expected.shape
    if result.numel():
        low, high = x.data_ptr(), x.data_ptr() + x.nbytes
        assert low <= result.data_ptr() < high
    assert result is not x


@pytest.mark.parametrize("key", ADVANCED, ids=repr)
def test_advanced_indexing(key: Any) -> None:
    x = pc.from_numpy(ARRAY.copy())
    expected = ARRAY[key]
    for form in (key, tensors(key)):
        result = x[form]
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result.numpy(), expected)
        assert result.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("key", [*BASIC, *ADVANCED], ids=repr)
def test_assignment_of_a_number(key: Any) -> None:
    x, expected = pc.from_numpy(ARRAY.copy()), ARRAY.copy()
    x[key] = -1
    expected[key] = -1
    np.testing.assert_array_equal(x.numpy(), expected)
    assert x._version >= 1


@pytest.mark.parametrize("key", [*BASIC, *ADVANCED], ids=repr)
def test_assignment_of_a_tensor_and_of_an_array(key: Any) -> None:
    shape = ARRAY[key].shape
    values = np.arange(1000, 1000 + int(np.prod(shape))).reshape(shape)
    for value in (
        values,
        pc.tensor(values),
        values[..., :1] if values.ndim and values.size else values,
    ):
        x, expected = pc.from_numpy(ARRAY.copy()), ARRAY.copy()
        x[key] = value
        expected[key] = value.numpy() if isinstance(value, pc.Tensor) else value
        np.testing.assert_array_equal(x.numpy(), expected)


def random_key(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A random key of ints, slices, None, Ellipsis and arrays that index together.

    Ints beside arrays are left out: PyTorch takes them as views first, NumPy as arrays.
    """
    arrays = bool(rng.integers(2))
    common = tuple(rng.integers(0, 4, rng.integers(0, 3)))
    key: list[Any] = []
    dots = False
    for size in shape:
        kind = rng.integers(6)
        if kind == 0 and not dots:
            key.append(...)
            dots = True
            break
        if kind == 1:
            key.append(None)
        if kind <= 2 and arrays and size:
            key.append(rng.integers(-size, size, common))
        elif kind == 3 and not arrays and size:
            key.append(int(rng.integers(-size, size)))
        else:
            step = int(rng.choice([-3, -2, -1, 1, 2]))
            bounds = [
                None if rng.integers(3) == 0 else int(rng.integers(-size - 2, size + 3))
                for _ in range(2)
            ]
            key.append(slice(bounds[0], bounds[1], step))
    return tuple(key)


@pytest.mark.parametrize("seed", range(150))
def test_random_keys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0, 5, rng.integers(1, 5)))
    array = rng.integers(0, 100, shape)
    key = random_key(rng, shape)
    # 0-d arrays of indices are ints to PyTorch
    key = tuple(
        item if np.ndim(item) or not isinstance(item, np.ndarray) else item[None] for item in key
    )
    x = pc.tensor(array)
    expected = array[key]
    result = x[key]
    assert result.shape == expected.shape, key
    np.testing.assert_array_equal(result.numpy(), expected, err_msg=repr(key))
    x[key], array[key] = 7, 7
    np.testing.assert_array_equal(x.numpy(), array, err_msg=repr(key))


def test_ints_beside_arrays_are_views_first_as_in_pytorch() -> None:
    x = pc.from_numpy(ARRAY.copy())
    assert x[0, :, [1, 2]].shape == (3, 2, 5)
    np.testing.assert_array_equal(x[0, :, [1, 2]].numpy(), ARRAY[0][:, [1, 2]])


def test_zero_dimensional_tensors() -> None:
    x = pc.tensor(5)
    assert x[...].item() == x[()].item() == 5
    assert x[None].shape == (1,)
    assert x[True].shape == (1,)
    assert x[False].shape == (0,)
    x[...] = 7
    assert x.item() == 7
    with pytest.raises(IndexError, match="0-d tensor"):
        x[0]
    with pytest.raises(IndexError, match=r"too many indices for shape \(\): 1 were given"):
        x[:]


def test_views_write_through_and_count_versions() -> None:
    x = pc.zeros(3, 4)
    row, column = x[1], x[:, ::-1][:, 0]
    row += 1
    column[:] = 5
    assert x.tolist() == [[0, 0, 0, 5], [1, 1, 1, 5], [0, 0, 0, 5]]
    assert x._version == row._version == column._version == 2


def test_values_are_cast_and_broadcast() -> None:
    x = pc.zeros(2, 3, dtype=pc.int64)
    x[0] = 1.9
    x[1] = [4, 5, 6]
    assert x.tolist() == [[1, 1, 1], [4, 5, 6]]
    x[:] = pc.tensor([[[7]]])
    x[:, 1] = np.float32(2)
    assert x.tolist() == [[7, 2, 7], [7, 2, 7]]
    with pytest.raises(pc.ShapeError, match=r"\(2, 3\)"):
        x[:] = pc.ones(4)


def test_overlapping_assignment_is_as_if_copied_first() -> None:
    x = pc.arange(6)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x[:] = x[::-1]
    assert x.tolist() == [4, 3, 2, 1, 0, 0]
    places = pc.tensor([2, 0, 3, 1])
    x = pc.arange(4)
    x[places] = x
    assert x.tolist() == [1, 3, 0, 2]
    x = pc.arange(4)
    assert x.index_copy_(0, places, x).tolist() == [1, 3, 0, 2]
    x = pc.arange(4)
    assert x.put_(places, x).tolist() == [1, 3, 0, 2]
    x = pc.arange(4)
    assert x.put_(places, x, accumulate=True).tolist() == [1, 4, 2, 5]


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (2, IndexError, r"index: 2 is out of bounds for dimension 0 of shape \(2, 3\)"),
        ((0, 3), IndexError, r"3 is out of bounds for dimension 0 of shape \(3,\)"),
        ((slice(None), -4), IndexError, r"-4 is out of bounds for dimension 1 of shape \(2, 3\)"),
        (2**70, IndexError, r"index: 118.* is out of bounds for dimension 0 of shape \(2, 3\)"),
        ((0, 0, 0), IndexError, r"too many indices for shape \(2, 3\): 3 were given"),
        ((..., ...), IndexError, r"only one Ellipsis is accepted for shape \(2, 3\)"),
        (1.5, IndexError, "accepted, got float"),
        ("a", IndexError, "accepted, got str"),
        ({}, IndexError, "accepted, got dict"),
        ([1.5], IndexError, "bool or integer arrays are required, got float32"),
        ([0, 5], IndexError, "5"),
        (np.array([True]), IndexError, r"a mask of shape \(1,\) does not fit dimension 0 of"),
        (([0, 1], [0, 1, 2]), (IndexError, ValueError), r"\(2,\).*\(3,\)"),
        (slice(None, None, 0), ValueError, "zero"),
    ],
)  # fmt: skip
def test_errors(key: Any, error: Any, text: str) -> None:
    x = pc.zeros(2, 3)
    with pytest.raises(error, match=text):
        x[key]
    with pytest.raises(error, match=text):
        x[key] = 1
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_an_index_that_raises_is_passed_on() -> None:
    class Bad:
        def __index__(self) -> int:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pc.zeros(2)[Bad()]


def test_elements_cannot_be_deleted() -> None:
    x = pc.zeros(2)
    with pytest.raises(TypeError, match="cannot be deleted"):
        del x[0]
