"""A bias has the input's dtype in every function that adds one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plait_core as pc
import plait_nn.functional as F

# each with input, weight and bias
CALLS: dict[str, Callable[[Any], Any]] = {
    "conv1d": lambda x: F.conv1d(x(1, 2, 4), x(3, 2, 2), x(3, bias=True)),
    "conv2d": lambda x: F.conv2d(x(1, 2, 4, 4), x(3, 2, 2, 2), x(3, bias=True)),
    "conv3d": lambda x: F.conv3d(x(1, 2, 4, 4, 4), x(3, 2, 2, 2, 2), x(3, bias=True)),
    "conv_transpose1d": lambda x: F.conv_transpose1d(x(1, 2, 4), x(2, 3, 2), x(3, bias=True)),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x(1, 2, 4, 4), x(2, 3, 2, 2), x(3, bias=True)),
    "conv_transpose3d": lambda x: F.conv_transpose3d(
        x(1, 2, 4, 4, 4), x(2, 3, 2, 2, 2), x(3, bias=True)
    ),
    "linear": lambda x: F.linear(x(2, 3), x(4, 3), x(4, bias=True)),
    "bilinear": lambda x: F.bilinear(x(2, 3), x(2, 2), x(4, 3, 2), x(4, bias=True)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        *(("int64", "float32"), ("int32", "int64"), ("float32", "float64")),
        *(("float64", "float32"), ("complex64", "float32"), ("float32", "int64")),
    ],
)
def test_another_dtype_is_refused(name: str, dtype: str, other: str) -> None:
    def make(*shape: int, bias: bool = False) -> Any:
        return pc.ones(shape, dtype=getattr(pc, other if bias else dtype))

    with pytest.raises(pc.DTypeError, match=f"(?s){dtype}.*{other}"):
        CALLS[name](make)

    def same(*shape: int, bias: bool = False) -> Any:
        return pc.ones(shape, dtype=getattr(pc, dtype))

    assert CALLS[name](same).dtype.name == dtype
