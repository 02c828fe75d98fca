import re

import numpy as np
import pytest
from nn_reference import conv2d

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups", "bias"),
    [
        ((1, 1), (0, 0), (1, 1), 1, True),
        ((2, 1), (1, 2), (1, 1), 1, False),
        ((1, 2), (2, 2), (2, 1), 2, True),
        ((1, 1), (1, 1), (1, 1), 4, True),
    ],
)
def test_conv2d_computes_its_formula(draw, stride, padding, dilation, groups, bias):
    layer = nn.Conv2d(4, 8, (3, 2), stride, padding, dilation, groups, bias, dtype=pc.float64)
    x = draw(2, 4, 7, 6)
    result = layer(pc.tensor(x)).detach().numpy()
    w = layer.weight.detach().numpy()
    b = layer.bias.detach().numpy() if bias else None
    borders = tuple((p, p) for p in padding)
    expected = conv2d(x, w, b, stride, borders, dilation, groups)
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 5), (4, 2)])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 3)])
def test_padding_same_keeps_the_size(draw, kernel, dilation):
    layer = nn.Conv2d(2, 3, kernel, padding="same", dilation=dilation, dtype=pc.float64)
    x = draw(2, 2, 8, 9)
    result = layer(pc.tensor(x)).detach().numpy()
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    borders = tuple((t // 2, t - t // 2) for t in total)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    expected = conv2d(x, w, b, (1, 1), borders, dilation, 1)
    assert result.shape == (2, 3, 8, 9)
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


def test_padding_valid_is_none(draw):
    x, w = pc.tensor(draw(1, 1, 5, 5)), pc.tensor(draw(1, 1, 3, 3))
    assert F.conv2d(x, w, padding="valid", stride=2).tolist() == F.conv2d(x, w, stride=2).tolist()


@pytest.mark.parametrize(
    ("mode", "numpy_mode"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
@pytest.mark.parametrize("padding", [1, (2, 1), "same", "valid"])
def test_padding_modes(draw, mode, numpy_mode, padding):
    layer = nn.Conv2d(1, 2, 3, padding=padding, padding_mode=mode, dtype=pc.float64)
    x = draw(1, 1, 5, 6)
    rows, columns = {1: (1, 1), "same": (1, 1), "valid": (0, 0)}.get(padding, padding)
    padded = np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)), mode=numpy_mode)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    expected = conv2d(padded, w, b, (1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    np.testing.assert_allclose(layer(pc.tensor(x)).detach().numpy(), expected, rtol=1e-10)


def test_conv2d_takes_one_image(draw):
    layer = nn.Conv2d(2, 3, 3, dtype=pc.float64)
    x = pc.tensor(draw(2, 6, 6))
    np.testing.assert_allclose(
        layer(x).detach().numpy(), layer(x.unsqueeze(0)).detach().numpy()[0], rtol=1e-12
    )


def test_conv2d_starts_uniform_with_the_bound_of_its_window():
    layer = nn.Conv2d(16, 64, 5)
    bound = 1 / np.sqrt(16 * 25)
    for parameter in (layer.weight, layer.bias):
        values = np.abs(parameter.detach().numpy())
        assert bound * 0.9 < values.max() <= bound
    assert layer.weight.detach().numpy().std() == pytest.approx(bound / np.sqrt(3), rel=0.05)


def test_conv2d_gradients_against_differences(draw):
    layer = nn.Conv2d(2, 2, (2, 3), stride=(2, 1), padding=1, dtype=pc.float64)
    x = pc.tensor(draw(1, 2, 5, 4)).requires_grad_()
    g = pc.tensor(draw(*layer(x).shape))
    (layer(x) * g).sum().backward()
    for tensor in (x, layer.weight, layer.bias):
        values = tensor.detach().numpy()
        flat, numeric = values.reshape(-1), np.empty(values.size)
        for i in range(values.size):
            at, sums = flat[i], []
            for step in (1e-5, -1e-5):
                flat[i] = at + step
                sums.append((layer(x) * g).sum().item())
            flat[i] = at
            numeric[i] = (sums[0] - sums[1]) / 2e-5
        np.testing.assert_allclose(tensor.grad.numpy().reshape(-1), numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"groups": 2}, "`in_channels` must be divisible by `groups`; got 3 and 2"),
        ({"groups": 3}, "`out_channels` must be divisible by `groups`; got 4 and 3"),
        ({"groups": 0}, "`groups` must be positive; got 0"),
        (
            {"padding": "full"},
            '`padding` must be an int, two ints, "same" or "valid"; got \'full\'',
        ),
        ({"padding": "same", "stride": 2}, 'padding="same" needs stride 1; got (2, 2)'),
        ({"padding": -1}, "`padding` must not be negative; got (-1, -1)"),
        ({"padding_mode": "mirror"}, "`padding_mode` must be one of zeros, reflect"),
        ({"stride": 0}, "`stride` must be positive; got (0, 0)"),
        ({"dilation": (1, 0)}, "`dilation` must be positive; got (1, 0)"),
        ({"stride": (1, 2, 3)}, "`stride` must be an int or two ints; got (1, 2, 3)"),
    ],
)
def test_conv2d_refuses_bad_arguments(arguments, text):
    with pytest.raises(ValueError, match="^Conv2d: " + re.escape(text)):
        nn.Conv2d(3, 4, 3, **arguments)


def test_functional_refuses_bad_padding():
    x, w = pc.ones(1, 1, 5, 5), pc.ones(1, 1, 3, 3)
    with pytest.raises(ValueError, match=r"conv2d: `padding` must be .* got 'half'"):
        F.conv2d(x, w, padding="half")
    with pytest.raises(ValueError, match='padding="same" needs stride 1'):
        F.conv2d(x, w, padding="same", stride=2)


def test_conv2d_names_the_channels():
    with pytest.raises(ValueError, match=r"^conv2d: .*\(1, 2, 8, 8\)"):
        nn.Conv2d(3, 4, 3)(pc.ones(1, 2, 8, 8))


def test_integers_and_complex_numbers(draw):
    x, w, b = draw(1, 2, 5, 5) * 9, draw(3, 2, 2, 2) * 9, draw(3) * 9
    borders = ((1, 1), (1, 1))
    x, w, b = (np.round(a) for a in (x, w, b))
    whole = F.conv2d(*(pc.tensor(a.astype("int64")) for a in (x, w, b)), padding=1)
    assert whole.dtype == pc.int64
    expected = conv2d(x, w, b, (1, 1), borders, (1, 1), 1)
    np.testing.assert_array_equal(whole.numpy(), expected)
    z, v, c = x + 1j * x[:, :, ::-1], w - 2j * w, b * 1j
    result = F.conv2d(*(pc.tensor(a.astype("complex128")) for a in (z, v, c)), padding=1)
    parts = [
        conv2d(a, d, None, (1, 1), borders, (1, 1), 1)
        for a in (z.real, z.imag)
        for d in (v.real, v.imag)
    ]
    target = parts[0] - parts[3] + 1j * (parts[1] + parts[2]) + c.reshape(-1, 1, 1)
    np.testing.assert_allclose(result.numpy(), target, rtol=1e-12, atol=1e-9)
