import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_layer_norm_computes_its_formula(draw, dims):
    x = draw(2, 3, 4)
    shape = x.shape[3 - dims :]
    w, b = draw(*shape), draw(*shape)
    layer = nn.LayerNorm(shape, dtype=pc.float64)
    layer.load_state_dict({"weight": w, "bias": b})
    axes = tuple(range(3 - dims, 3))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    expected = (x - mean) / np.sqrt(var + 1e-5) * w + b
    result = layer(pc.tensor(x)).detach().numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


def test_layer_norm_starts_neutral():
    layer = nn.LayerNorm(3)
    assert layer.weight.tolist() == [1.0] * 3 and layer.bias.tolist() == [0.0] * 3
    assert nn.LayerNorm(3, bias=False).bias is None
    assert list(nn.LayerNorm(3, elementwise_affine=False).parameters()) == []


def test_layer_norm_gradient_is_orthogonal(draw):
    x = pc.tensor(draw(5, 8)).requires_grad_()
    (nn.LayerNorm(8, dtype=pc.float64)(x) * pc.tensor(draw(5, 8))).sum().backward()
    np.testing.assert_allclose(x.grad.numpy().sum(1), 0, atol=1e-10)
    centred = x.detach().numpy() - x.detach().numpy().mean(1, keepdims=True)
    scale = np.abs(x.grad.numpy() * centred).sum(1)
    assert (np.abs((x.grad.numpy() * centred).sum(1)) < 1e-4 * scale).all()


def test_layer_norm_names_the_shapes():
    with pytest.raises(pc.ShapeError, match=r"layer_norm: .*\(4,\); got shape \(2, 3\)"):
        nn.LayerNorm(4)(pc.ones(2, 3))
    with pytest.raises(pc.ShapeError, match=r"layer_norm: .*\(2, 3, 4\); got shape \(3, 4\)"):
        F.layer_norm(pc.ones(3, 4), (2, 3, 4))
    with pytest.raises(pc.ShapeError, match="layer_norm"):
        F.layer_norm(pc.ones(3, 4), ())


def test_normalize(draw):
    x = draw(3, 4)
    expected = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(F.normalize(pc.tensor(x)).numpy(), expected, rtol=1e-12)
    assert F.normalize(pc.zeros(1, 2)).tolist() == [[0.0, 0.0]]


def test_cosine_similarity(draw):
    a, b = draw(3, 4), draw(3, 4)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    result = F.cosine_similarity(pc.tensor(a), pc.tensor(b)).numpy()
    np.testing.assert_allclose(result, (a * b).sum(1) / norms, rtol=1e-12)


def test_batch_norm_takes_the_statistics_first() -> None:
    x = pc.tensor([[1.0, 10.0], [3.0, 30.0]])
    mean, var, weight, bias = pc.zeros(2), pc.ones(2), pc.tensor([2.0, 1.0]), pc.tensor([0.0, 5.0])
    assert F.batch_norm(x, mean, var, weight, bias, eps=0.0).tolist() == [[2.0, 15.0], [6.0, 35.0]]
    result = F.batch_norm(x, mean, var, weight, bias, True, 0.5, 0.0)
    assert result.tolist() == [[-2.0, 4.0], [2.0, 6.0]]
    assert mean.tolist() == [1.0, 10.0]
    assert var.tolist() == [1.5, 100.5]
    operator = pc.batch_norm(x, weight, bias, mean, var, eps=0.0)
    assert pc.equal(operator, F.batch_norm(x, mean, var, weight, bias, eps=0.0))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16])
