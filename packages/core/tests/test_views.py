"""Views with another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int16", "float64", "complex64", "int64"])
def test_bytes_are_those_of_numpy(dtype: str) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4) * 1.5
    for x, a in (
        (pc.tensor(array), array),
        (pc.tensor(array)[::-1], array[::-1]),
        (pc.tensor(array)[1:, 2:], array[1:, 2:]),
    ):
        y = x.view(pc.dtype(dtype))
        want = a.view(dtype)
        assert y.dtype is pc.dtype(dtype) and y.tolist() == want.tolist()
        assert y.data_ptr() == x.data_ptr()
        assert [step * y.itemsize for step in y.stride()] == list(want.strides)
        assert x.view(dtype=dtype).tolist() == y.tolist()


def test_views_share_bytes_and_versions() -> None:
    x = pc.zeros(4)
    bits = x.view(pc.int32)
    bits[1] = 0x3F800000
    assert x.tolist() == [0, 1, 0, 0] and x._version == 1
    assert pc.tensor(1.0).view(pc.int32).item() == 0x3F800000
    assert pc.zeros(3, 4).T.view(pc.int32).stride() == (1, 4)
    assert pc.zeros(3, 4, device="meta").view(pc.int16).shape == (3, 8)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: pc.tensor(1.0).view(pc.int16), "at least 1 dimension .* float32 as int16"),
        (lambda: pc.zeros(3, 4).T.view(pc.int16), r"stride 1 .* got strides \(1, 4\)"),
        (lambda: pc.zeros(3, 3).view(pc.int64), "last size must be divisible by 2"),
        (lambda: pc.zeros(8)[1:5].view(pc.int64), "offset must be divisible by 2"),
        (lambda: pc.zeros(4, 5)[:, :4].view(pc.int64), "all strides but the last must be div"),
        (lambda: pc.zeros(4, 8)[:, ::2].view(pc.int64), "the last stride must be 1"),
    ],
)
def test_bytes_that_do_not_fit(call: Any, text: str) -> None:
    with pytest.raises(pc.ShapeError, match=f"view: .*{text}"):
        call()


def test_forms_of_view() -> None:
    x = pc.arange(6)
    for y in (x.view(2, 3), x.view((2, -1)), x.view([2, 3]), x.view(size=(2, 3))):
        assert y.tolist() == [[0, 1, 2], [3, 4, 5]]
    for bad in (
        lambda: x.view(2, 3, dtype=pc.int64),
        lambda: x.view(dtype="nope"),
        lambda: x.view(1.5),
    ):
        with pytest.raises(TypeError, match="view: "):
            bad()


def test_narrow_copy() -> None:
    x = pc.arange(4)
    assert x.narrow_copy(0, 1, 2).fill_(9).tolist() == [9, 9] and x.tolist() == [0, 1, 2, 3]


def test_memory_is_shared_with_no_process_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not pc.zeros(1).is_shared()
    assert not pc.zeros(1).untyped_storage().is_shared()
    monkeypatch.setenv("PLAIT_COMPONENTS", "multiprocessing=plait_not_there")
    assert not pc.zeros(1).is_shared()
    with pytest.raises(ModuleNotFoundError, match="plait-not-there"):
        pc.zeros(1).share_memory_()


class Size(int):
    """Sizes that are no plain ints."""


def test_sizes_in_every_form() -> None:
    class Derived(pc.Tensor): ...

    x = pc.arange(12)
    three: Any = (Size(3), np.int64(3), pc.tensor(3), 3)
    for one in three:
        assert x.view(one, -1).shape == x.view((one, 4)).shape == x.view([one, 4]).shape == (3, 4)
        assert x.view(size=(one, 4)).shape == (3, 4)
    assert x.view(x.shape).shape == (12,) and x[:1].view(()).shape == ()
    assert x.view(pc.zeros(3, 4).shape).data_ptr() == x.data_ptr()
    assert Derived(x).view(3, 4).shape == (3, 4)
    for wrong in ((5,), (-1, -1), (-1, 5), (2**40, 2**40), (-2, -6)):
        with pytest.raises(pc.ShapeError, match="view"):
            x.view(*wrong)
    for bad in ((), (2**70,), (1.5,), ("3", 4), ((3, 4), 1)):
        with pytest.raises((TypeError, OverflowError, ValueError), match="view"):
            x.view(*bad)
    with pytest.raises((ValueError, TypeError)):
        x.view(*[1] * 100)
