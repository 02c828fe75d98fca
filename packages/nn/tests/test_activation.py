import math

import numpy as np
import pytest
from nn_reference import erf, log_softmax, sigmoid, softmax

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F

X = np.linspace(-8, 8, 33)

FORMULAS = [
    (nn.ReLU(), lambda x: np.maximum(x, 0)),
    (nn.LeakyReLU(0.1), lambda x: np.where(x > 0, x, 0.1 * x)),
    (nn.ELU(2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x))),
    (nn.CELU(2.0), lambda x: np.maximum(x, 0) + np.minimum(0, 2 * np.expm1(x / 2))),
    (
        nn.SELU(),
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    ),
    (nn.GELU(), lambda x: x * (1 + erf(x / np.sqrt(2))) / 2),
    (
        nn.GELU("tanh"),
        lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    ),
    (nn.SiLU(), lambda x: x * sigmoid(x)),
    (nn.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    (nn.Sigmoid(), sigmoid),
    (nn.Tanh(), np.tanh),
    (nn.LogSigmoid(), lambda x: -np.log1p(np.exp(-x))),
    (nn.Softplus(2.0, 4.0), lambda x: np.where(2 * x > 4, x, np.log1p(np.exp(2 * x)) / 2)),
    (nn.Softsign(), lambda x: x / (1 + np.abs(x))),
    (nn.Tanhshrink(), lambda x: x - np.tanh(x)),
    (nn.Hardtanh(-2.0, 1.0), lambda x: np.clip(x, -2, 1)),
    (nn.ReLU6(), lambda x: np.clip(x, 0, 6)),
    (nn.Hardswish(), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (nn.Hardsigmoid(), lambda x: np.clip(x + 3, 0, 6) / 6),
    (nn.PReLU(), lambda x: np.where(x > 0, x, 0.25 * x)),
]
NAMES = [repr(module) for module, _ in FORMULAS]


@pytest.mark.parametrize(("module", "formula"), FORMULAS, ids=NAMES)
def test_values(module, formula):
    module = module.double()
    result = module(pc.tensor(X)).detach().numpy()
    np.testing.assert_allclose(result, formula(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("module", "formula"), FORMULAS, ids=NAMES)
def test_gradients(module, formula):
    module = module.double()
    at = X + 0.01  # beside the corners
    x = pc.tensor(at).requires_grad_()
    module(x).sum().backward()
    step = 1e-6
    expected = (formula(at + step) - formula(at - step)) / (2 * step)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6, atol=1e-8)


IN_PLACE = [nn.ReLU, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.SiLU, nn.Mish, nn.Hardtanh]
IN_PLACE += [nn.ReLU6, nn.Hardswish, nn.Hardsigmoid]


@pytest.mark.parametrize("kind", IN_PLACE)
def test_in_place(kind):
    x = pc.tensor(X)
    expected = kind()(x).tolist()
    assert x.tolist() == X.tolist()
    result = kind(inplace=True)(x)
    assert result is x
    assert x.tolist() == expected


@pytest.mark.parametrize("kind", IN_PLACE)
def test_in_place_gradient(kind):
    grads = []
    for inplace in (False, True):
        x = pc.tensor(X).requires_grad_()
        (kind(inplace=inplace)(x * 1.5) ** 2).sum().backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-12)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_family(draw, dim):
    x = draw(3, 4, 5)
    t = pc.tensor(x)
    np.testing.assert_allclose(nn.Softmax(dim)(t).numpy(), softmax(x, dim), rtol=1e-12)
    np.testing.assert_allclose(nn.LogSoftmax(dim)(t).numpy(), log_softmax(x, dim), rtol=1e-9)
    np.testing.assert_allclose(nn.Softmin(dim)(t).numpy(), softmax(-x, dim), rtol=1e-12)


@pytest.mark.parametrize(
    ("shape", "dim"), [((4,), 0), ((3, 4), 1), ((2, 3, 4), 0), ((2, 3, 2, 2), 1)]
)
def test_softmax_without_dim_takes_the_implicit_one(draw, shape, dim):
    x = draw(*shape)
    t = pc.tensor(x)
    for function, expected in (
        (F.softmax, softmax(x, dim)),
        (F.log_softmax, log_softmax(x, dim)),
        (nn.Softmax(), softmax(x, dim)),
        (F.softmin, softmax(-x, dim)),
    ):
        with pytest.warns(
            UserWarning, match=rf"Implicit dimension choice for .*dimension {dim} of"
        ):
            values = function(t)
        np.testing.assert_allclose(values.numpy(), expected, rtol=1e-9)


