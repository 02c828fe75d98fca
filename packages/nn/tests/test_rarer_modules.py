import copy
import pickle

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F


def near(a, b, bound=1e-5):
    return bool(((a - b).abs() < bound).all())


def test_fractional_windows_lie_where_the_formula_says():
    x = pc.arange(20.0).reshape(1, 1, 20).expand(1, 4, 20)
    samples = pc.tensor([[[0.7, 0.2]]])
    values = F.fractional_max_pool2d(x, 2, (3, 7), _random_samples=samples).flatten().tolist()
    step = (20 - 2) / (7 - 1)
    starts = [int((i + 0.7) * step) - int(0.7 * step) for i in range(6)] + [18]
    assert values == [start + 1.0 for start in starts] * 3


def test_fractional_indices_unpool():
    x = pc.randn(2, 3, 8, 8)
    values, indices = nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True)(x)
    assert (x.flatten(2).gather(2, indices.flatten(2)) == values.flatten(2)).all()


def test_fractional_arguments():
    with pytest.raises(ValueError, match="one of `output_size` and `output_ratio`"):
        nn.FractionalMaxPool2d(2)
    with pytest.raises(ValueError, match="one of `output_size` and `output_ratio`"):
        F.fractional_max_pool3d(pc.ones(1, 4, 4, 4), 2, 2, 0.5)
    with pytest.raises(ValueError, match=r"`output_ratio` must be in \(0, 1\)"):
        nn.FractionalMaxPool2d(2, output_ratio=1.5)
    with pytest.raises(ValueError, match="at most the input's size"):
        F.fractional_max_pool2d(pc.ones(1, 4, 4), 3, 3)
    with pytest.raises(pc.ShapeError, match="`_random_samples` must have shape"):
        F.fractional_max_pool2d(pc.ones(1, 4, 4), 2, 2, _random_samples=pc.ones(1, 2))
    with pytest.raises(pc.ShapeError, match="3 or 4 dimensions"):
        F.fractional_max_pool2d(pc.ones(4, 4), 2, 2)


def test_adaptive_softmax_is_a_distribution():
    layer = nn.AdaptiveLogSoftmaxWithLoss(16, 30, [4, 12], div_value=2.0)
    x = pc.randn(50, 16)
    scores = layer.log_prob(x)
    assert near(scores.exp().sum(1), pc.ones(50))
    target = pc.randint(0, 30, (50,))
    output, loss = layer(x, target)
    assert near(output, scores.gather(1, target.unsqueeze(1)).squeeze(1))
    assert near(loss, -output.mean())
    first = layer.predict(x)
    head = layer.head(x).argmax(1)
    assert ((head >= 4) | (first == head)).all()
    alone, _ = layer(x[0], target[0])
    assert near(alone, output[0])


def test_adaptive_softmax_refuses():
    for cutoffs in ([], [0, 3], [3, 3], [5, 2], [20]):
        with pytest.raises(ValueError, match="`cutoffs` must be rising integers between 1 and"):
            nn.AdaptiveLogSoftmaxWithLoss(4, 20, cutoffs)
    layer = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5])
    with pytest.raises(pc.ShapeError, match=r"`input` must be \(N, 16\)"):
        layer(pc.ones(2, 3), pc.tensor([1, 2]))
    with pytest.raises(
        RuntimeError, match=r"`target` must be in \[0, 19\]; got values from 1 to 20"
    ):
        layer(pc.ones(2, 16), pc.tensor([1, 20]))


def test_sync_batch_norm_is_batch_norm():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm1d(3)))
    model[1](pc.randn(5, 3))
    other = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model))
    assert isinstance(other[2][0], nn.SyncBatchNorm)
    assert list(other.state_dict()) == list(model.state_dict())
    x = pc.randn(6, 2)
    assert near(model(x), other(x))
    assert near(other[1].running_mean, model[1].running_mean)
    with pytest.raises(NotImplementedError, match="`process_group` must be None"):
        nn.SyncBatchNorm(3, process_group=object())
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        nn.SyncBatchNorm(3)(pc.ones(3))


def test_parts_of_a_batch_give_the_same_loss_and_gradients():
    x, target = pc.randn(10, 6, dtype=pc.float64), pc.randint(0, 9, (10,))
    target[3] = 2
    factors = pc.rand(9, dtype=pc.float64) + 0.5
    for reduction in ("mean", "sum"):
        results = []
        for size in (None, 1, 3, 10, 50):
            options = nn.LinearCrossEntropyOptions(batch_chunk_size=size) if size else None
            pc.manual_seed(1)
            loss = nn.LinearCrossEntropyLoss(
                6, 9, bias=True, dtype=pc.float64, reduction=reduction, weight=factors,
                ignore_index=2, label_smoothing=0.1, options=options,
            )  # fmt: skip
            clone = x.clone().requires_grad_()
            value = loss(clone, target)
            value.backward()
            results.append([value, clone.grad, loss.linear.weight.grad, loss.linear.bias.grad])
        for other in results[1:]:
            assert all(near(a, b, 1e-12) for a, b in zip(results[0], other, strict=True))
    with pytest.raises(ValueError, match="`batch_chunk_size` must be positive"):
        nn.LinearCrossEntropyOptions(batch_chunk_size=0)


