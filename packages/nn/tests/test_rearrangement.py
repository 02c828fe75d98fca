import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


def test_pixels_and_channels(draw):
    x = pc.tensor(draw(2, 12, 3, 4))
    result = F.pixel_shuffle(x, 2)
    assert result.shape == (2, 3, 6, 8)
    assert result[1, 2, 3, 5].item() == x[1, 2 * 4 + 1 * 2 + 1, 1, 2].item()
    assert pc.equal(F.pixel_unshuffle(result, 2), x)
    dealt = F.channel_shuffle(x, 3)
    assert pc.equal(dealt[:, :3], x[:, ::4]) and pc.equal(F.channel_shuffle(dealt, 4), x)


def test_fold_is_the_transpose_of_unfold(draw):
    windows = ((2, 3), (1, 2), (1, 0), (2, 1))
    x = pc.tensor(draw(2, 3, 6, 7)).requires_grad_()
    columns = F.unfold(x, *windows)
    assert columns.shape == (2, 18, 4 * 3)
    first = x.detach()[0, 1, 1:3, :5:2]  # the window at row 1 of channel 1
    assert pc.equal(columns.detach()[0, 6:12, 3], first.flatten())
    g = pc.tensor(draw(*columns.shape))
    (columns * g).sum().backward()
    np.testing.assert_allclose(F.fold(g, (6, 7), *windows).numpy(), x.grad.numpy(), atol=1e-12)


def test_resizing(draw):
    x = pc.tensor([[[0.0, 1.0, 4.0]]])
    assert F.interpolate(x, 5).tolist() == [[[0.0, 0.0, 1.0, 1.0, 4.0]]]
    aligned = F.interpolate(x, 5, mode="linear", align_corners=True)
    assert aligned.tolist() == [[[0.0, 0.5, 1.0, 2.5, 4.0]]]
    image = pc.tensor(draw(1, 2, 4, 4))
    for mode in ("bilinear", "bicubic", "nearest", "area"):
        same = F.interpolate(image, (4, 4), mode=mode)
        np.testing.assert_allclose(same.numpy(), image.numpy(), atol=1e-12)
    flat = F.interpolate(pc.full((1, 1, 3, 5), 2.5), scale_factor=1.7, mode="bicubic")
    assert flat.shape == (1, 1, 5, 8) and pc.allclose(flat, pc.full((1, 1, 5, 8), 2.5))


@pytest.mark.parametrize("kind", [nn.Dropout1d, nn.Dropout3d, nn.FeatureAlphaDropout])
def test_whole_channels_are_dropped(kind):
    shape = (3, 50, 2, 2, 2) if kind is nn.Dropout3d else (3, 50, 4)
    out = kind(0.5)(pc.ones(*shape)).flatten(2)
    assert pc.equal(out, out[:, :, :1].expand(tuple(out.shape)))
    assert out.unique().numel() == 2
    assert kind(1.0)(pc.ones(*shape)).abs().sum().item() == 0.0


def test_alpha_dropout_keeps_mean_and_variance():
    x = pc.randn(50000)
    out = nn.AlphaDropout(0.4)(x)
    assert abs(out.mean().item()) < 0.03 and abs(out.std().item() - 1) < 0.03
    assert nn.AlphaDropout(0.4, inplace=True)(x) is x


def test_errors_name_the_shapes():
    with pytest.raises(pc.ShapeError, match=r"pixel_shuffle: .* 2; got shape \(6, 2, 2\)"):
        F.pixel_shuffle(pc.ones(6, 2, 2), 2)
    with pytest.raises(pc.ShapeError, match=r"pixel_unshuffle: .* 2; got shape \(1, 3, 2\)"):
        F.pixel_unshuffle(pc.ones(1, 3, 2), 2)
    with pytest.raises(pc.ShapeError, match=r"unfold: a window of \(3, 3\) .* into \(2, 5\)"):
        F.unfold(pc.ones(1, 2, 5), 3)
    with pytest.raises(pc.ShapeError, match=r"fold: .* divisible by 4 and L 2 .*\(4, 3\)"):
        F.fold(pc.ones(4, 3), (2, 3), 2)
    with pytest.raises(ValueError, match="exactly one of `size` and `scale_factor`"):
        F.interpolate(pc.ones(1, 1, 2))
    with pytest.raises(
        ValueError, match=r"4 dimensions for mode 'bilinear'; got shape \(1, 1, 2\)"
    ):
        F.interpolate(pc.ones(1, 1, 2), 3, mode="bilinear")
    for error in (ValueError, NotImplementedError):
        with pytest.raises(error, match="got hamming"):
            F.interpolate(pc.ones(1, 1, 2), 3, mode="hamming")
    with pytest.raises(ValueError, match="`align_corners` must be None for mode 'nearest'"):
        F.interpolate(pc.ones(1, 1, 2), 3, align_corners=True)
    with pytest.raises(ValueError, match=r"dropout1d: .* 2 or 3 dimensions; got \(2,\)"):
        F.dropout1d(pc.ones(2))


