"""Tensors of each dtype go to ONNX and come back with their bits."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import plait_abi
import plait_core as pc
from plait_onnx import ModelError, _dtypes
from plait_onnx._import import _errors, _tensors

NAMES = sorted(_dtypes._TYPES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)])
def test_tensors_keep_their_bits(name: str, shape: tuple[int, ...]) -> None:
    dtype = plait_abi.dtype(name)
    count = int(np.prod(shape))
    tensor = ((pc.arange(count) - 2).abs() + 1).reshape(shape).to(dtype)
    proto = _dtypes.packed(tensor, "w")
    onnx.checker.check_tensor(proto)
    back = _tensors.read_tensor(proto, _tensors.ExternalData(None), "w")
    assert back.dtype == dtype and tuple(back.shape) == shape
    assert _dtypes.array_of(back).tobytes() == _dtypes.array_of(tensor).tobytes()


def test_elements_that_are_no_raw_bytes_are_read() -> None:
    proto = onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, [2], [1.0, -2.0])
    assert _tensors.read_tensor(proto, _tensors.ExternalData(None), "w").tolist() == [1.0, -2.0]


def test_an_element_type_that_plait_does_not_have_is_named() -> None:
    with pytest.raises(ModelError, match="w: tensors of strings"):
        _errors.dtype_of(onnx.TensorProto.STRING, "w")
    with pytest.raises(ModelError, match="w: element type FLOAT4E2M1"):
        _errors.dtype_of(onnx.TensorProto.FLOAT4E2M1, "w")
    with pytest.raises(plait_abi.DTypeError, match="no element type for quint8"):
        _dtypes.element_type("quint8")


def test_each_dtype_is_that_of_one_element_type() -> None:
    assert {number: _dtypes.element_type(name) for number, name in _dtypes._NAMES.items()} == {
        number: number for number in _dtypes._NAMES
    }
