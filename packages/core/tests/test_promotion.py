"""Queries about dtypes, spacing in `gradient`, and the CUDA namespace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc


def test_promotion() -> None:
    assert pc.promote_types(pc.int32, pc.float16) is pc.float16
    assert pc.promote_types(pc.float16, pc.bfloat16) is pc.float32
    assert pc.promote_types(pc.uint8, "int8") is pc.int16
    assert pc.result_type(pc.ones(2), pc.ones((), dtype=pc.float64)) is pc.float32
    assert pc.result_type(pc.ones(2), pc.ones(3, dtype=pc.float64)) is pc.float64
    assert pc.result_type(1, pc.ones(2, dtype=pc.int8)) is pc.int8
    assert pc.result_type(1, 2.0) is pc.float32 and pc.result_type(True, True) is pc.bool
    assert pc.result_type(pc.arange(2), 1j) is pc.complex64
    for call, text in (
        (lambda: pc.promote_types(3, pc.int8), "promote_types: `type1` must be a dtype, got 3"),
        (lambda: pc.result_type([1], 1), "result_type: `tensor1` must be a Tensor or a number"),
        (lambda: pc.can_cast(pc.int8, "x"), "can_cast: `to` must be a dtype"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


def test_casts_stay_within_or_above_a_category() -> None:
    order: list[Any] = [pc.bool, pc.uint8, pc.float64, pc.complex64]
    for i, source in enumerate(order):
        assert [pc.can_cast(source, target) for target in order] == [j >= i for j in range(4)]


def test_questions() -> None:
    assert pc.is_floating_point(pc.ones(1, dtype=pc.bfloat16))
    assert not pc.is_floating_point(pc.ones(1, dtype=pc.complex64))
    assert pc.is_nonzero(pc.tensor([3])) and not pc.is_nonzero(pc.tensor(0.0))
    with pytest.raises(RuntimeError):
        pc.is_nonzero(pc.zeros(2))


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (3, 4, 5)])
def test_gradient_is_numpys(shape: tuple[int, ...], edge_order: int) -> None:
    array = np.random.default_rng(0).normal(size=shape)
    coordinates = [np.cumsum(np.arange(n) + 0.5) for n in shape]
    for spacing in (1, 0.5, [0.1 * (i + 1) for i in range(len(shape))], coordinates):
        ours = [pc.tensor(each) for each in coordinates] if spacing is coordinates else spacing
        argument = [spacing] if isinstance(spacing, (int, float)) else spacing
        want = np.gradient(array, *argument, edge_order=edge_order)
        got = pc.gradient(pc.tensor(array), spacing=ours, edge_order=edge_order)
        for one, other in zip(got, want if len(shape) > 1 else [want], strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-10, atol=1e-12)
    only = pc.gradient(pc.tensor(array), dim=-1, edge_order=edge_order)
    np.testing.assert_allclose(
        np.asarray(only[0]), np.gradient(array, axis=-1, edge_order=edge_order)
    )


def test_gradient_of_bad_input() -> None:
    x = pc.arange(5)
    for call, error, text in (
        (lambda: pc.gradient([1, 2]), TypeError, "`input` must be a Tensor, got list"),
        (lambda: pc.gradient(x, edge_order=3), ValueError, "`edge_order` must be 1 or 2"),
        (lambda: pc.gradient(x, dim=1), IndexError, "`dim` must be in"),
        (lambda: pc.gradient(x, dim=(0, 0)), ValueError, "twice"),
        (lambda: pc.gradient(x[:1]), pc.ShapeError, "at least 2 samples"),
        (lambda: pc.gradient(x, spacing=[x[:2]]), pc.ShapeError, "must hold 5 coordinates"),
        (lambda: pc.gradient(x, spacing=[1, 2]), ValueError, "for each of 1 dimensions"),
    ):
        with pytest.raises(error, match=f"gradient: .*{text}"):
            call()


@pytest.mark.skipif(pc.cuda.is_available(), reason="there is a GPU")
def test_there_is_no_cuda() -> None:
    assert pc.cuda.device_count() == 0
    pc.cuda.manual_seed_all(3)
    for call in (pc.cuda.current_device, pc.cuda.Stream):
        with pytest.raises(RuntimeError, match=r"ask plait\.cuda\.is_available\(\) first"):
            call()


def test_modules_are_attributes() -> None:
    import subprocess
    import sys

    code = "import plait_core as pc; print(pc.array_api.__name__, pc.testing.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["plait_core.array_api", "plait_core.testing"]
    assert {"array_api", "cuda", "testing", "fft"} <= set(dir(pc))
