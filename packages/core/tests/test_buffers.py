"""`asarray` of bytes-like objects that are no arrays."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import plait_core as pc


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, "array"])
@pytest.mark.parametrize(
    "dtype", [None, "float32", "float64", "uint8", "int32", "bool", "bfloat16"]
)
def test_asarray_reads_the_bytes_of_a_buffer(kind: Any, dtype: str | None) -> None:
    """As in PyTorch: by the dtype that is asked for, whatever the buffer's own type is."""
    data = bytes([0, 0, 128, 63, 1, 0, 0, 0] * 2) if dtype != "bool" else bytes([0, 1] * 8)
    buffer = array.array("i", data) if kind == "array" else kind(data)
    asked = None if dtype is None else getattr(pc, dtype)
    made = pc.asarray(buffer, dtype=asked)
    assert made.dtype is (asked or pc.get_default_dtype())
    assert pc.equal(made.view(pc.uint8), pc.tensor(list(data), dtype=pc.uint8))
    copied = pc.asarray(buffer, dtype=asked, copy=True)
    assert copied.data_ptr() != made.data_ptr()
    assert pc.equal(copied.view(pc.uint8), made.view(pc.uint8))
    assert pc.asarray(buffer, dtype=asked, copy=False).data_ptr() == made.data_ptr()
    if kind is bytearray:
        buffer[0] = 1
        assert made.view(pc.uint8)[0].item() == 1


def test_asarray_of_a_buffer_with_gaps_or_of_another_size_is_refused() -> None:
    with pytest.raises(BufferError):
        pc.asarray(memoryview(b"abcd")[::2], dtype=pc.uint8)
    with pytest.raises(ValueError, match="multiple"):
        pc.asarray(b"abc", dtype=pc.int32)
    assert pc.asarray(np.arange(3)).dtype is pc.int64  # an array is no bare buffer
