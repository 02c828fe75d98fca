import numpy as np
import pytest
from nn_reference import conv2d

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
    made = getattr(F, f"conv_transpose{dims}d")(g, w, output_padding=extra, **conv)
    np.testing.assert_allclose(made.numpy(), x.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_same_keeps_the_size(dims):
    x = pc.ones(1, 2, *(6, 5, 4)[:dims])
    for mode in ("zeros", "circular"):
        layer = getattr(nn, f"Conv{dims}d")(2, 2, 2, padding="same", padding_mode=mode)
        assert layer(x).shape == x.shape
    assert layer(x[0]).shape == x[0].shape


def test_errors_name_the_shapes():
    with pytest.raises(pc.ShapeError, match=r"conv1d: .*\(2, 3, 5\) and \(4, 2, 3\) with groups 1"):
        F.conv1d(pc.ones(2, 3, 5), pc.ones(4, 2, 3))
    with pytest.raises(pc.ShapeError, match=r"conv3d: the kernel \(4, 1, 1\) must fit"):
        F.conv3d(pc.ones(1, 1, 3, 3, 3), pc.ones(1, 1, 4, 1, 1))
    with pytest.raises(
        pc.ShapeError, match=r"conv_transpose2d: .*\(1, 2, 3, 3\) and \(3, 1, 2, 2\)"
    ):
        F.conv_transpose2d(pc.ones(1, 2, 3, 3), pc.ones(3, 1, 2, 2))
    with pytest.raises(ValueError, match="`output_padding` must be less than stride or dilation"):
        F.conv_transpose1d(pc.ones(1, 1, 3), pc.ones(1, 1, 2), output_padding=1)
    with pytest.raises(ValueError, match=r"`output_size` must be in \[11, 12\] in dimension 1"):
        nn.ConvTranspose2d(1, 1, 3, 2, 1)(pc.ones(1, 1, 6, 6), (12, 13))
    with pytest.raises(ValueError, match="ConvTranspose1d: `padding_mode` must be zeros"):
        nn.ConvTranspose1d(1, 1, 3, padding_mode="reflect")
