import numpy as np
import pytest
from nn_reference import pool2d

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


@pytest.mark.parametrize(("size", "stride"), [(2, None), (3, 1), (2, 3)])
def test_max_and_average(draw, size, stride):
    x = draw(2, 3, 7, 8)
    t = pc.tensor(x)
    expected = pool2d(x, size, stride or size, np.max)
    np.testing.assert_allclose(nn.MaxPool2d(size, stride)(t).numpy(), expected)
    expected = pool2d(x, size, stride or size, np.mean)
    np.testing.assert_allclose(nn.AvgPool2d(size, stride)(t).numpy(), expected, rtol=1e-12)


def test_max_pool_padding_is_minus_infinity():
    x = pc.full((1, 1, 4, 4), -5.0)
    assert nn.MaxPool2d(2, padding=1)(x).tolist() == [[[[-5.0] * 3] * 3]]


def test_max_pool_returns_indices(draw):
    x = draw(1, 2, 4, 6)
    values, indices = nn.MaxPool2d(2, return_indices=True)(pc.tensor(x))
    flat = x.reshape(2, 24)
    picked = np.stack([flat[c][indices.numpy()[0, c]] for c in range(2)])
    np.testing.assert_array_equal(picked, values.numpy()[0])


def test_ceil_mode_keeps_the_rest():
    x = pc.arange(25.0).reshape(1, 1, 5, 5)
    assert nn.MaxPool2d(2)(x).shape == (1, 1, 2, 2)
    result = nn.MaxPool2d(2, ceil_mode=True)(x)
    assert result.shape == (1, 1, 3, 3)
    assert result[0, 0, 2].tolist() == [21.0, 23.0, 24.0]


def test_max_pool_gradient_goes_to_the_maximum():
    x = pc.tensor([[[[1.0, 5.0], [2.0, 3.0]]]]).requires_grad_()
    nn.MaxPool2d(2)(x).sum().backward()
    assert x.grad.tolist() == [[[[0.0, 1.0], [0.0, 0.0]]]]


def test_average_counts_the_padding_or_not():
    x = pc.ones(1, 1, 2, 2)
    assert F.avg_pool2d(x, 2, 2, 1).tolist() == [[[[0.25, 0.25], [0.25, 0.25]]]]
    ones = [[[[1.0, 1.0], [1.0, 1.0]]]]
    assert F.avg_pool2d(x, 2, 2, 1, count_include_pad=False).tolist() == ones
    assert nn.AvgPool2d(2, 2, 1, divisor_override=1)(x).tolist() == ones


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_another_divisor_counts_nothing_but_the_sum(draw, ceil_mode):
    x = draw(1, 2, 6, 5)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 4), (1, 4)))
    result = F.avg_pool2d(pc.tensor(x), 3, 2, 1, ceil_mode, divisor_override=7).numpy()
    assert result.shape == ((1, 2, 4, 3) if ceil_mode else (1, 2, 3, 3))
    sums = pool2d(padded, 3, 2, np.sum)[:, :, : result.shape[2], : result.shape[3]]
    np.testing.assert_allclose(result, sums / 7, rtol=1e-12)
    with pytest.raises(ValueError, match="`divisor_override` must not be 0"):
        F.avg_pool2d(pc.tensor(x), 3, divisor_override=0)


def test_average_gradient_is_spread():
    x = pc.ones(1, 1, 4, 4).requires_grad_()
    nn.AvgPool2d(2)(x).sum().backward()
    assert x.grad.flatten().tolist() == [0.25] * 16


@pytest.mark.parametrize("size", [1, (2, 3), (5, 4), (None, 2), None])
def test_adaptive_average(draw, size):
    x = draw(2, 3, 5, 7)
    rows, columns = size if isinstance(size, tuple) else (size, size)
    rows, columns = rows or 5, columns or 7
    expected = np.empty((2, 3, rows, columns))
    for i in range(rows):
        for j in range(columns):
            top, bottom = i * 5 // rows, -(-(i + 1) * 5 // rows)
            left, right = j * 7 // columns, -(-(j + 1) * 7 // columns)
            expected[:, :, i, j] = x[:, :, top:bottom, left:right].mean((2, 3))
    result = nn.AdaptiveAvgPool2d(size)(pc.tensor(x)).numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_adaptive_average_refuses_other_sizes():
    with pytest.raises(ValueError, match="`output_size` must be an int or two"):
        F.adaptive_avg_pool2d(pc.ones(1, 1, 4, 4), (1, 2, 3))


def test_a_window_must_fit():
    with pytest.raises(ValueError, match=r"max_pool2d.*\(1, 1, 2, 2\)"):
        nn.MaxPool2d(3)(pc.ones(1, 1, 2, 2))


def test_average_of_integers_has_no_fraction():
    x = pc.tensor([[[-3, 0, 4], [0, 0, 1], [2, 5, -9]]])
    assert F.avg_pool2d(x, 2, 1).tolist() == [[[0, 1], [1, 0]]]
    assert F.avg_pool2d(x, 3, 3, 1, count_include_pad=False).tolist() == [[[0]]]
    assert F.avg_pool2d(x, 2, 1, divisor_override=-2).tolist() == [[[1, -2], [-3, 1]]]


def test_an_empty_stride_is_the_window():
    x = pc.arange(16.0).reshape(1, 4, 4)
    assert F.avg_pool2d(x, (2, 2), ()).tolist() == [[[2.5, 4.5], [10.5, 12.5]]]
    assert F.max_pool2d(x, (2, 2), ()).tolist() == [[[5.0, 7.0], [13.0, 15.0]]]
    with pytest.raises(ValueError, match="stride"):
        F.avg_pool2d(x, 2, 0)


@pytest.mark.parametrize("name", [each for each in dir(F) if each.endswith("_with_indices")])
def test_errors_about_arguments_name_the_function_with_indices(name: str) -> None:
    function = getattr(F, name)
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing"):
        function()
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected"):
        function(pc.ones(1, 1, 4), 2, strange=1)
