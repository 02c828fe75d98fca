"""nn.utils and the normalisations of nn.functional over the range of halves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F

SCALES = {pc.float16: (1e-5, 1e-2, 1.0, 1e2, 1e4), pc.bfloat16: (1e-25, 1e-5, 1.0, 1e5, 1e25)}
EPS = {pc.float16: 2.0**-10, pc.bfloat16: 2.0**-7}
DTYPES = [pc.float16, pc.bfloat16]
over_halves = pytest.mark.parametrize("dtype", DTYPES, ids=["float16", "bfloat16"])


def drawn(*shape: int) -> pc.Tensor:
    return pc.from_numpy(np.random.default_rng(sum(shape)).random(shape) + 0.5)


def assert_close(got: pc.Tensor, want: pc.Tensor, eps: float) -> None:
    x, y = got.detach().to(pc.float64).numpy(), want.detach().to(pc.float64).numpy()
    np.testing.assert_allclose(x, y, rtol=4 * eps, atol=4 * eps * float(np.abs(y).max(initial=0)))


NORMALISATIONS: dict[str, Callable[[pc.Tensor], pc.Tensor]] = {
    "normalize": lambda x: F.normalize(x),
    "normalize of order 1": lambda x: F.normalize(x, 1.0),
    "layer_norm": lambda x: F.layer_norm(x, (6,), eps=0.0),
    "rms_norm": lambda x: F.rms_norm(x, (6,), eps=0.0),
    "group_norm": lambda x: F.group_norm(x, 2, eps=0.0),
    "instance_norm": lambda x: F.instance_norm(x, eps=0.0),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True, eps=0.0),
    "local_response_norm": lambda x: F.local_response_norm(x, 2, beta=0.5, k=0.0),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(0), eps=0.0),
    "pairwise_distance": lambda x: F.pairwise_distance(x, x.flip(0), eps=0.0),
    "cosine_embedding_loss": lambda x: F.cosine_embedding_loss(
        x[0].clone(), x[1].clone(), pc.tensor([1, -1, 1, -1]), reduction="none"
    ),
    "CrossMapLRN2d": lambda x: nn.CrossMapLRN2d(2, beta=0.5, k=0)(x.unsqueeze(3)),
}
TO_SQUARES = {"local_response_norm", "batch_norm", "CrossMapLRN2d", "rms_norm"}
TINY = {"cosine_embedding_loss"}  # adds 1e-12 to the squares


@over_halves
@pytest.mark.parametrize("name", list(NORMALISATIONS))
def test_normalisations(name: str, dtype: pc.dtype) -> None:
    function = NORMALISATIONS[name]
    for scale in SCALES[dtype]:
        if dtype is pc.bfloat16 and name in TO_SQUARES | TINY and not 1e-10 < scale < 1e10:
            continue  # float32 doesn't hold the squares
        if name in TINY and scale < 1e-3:
            continue
        x = (drawn(3, 4, 6) * scale).to(dtype)
        got, want = function(x), function(x.to(pc.float64))
        assert got.dtype is dtype
        assert_close(got, want, EPS[dtype])


@over_halves
def test_default_epsilon_is_that_of_float32(dtype: pc.dtype) -> None:
    x = drawn(2, 8).to(dtype) * 0.01
    want = F.rms_norm(x.float(), (8,))
    assert_close(F.rms_norm(x, (8,)), want, EPS[dtype])
    weight = (drawn(8) * 3).to(dtype)
    assert_close(
        F.rms_norm(x, (8,), weight), F.rms_norm(x.float(), (8,), weight.float()), EPS[dtype]
    )


@over_halves
@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_clipping_by_norm(order: float, dtype: pc.dtype) -> None:
    for scale in SCALES[dtype]:
        for limit in (0.5 * scale, 1e3 * scale):
            arguments = [(drawn(n) * scale).to(dtype) for n in (5, 40)]
            parameters = [nn.Parameter(pc.zeros_like(g)) for g in arguments]
            for parameter, gradient in zip(parameters, arguments, strict=True):
                parameter.grad = gradient.clone()
            exact = np.concatenate([g.to(pc.float64).numpy() for g in arguments])
            norm = float(np.linalg.norm(exact / scale, order)) * scale
            total = nn.utils.get_total_norm(arguments, order)
            assert math.isclose(total.item(), norm, rel_tol=1e-5)
            returned = nn.utils.clip_grad_norm_(parameters, limit, order)
            assert returned.item() == total.item()
            factor = min(1.0, limit / (norm + 1e-6))
            for parameter, gradient in zip(parameters, arguments, strict=True):
                want = gradient.to(pc.float64) * factor
                got = parameter.grad.to(pc.float64)
                tiny = 2.0**-24 if dtype is pc.float16 else 2.0**-133
                assert ((got - want).abs() <= EPS[dtype] * want + tiny).all()


def test_clipping_of_complex_gradients_by_every_order() -> None:
    for order in (1.0, 2.0, 3.0, math.inf):
        x = nn.Parameter(pc.zeros(2, dtype=pc.complex64))
        x.grad = pc.tensor([3 + 4j, 6 - 8j])
        norm = float(np.linalg.norm([5.0, 10.0], order))
        total = nn.utils.clip_grad_norm_([x], 1.0, order)
        assert total.dtype is pc.float32 and math.isclose(total.item(), norm, rel_tol=1e-6)
        want = np.asarray([3 + 4j, 6 - 8j]) / norm
        np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-5)


def test_a_norm_above_float16_is_finite() -> None:
    x = nn.Parameter(pc.zeros(2, dtype=pc.float16))
    x.grad = pc.tensor([60000.0, 60000.0], dtype=pc.float16)
    total = nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True)
    assert math.isclose(total.item(), 60000 * 2**0.5, rel_tol=1e-3)
    np.testing.assert_allclose(x.grad.float().numpy(), [0.5**0.5] * 2, rtol=1e-3)


def layer(weight: pc.Tensor, cls: Any = nn.Linear) -> Any:
    result = cls(weight.shape[1], weight.shape[0], bias=False).to(weight.dtype)
    result.weight.detach().copy_(weight)
    return result


@over_halves
def test_weight_norm(dtype: pc.dtype) -> None:
    for scale in SCALES[dtype]:
        if scale == 1e4 and dtype is pc.float16:
            scale = 5e3  # the lengths fit
        weight = (drawn(4, 6) * scale).to(dtype)
        for dim in (0, 1, None):
            by_hook = nn.utils.weight_norm(layer(weight), dim=dim)
            by_parametrization = nn.utils.parametrizations.weight_norm(layer(weight), dim=dim)
            for result in (by_hook.weight, by_parametrization.weight):
                assert result.dtype is dtype
                assert_close(result, weight, EPS[dtype])


@over_halves
def test_spectral_norm(dtype: pc.dtype) -> None:
    for scale in SCALES[dtype]:
        if scale < 1e-10:
            continue  # eps is larger
        weight = (drawn(4, 6) * scale).to(dtype)
        sigma = np.linalg.norm(weight.to(pc.float64).numpy() / scale, 2) * scale
        want = weight.to(pc.float64) / sigma
        hooked = nn.utils.spectral_norm(layer(weight), n_power_iterations=30)
        hooked(pc.zeros(1, 6, dtype=dtype))
        new = nn.utils.parametrizations.spectral_norm(layer(weight), n_power_iterations=30)
        for result in (hooked.weight, new.weight):
            assert result.dtype is dtype
            assert_close(result, want, 2 * EPS[dtype])


@over_halves
@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
def test_orthogonal(orthogonal_map: str, dtype: pc.dtype) -> None:
    result = nn.utils.parametrizations.orthogonal(
        layer(drawn(6, 4).to(dtype)), "weight", orthogonal_map
    )
    free = result.parametrizations.weight.original.detach()
    free.copy_(drawn(6, 4).tril(-1) * 30 + free.double().triu())
    q = result.weight.detach().to(pc.float64)
    assert result.weight.dtype is dtype
    assert_close(q.T @ q, pc.eye(4, dtype=pc.float64), 8 * EPS[dtype])


@over_halves
def test_folded_batch_norm(dtype: pc.dtype) -> None:
    for scale in SCALES[dtype][1:4]:
        weight, c = (drawn(3, 5) * scale).to(dtype), drawn(3).to(dtype)
        var = (drawn(3) * 1e-4).to(dtype)
        arguments = (weight, c, c * 2, var, 0.0, c, c)
        got = nn.utils.fuse_linear_bn_weights(*arguments)
        wide = [x.to(pc.float64) if isinstance(x, pc.Tensor) else x for x in arguments]
        want = nn.utils.fuse_linear_bn_weights(*wide)
        for a, b in zip(got, want, strict=True):
            assert a.dtype is dtype
            if b.abs().max().item() < 6e4:
                assert_close(a, b, EPS[dtype])


@over_halves
def test_embeddings_with_a_largest_norm(dtype: pc.dtype) -> None:
    weight = (drawn(5, 8) * (3e4 if dtype is pc.float16 else 1e25)).to(dtype)
    rows = F.embedding(pc.arange(5), weight.clone(), max_norm=1.0).to(pc.float64)
    np.testing.assert_allclose(np.linalg.norm(rows.numpy(), axis=1), 1, rtol=4 * EPS[dtype])
