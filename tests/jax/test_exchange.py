"""Exchange with JAX by DLPack: the same bytes in both directions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plait_core as pc

jax.config.update("jax_enable_x64", True)
DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def address(array: Any) -> int:
    return int(array.unsafe_buffer_pointer())


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_jax_without_a_copy(dtype: str) -> None:
    theirs = jnp.arange(6).reshape(2, 3).astype(dtype)
    ours = pc.from_dlpack(theirs)
    assert ours.data_ptr() == address(theirs)
    assert ours.dtype is pc.dtype(dtype) and ours.shape == (2, 3)
    assert ours.tolist() == theirs.tolist()
    assert pc.as_tensor(theirs).data_ptr() == address(theirs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_to_jax_without_a_copy(dtype: str) -> None:
    ours = pc.arange(64).view(8, 8).to(dtype)  # JAX copies what is not aligned to 64 bytes
    if ours.data_ptr() % 64:
        raise AssertionError("large tensors are aligned to 64 bytes")
    theirs = jnp.from_dlpack(ours)
    assert address(theirs) == ours.data_ptr()
    assert theirs.dtype.name == dtype and theirs.tolist() == ours.tolist()


def test_arrays_outlive_tensors() -> None:
    theirs = jnp.from_dlpack(pc.ones(1000))
    pc.zeros(1000)  # what was freed would be used again here
    assert float(theirs.sum()) == 1000
    ours = pc.from_dlpack(jnp.ones(1000))
    jnp.zeros(1000).block_until_ready()
    assert ours.sum().item() == 1000


def test_an_array_of_jax_is_an_operand() -> None:
    assert (pc.ones(2) + jnp.ones(2, "float32")).tolist() == [2, 2]
    assert pc.tensor(jnp.arange(3)).tolist() == [0, 1, 2]


def test_numpy_between() -> None:
    ours = pc.rand(4, 4)
    np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(ours)), ours.numpy())
