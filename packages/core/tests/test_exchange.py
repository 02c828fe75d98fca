"""Exchange without a copy: NumPy, DLPack, the buffer protocol."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import plait_core as pc

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
LAYOUTS = {
    "dense": lambda a: a,
    "reversed": lambda a: a[::-1],
    "transposed": lambda a: a.T,
    "strided": lambda a: a[::2, 1::-1],
    "broadcast": lambda a: np.broadcast_to(a[0], (3, 4)),
    "empty": lambda a: a[:0],
    "scalar": lambda a: a[0, 0, ...],
}


def address(array: Any) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_numpy_there_and_back(dtype: str, layout: str) -> None:
    array = LAYOUTS[layout](np.arange(12).reshape(3, 4).astype(dtype))
    x = pc.from_numpy(array)
    assert (x.dtype.name, x.shape) == (dtype, array.shape)
    np.testing.assert_array_equal(np.array(x.tolist(), dtype).reshape(array.shape), array)
    back = x.numpy()
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    if array.size:
        assert x.data_ptr() == address(array) == address(back)
        assert x.stride() == back.strides if array.ndim == 0 else True
        import_ = np.from_dlpack(x)
        assert address(import_) == x.data_ptr()
        assert import_.dtype == array.dtype


def test_writes_are_seen_on_both_sides() -> None:
    array = np.zeros(3)
    x = pc.from_numpy(array)
    x[0] = 1
    array[1] = 2
    x.numpy()[2] = 3
    np.from_dlpack(x)[0] += 10
    assert x.tolist() == array.tolist() == [11, 2, 3]


def test_read_only_arrays_become_read_only_tensors() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    for x in (pc.from_numpy(array), pc.from_dlpack(array), pc.as_tensor(array)):
        assert x.data_ptr() == address(array)
        with pytest.raises(
            ValueError, match="`self` is read-only and would be written; copy it first"
        ):
            x += 1
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 1
        assert not x.numpy().flags.writeable
        assert not np.from_dlpack(x).flags.writeable
        with pytest.raises(BufferError, match="read-only tensor needs a consumer"):
            x.__dlpack__()
        y = x.clone()
        y += 1
        assert y.tolist() == [1, 2, 3]


def test_owners_live_as_long_as_they_are_needed() -> None:
    class Owner(np.ndarray):
        pass

    array = np.arange(3.0).view(Owner)
    reference = weakref.ref(array)
    x = pc.from_numpy(array)
    view = x[1:]
    del array, x
    gc.collect()
    assert view.tolist() == [1, 2]
    assert reference() is not None
    del view
    gc.collect()
    assert reference() is None


def test_arrays_outlive_the_tensor() -> None:
    def make() -> list[Any]:
        x = pc.arange(1000)
        return [x.numpy(), np.from_dlpack(x), memoryview(x)]

    arrays = make()
    pc.zeros(1000)  # what was freed would be used again here
    assert [int(np.asarray(a).sum()) for a in arrays] == [499500] * 3


def test_an_exported_tensor_may_be_repointed() -> None:
    x = pc.ones(3)
    array, import_ = x.numpy(), np.from_dlpack(x)
    x.data = pc.zeros(2, 2)
    gc.collect()
    assert array.tolist() == import_.tolist() == [1, 1, 1]


@pytest.mark.parametrize("copy", [None, False, True])
def test_from_dlpack_copies_on_request(copy: bool | None) -> None:
    for source in (np.arange(3.0), pc.arange(3)):
        x = pc.from_dlpack(source, copy=copy)
        there = address(source) if isinstance(source, np.ndarray) else source.data_ptr()
        assert (x.data_ptr() == there) == (copy is not True)
        assert x.tolist() == [0, 1, 2]


def test_dlpack_keywords() -> None:
    x = pc.arange(3)
    assert x.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(x.__dlpack__(max_version=(0, 8)))
    assert '"dltensor"' in repr(x.__dlpack__())
    assert np.from_dlpack(x, copy=True).tolist() == [0, 1, 2]
    assert address(np.from_dlpack(x, copy=True)) != x.data_ptr()
    for keywords, error, text in [
        ({"max_version": 3}, TypeError, "`max_version` must be a pair of ints"),
        ({"stream": 1}, BufferError, "`stream` must be None"),
        ({"dl_device": (2, 0)}, BufferError, r"\(1, 0\); \(2, 0\) was requested"),
        ({"dl_device": "cpu"}, TypeError, "`dl_device` must be a pair of ints"),
    ]:
        with pytest.raises(error, match=text):
            x.__dlpack__(**keywords)


def test_a_capsule_is_consumed_once() -> None:
    capsule = pc.arange(3).__dlpack__()
    assert pc.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="a fresh DLPack capsule is required"):
        pc.from_dlpack(capsule)
    del capsule
    for bad in (3, "a", None):
        with pytest.raises(TypeError, match="from_dlpack: an array with `__dlpack__` is required"):
            pc.from_dlpack(bad)
    with pytest.raises(NotImplementedError, match="no component for the device rocm:0"):
        pc.from_dlpack(np.ones(1), device="rocm")


def test_an_unused_capsule_frees_its_tensor() -> None:
    live = pc.memory_stats()["live_bytes"]
    for _ in range(10):
        pc.zeros(1000).__dlpack__(max_version=(1, 0))
    gc.collect()
    assert pc.memory_stats()["live_bytes"] == live


def test_buffer_protocol() -> None:
    x = pc.arange(6).view(2, 3)
    view = memoryview(x)
    assert (view.shape, view.strides, view.format, view.readonly) == ((2, 3), (24, 8), "l", False)
    assert view.tolist() == x.tolist()
    view[1, 2] = 50
    assert x[1, 2].item() == 50
    assert bytes(x) == x.numpy().tobytes()
    assert memoryview(x.T).tolist() == x.T.tolist()
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(pc.ones(2).bfloat16())


def test_numpy_functions_take_tensors() -> None:
    x = pc.tensor([[1.0, 4.0], [9.0, 16.0]])
    np.testing.assert_array_equal(np.sqrt(x), [[1, 2], [3, 4]])
    assert np.asarray(x).dtype == np.float32
    assert address(np.asarray(x)) == x.data_ptr()
    assert np.asarray(x, dtype=np.int64).tolist() == [[1, 4], [9, 16]]
    assert address(np.array(x)) != x.data_ptr()
    assert x.__array__(np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="`copy=False` cannot change float32 to float64"):
        x.__array__(np.float64, copy=False)
    np.testing.assert_array_equal(np.stack([x[0], x[1]]), x.numpy())


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        ([1, 2], TypeError, "`ndarray` must be a NumPy array, got list"),
        (np.array(["a"]), pc.DTypeError, "format 1w, which means text: convert it"),
        (np.array(["a", 1], object), pc.DTypeError, "select the columns of numbers"),
        (np.zeros(2, "i4, i8"), pc.DTypeError, "structures: select one field"),
        (np.array([1], "M8[s]"), pc.DTypeError, "convert dates .*cannot include dtype 'M'"),
        (np.zeros(2, ">f4"), pc.DTypeError, "byte order of another machine: convert"),
        (np.zeros(2, "i4, i8")["f1"], ValueError, "copy the array first"),
    ],
)
def test_from_numpy_refuses(array: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        pc.from_numpy(array)


def test_bfloat16_must_be_cast_for_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # as if it were not installed
    with pytest.raises(TypeError, match=r"cast first, as in x.float\(\).numpy\(\), or install"):
        pc.ones(1).bfloat16().numpy()


def test_bfloat16_of_another_package() -> None:
    """Exchange with ml_dtypes, or with a NumPy dtype of the same size where it is not installed."""
    try:
        import ml_dtypes
    except ImportError:
        return  # the session oracle, whose environment has it, comes here
    x = pc.arange(6).bfloat16()[::-1]
    array = x.numpy()
    assert array.dtype == ml_dtypes.bfloat16 and address(array) == x.data_ptr()
    assert array.tolist() == x.tolist() == [5, 4, 3, 2, 1, 0]
    for back in (pc.from_numpy(array), pc.as_tensor(array)):
        assert back.dtype is pc.bfloat16 and back.data_ptr() == x.data_ptr()
    assert pc.tensor(array).tolist() == x.tolist()


def test_numpy_keywords() -> None:
    assert pc.ones(1).numpy(force=True).tolist() == [1]
    for call in (lambda: pc.ones(1).numpy(True, True), lambda: pc.ones(1).numpy(copy=True)):
        with pytest.raises(TypeError, match="only the keyword `force` is accepted"):
            call()


def test_as_tensor_and_asarray() -> None:
    array, x = np.arange(3.0), pc.arange(3)
    assert pc.as_tensor(array).data_ptr() == address(array)
    assert pc.as_tensor(x) is x
    assert pc.as_tensor(x, dtype=pc.float32).dtype is pc.float32
    assert pc.as_tensor([1, 2]).tolist() == [1, 2]
    assert pc.as_tensor(np.float64(3)).dtype is pc.float64
    assert (
        pc.asarray(array).data_ptr() == pc.asarray(array, copy=False).data_ptr() == address(array)
    )
    assert pc.asarray(array, copy=True).data_ptr() != address(array)
    with pytest.raises(ValueError, match="asarray: `copy=False` needs an array"):
        pc.asarray(array, dtype=pc.float32, copy=False)
    with pytest.raises(ValueError, match="asarray: `copy=False` needs an array"):
        pc.asarray([1, 2], copy=False)


def test_frombuffer_of_bfloat16() -> None:
    data = bytearray(b"\x80\x3f\x00\x40\x40\xc0")
    x = pc.frombuffer(data, dtype=pc.bfloat16)
    assert x.dtype == pc.bfloat16 and x.tolist() == [1, 2, -3]
    assert pc.frombuffer(data, dtype=pc.bfloat16, count=1, offset=4).tolist() == [-3]
    data[1] = 0xBF
    assert x[0] == -1  # no copy
    with pytest.raises(ValueError, match="buffer is smaller"):
        pc.frombuffer(data, dtype=pc.bfloat16, count=4)


def test_frombuffer() -> None:
    data = bytearray(np.arange(4, dtype=np.int16).tobytes())
    x = pc.frombuffer(data, dtype=pc.int16)
    data[0] = 9
    assert x.tolist() == [9, 1, 2, 3]
    assert pc.frombuffer(data, dtype=pc.int16, count=2, offset=2).tolist() == [1, 2]


def test_nothing_is_left_behind() -> None:
    array = np.ones(3)
    before = sys.getrefcount(array)
    for _ in range(5):
        x = pc.from_numpy(array)
        x.numpy(), np.from_dlpack(x), memoryview(x), x + array, array + x
        del x
    gc.collect()
    assert sys.getrefcount(array) == before


@pytest.mark.parametrize("value", [np.datetime64("2020"), np.timedelta64(3, "s")])
def test_a_date_of_numpy_is_refused(value: Any) -> None:
    for function in (pc.from_numpy, pc.tensor, pc.asarray):
        with pytest.raises(pc.DTypeError, match="convert dates"):
            function(value)
