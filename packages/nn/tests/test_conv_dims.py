import numpy as np
import pytest
from nn_reference import conv2d

import plait_autograd as autograd
import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


def test_one_dimension_is_a_row_of_two(draw):
    x, w, b = draw(2, 4, 9), draw(6, 2, 3), draw(6)
    expected = conv2d(x[:, :, None], w[:, :, None], b, (1, 2), ((0, 0), (1, 1)), (1, 2), 2)
    result = F.conv1d(*map(pc.tensor, (x, w, b)), 2, 1, 2, 2).numpy()
    np.testing.assert_allclose(result, expected[:, :, 0], atol=1e-12)


def test_three_dimensions_are_a_sum_of_two(draw):
    x, w = draw(2, 3, 5, 4, 6), draw(4, 3, 2, 3, 2)
    expected = 0
    for t in range(2):
        slices = [
            conv2d(x[:, :, d + t], w[:, :, t], None, (1, 1), ((0, 0), (0, 0)), (1, 1), 1)
            for d in range(4)
        ]
        expected = expected + np.stack(slices, 2)
    result = F.conv3d(pc.tensor(x), pc.tensor(w)).numpy()
    np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_transposed_convolution_is_the_transpose(draw, dims):
    size = (1, 4, 5, 6, 4)[: dims + 2]
    conv = {"stride": 2, "padding": 1, "groups": 2}
    w = pc.tensor(draw(6, 2, *(3, 2, 2)[:dims]))
    x = pc.tensor(draw(*size)).requires_grad_()
    y = getattr(F, f"conv{dims}d")(x, w, **conv)
    g = pc.tensor(draw(*y.shape))
    (y * g).sum().backward()
    least = getattr(F, f"conv_transpose{dims}d")(g, w, **conv)
    extra = tuple(a - b for a, b in zip(size[2:], least.shape[2:], strict=True))
    result = getattr(F, f"conv_transpose{dims}d")(g, w, output_padding=extra, **conv)
    np.testing.assert_allclose(result.numpy(), x.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 2, "padding": 1},
        {"stride": 3, "padding": 2, "output_padding": 2},
        {"stride": 1, "padding": 1, "dilation": 2, "output_padding": 1},  # as far as no stride
        {"stride": (2, 1), "padding": (0, 1), "output_padding": (1, 0), "dilation": (1, 2)},
        {"stride": 2, "groups": 2},
    ],
)
def test_elements_of_a_transposed_convolution(draw, options):
    x, w, b = draw(2, 4, 5, 4), draw(4, 3, 3, 2), draw(3 * options.get("groups", 1))
    result = F.conv_transpose2d(*map(pc.tensor, (x, w, b)), **options).numpy()
    (s, r), (p, q), (d, e), (m, n) = (
        np.broadcast_to(options.get(name, default), 2)
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0))
    )
    groups = options.get("groups", 1)
    wide = np.zeros((2, 3 * groups, 4 * s + 2 * d + 1 + m, 3 * r + e + 1 + n))
    for g in range(groups):
        own = slice(g * 4 // groups, (g + 1) * 4 // groups)
        for u in range(3):
            for v in range(2):
                part = np.einsum("ncij,ck->nkij", x[:, own], w[own, :, u, v])
                wide[
                    :,
                    3 * g : 3 * g + 3,
                    u * d : u * d + 5 * s - s + 1 : s,
                    v * e : v * e + 4 * r - r + 1 : r,
                ] += part
    expected = wide[:, :, p : wide.shape[2] - p, q : wide.shape[3] - q] + b.reshape(-1, 1, 1)
    np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_of_integers_and_complex_numbers(draw, dims):
    x, w = draw(2, 2, *(4, 3, 3)[:dims]), draw(2, 3, *(2, 3, 2)[:dims])
    function = getattr(F, f"conv_transpose{dims}d")
    x, w = np.round(9 * x), np.round(9 * w)
    result = function(pc.tensor(x.astype("int64")), pc.tensor(w.astype("int64")), stride=2)
    assert result.dtype == pc.int64
    whole = function(pc.tensor(x), pc.tensor(w), stride=2).numpy()
    np.testing.assert_array_equal(result.numpy(), whole)
    a, b = pc.tensor(x * (1 + 2j)).requires_grad_(), pc.tensor(w * 1j).requires_grad_()
    result = function(a, b, stride=2)
    np.testing.assert_allclose(result.detach().numpy(), whole * (1j - 2), atol=1e-9)
    g = draw(*whole.shape)
    result.backward(pc.tensor(g * 1j))
    c, d = pc.tensor(x).requires_grad_(), pc.tensor(w).requires_grad_()
    function(c, d, stride=2).backward(pc.tensor(g))
    np.testing.assert_allclose(a.grad.numpy(), c.grad.numpy(), atol=1e-9)  # 1j * conj(1j)
    np.testing.assert_allclose(b.grad.numpy(), d.grad.numpy() * (2 + 1j), atol=1e-9)


@pytest.mark.parametrize("function", [F.conv2d, F.conv_transpose2d])
@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_of_many_channels(draw, function, stride):
    leaves = [pc.tensor(draw(*size)) for size in ((1, 12, 3, 4), (12, 12, 2, 2), (12,))]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    assert autograd.gradcheck(lambda *args: function(*args, stride, 1), leaves, fast_mode=True)
    assert autograd.gradgradcheck(lambda *args: function(*args, stride, 1), leaves, fast_mode=True)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_same_keeps_the_size(dims):
    x = pc.ones(1, 2, *(6, 5, 4)[:dims])
    for mode in ("zeros", "circular"):
        layer = getattr(nn, f"Conv{dims}d")(2, 2, 2, padding="same", padding_mode=mode)
        assert layer(x).shape == x.shape
    assert layer(x[0]).shape == x[0].shape


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("padding", [1, "same"])
def test_results_are_contiguous(dims, padding):
    x = pc.ones(2, 4, *(5, 6, 7)[:dims])
    for size, groups in ((1, 1), (2, 1), (3, 4)):
        weight = pc.ones(4, 4 // groups, *[size] * dims)
        out = getattr(F, f"conv{dims}d")(x, weight, padding=padding, groups=groups)
        assert out.is_contiguous()
        assert out.view(2, -1).shape == (2, out.numel() // 2)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("kind", "groups"), [("conv", 1), ("conv", 2), ("conv_transpose", 1)])
def test_errors_tell_how_many_channels_are_expected(kind, groups, dims):
    sizes, kernel = (8,) * dims, (3,) * dims
    shape = (16, 4, *kernel) if kind == "conv_transpose" else (4, 16 // groups, *kernel)
    with pytest.raises(pc.ShapeError) as caught:
        getattr(F, f"{kind}{dims}d")(pc.ones(2, 3, *sizes), pc.ones(*shape), groups=groups)
    assert str(caught.value) == (
        f"{kind}{dims}d: with `groups` {groups} and `weight` of shape {shape}, expected `input` "
        f"of shape {(2, 3, *sizes)} to have 16 channels, but got 3 channels instead"
    )


def test_errors_name_the_shapes():
    with pytest.raises(pc.ShapeError, match=r"conv1d: .*\(2, 3, 5\) and \(4, 3\) with groups 1"):
        F.conv1d(pc.ones(2, 3, 5), pc.ones(4, 3))
    with pytest.raises(pc.ShapeError, match=r"conv3d: the kernel \(4, 1, 1\) must fit"):
        F.conv3d(pc.ones(1, 1, 3, 3, 3), pc.ones(1, 1, 4, 1, 1))
    with pytest.raises(pc.ShapeError, match=r"conv_transpose2d: .*\(3, 3\) and \(3, 1, 2, 2\)"):
        F.conv_transpose2d(pc.ones(3, 3), pc.ones(3, 1, 2, 2))
    with pytest.raises(ValueError, match="`output_padding` must be less than stride or dilation"):
        F.conv_transpose1d(pc.ones(1, 1, 3), pc.ones(1, 1, 2), output_padding=1)
    for name in ("padding", "stride", "dilation"):
        with pytest.raises(ValueError, match=rf"^conv_transpose1d: `{name}` must be less than 2"):
            F.conv_transpose1d(pc.ones(1, 1, 3), pc.ones(1, 1, 2), **{name: 2**62})
    with pytest.raises(ValueError, match=r"`output_size` must be in \[11, 12\] in dimension 1"):
        nn.ConvTranspose2d(1, 1, 3, 2, 1)(pc.ones(1, 1, 6, 6), (12, 13))
    with pytest.raises(ValueError, match="ConvTranspose1d: `padding_mode` must be zeros"):
        nn.ConvTranspose1d(1, 1, 3, padding_mode="reflect")
