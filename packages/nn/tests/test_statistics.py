import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


def test_batch_norm_follows_the_batch_and_then_the_running_statistics(draw):
    layer = nn.BatchNorm2d(3, momentum=0.5, dtype=pc.float64)
    x = draw(4, 3, 2, 5)
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    shape = (1, 3, 1, 1)
    expected = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + 1e-5)
    np.testing.assert_allclose(layer(pc.tensor(x)).detach().numpy(), expected, atol=1e-12)
    running = 0.5 + 0.5 * x.var((0, 2, 3), ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.5 * mean, atol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), running, atol=1e-12)
    assert layer.num_batches_tracked.item() == 1
    expected = (x - (0.5 * mean).reshape(shape)) / np.sqrt(running.reshape(shape) + 1e-5)
    result = layer.eval()(pc.tensor(x)).detach().numpy()
    np.testing.assert_allclose(result, expected, atol=1e-12)
    assert layer.num_batches_tracked.item() == 1
    layer.reset_parameters()
    assert layer.running_var.tolist() == [1.0] * 3 and layer.num_batches_tracked.item() == 0


def test_batch_norm_averages_all_batches(draw):
    layer = nn.BatchNorm1d(2, momentum=None, dtype=pc.float64)
    batches = [draw(5, 2) for _ in range(3)]
    for batch in batches:
        layer(pc.tensor(batch))
    means = np.mean([b.mean(0) for b in batches], 0)
    np.testing.assert_allclose(layer.running_mean.numpy(), means, atol=1e-12)


def test_batch_norm_members():
    assert list(nn.BatchNorm1d(2).state_dict()) == [
        "weight",
        "bias",
        "running_mean",
        "running_var",
        "num_batches_tracked",
    ]
    assert list(nn.BatchNorm1d(2, bias=False, track_running_stats=False).state_dict()) == ["weight"]
    layer = nn.BatchNorm1d(2)
    old = {k: v for k, v in layer.state_dict().items() if k != "num_batches_tracked"}
    layer.load_state_dict(old)  # a checkpoint from before the count


def test_group_instance_and_rms(draw):
    x = draw(2, 6, 5)
    groups = x.reshape(2, 3, 10)
    expected = (groups - groups.mean(2, keepdims=True)) / np.sqrt(
        groups.var(2, keepdims=True) + 1e-5
    )
    result = nn.GroupNorm(3, 6, dtype=pc.float64)(pc.tensor(x)).detach().numpy()
    np.testing.assert_allclose(result, expected.reshape(x.shape), atol=1e-12)
    expected = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    result = nn.InstanceNorm1d(6)(pc.tensor(x)).numpy()
    np.testing.assert_allclose(result, expected, atol=1e-12)
    expected = x / np.sqrt((x * x).mean((1, 2), keepdims=True) + 0.1)
    result = nn.RMSNorm((6, 5), eps=0.1, dtype=pc.float64)(pc.tensor(x)).detach().numpy()
    np.testing.assert_allclose(result, expected, atol=1e-12)


def test_local_response_norm(draw):
    x = draw(2, 4, 3)
    padded = np.pad(x * x, ((0, 0), (1, 1), (0, 0)))
    mean = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
    result = F.local_response_norm(pc.tensor(x), 3, 0.5, 0.75, 2.0).numpy()
    np.testing.assert_allclose(result, x / (2 + 0.5 * mean) ** 0.75, atol=1e-12)


def test_errors_name_the_shapes():
    with pytest.raises(ValueError, match=r"BatchNorm2d: `input` must have 4 dim.*\(2, 3\)"):
        nn.BatchNorm2d(3)(pc.ones(2, 3))
    with pytest.raises(ValueError, match=r"GroupNorm: `num_channels` must be divisible .* 5 and 2"):
        nn.GroupNorm(2, 5)
    with pytest.raises(pc.ShapeError, match=r"group_norm: .*`num_groups` 2; got shape \(1, 3\)"):
        F.group_norm(pc.ones(1, 3), 2)
    with pytest.raises(pc.ShapeError, match=r"instance_norm: .*more than one .*\(2, 3, 1\)"):
        F.instance_norm(pc.ones(2, 3, 1))
    with pytest.raises(
        pc.ShapeError, match=r"InstanceNorm1d: .* 4 channels; got shape \(2, 3, 5\)"
    ):
        nn.InstanceNorm1d(4, affine=True)(pc.ones(2, 3, 5))
    with pytest.raises(pc.ShapeError, match=r"rms_norm: .*\(4,\); got shape \(2, 3\)"):
        F.rms_norm(pc.ones(2, 3), (4,))
    with pytest.raises(pc.ShapeError, match=r"rms_norm: `weight` must have shape \(3,\)"):
        F.rms_norm(pc.ones(2, 3), (3,), pc.ones(2))
    with pytest.raises(pc.ShapeError, match="local_response_norm"):
        F.local_response_norm(pc.ones(2, 3), 2)


def test_neighbours_of_integers_are_averaged_without_fractions():
    x = pc.tensor([[[3], [4], [5]]])
    result = F.local_response_norm(x, 2, alpha=1.0, beta=1.0, k=1.0)
    # means of the squares 9, 16 and 25 with those before, fractions cut off: 4, 12 and 20
    assert np.allclose(result.numpy()[0, :, 0], [3 / 5, 4 / 13, 5 / 21])
