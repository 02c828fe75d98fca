"""`tensor`, `as_tensor`, `asarray` and `frombuffer` of bytes-like objects that are no arrays."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import numpy as np
import pytest

import plait_core as pc


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, "array"])
@pytest.mark.parametrize(
    "dtype", [None, "float32", "float64", "uint8", "int32", "bool", "bfloat16"]
)
def test_asarray_reads_the_bytes_of_a_buffer(kind: Any, dtype: str | None) -> None:
    """Buffers are read with the requested dtype for any type of the buffer, as in PyTorch."""
    data = bytes([0, 0, 128, 63, 1, 0, 0, 0] * 2) if dtype != "bool" else bytes([0, 1] * 8)
    buffer = array.array("i", data) if kind == "array" else kind(data)
    request = None if dtype is None else getattr(pc, dtype)
    result = pc.asarray(buffer, dtype=request)
    assert result.dtype is (request or pc.get_default_dtype())
    assert pc.equal(result.view(pc.uint8), pc.tensor(list(data), dtype=pc.uint8))
    copied = pc.asarray(buffer, dtype=request, copy=True)
    assert copied.data_ptr() != result.data_ptr()
    assert pc.equal(copied.view(pc.uint8), result.view(pc.uint8))
    assert pc.asarray(buffer, dtype=request, copy=False).data_ptr() == result.data_ptr()
    if kind is bytearray:
        buffer[0] = 1
        assert result.view(pc.uint8)[0].item() == 1


def test_asarray_of_a_buffer_with_gaps_or_of_another_size_is_refused() -> None:
    with pytest.raises(BufferError):
        pc.asarray(memoryview(b"abcd")[::2], dtype=pc.uint8)
    with pytest.raises(ValueError, match="multiple"):
        pc.asarray(b"abc", dtype=pc.int32)
    assert pc.asarray(np.arange(3)).dtype is pc.int64  # an array is no bare buffer


BUFFERS: dict[str, Any] = {
    "bytearray": bytearray(b"\1\2\3\4"), "no bytes in it": bytearray(),
    "memoryview": memoryview(b"\1\2\3\4"), "no memoryview": memoryview(b""),
    "steps": memoryview(bytearray(b"\1\2\3\4"))[::2],
    "backwards": memoryview(bytearray(b"\1\2\3\4"))[::-1],
    "rows": memoryview(bytearray(range(6))).cast("B", (2, 3)),
    "ctypes": (ctypes.c_int * 3)(1, 2, 3), "rows of ctypes": ((ctypes.c_short * 2) * 2)((1, 2)),
    **{f"memoryview of {code}": memoryview(bytearray(range(16))).cast(code)
       for code in "bBhHiIlLqQnNfd"},
    "memoryview of ?": memoryview(bytearray([0, 1, 1])).cast("?"),
    **{f"array of {code}": array.array(code, [1, 2]) for code in "bBhHiIlLqQfd"},
    **{f"no array of {code}": array.array(code) for code in "bBhHiIlLqQfd"},
}  # fmt: skip


@pytest.mark.parametrize("name", BUFFERS)
def test_tensors_of_buffers_have_the_dtype_of_their_elements(name: str) -> None:
    """As NumPy's arrays of them have, where PyTorch takes them for lists of numbers."""
    buffer = BUFFERS[name]
    expected = np.array(buffer)
    for function in (pc.tensor, pc.as_tensor):
        result = function(buffer)
        assert result.dtype is getattr(pc, str(expected.dtype)) and result.shape == expected.shape
        assert np.array_equal(result.numpy(), expected, equal_nan=expected.dtype.kind == "f")
        cast = function(buffer, dtype=pc.float32)
        assert cast.dtype is pc.float32
        with np.errstate(over="ignore"):
            as_floats = expected.astype("float32")
        assert np.array_equal(cast.numpy(), as_floats, equal_nan=True)


@pytest.mark.parametrize("kind", ["c", "u", "bytes"])
def test_tensors_of_texts_are_refused(kind: str) -> None:
    texts = {"c": memoryview(b"ab").cast("c"), "u": array.array("u", "ab"), "bytes": b"ab"}
    for function in (pc.tensor, pc.as_tensor):
        with pytest.raises((TypeError, ValueError)):
            function(texts[kind])


@pytest.mark.parametrize("name", ["bytes", *BUFFERS])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "bool"])
def test_frombuffer_reads_the_same_as_numpy(name: str, dtype: str) -> None:
    buffer = b"\1\0\1\0" if name == "bytes" else BUFFERS[name]
    for options in (
        {}, {"offset": 1}, {"count": 0}, {"count": 1}, {"count": 1, "offset": 2}, {"count": 1000},
        {"offset": 1000}, {"offset": -1}, {"count": -1},
    ):  # fmt: skip
        try:
            expected = np.frombuffer(buffer, dtype=dtype, **options)
        except (ValueError, BufferError):
            with pytest.raises((ValueError, BufferError)):
                pc.frombuffer(buffer, dtype=getattr(pc, dtype), **options)
            continue
        try:
            result = pc.frombuffer(buffer, dtype=getattr(pc, dtype), **options)
        except ValueError:  # elements are aligned, and no part of what has some is empty
            offset = options.get("offset", 0)
            assert offset and (expected.size == 0 or offset % expected.itemsize)
            continue
        assert result.dtype is getattr(pc, dtype)
        if dtype != "bool":
            assert np.array_equal(result.numpy(), expected, equal_nan=dtype == "float32")
