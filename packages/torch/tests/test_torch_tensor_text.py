"""How tensors print under the names of PyTorch: the texts are those of PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plait


@pytest.fixture(params=["float32", "float64", "float16"])
def default(request: pytest.FixtureRequest, torch: Any) -> Iterator[str]:
    torch.set_default_dtype(getattr(torch, request.param))
    yield request.param
    torch.set_default_dtype(torch.float32)


_DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "uint16"),
    *("bool", "complex64", "complex128", "float8_e4m3fn"),
)
# what prints without a dtype, by the default one
PLAIN = {
    "float32": "float32 int64 bool complex64",
    "float64": "float64 int64 bool complex128",
    "float16": "float16 int64 bool complex64",
}


def test_dtypes_that_are_printed(torch: Any, default: str) -> None:
    for name in _DTYPES:
        dtype = getattr(torch, name)
        plain = name in PLAIN[default].split()
        assert repr(torch.zeros(2).to(dtype)).endswith(f", dtype=torch.{name})") is not plain
        empty = "tensor([])" if name == default else f"tensor([], dtype=torch.{name})"
        assert repr(torch.zeros(0, dtype=dtype)) == empty
        if not name.startswith(("float8", "uint16")):
            sparse = repr(torch.eye(2).to(dtype).to_sparse())
            assert (f"dtype=torch.{name}" in sparse) is not plain


def test_parameters_and_tensors_without_elements(torch: Any) -> None:
    weight = torch.nn.Parameter(torch.zeros(1).double())
    assert str(weight).endswith("tensor([0.], dtype=torch.float64, requires_grad=True)")
    assert (
        repr(torch.zeros(2, 0, dtype=torch.int32)) == "tensor([], size=(2, 0), dtype=torch.int32)"
    )
    meta = torch.zeros(2, device="meta", dtype=torch.float64)
    assert repr(meta) == "tensor(..., device='meta', size=(2,), dtype=torch.float64)"
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
        note = "" if dtype == torch.float32 else f", dtype={dtype}"
        text = repr(torch.zeros((), device="meta", dtype=dtype))
        assert text == f"tensor(..., device='meta', size=(){note})"
    text = torch._tensor_str._str_intern(meta, tensor_contents="...")
    assert text.endswith("dtype=torch.float64)")


def test_outside_of_these_names_dtypes_are_words() -> None:
    assert repr(plait.zeros(1, dtype=plait.float64)) == "tensor([0.], dtype=float64)"