@pytest.mark.parametrize(
    "layer",
    [
        nn.BatchNorm1d(4),
        nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
        nn.GroupNorm(2, 4),
        nn.LayerNorm(5),
        nn.RMSNorm(5, eps=1e-5),
    ],
)
def test_halves_in_a_layer_of_singles(draw, layer, dtype, training):
    x = pc.tensor(draw(3, 4, 5)).to(dtype)
    layer.train(training)
    before = {name: each.clone() for name, each in layer.state_dict().items()}
    expected = layer(x.float())
    after = {name: each.clone() for name, each in layer.state_dict().items()}
    layer.load_state_dict(before)
    result = layer(x.requires_grad_())
    assert result.dtype == dtype
    np.testing.assert_allclose(
        result.detach().float().numpy(), expected.detach().numpy(), atol=2e-2
    )
    for name, each in layer.state_dict().items():
        assert (each == after[name]).all(), name
    result.sum().backward()
    assert x.grad.dtype == dtype and layer.weight.grad.dtype == pc.float32


def test_a_batch_of_nothing_teaches_nothing():
    layer = nn.BatchNorm2d(3)
    result = layer(pc.zeros(0, 3, 4, 4))
    result.sum().backward()
    assert result.shape == (0, 3, 4, 4)
    assert layer.weight.grad.tolist() == [0, 0, 0] == layer.bias.grad.tolist()
    assert layer.running_mean.tolist() == [0, 0, 0] and layer.running_var.tolist() == [1, 1, 1]


def test_instance_norm_without_members_takes_any_channels(draw):
    x = pc.tensor(draw(2, 3, 5))
    with pytest.warns(UserWarning, match=r"InstanceNorm1d: .* 7 channels; got shape \(2, 3, 5\)"):
        result = nn.InstanceNorm1d(7)(x)
    assert (result == nn.InstanceNorm1d(3)(x)).all()
    with pytest.raises(pc.ShapeError, match="InstanceNorm1d: `input` must have `num_features` 7"):
        nn.InstanceNorm1d(7, affine=True)(x.float())


def test_lazy_instance_norm_has_members_by_default():
    lazy, plain = nn.LazyInstanceNorm2d(), nn.InstanceNorm2d(3, affine=True)
    lazy(pc.ones(2, 3, 4, 4))
    names = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert list(lazy.state_dict()) == names and list(plain.state_dict()) == names[:2]
    bare = nn.LazyInstanceNorm2d(affine=False, track_running_stats=False)
    bare(pc.ones(2, 3, 4, 4))
    assert not bare.state_dict()


def test_normalize_writes_to_out():
    out = pc.empty(1, 2)
    assert F.normalize(pc.tensor([[3.0, 4.0]]), out=out) is out
    np.testing.assert_allclose(out.numpy(), [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize("dtype", [pc.float32, pc.float16, pc.bfloat16])
@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 4), (2, 3, 0), (2, 3, 0, 2)])
def test_batch_norm_of_no_values_has_gradients_of_zero(
    shape: tuple[int, ...], dtype: pc.dtype
) -> None:
    for kind in {dtype, pc.float32}:  # mixed: a layer of float32 on halves
        for function in (F.batch_norm, F.batch_norm_activation):
            for training in (True, False):
                x = pc.ones(*shape, dtype=dtype, requires_grad=True)
                weight, bias = (pc.ones(3, dtype=kind, requires_grad=True) for _ in range(2))
                mean, var = pc.zeros(3, dtype=kind), pc.ones(3, dtype=kind)
                out = function(x, mean, var, weight, bias, training)
                assert out.shape == x.shape and out.dtype == dtype
                (out * out).sum().backward()
                assert weight.grad.tolist() == bias.grad.tolist() == [0.0] * 3
                assert x.grad.shape == x.shape
                assert mean.tolist() == [0.0] * 3 and var.tolist() == [1.0] * 3


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16])
@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 3.0, float("inf")])
def test_normalize_of_recorded_halves_has_the_same_bits(dtype, order):
    x = pc.tensor(np.random.default_rng(0).standard_normal((7, 1500))).to(dtype)
    recorded = x.clone().requires_grad_()
    for dim in (0, 1):
        made = F.normalize(x, order, dim)
        assert made.dtype == dtype
        assert made.tolist() == F.normalize(recorded, order, dim).tolist()
