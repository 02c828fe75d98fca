"""Tensors of each dtype go to ONNX and come back with their bits."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import plait_abi
import plait_core as pc
from plait_onnx import _dtypes

NAMES = sorted(_dtypes._TYPES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)])
def test_tensors_keep_their_bits(name: str, shape: tuple[int, ...]) -> None:
    dtype = plait_abi.dtype(name)
    count = int(np.prod(shape))
    tensor = (pc.arange(count) - 2).abs().reshape(shape).to(dtype)
    proto = _dtypes.packed(tensor, "w")
    onnx.checker.check_tensor(proto)
    back = _dtypes.unpacked(proto)
    assert back.dtype == dtype and tuple(back.shape) == shape
    assert _dtypes.array_of(back).tobytes() == _dtypes.array_of(tensor).tobytes()


def test_elements_that_are_no_raw_bytes_are_read() -> None:
    proto = onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, [2], [1.0, -2.0])
    assert _dtypes.unpacked(proto).tolist() == [1.0, -2.0]


def test_an_element_type_that_plait_does_not_have_is_named() -> None:
    with pytest.raises(plait_abi.DTypeError, match="STRING"):
        _dtypes.dtype_of(onnx.TensorProto.STRING)
