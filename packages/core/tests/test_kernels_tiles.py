"""Products out of tiles, alone and within attention and recurrent layers."""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import binding, operator
from plait_core.instruction_sets import kernel_library

lstm_forward, gru_forward = (binding.operator(f"{n}_forward") for n in ("lstm", "gru"))
attention_forward = binding.operator("attention_forward")
attention_backward = binding.operator("attention_backward")
lstm_backward = binding.operator("lstm_backward")


def draw(*shape: int, dtype: str = "float32") -> Any:
    return pc.tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype))


# m, n, k: whole tiles, remainders in every direction, one panel and a bit, deep and shallow
SHAPES = [
    (192, 128, 256),
    (193, 129, 257),
    (24, 1400, 32),
    (500, 33, 70),
    (97, 47, 700),
    (40, 32, 1024),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_large_products_of_any_layout(shape: tuple[int, int, int], dtype: str) -> None:
    m, n, k = shape
    for a in (
        draw(m, k, dtype=dtype),
        draw(k, m, dtype=dtype).T,
        draw(m, 2 * k, dtype=dtype)[:, ::2],
    ):
        for b in (draw(k, n, dtype=dtype), draw(n, k, dtype=dtype).T):
            expected = a.numpy().astype("float64") @ b.numpy().astype("float64")
            bound = 1e-5 if dtype == "float32" else 1e-13
            np.testing.assert_allclose((a @ b).numpy(), expected, rtol=0, atol=bound * k**0.5 * 4)
            bias = draw(n, dtype=dtype)
            result = pc.addmm(bias, a, b).numpy()
            np.testing.assert_allclose(
                result, expected + bias.numpy(), rtol=0, atol=bound * k**0.5 * 4
            )


def layers() -> Iterator[Any]:
    """Results of attention and an LSTM, larger than a block of either."""
    q, k, v = (draw(2, n, 3, 20).transpose(1, 2) for n in (130, 290, 290))
    mask = draw(130, 290)
    result, lse = attention_forward(q, k, v, mask, False, 0.2)
    yield from (result, lse)
    yield from attention_backward(result, q, k, v, mask, result, lse, False, 0.2)
    gates, h, weight = draw(3 * 70, 4 * 40), draw(70, 40), draw(4 * 40, 40) * 0.2
    results = lstm_forward(gates, h, h, weight, [70] * 3, True)
    yield from results
    output, _, _, cells, activated = results
    grads = (output, h, h, gates, h, h, weight, output, cells, activated)
    yield from lstm_backward(*grads, [70] * 3, True)[:3]
    yield from gru_forward(gates[:, :120], h, weight[:120], None, [70] * 3, False)


def digest() -> str:
    parts = [np.ascontiguousarray(each.numpy()).tobytes() for each in layers()]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_the_bits_do_not_depend_on_threads(by_threads: Any) -> None:
    assert len(set(by_threads(digest, (1, 2, 3)))) == 1


@pytest.mark.skipif(kernel_library() != "plait_cpu_avx2", reason="the processor has no AVX2")
def test_wider_registers_do_not_change_the_bits() -> None:
    """Of tiles: the gradient of a weight is a whole product, which may go to a BLAS."""
    command = [sys.executable, "-c", "import test_kernels_tiles as t; print(t.digest())"]
    environment = {**os.environ, "PLAIT_CPU": "avx2"}
    result = subprocess.run(
        command, cwd=pathlib.Path(__file__).parent, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.split()[-1] == digest()


def test_a_long_sequence_needs_no_memory_for_its_scores() -> None:
    q = draw(1, 3000, 16)
    pc.empty_cache()
    before = pc.memory_stats()["peak_bytes"]
    result, lse = attention_forward(q, q, q, None, True, 0.25)
    attention_backward(result, q, q, q, None, result, lse, True, 0.25)
    assert pc.memory_stats()["peak_bytes"] - before < 3000 * 3000 * 4 / 4


def test_scores_beyond_the_range_of_exponentials() -> None:
    q = pc.full((3, 4), 100.0)
    v = pc.tensor([[1.0], [2.0], [6.0]])
    assert operator("scaled_dot_product_attention")(q, q, v).flatten().tolist() == [3.0, 3.0, 3.0]
    nan = pc.tensor([[float("nan")] * 4])
    assert operator("scaled_dot_product_attention")(nan, q, v).isnan().all().item()
    assert operator("scaled_dot_product_attention")(q[:0], q, v).shape == (0, 1)
    assert operator("scaled_dot_product_attention")(q, q[:0], v[:0]).tolist() == [[0.0]] * 3
