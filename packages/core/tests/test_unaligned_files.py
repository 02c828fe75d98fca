"""safetensors files whose tensors lie at any byte: they load, also mapped, and in slices."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc

ARRAYS: dict[str, tuple[str, Any]] = {
    "bytes": ("U8", np.uint8([1, 2, 3])),
    "float": ("F32", np.arange(6, dtype="<f4").reshape(2, 3)),
    "double": ("F64", np.arange(3, dtype="<f8")),
    "half": ("F16", np.arange(5, dtype="<f2")),
    "long": ("I64", np.arange(4, dtype="<i8").reshape(2, 2)),
    "complex": ("C64", np.arange(3).astype("<c8")),
    "empty": ("F32", np.zeros((0, 2), "<f4")),
    "bool": ("BOOL", np.array([True])),
    "short": ("I16", np.arange(2, dtype="<i2")),
}


def written(path: Path, spaces: int) -> dict[str, tuple[int, int]]:
    """Write a file without gaps, whose header ends with spaces; return where the tensors lie."""
    header, data, places = {}, b"", {}
    for name, (code, array) in ARRAYS.items():
        begin, data = len(data), data + array.tobytes()
        places[name] = (begin, len(data))
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * ((spaces - len(text)) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return {name: (8 + len(text) + a, 8 + len(text) + b) for name, (a, b) in places.items()}


@pytest.mark.parametrize("spaces", range(8))
@pytest.mark.parametrize("mapped", [False, True])
def test_tensors_at_any_byte(tmp_path: Path, spaces: int, mapped: bool) -> None:
    written(tmp_path / "a.safetensors", spaces)
    loaded = pc.load(tmp_path / "a.safetensors", mmap=mapped)
    for name, (_, array) in ARRAYS.items():
        np.testing.assert_array_equal(loaded[name].numpy(), array)
        assert (loaded[name] + 1).shape == array.shape


@pytest.mark.parametrize("spaces", range(8))
def test_slices_of_a_mapped_file(tmp_path: Path, spaces: int) -> None:
    """As the package safetensors reads one: bytes of a storage, seen as another dtype."""
    path = tmp_path / "a.safetensors"
    places = written(path, spaces)
    storage = pc.UntypedStorage.from_file(path, nbytes=path.stat().st_size)
    for name, (_, array) in ARRAYS.items():
        data = storage[slice(*places[name])]
        seen = pc.asarray(data, dtype=pc.uint8).view(pc.dtype(array.dtype)).reshape(array.shape)
        np.testing.assert_array_equal(seen.numpy(), array)
    assert storage[8:16].data_ptr() == storage.data_ptr() + 8  # an aligned slice is no copy


def test_slices_of_a_shared_mapping_share_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(16))
    storage = pc.UntypedStorage.from_file(path, shared=True, nbytes=16)
    storage[3:5].fill_(7)
    assert storage.tolist() == [0, 0, 0, 7, 7, *[0] * 11]
