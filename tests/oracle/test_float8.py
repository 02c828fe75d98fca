"""float8 beside PyTorch: conversions bit for bit, files both ways, DLPack."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

import plait_core as pc

KINDS = ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz")
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")


def bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.contiguous().view(torch.uint8).numpy()


def our_bits(tensor: pc.Tensor) -> np.ndarray:
    return tensor.contiguous().view(pc.uint8).numpy()


def drawn(count: int) -> np.ndarray:
    """Floats of all exponents, and those beside the ends of float8's binades."""
    chance = np.random.default_rng(8)
    words = chance.integers(0, 2**32, count, np.uint32)
    edges = (np.arange(2**14, dtype=np.uint32) << 18)[:, None] + np.uint32([0, 1, 2**32 - 1])
    x = np.concatenate([words, edges.ravel()]).view(np.float32)
    return np.where(np.isnan(x), np.float32(0), x)


@pytest.mark.parametrize("kind", KINDS)
def test_conversions_to_float8(kind: str) -> None:
    x = drawn(100_000)
    for dtype in FLOATS:
        theirs = torch.from_numpy(x).to(getattr(torch, dtype))
        ours = pc.from_numpy(x).to(pc.dtype(dtype))
        right = bits(theirs.to(getattr(torch, kind)))
        numbers = ~np.isnan(theirs.float().numpy())  # NaN has a sign of chance in PyTorch
        assert np.array_equal(our_bits(ours.to(pc.dtype(kind)))[numbers], right[numbers]), dtype
    whole = np.arange(-70_000, 70_000)
    for dtype in INTEGERS:
        theirs = torch.from_numpy(whole).to(getattr(torch, dtype)).to(getattr(torch, kind))
        ours = pc.from_numpy(whole).to(pc.dtype(dtype)).to(pc.dtype(kind))
        assert np.array_equal(our_bits(ours), bits(theirs)), dtype


@pytest.mark.parametrize("kind", KINDS)
def test_conversions_from_float8(kind: str) -> None:
    every = np.arange(256, dtype=np.uint8)
    theirs = torch.from_numpy(every).view(getattr(torch, kind))
    ours = pc.from_numpy(every).view(pc.dtype(kind))
    assert np.array_equal(our_bits(ours.float()), bits(theirs.float()))  # and the bits of NaN
    numbers = ~theirs.float().isnan().numpy()
    for dtype in (*FLOATS, *KINDS, "complex64", "bool"):
        right = bits(theirs.to(getattr(torch, dtype))).reshape(256, -1)[numbers]
        assert np.array_equal(our_bits(ours.to(pc.dtype(dtype))).reshape(256, -1)[numbers], right)
    small = numbers & (np.abs(theirs.float().numpy()) < 100)
    for dtype in INTEGERS[2:]:
        if dtype[0] != "u":
            right = bits(theirs.to(getattr(torch, dtype))).reshape(256, -1)[small]
            assert np.array_equal(our_bits(ours.to(pc.dtype(dtype))).reshape(256, -1)[small], right)


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_exchange(kind: str) -> None:
    every = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    theirs = every.view(getattr(torch, kind)).reshape(16, 16)
    file = io.BytesIO()
    torch.save({"x": theirs, "kind": theirs.dtype}, file)
    loaded = pc.load(io.BytesIO(file.getvalue()))
    assert loaded["kind"] is pc.dtype(kind) and loaded["x"].dtype is pc.dtype(kind)
    assert np.array_equal(our_bits(loaded["x"]), bits(theirs))
    file = io.BytesIO()
    pc.save(loaded, file, format="torch")
    again = torch.load(io.BytesIO(file.getvalue()))
    assert again["kind"] is theirs.dtype and np.array_equal(bits(again["x"]), bits(theirs))
    shared = pc.from_dlpack(theirs)
    assert shared.dtype is pc.dtype(kind) and shared.data_ptr() == theirs.data_ptr()
    assert torch.from_dlpack(loaded["x"]).dtype is theirs.dtype
    ours, right = pc.finfo(pc.dtype(kind)), torch.finfo(theirs.dtype)
    for name in ("bits", "max", "min", "eps", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(ours, name) == getattr(right, name), name
    assert repr(ours) == repr(right)
    assert repr(pc.dtype(kind)).split(".")[1] == repr(theirs.dtype).split(".")[1]
    assert loaded["x"].tolist().__repr__() == theirs.tolist().__repr__()
    assert repr(loaded["x"][1, :5]).replace("dtype=", "dtype=torch.") == repr(theirs[1, :5])
