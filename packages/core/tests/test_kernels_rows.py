"""Kernels that work row by row: softmax, losses of classes, normalisation, lookups; large sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

RNG = np.random.default_rng(6)
SHAPES = [(64, 10), (3, 1000), (7,), (2, 3, 40, 50), (5, 64), (5, 65), (4, 1), (0, 3), (900, 300)]
SHAPES += [(11, 8), (9, 17), (8, 31), (3, 2)]


def softmax(x: Any, dim: int) -> Any:
    e = np.exp(x - x.max(dim, keepdims=True)) if x.size else x
    return e / e.sum(dim, keepdims=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_family(shape: tuple[int, ...], dtype: Any) -> None:
    tolerance = 3e-6 if dtype == np.float32 else 1e-13
    base = (RNG.standard_normal(shape) * 5).astype(dtype)
    for x in (base, base[::-1], np.asfortranarray(base)):
        for dim in range(-x.ndim, x.ndim):
            y = softmax(x.astype(np.float64), dim)
            t = pc.from_numpy(x)
            np.testing.assert_allclose(pc.softmax(t, dim).numpy(), y, atol=tolerance)
            with np.errstate(all="ignore"):
                logs = np.log(y)
            got = pc.log_softmax(t, dim)
            np.testing.assert_allclose(got.numpy(), logs, rtol=tolerance, atol=5 * tolerance)
            g = RNG.standard_normal(shape).astype(dtype)
            back = operator("softmax_backward")(pc.from_numpy(g), pc.softmax(t, dim), dim)
            want = (g - (g * y).sum(dim, keepdims=True)) * y
            np.testing.assert_allclose(back.numpy(), want, atol=20 * tolerance)
            back = operator("log_softmax_backward")(pc.from_numpy(g), got, dim)
            want = g - y * g.sum(dim, keepdims=True)
            np.testing.assert_allclose(back.numpy(), want, atol=50 * tolerance)


@pytest.mark.parametrize("n", [3, 9, 17, 100])
def test_softmax_of_extremes(n: int) -> None:
    x = np.zeros((3, n), np.float32)
    x[0] = -np.inf
    x[1, 0] = 1e30
    x[2] = -1e30
    got = pc.softmax(pc.from_numpy(x), 1).numpy()
    assert np.isnan(got[0]).all()
    np.testing.assert_array_equal(got[1], np.eye(1, n, dtype=np.float32)[0])
    np.testing.assert_allclose(got[2], 1 / n, rtol=1e-6)
    np.testing.assert_array_equal(pc.logsumexp(pc.from_numpy(x[:1]), 1).numpy(), [-np.inf])


@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FC00001, 0x7F800001, 0xFFC00155])
@pytest.mark.parametrize("n", [3, 9, 40, 300])
def test_any_nan_spreads_over_its_sum(n: int, bits: int) -> None:
    """A NaN has bits of its own, which no step may take for a number's."""
    x = np.zeros((n, 16), np.float32)
    x[1, :8] = np.array([bits], np.uint32).view(np.float32)
    x[2, 4:12] = np.inf
    for t, dim in ((pc.from_numpy(x), 0), (pc.from_numpy(x.T.copy()), 1)):
        for result in (pc.softmax(t, dim), pc.log_softmax(t, dim)):
            spread = np.isnan(np.moveaxis(result.numpy(), dim, 0))
            assert spread[:, :12].all() and not spread[:, 12:].any()
        got = pc.logsumexp(t, dim).numpy()
        assert np.isnan(got[:8]).all() and np.isinf(got[8:12]).all()
        np.testing.assert_allclose(got[12:], np.log(n), rtol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(64, 10), (500, 300), (6, 5, 7, 8), (9,)])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_classes(shape: tuple[int, ...], reduction: str, weighted: bool) -> None:
    x = RNG.standard_normal(shape) * 3
    axis = min(1, len(shape) - 1)
    classes = shape[axis]
    target = RNG.integers(0, classes, shape[:axis] + shape[axis + 1 :])
    if target.ndim:
        target.reshape(-1)[::5] = -100
    weight = RNG.uniform(0.5, 2, classes) if weighted else np.ones(classes)
    p = softmax(x, axis)
    reference = target != -100
    safe = np.where(reference, target, 0)
    w = np.where(reference, weight[safe], 0)
    picked = np.take_along_axis(np.log(p), np.expand_dims(safe, axis), axis).squeeze(axis)
    values = -picked * w
    scale = {"mean": 1 / w.sum(), "sum": 1.0, "none": 1.0}[reduction]
    want = values if reduction == "none" else values.sum() * scale
    onehot = np.zeros_like(x)
    np.put_along_axis(onehot, np.expand_dims(safe, axis), 1, axis)
    gradient = (p - onehot) * np.expand_dims(w, axis) * scale
    tw = pc.from_numpy(weight) if weighted else None
    t, labels = pc.from_numpy(x), pc.from_numpy(np.asarray(target))
    got, lse = operator("cross_entropy_forward")(t, labels, tw, reduction, -100)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
    ones = pc.ones(got.shape, dtype=pc.float64)
    back = operator("cross_entropy_backward")(ones, t, lse, labels, tw, reduction, -100)
    np.testing.assert_allclose(back.numpy(), gradient, atol=1e-13)
    logs = pc.from_numpy(np.log(p))
    got = operator("nll_loss")(logs, labels, tw, reduction)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
    back = operator("nll_loss_backward")(ones, labels, tw, shape, reduction, -100)
    want = -onehot * np.expand_dims(w, axis) * scale
    np.testing.assert_allclose(back.numpy(), want, atol=1e-13)


