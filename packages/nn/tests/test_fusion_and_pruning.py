import copy

import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn.utils import parametrizations, parametrize, prune


def near(a, b):
    return bool(((a - b).abs() < 1e-5).all())


@pytest.mark.parametrize("affine", [True, False])
def test_a_fused_pair_computes_the_same(affine):
    bn = nn.BatchNorm2d(4, affine=affine)
    bn(pc.randn(8, 4, 3, 3) * 3 + 1)  # running statistics that are not 0 and 1
    bn.eval()
    for conv, transpose in ((nn.Conv2d(2, 4, 3), False), (nn.ConvTranspose2d(2, 4, 3), True)):
        conv.eval()
        x = pc.randn(2, 2, 6, 6)
        fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
        assert near(fused(x), bn(conv(x)))
        assert fused.weight is not conv.weight
    linear, bn1 = nn.Linear(3, 4, bias=False).eval(), nn.BatchNorm1d(4, affine=affine).eval()
    x = pc.randn(5, 3)
    assert near(nn.utils.fuse_linear_bn_eval(linear, bn1)(x), bn1(linear(x)))


def test_what_cannot_be_fused():
    conv, bn = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4).eval()
    with pytest.raises(RuntimeError, match="evaluation mode"):
        nn.utils.fuse_conv_bn_eval(conv, bn)
    conv.eval()
    with pytest.raises(RuntimeError, match="running statistics"):
        nn.utils.fuse_conv_bn_eval(conv, nn.BatchNorm2d(4, track_running_stats=False).eval())
    with pytest.raises(NotImplementedError, match="one group; got 2"):
        nn.utils.fuse_conv_bn_eval(nn.ConvTranspose2d(2, 4, 3, groups=2).eval(), bn, True)
    with pytest.raises(ValueError, match="1 or 4 features; got 3"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(2, 4).eval(), nn.BatchNorm1d(3).eval())


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(5, 5), (3, 6), (6, 3)])
def test_orthogonal_weights_stay_orthogonal(kind, shape):
    layer = parametrizations.orthogonal(nn.Linear(*shape, dtype=pc.float64), "weight", kind)
    for _ in range(3):
        q = layer.weight
        product = q @ q.mT if q.shape[0] < q.shape[1] else q.mT @ q
        assert near(product, pc.eye(min(shape), dtype=pc.float64))
        (q * pc.randn(q.shape, dtype=pc.float64)).sum().backward()
        original = layer.parametrizations.weight.original
        original.data = original.detach() - 0.5 * original.grad
        original.grad = None


def test_an_orthogonal_value_is_taken_over():
    layer = parametrizations.orthogonal(nn.Linear(3, 3, dtype=pc.float64))
    q, _ = pc.linalg.qr(pc.randn(3, 3, dtype=pc.float64))
    layer.weight = q
    assert near(layer.weight, q)
    with pytest.raises(ValueError, match="at least two dimensions"):
        parametrizations.orthogonal(nn.Linear(3, 3), "bias")
    with pytest.raises(ValueError, match="must be one of"):
        parametrizations.orthogonal(nn.Linear(3, 3), "weight", "svd")


def test_weights_are_computed_once_within_cached():
    calls = []

    class Twice(nn.Module):
        def forward(self, x):
            calls.append(1)
            return 2 * x

    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Twice())
    calls.clear()
    with parametrize.cached():
        first = layer.weight
        with parametrize.cached():
            assert layer.weight is first
    assert len(calls) == 1
    assert layer.weight is not layer.weight


def test_parametrizations_are_transferred():
    layer = parametrizations.weight_norm(nn.Linear(2, 3))
    other = nn.Linear(2, 3)
    parametrize.transfer_parametrizations_and_params(layer, other)
    assert near(other.weight, layer.weight)
    assert parametrize.type_before_parametrizations(other) is nn.Linear
    assert parametrize.type_before_parametrizations(nn.ReLU()) is nn.ReLU


@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
def test_hooks_of_norms_refuse_unsupported_calls(norm):
    layer = norm(nn.Linear(3, 4))
    with pytest.raises(RuntimeError, match="it has one"):
        norm(layer)
    with pytest.raises(ValueError, match="must be a parameter of ReLU"):
        norm(nn.ReLU())
    remove = getattr(nn.utils, f"remove_{norm.__name__}")
    remove(layer)
    with pytest.raises(ValueError, match="it has none"):
        remove(layer)


