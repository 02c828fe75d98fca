"""`torch.fake_quantize_per_tensor_affine` and `torch.fake_quantize_per_channel_affine`."""

from __future__ import annotations

from typing import Any

import pytest


def test_values_and_derivatives(torch: Any) -> None:
    x = torch.tensor([-2.0, -0.26, 0.24, 0.3, 5.0], requires_grad=True)
    rounded = torch.fake_quantize_per_tensor_affine(x, 0.25, 1, -1, 4)
    assert rounded.tolist() == [-0.5, -0.25, 0.25, 0.25, 0.75]
    rounded.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]  # nothing where a value is cut off
    scale, zero = torch.tensor(0.25), torch.tensor(1, dtype=torch.int32)
    assert torch.equal(torch.fake_quantize_per_tensor_affine(x, scale, zero, -1, 4), rounded)
    assert torch.fake_quantize_per_tensor_affine(x.half(), 0.1, 0, 0, 255).dtype == torch.float16


def test_each_channel_has_its_scale(torch: Any) -> None:
    x = torch.full((2, 2), 0.6, requires_grad=True)
    scale, zero = torch.tensor([0.5, 0.1]), torch.tensor([0, 1], dtype=torch.int32)
    rounded = torch.fake_quantize_per_channel_affine(x, scale, zero, 1, 0, 3)
    assert torch.allclose(rounded, torch.tensor([[0.5, 0.2], [0.5, 0.2]]))
    rounded.sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_errors_name_the_argument(torch: Any) -> None:
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="`quant_min` must not be larger than `quant_max`"):
        torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 4)
    with pytest.raises(RuntimeError, match=r"`scale` and `zero_point` must have shape \(3,\)"):
        torch.fake_quantize_per_channel_affine(x, torch.ones(2), torch.zeros(2), 1, 0, 3)