def test_classes_out_of_range_are_named() -> None:
    for bad in (10, -1, 10**12):
        labels = pc.tensor([0, bad, 3])
        with pytest.raises(IndexError, match=rf"nll_loss.*10\).*{bad}"):
            operator("nll_loss")(pc.zeros(3, 10), labels)
        with pytest.raises(IndexError, match=f"{bad}"):
            operator("cross_entropy")(pc.zeros(3, 10), labels)


@pytest.mark.parametrize(
    "shape", [(5, 7), (300, 512), (4, 3, 17, 33), (2000, 3), (200, 16), (9, 45), (1, 40_009)]
)
@pytest.mark.parametrize("affine", [False, True])
def test_layer_norm(shape: tuple[int, ...], affine: bool) -> None:
    x, g = RNG.standard_normal(shape) * 3 + 5, RNG.standard_normal(shape)
    n = shape[-1:]
    w = RNG.standard_normal(n) if affine else np.ones(n)
    b = RNG.standard_normal(n) if affine else np.zeros(n)
    mean, rstd = x.mean(-1, keepdims=True), 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    h = (x - mean) * rstd
    a = g * w
    gx = rstd * (a - a.mean(-1, keepdims=True) - h * (a * h).mean(-1, keepdims=True))
    lead = tuple(range(len(shape) - 1))
    for dtype, tolerance in ((np.float32, 2e-5), (np.float64, 1e-12)):
        t = pc.from_numpy(x.astype(dtype))
        tw, tb = (pc.from_numpy(v.astype(dtype)) if affine else None for v in (w, b))
        result, m, r = operator("native_layer_norm")(t, n, tw, tb, 1e-5)
        np.testing.assert_allclose(result.numpy(), h * w + b, rtol=tolerance, atol=tolerance)
        tg = pc.from_numpy(g.astype(dtype))
        back = operator("layer_norm_backward")(tg, t, m, r, tw, n)
        for got, want in zip(back, (gx, (g * h).sum(lead), g.sum(lead)), strict=True):
            scale = np.abs(want).max() + 1
            np.testing.assert_allclose(got.numpy(), want, atol=10 * tolerance * scale)
        if not affine:
            alone = operator("layer_norm_backward_input")(tg, t, m, r, n)
            np.testing.assert_array_equal(alone.numpy(), back[0].numpy())


