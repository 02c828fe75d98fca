import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


def windows(x, size, stride):
    """All windows of the last three dimensions; the last axis runs over a window."""
    calls = np.lib.stride_tricks.sliding_window_view(x, (size,) * 3, (-3, -2, -1))
    return calls[..., ::stride, ::stride, ::stride, :, :, :].reshape(
        *calls[..., ::stride, ::stride, ::stride, 0, 0, 0].shape, -1
    )


def test_three_dimensions(draw):
    x = draw(2, 3, 5, 6, 7)
    calls = windows(x, 3, 2)
    for function, expected in (
        (F.max_pool3d, calls.max(-1)),
        (F.avg_pool3d, calls.mean(-1)),
    ):
        np.testing.assert_allclose(function(pc.tensor(x), 3, 2).numpy(), expected, atol=1e-12)
    powers = np.sqrt((calls**2).sum(-1))
    np.testing.assert_allclose(F.lp_pool3d(pc.tensor(x), 2, 3, 2).numpy(), powers, atol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_maxima_go_back_to_their_places(draw, dims):
    size = (2, 3, 6, 4, 4)[: dims + 2]
    x = pc.tensor(draw(*size))
    maxima, indices = getattr(F, f"max_pool{dims}d")(x, 2, return_indices=True)
    back = getattr(F, f"max_unpool{dims}d")(maxima, indices, 2)
    assert back.shape == x.shape
    assert ((back == x) | (back == 0)).all().item()
    assert (back != 0).sum().item() == maxima.numel()
    result, at = getattr(F, f"adaptive_max_pool{dims}d")(x, maxima.shape[2:], True)
    assert pc.equal(result, maxima) and pc.equal(at, indices)


def test_adaptive_windows_overlap():
    x = pc.tensor([[1.0, 5.0, 2.0, 4.0, 3.0]])
    assert F.adaptive_max_pool1d(x, 3).tolist() == [[5.0, 5.0, 4.0]]
    assert F.adaptive_avg_pool1d(3 * x, 2).tolist() == [[8.0, 9.0]]


def test_errors_name_the_shapes():
    with pytest.raises(pc.ShapeError, match=r"max_pool3d: .* got shape \(3, 4\)"):
        nn.MaxPool3d(2)(pc.ones(3, 4))
    with pytest.raises(pc.ShapeError, match=r"max_unpool2d: .*\(1, 2, 2\) and \(1, 2\)"):
        F.max_unpool2d(pc.ones(1, 2, 2), pc.zeros(1, 2, dtype=pc.int64), 2)
    with pytest.raises(ValueError, match=r"max_unpool1d: `indices` must be in \[0, 3\]"):
        F.max_unpool1d(pc.ones(1, 2), pc.tensor([[0, 4]]), 2)
    with pytest.raises(ValueError, match=r"`output_size` must differ from \(4,\) by less"):
        F.max_unpool1d(pc.ones(1, 2), pc.tensor([[0, 3]]), 2, output_size=(9,))
    with pytest.raises(ValueError, match="AvgPool1d: `stride` must be an int or one"):
        nn.AvgPool1d(2, (1, 2))


def test_means_of_integer_volumes_lose_their_fractions():
    x = pc.arange(-30, 30).reshape(1, 1, 3, 4, 5)
    for options in [{}, {"padding": 1}, {"padding": 1, "count_include_pad": False}]:
        exact = F.avg_pool3d(x.double(), 3, 2, ceil_mode=False, **options)
        result = F.avg_pool3d(x, 3, 2, ceil_mode=False, **options)
        assert result.dtype == pc.int64
        assert result.tolist() == (exact + 1e-9 * exact.sign()).trunc().long().tolist()
    assert F.avg_pool3d(x, (3, 4, 5), divisor_override=7).tolist() == [[[[[-4]]]]]


def test_a_subclass_pools_whatever_its_name():
    class Energy(nn.LPPool2d):
        pass

    x = pc.rand(1, 1, 4, 6)
    np.testing.assert_array_equal(Energy(2, 2)(x).numpy(), nn.LPPool2d(2, 2)(x).numpy())
