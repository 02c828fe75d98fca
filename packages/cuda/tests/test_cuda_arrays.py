"""Arrays of other libraries that have `__cuda_array_interface__` alone."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from emulation_control import Emulation, run_program

import plait_core as pc

cuda = pc.cuda


class Foreign:
    """An array that shows the memory of a tensor, with other facts where they are given."""

    def __init__(self, tensor: pc.Tensor, **facts: Any) -> None:
        self.memory = tensor
        self.facts: Any = {**tensor.__cuda_array_interface__, **facts}

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.facts


def numbers(*shape: int, dtype: str = "float32") -> Any:
    return pc.arange(int(np.prod(shape)), device="cuda").reshape(shape).to(getattr(pc, dtype))


DTYPES = ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_on_the_memory_of_an_array(dtype: str) -> None:
    x = numbers(2, 3, dtype=dtype)
    y = pc.as_tensor(Foreign(x))
    assert y.data_ptr() == x.data_ptr() and y.device == x.device
    assert (y.dtype, y.shape, y.stride()) == (x.dtype, x.shape, x.stride())
    y.fill_(1)
    assert bool((x == y).all())
    assert pc.asarray(Foreign(x), copy=False).data_ptr() == x.data_ptr()


def test_a_copy_is_one() -> None:
    x = numbers(2, 3)
    for copy in (pc.tensor(Foreign(x)), pc.asarray(Foreign(x), copy=True)):
        assert copy.device == x.device and copy.data_ptr() != x.data_ptr()
        assert copy.tolist() == [[0, 1, 2], [3, 4, 5]]
    y = pc.tensor(Foreign(x), device="cuda", dtype=pc.float64)
    assert y.device == x.device and y.dtype == pc.float64 and y.data_ptr() != x.data_ptr()
    assert pc.as_tensor(Foreign(x), dtype=pc.int32, device="cpu").tolist() == x.tolist()


def test_views_keep_their_strides() -> None:
    x = numbers(4, 6, 5)
    for view in (x[:, ::2], x.transpose(0, 2), x[1:3, :, 4], x[0, 0, 0], x[:, :1].mT):
        y = pc.as_tensor(Foreign(view))
        assert y.shape == view.shape and y.tolist() == view.tolist()
        assert y.data_ptr() == view.data_ptr()
    backwards = {"strides": (-4,), "data": (x.data_ptr() + 4 * 119, False), "shape": (120,)}
    assert pc.as_tensor(Foreign(x, **backwards)).tolist() == list(range(119, -1, -1))


def test_the_array_lives_as_long_as_the_tensor() -> None:
    array = Foreign(numbers(7))
    alive = weakref.ref(array)
    y = pc.as_tensor(array)[2:]
    del array
    gc.collect()
    assert alive() is not None and y.tolist() == [2, 3, 4, 5, 6]
    del y
    gc.collect()
    assert alive() is None


def test_the_current_stream_waits_for_that_of_the_array(emulation: Emulation) -> None:
    x, theirs, ours = pc.zeros(100, device="cuda"), cuda.Stream(), cuda.Stream()
    cuda.synchronize()
    emulation.set("delay_us", 50_000)
    with cuda.stream(theirs):
        x.add_(1)
    with cuda.stream(ours):
        y = pc.as_tensor(Foreign(x, stream=theirs.cuda_stream)) + 1
    assert not theirs.query()  # the host has not waited
    ours.synchronize()
    assert float(y.cpu().min()) == 2.0
    waits = emulation.get("waits")
    for stream in (None, 1, 2, ours.cuda_stream):
        pc.as_tensor(Foreign(x, stream=stream))
    assert emulation.get("waits") == waits


def test_read_only_memory_is_not_written() -> None:
    x = numbers(5)
    y = pc.as_tensor(Foreign(x, data=(x.data_ptr(), True)))
    with pytest.raises(RuntimeError, match="read-only"):
        y.add_(1)
    assert (y + 1).tolist() == [1, 2, 3, 4, 5]


def test_empty_arrays_have_no_address() -> None:
    y = pc.as_tensor(Foreign(numbers(4), shape=(0, 3), data=(0, False), strides=None))
    assert y.shape == (0, 3) and y.device.type == "cuda" and y.numel() == 0


def test_older_versions_have_fewer_facts() -> None:
    x = numbers(2, 2)
    facts = {"shape": (2, 2), "typestr": "<f4", "data": (x.data_ptr(), False), "version": 0}
    array = Foreign(x)
    array.facts = facts
    assert pc.as_tensor(array).tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("kind", "facts", "text"),
    [
        (ValueError, {"version": 4}, "version from 0 to 3"),
        (ValueError, {"mask": object()}, "mask"),
        (TypeError, {"typestr": ">f4"}, "byte order"),
        (TypeError, {"typestr": "<M8"}, "dtypes"),
        (TypeError, {"typestr": "<f3"}, "dtypes"),
        (TypeError, {"typestr": None}, "dtypes"),
        (TypeError, {"shape": [6]}, "tuple of ints"),
        (ValueError, {"shape": (-6,)}, "must not be negative"),
        (ValueError, {"shape": (1,) * 65}, "dimensions"),
        (ValueError, {"strides": (4, 4)}, "2 numbers for a shape of 1"),
        (ValueError, {"strides": (6,)}, "strides of whole elements"),
        (TypeError, {"data": None}, "address"),
        (TypeError, {"data": ("here", False)}, "address"),
        (ValueError, {"data": (4096, False)}, "memory of a CUDA device is required"),
        (ValueError, {"stream": 0}, "stream"),
        (TypeError, {"stream": "first"}, "stream"),
    ],
)
def test_wrong_facts_are_refused(kind: type[Exception], facts: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        pc.as_tensor(Foreign(numbers(6), **facts))


def test_memory_of_the_host_is_not_that_of_a_device() -> None:
    pinned = pc.ones(6).pin_memory()
    with pytest.raises(ValueError, match="memory of a CUDA device is required"):
        pc.as_tensor(Foreign(numbers(6), data=(pinned.data_ptr(), False)))


def test_the_device_of_an_array_is_that_of_its_memory() -> None:
    run_program(
        """
        class Foreign:
            def __init__(self, tensor):
                self.__cuda_array_interface__ = tensor.__cuda_array_interface__

        for i in (0, 1):
            x = plait.ones(3, device=f"cuda:{i}")
            assert plait.as_tensor(Foreign(x)).device == x.device
        """,
        PLAIT_CUDA_DEVICES="2",
    )