def test_layer_norm_with_one_factor_alone() -> None:
    x = pc.randn(7, 37)
    ones, zeros, factors = pc.ones(37), pc.zeros(37), pc.randn(37)
    for weight, bias in ((factors, None), (None, factors), (None, None)):
        all_given = [ones if weight is None else weight, zeros if bias is None else bias]
        got = pc.layer_norm(x, (37,), weight, bias).numpy()
        np.testing.assert_array_equal(got, pc.layer_norm(x, (37,), *all_given).numpy())


@pytest.mark.parametrize("shape", [(64, 5), (8, 6, 20, 30), (3000, 4), (4, 3, 2), (2, 70, 40, 40)])
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm(shape: tuple[int, ...], affine: bool) -> None:
    x, g = RNG.standard_normal(shape) * 3 + 5, RNG.standard_normal(shape)
    axes = (0, *range(2, len(shape)))
    wide = (1, shape[1]) + (1,) * (len(shape) - 2)
    w = RNG.standard_normal(shape[1]) if affine else np.ones(shape[1])
    b = RNG.standard_normal(shape[1]) if affine else np.zeros(shape[1])
    mean, var = x.mean(axes), x.var(axes)
    r = 1 / np.sqrt(var + 1e-5)
    h = (x - mean.reshape(wide)) * r.reshape(wide)
    centred = g - g.mean(axes, keepdims=True) - h * (g * h).mean(axes, keepdims=True)
    gx = centred * (r * w).reshape(wide)
    for dtype, tolerance in ((np.float32, 2e-5), (np.float64, 1e-12)):
        t = pc.from_numpy(x.astype(dtype))
        tw, tb = (pc.from_numpy(v.astype(dtype)) if affine else None for v in (w, b))
        result, m, v = operator("native_batch_norm")(t, tw, tb, 1e-5)
        expected = h * w.reshape(wide) + b.reshape(wide)
        np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(v.numpy(), var, rtol=10 * tolerance)
        tg = pc.from_numpy(g.astype(dtype))
        back = operator("batch_norm_backward")(tg, t, m, v, tw, 1e-5)
        for got, exact in zip(back, (gx, (g * h).sum(axes), g.sum(axes)), strict=True):
            scale = np.abs(exact).max() + 1
            np.testing.assert_allclose(got.numpy(), exact, atol=10 * tolerance * scale)


def test_lookups() -> None:
    table = RNG.standard_normal((1000, 64)).astype(np.float32)
    at = RNG.integers(0, 1000, (70, 30))
    got = pc.embedding(pc.from_numpy(table), pc.from_numpy(at))
    np.testing.assert_array_equal(got.numpy(), table[at])
    g = RNG.standard_normal((70, 30, 64)).astype(np.float32)
    want = np.zeros_like(table)
    np.add.at(want, at, g)
    back = operator("embedding_backward")(pc.from_numpy(g), pc.from_numpy(at), 1000, -1)
    np.testing.assert_allclose(back.numpy(), want, atol=1e-5)
    x = RNG.standard_normal((40, 50, 60)).astype(np.float32)
    for dim in range(3):
        index = RNG.integers(-x.shape[dim], x.shape[dim], 70)
        t, ti = pc.from_numpy(x), pc.from_numpy(index)
        np.testing.assert_array_equal(pc.index_select(t, dim, ti).numpy(), np.take(x, index, dim))
        shape = list(x.shape)
        shape[dim] = 9
        indices = RNG.integers(0, x.shape[dim], shape)
        gathered = pc.gather(t, dim, pc.from_numpy(indices)).numpy()
        np.testing.assert_array_equal(gathered, np.take_along_axis(x, indices, dim))
        with pytest.raises(IndexError, match=r"index_select.*1000"):
            pc.index_select(t, dim, pc.tensor([0, 1000]))