def test_softmax_casts_first():
    assert F.softmax(pc.zeros(2), 0, dtype=pc.float64).dtype == pc.float64
    assert F.log_softmax(pc.zeros(2), 0, dtype=pc.float64).dtype == pc.float64


def test_softmax2d(draw):
    x = draw(2, 3, 4, 5)
    np.testing.assert_allclose(nn.Softmax2d()(pc.tensor(x)).numpy(), softmax(x, 1), rtol=1e-12)
    with pytest.raises(ValueError, match=r"Softmax2d: `input` must be .* got \(2, 3\)"):
        nn.Softmax2d()(pc.ones(2, 3))


def test_softmax_of_large_numbers_is_finite():
    assert F.softmax(pc.tensor([1000.0, 1000.0]), 0).tolist() == [0.5, 0.5]


def test_glu(draw):
    x = draw(3, 4)
    expected = x[:, :2] * sigmoid(x[:, 2:])
    np.testing.assert_allclose(nn.GLU()(pc.tensor(x)).numpy(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="glu: `dim` must have an even size; got 3 at dim 0"):
        nn.GLU(0)(pc.tensor(x))


def test_prelu_of_channels(draw):
    x = draw(2, 3, 4)
    layer = nn.PReLU(3, dtype=pc.float64)
    layer.weight.detach().copy_(pc.tensor([0.1, 0.2, 0.3]))
    w = np.array([0.1, 0.2, 0.3], np.float32).astype(np.float64)[:, None]
    result = layer(pc.tensor(x))
    np.testing.assert_allclose(result.detach().numpy(), np.where(x > 0, x, w * x), rtol=1e-12)
    result.sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.minimum(x, 0).sum((0, 2)))
    with pytest.raises(
        ValueError, match="`weight` must have one element, or one for each channel, 4"
    ):
        layer(pc.ones(1, 4, dtype=pc.float64))


def test_hardtanh_needs_an_interval():
    with pytest.raises(ValueError, match=r"`min_val` must be less than `max_val`; got 1.0 and 0.0"):
        nn.Hardtanh(1.0, 0.0)


def test_gelu_names_its_approximations():
    with pytest.raises(ValueError, match="approximate"):
        nn.GELU("fast")(pc.zeros(1))


def test_integers():
    x = pc.tensor([-3, 0, 2, 9])
    assert F.relu6(x).tolist() == [0, 0, 2, 6]
    assert F.hardtanh(x, -1.5, 2.5).tolist() == [-1, 0, 2, 2]
    assert F.softsign(x).tolist() == [-0.75, 0.0, pytest.approx(2 / 3), pytest.approx(0.9)]
    assert F.tanhshrink(x).dtype == pc.float32


def test_prelu_of_a_number_keeps_its_shape():
    assert F.prelu(pc.tensor(-2.0), pc.tensor([0.5])).tolist() == -1.0


def test_hardtanh_has_the_old_names_of_its_ends():
    x = pc.tensor([-3.0, 0.0, 3.0])
    assert nn.Hardtanh(min_value=-2, max_value=1)(x).tolist() == [-2, 0, 1]


def test_glu_of_a_number_is_refused():
    with pytest.raises(pc.ShapeError, match=r"glu: `input` must have a dimension"):
        F.glu(pc.tensor(1.0))


@pytest.mark.parametrize("bounds", [(math.nan, 1.0), (-1.0, math.nan), (math.nan, math.nan)])
def test_hardtanh_with_a_bound_that_is_nan_is_nan(bounds: tuple[float, float]) -> None:
    x = pc.tensor([-3.0, 0.0, 3.0])
    for result in (
        F.hardtanh(x, *bounds),
        F.hardtanh(x.clone(), *bounds, inplace=True),
        nn.Hardtanh(*bounds)(x),
    ):
        assert result.isnan().all()