def test_sizes_are_whole_numbers():
    image = pc.ones(1, 1, 4, 4)
    for size in (3, np.int64(3), pc.tensor(3), (np.int32(3), pc.tensor(3))):
        assert F.interpolate(image, size).shape == (1, 1, 3, 3)
    for wrong in (2.7, (2.7, 3.0)):
        with pytest.raises(TypeError):
            F.interpolate(image, wrong)


def test_smaller_without_aliasing():
    row = pc.tensor([[1.0, 2.0, 3.0, 4.0]])
    image = (row + pc.zeros(4, 1))[None, None]
    result = F.interpolate(image, (2, 2), mode="bilinear", antialias=True)
    np.testing.assert_allclose(result[0, 0].numpy(), [[12 / 7, 23 / 7]] * 2, rtol=1e-6)
    np.testing.assert_allclose(  # across, the image is even
        F.interpolate(image, (3, 4), mode="bicubic", antialias=True)[0, 0].numpy(),
        row.expand(3, 4).numpy(),
        rtol=1e-6,
    )
    for mode in ("bilinear", "bicubic"):  # nothing to smooth: the image itself
        np.testing.assert_allclose(
            F.interpolate(image, (4, 4), mode=mode, antialias=True).numpy(), image.numpy()
        )
        reference = F.interpolate(image, scale_factor=(1.2, 1.0), mode=mode, antialias=True)
        np.testing.assert_array_equal(reference.numpy(), image.numpy())  # for any factor
    half = F.interpolate(image.half(), (2, 2), mode="bilinear", antialias=True)
    assert half.dtype == pc.float16
    with pytest.raises(ValueError, match="`antialias` is for modes bilinear, bicubic, lanczos"):
        F.interpolate(image, 2, antialias=True)


def test_lanczos():
    image = pc.arange(12.0).reshape(1, 1, 3, 4).square()
    smaller = F.interpolate(image, (3, 2), mode="lanczos", antialias=True)[0, 0]
    expected = [[0.4042, 6.1754], [20.7092, 41.8704], [73.0142, 109.5654]]  # PyTorch's
    np.testing.assert_allclose(smaller.numpy(), expected, rtol=1e-4)
    larger = F.interpolate(image.to(pc.uint8), (2, 6), mode="lanczos", antialias=True)[0, 0]
    assert larger.tolist() == [[2, 3, 6, 9, 15, 18], [47, 54, 66, 77, 92, 100]]
    for options in ({}, {"antialias": True, "align_corners": True}):
        with pytest.raises(ValueError, match="mode 'lanczos' needs `antialias` True"):
            F.interpolate(image, 2, mode="lanczos", **options)


@pytest.mark.parametrize("shape", [(0, 4, 2, 2), (1, 0, 2, 2), (1, 4, 0, 2), (1, 4, 2, 0)])
def test_pixels_of_nothing(shape):
    n, c, h, w = shape
    assert F.pixel_shuffle(pc.zeros(shape), 2).shape == (n, c // 4, h * 2, w * 2)
    assert F.pixel_unshuffle(pc.zeros(shape), 2).shape == (n, c * 4, h // 2, w // 2)


@pytest.mark.parametrize(
    "function",
    [
        *[lambda x, k=k: F.unfold(x, k) for k in (1, (1, 2), (1, 4), (4, 1))],
        *[lambda x, p=p: F.unfold(x[..., :1, :], (1, 2), padding=p) for p in (0, (0, 1))],
        lambda x: F.fold(x.flatten(2), (4, 4), 1),
        lambda x: F.pixel_shuffle(x, 1),
        lambda x: F.pixel_unshuffle(x, 1),
        *[lambda x, g=g: F.channel_shuffle(x, g) for g in (1, 3)],
        *[
            lambda x, m=m, p=p: F.pad(x, (p, 0, 0, 0), mode=m)
            for m in ("constant", "reflect", "replicate", "circular")
            for p in (0, -1)
        ],
        lambda x: F.pad(x, ()),
        *[
            lambda x, m=m: F.interpolate(x, size=(4, 4), mode=m)
            for m in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
        ],
        *[lambda x, p=p: p(x, 1) for p in (F.avg_pool2d, F.max_pool2d)],
        *[lambda x, p=p: p(x, 4) for p in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d)],
    ],
)
def test_results_share_no_memory(function):
    x = pc.arange(96.0).reshape(2, 3, 4, 4)
    result = function(x)
    expected = result.numpy() + np.arange(result.numel()).reshape(result.shape)
    result += pc.arange(float(result.numel())).reshape(result.shape)
    np.testing.assert_array_equal(result.numpy(), expected)
    np.testing.assert_array_equal(x.numpy(), np.arange(96.0).reshape(2, 3, 4, 4))
