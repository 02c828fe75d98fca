import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn


def test_linear_computes_its_formula(draw):
    layer = nn.Linear(3, 2, dtype=pc.float64)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    for shape in [(3,), (4, 3), (2, 4, 3), (0, 3)]:
        x = draw(*shape)
        np.testing.assert_allclose(layer(pc.tensor(x)).detach().numpy(), x @ w.T + b, rtol=1e-12)


def test_linear_without_bias(draw):
    layer = nn.Linear(3, 2, bias=False, dtype=pc.float64)
    x = draw(4, 3)
    assert layer.bias is None
    expected = x @ layer.weight.detach().numpy().T
    np.testing.assert_allclose(layer(pc.tensor(x)).detach().numpy(), expected, rtol=1e-12)


def test_linear_starts_uniform_with_the_bound_of_its_inputs():
    layer = nn.Linear(100, 400)
    for parameter in (layer.weight, layer.bias):
        values = parameter.detach().numpy()
        assert np.abs(values).max() <= 0.1
        assert np.abs(values).max() > 0.099
        assert abs(values.mean()) < 0.01
        assert values.std() == pytest.approx(0.1 / np.sqrt(3), rel=0.1)


def test_linear_names_both_shapes():
    with pytest.raises(ValueError, match=r"^linear: .*\(4, 5\).*\(2, 3\)"):
        nn.Linear(3, 2)(pc.ones(4, 5))


@pytest.mark.parametrize("dtype", [pc.bfloat16, pc.float16])
def test_linear_gradients_of_halves(draw, dtype):
    layer = nn.Linear(30, 6).to(dtype)
    x = pc.tensor(draw(4, 30)).to(dtype).requires_grad_()
    layer(x).sum().backward()
    expected = layer.weight.detach().to(pc.float64).numpy().sum(0)
    np.testing.assert_allclose(x.grad.to(pc.float64).numpy(), [expected] * 4, atol=0.02)


def test_linear_gradients(draw):
    layer = nn.Linear(3, 2, dtype=pc.float64)
    x = pc.tensor(draw(4, 3)).requires_grad_()
    g = draw(4, 2)
    (layer(x) * pc.tensor(g)).sum().backward()
    w = layer.weight.detach().numpy()
    np.testing.assert_allclose(layer.weight.grad.numpy(), g.T @ x.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(layer.bias.grad.numpy(), g.sum(0), rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), g @ w, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_linear_without_inputs_or_outputs():
    assert nn.Linear(0, 2)(pc.ones(3, 0)).shape == (3, 2)
    assert nn.Linear(2, 0)(pc.ones(3, 2)).shape == (3, 0)
    with pytest.raises(ValueError, match="Linear: `in_features` must not be negative; got -1"):
        nn.Linear(-1, 2)


def test_bilinear_computes_its_formula(draw):
    layer = nn.Bilinear(3, 4, 2, dtype=pc.float64)
    x1, x2 = draw(2, 5, 3), draw(2, 5, 4)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    expected = np.einsum("...i,kij,...j->...k", x1, w, x2) + b
    result = layer(pc.tensor(x1), pc.tensor(x2)).detach().numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_bilinear_names_the_shapes():
    with pytest.raises(ValueError, match=r"bilinear: `weight` must have shape \(out, 3, 5\)"):
        nn.Bilinear(3, 4, 2)(pc.ones(1, 3), pc.ones(1, 5))
    with pytest.raises(ValueError, match=r"all but the last dimension; got \(2, 3\) and \(1, 4\)"):
        nn.Bilinear(3, 4, 2)(pc.ones(2, 3), pc.ones(1, 4))
    with pytest.raises(ValueError, match="`in1_features` must be positive; got 0"):
        nn.Bilinear(0, 4, 2)


def test_identity_ignores_its_arguments():
    x = pc.ones(2)
    assert nn.Identity(54, unused=True)(x) is x


def test_flatten_and_unflatten(draw):
    x = draw(2, 3, 4, 5)
    t = pc.tensor(x)
    assert nn.Flatten()(t).shape == (2, 60)
    np.testing.assert_array_equal(nn.Flatten(0, 1)(t).numpy(), x.reshape(6, 4, 5))
    np.testing.assert_array_equal(nn.Unflatten(-1, (5, -1))(t).numpy(), x.reshape(2, 3, 4, 5, 1))
    with pytest.raises(IndexError, match=r"`dim` must be in \[-4, 3\] for shape \(2, 3, 4, 5\)"):
        nn.Unflatten(4, (1, 1))(t)
    with pytest.raises(TypeError, match="must be a sequence of ints"):
        nn.Unflatten(1, 6)
    with pytest.raises(TypeError, match="`dim` must be an int"):
        nn.Unflatten("channels", (2, 3))
