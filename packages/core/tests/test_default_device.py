"""The default device: of calls that name no device and have no tensor."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator, operator_names
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.spec import Operator

FACTORIES: dict[str, Callable[..., Any]] = {
    "arange": lambda **o: pc.arange(3, **o),
    "as_tensor": lambda **o: pc.as_tensor([1, 2], **o),
    "as_tensor of an array": lambda **o: pc.as_tensor(np.ones(2), **o),
    "asarray": lambda **o: pc.asarray(1.0, **o),
    "asarray of an array": lambda **o: pc.asarray(np.ones(2), **o),
    "empty": lambda **o: pc.empty(2, 3, **o),
    "empty_strided": lambda **o: pc.empty_strided((2, 3), (1, 2), **o),
    "eye": lambda **o: pc.eye(3, **o),
    "fftfreq": lambda **o: pc.fft.fftfreq(4, **o),
    "full": lambda **o: pc.full((2,), 7, **o),
    "hann_window": lambda **o: pc.hann_window(4, **o),
    "linspace": lambda **o: pc.linspace(0, 1, 3, **o),
    "logspace": lambda **o: pc.logspace(0, 1, 3, **o),
    "normal": lambda **o: pc.normal(0.0, 1.0, (2,), **o),
    "ones": lambda **o: pc.ones(2, **o),
    "rand": lambda **o: pc.rand(2, **o),
    "randint": lambda **o: pc.randint(3, (2,), **o),
    "randn": lambda **o: pc.randn(2, **o),
    "randperm": lambda **o: pc.randperm(4, **o),
    "scalar_tensor": lambda **o: pc.scalar_tensor(1.0, **o),
    "tensor": lambda **o: pc.tensor([1, 2], **o),
    "tensor of an array": lambda **o: pc.tensor(np.ones(2), **o),
    "tril_indices": lambda **o: pc.tril_indices(3, 3, **o),
    "zeros": lambda **o: pc.zeros(2, **o),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_what_makes_tensors_of_nothing_follows_it(name: str) -> None:
    make = FACTORIES[name]
    with pc.device("meta"):
        assert make().device.type == "meta"
        assert make(device="cpu").device.type == "cpu"
    assert make().device.type == "cpu"


def test_no_operator_has_another_default() -> None:
    schemas = [s for name, _ in operator_names() for s in operator(name).schemas if "device?" in s]
    assert len(schemas) > 30
    assert not [schema for schema in schemas if not re.search(r"device\? \w+=None", schema)]


@pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)
def test_calls_with_tensors_do_not_see_it(spec: Operator) -> None:
    """Also not in their decompositions."""
    for sample in list(draw(spec))[:3]:
        tensor_sample = sample.mapped(pc.from_numpy)
        values = [*tensor_sample.args, *tensor_sample.kwargs.values()]
        if not any(isinstance(each, pc.Tensor) for each in values):
            continue
        with pc.device("meta"):
            output = operator(spec.name)(*tensor_sample.args, **tensor_sample.kwargs)
        for result in output if isinstance(output, (tuple, list)) else [output]:
            assert not isinstance(result, pc.Tensor) or result.device.type == "cpu", sample


def test_memory_that_exists_stays_where_it_is() -> None:
    array, here = np.ones(2, np.float32), pc.ones(2)
    with pc.device("meta"):
        result = [
            pc.from_numpy(array),
            pc.frombuffer(b"\x01\x02", dtype=pc.uint8),
            pc.from_dlpack(array),
            pc.tensor(here),
            pc.as_tensor(here),
            pc.asarray(here, copy=False),
            here.new_tensor([1.0]),
            here.new_zeros(2),
            pc.zeros_like(here),
            here + 1,
            here + array,
        ]
    assert {each.device.type for each in result} == {"cpu"}


def test_copy_false_is_not_kept_where_the_array_would_move() -> None:
    with pc.device("meta"), pytest.raises(ValueError, match="`copy=False`"):
        pc.asarray(np.ones(2), copy=False)


def test_blocks_nest_and_end_with_an_error() -> None:
    with pc.device("meta") as entered:
        assert entered == pc.device("meta") == pc.get_default_device()
        with pc.device("cpu"):
            assert pc.zeros(1).device.type == "cpu"
        with pytest.raises(ZeroDivisionError), pc.device("cpu"):
            _ = 1 // 0
        assert pc.zeros(1).device.type == "meta"
    assert pc.get_default_device() == pc.device("cpu")


def test_it_is_set_until_the_block_ends() -> None:
    try:
        with pc.device("cpu"):
            pc.set_default_device("meta")
            assert pc.zeros(1).device.type == "meta"
        assert pc.zeros(1).device.type == "cpu"
        pc.set_default_device(device=pc.device("meta"))
        assert pc.zeros(1).device.type == "meta"
    finally:
        pc.set_default_device(None)
    assert pc.zeros(1).device.type == "cpu"


def test_each_thread_has_its_own() -> None:
    results = []
    with pc.device("meta"):
        thread = threading.Thread(target=lambda: results.append(pc.zeros(1).device.type))
        thread.start()
        thread.join()
        assert pc.zeros(1).device.type == "meta"
    assert results == ["cpu"]


def test_bad_devices() -> None:
    with pytest.raises(TypeError, match="set_default_device: `device` must be a device or None"):
        pc.set_default_device(3.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="device: there is no accelerator with the number 5000"):
        pc.set_default_device(5000)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'gpu'"):
        pc.set_default_device("gpu")
    with pytest.raises(RuntimeError, match="without __enter__"):
        pc.device("cpu").__exit__(None, None, None)
    for call in (lambda: pc.set_default_device("rocm"), pc.device("rocm").__enter__):
        with pytest.raises(NotImplementedError, match="no component for the device rocm:0"):
            call()
    assert pc.get_default_device() == pc.device("cpu")


@pytest.mark.parametrize("device", ["mps", "xla:1", "rocm", "xpu"])
def test_calls_refuse_devices_that_are_names_only(device: str) -> None:
    place = pc.device(device)
    for call in (
        lambda: pc.zeros(2, device=place),
        lambda: pc.tensor([1.0], device=device),
        lambda: pc.ones(2).to(place),
        lambda: pc.empty_like(pc.ones(2), device=place),
    ):
        with pytest.raises(NotImplementedError, match=f"no component for the device {place}"):
            call()
    assert pc.ones(2).device != place