def test_pruned_parameters_stay_pruned_in_training():
    layer = prune.l1_unstructured(nn.Linear(4, 4), "weight", 0.5)
    mask = layer.weight_mask.clone()
    for _ in range(3):
        layer(pc.randn(2, 4)).square().sum().backward()
        layer.weight_orig.data = layer.weight_orig.detach() - 0.1 * layer.weight_orig.grad
    layer(pc.randn(2, 4))
    assert ((layer.weight == 0) == (mask == 0)).all()
    other = prune.identity(nn.Linear(4, 4), "weight")
    other.load_state_dict(layer.state_dict())
    x = pc.randn(2, 4)
    assert near(other(x), layer(x))


def test_random_prunings_prune_as_many_as_they_are_told():
    layer = prune.random_unstructured(nn.Linear(10, 10), "weight", 0.3)
    assert int(layer.weight_mask.sum()) == 70
    prune.random_unstructured(layer, "weight", 20)
    assert int(layer.weight_mask.sum()) == 50
    layer = prune.random_structured(nn.Linear(10, 10), "weight", 4, dim=1)
    assert sorted(layer.weight_mask.sum(0).tolist()) == [0.0] * 4 + [10.0] * 6
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.RandomStructured)
    prune.identity(layer, "weight")
    (hook,) = layer._forward_pre_hooks.values()
    assert [type(m).__name__ for m in hook] == ["RandomStructured", "Identity"]


def test_importance_scores_decide():
    layer = nn.Linear(3, 1)
    scores = pc.tensor([[3.0, 1.0, 2.0]])
    prune.l1_unstructured(layer, "weight", 1, importance_scores=scores)
    assert layer.weight_mask.tolist() == [[1.0, 0.0, 1.0]]
    with pytest.raises(ValueError, match=r"shape \(1, 3\); got \(2,\)"):
        prune.l1_unstructured(layer, "weight", 1, importance_scores=pc.ones(2))


def test_prunings_that_are_refused():
    layer = nn.Linear(3, 2)
    with pytest.raises(ValueError, match="must be a parameter of Linear"):
        prune.identity(layer, "kernel")
    with pytest.raises(ValueError, match="must be pruned; it is not"):
        prune.remove(layer, "weight")
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        prune.ln_structured(layer, "bias", 1, 2, 0)
    with pytest.raises(IndexError, match="`dim` must be in"):
        prune.ln_structured(layer, "weight", 1, 2, 5)
    with pytest.raises(TypeError, match="LnStructured, which is structured"):
        prune.global_unstructured([(layer, "weight")], prune.LnStructured, amount=1, n=2)
    with pytest.raises(ValueError, match=r"`mask` must have the parameter's shape \(2, 3\)"):
        prune.custom_from_mask(layer, "weight", pc.ones(3))
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert not layer._forward_pre_hooks


def test_skip_init_draws_nothing():
    pc.manual_seed(5)
    expected = pc.rand(3).tolist()
    pc.manual_seed(5)
    layer = nn.utils.skip_init(nn.Conv2d, 2, 3, kernel_size=3, dtype=pc.float64)
    assert pc.rand(3).tolist() == expected
    assert (layer.weight.dtype, layer.weight.requires_grad) == (pc.float64, True)
    with pytest.raises(RuntimeError, match="must take `device`"):
        nn.utils.skip_init(nn.ReLU)
    with pytest.raises(RuntimeError, match="must be a class of modules"):
        nn.utils.skip_init(nn.Linear(1, 1))


def test_memory_formats_of_weights():
    model = nn.Sequential(nn.Conv2d(4, 2, 3), nn.Conv3d(4, 2, 3))
    before = copy.deepcopy(model)
    nn.utils.convert_conv2d_weight_memory_format(model, pc.channels_last)
    assert model[0].weight.is_contiguous(memory_format=pc.channels_last)
    assert model[1].weight.is_contiguous()
    assert (model[0].weight == before[0].weight).all()
    x = pc.randn(1, 4, 5, 5)
    assert near(model[0](x), before[0](x))