def test_grouped_products():
    a, b = pc.randn(7, 4), pc.randn(3, 4, 5)
    result = F.grouped_mm(a, b, offs=pc.tensor([2, 2, 6]))
    assert near(result, pc.cat([a[:2] @ b[0], a[2:6] @ b[2], pc.zeros(1, 5)]))
    left = pc.randn(2, 6, 4)
    right = pc.randn(4, 9)
    result = F.grouped_mm(left, right, offs=pc.tensor([4, 9]))
    assert near(result, pc.cat([left[0] @ right[:, :4], left[1] @ right[:, 4:]], 1))
    first, second = pc.randn(3, 8), pc.randn(8, 2)
    result = F.grouped_mm(first, second, offs=pc.tensor([3, 8]), out_dtype=pc.float64)
    assert near(result, pc.stack([first[:, :3] @ second[:3], first[:, 3:] @ second[3:]]).double())
    assert near(F.grouped_mm(left, pc.ones(2, 4, 1)), left @ pc.ones(2, 4, 1))
    for bad in ([2, 1, 7], [1, 2], [1, 2, 8]):
        with pytest.raises(ValueError, match="`offs` must be 3 ends that rise to at most 7"):
            F.grouped_mm(a, b, offs=pc.tensor(bad))
    with pytest.raises(pc.DTypeError, match=r"`offs` must have an integer dtype, got .*float32"):
        F.grouped_mm(a, b, offs=pc.tensor([2.7, 2.9, 5.1]))
    with pytest.raises(pc.ShapeError, match=r"`offs` must have one dimension, got shape \(1, 3\)"):
        F.grouped_mm(a, b, offs=pc.tensor([[2, 2, 6]]))
    with pytest.raises(TypeError, match="`offs` must be a Tensor, got list"):
        F.grouped_mm(a, b, offs=[2, 2, 6])
    with pytest.raises(ValueError, match="`offs` must be given"):
        F.grouped_mm(a, b)
    with pytest.raises(pc.ShapeError, match="of 2 or 3 dimensions"):
        F.grouped_mm(a, pc.ones(3, 5, 5), offs=pc.tensor([1, 2, 3]))


def test_conv_tbc():
    x, w = np.random.default_rng(0).standard_normal((6, 2, 3)), np.ones((2, 3, 4))
    padded = np.concatenate([np.zeros((1, 2, 3)), x, np.zeros((1, 2, 3))])
    expected = np.einsum("tbc,cd->tbd", padded[:-1], w[0]) + np.einsum(
        "tbc,cd->tbd", padded[1:], w[1]
    )
    result = F.conv_tbc(pc.tensor(x), pc.tensor(w), pc.ones(4, dtype=pc.float64), pad=1)
    assert np.allclose(result.numpy(), expected + 1)
    with pytest.raises(pc.ShapeError, match="conv_tbc: `input` must be"):
        F.conv_tbc(pc.ones(3, 2), pc.tensor(w), pc.ones(4))


def test_buffers_by_assignment():
    layer = nn.Identity()
    layer.kept = nn.Buffer(pc.ones(2))
    layer.lost = nn.Buffer(pc.ones(2), persistent=False)
    assert [name for name, _ in layer.named_buffers()] == ["kept", "lost"]
    assert list(layer.state_dict()) == ["kept"]
    assert type(layer.kept * 2) is pc.Tensor
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert list(other.state_dict()) == ["kept"]
        assert other.lost.tolist() == [1.0, 1.0]
    layer.double()
    assert layer.kept.dtype == pc.float64
    with pytest.raises(TypeError, match="Buffer: `data` must be a Tensor; got list"):
        nn.Buffer([1.0])


def test_older_names():
    assert repr(nn.Container(a=nn.ReLU())) == "Container(\n  (a): ReLU()\n)"
    model = nn.DataParallel(nn.Linear(2, 3), device_ids=[0])
    assert near(model(pc.ones(1, 2)), model.module(pc.ones(1, 2)))
    with pytest.warns(FutureWarning, match=r"in favor of `nn.init.xavier_uniform_`"):
        nn.init.xavier_uniform(pc.empty(3, 2))
    w = nn.init.sparse_(pc.empty(9, 4), 0.5, std=2.0)
    assert (w == 0).sum(0).tolist() == [5, 5, 5, 5]
    with pytest.raises(ValueError, match="2 dimensions"):
        nn.init.sparse_(pc.empty(3), 0.5)
