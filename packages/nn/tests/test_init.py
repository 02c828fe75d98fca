import math

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn import init


def drawn(function, *shape, **options):
    tensor = pc.empty(*shape)
    assert function(tensor, **options) is tensor
    return tensor.numpy()


def test_constants():
    assert drawn(init.constant_, 2, val=3.0).tolist() == [3.0, 3.0]
    assert drawn(init.ones_, 2).tolist() == [1.0, 1.0]
    assert drawn(init.zeros_, 2).tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(drawn(init.eye_, 3, 2), np.eye(3, 2))
    with pytest.raises(ValueError, match=r"eye_: `tensor` must have 2 dimensions; got \(2,\)"):
        init.eye_(pc.empty(2))


def test_dirac_keeps_the_image(draw):
    weight = init.dirac_(pc.empty(3, 3, 3, 5, dtype=pc.float64))
    x = draw(1, 3, 6, 7)
    result = nn.functional.conv2d(pc.tensor(x), weight, padding=(1, 2))
    np.testing.assert_array_equal(result.numpy(), x)
    grouped = init.dirac_(pc.empty(4, 2, 3), groups=2).numpy()
    assert grouped[:, :, 1].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    with pytest.raises(ValueError, match="`groups` must divide dim 0"):
        init.dirac_(pc.empty(3, 3, 3), groups=2)
    with pytest.raises(ValueError, match="3 to 5 dimensions"):
        init.dirac_(pc.empty(3, 3))


def test_uniform_and_normal():
    values = drawn(init.uniform_, 100, 200, a=-1.0, b=3.0)
    assert values.min() >= -1 and values.max() < 3
    assert values.mean() == pytest.approx(1, abs=0.05)
    assert values.std() == pytest.approx(4 / math.sqrt(12), rel=0.02)
    values = drawn(init.normal_, 100, 200, mean=2.0, std=0.5)
    assert values.mean() == pytest.approx(2, abs=0.02)
    assert values.std() == pytest.approx(0.5, rel=0.02)


SCALES = [
    (init.xavier_uniform_, {"gain": 2.0}, 2 * math.sqrt(2 / 300)),
    (init.xavier_normal_, {}, math.sqrt(2 / 300)),
    (init.kaiming_uniform_, {}, math.sqrt(2 / 200)),
    (init.kaiming_uniform_, {"a": math.sqrt(5)}, math.sqrt(1 / 3 / 200)),
    (init.kaiming_normal_, {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(2 / 100)),
    (init.kaiming_normal_, {"nonlinearity": "linear"}, math.sqrt(1 / 200)),
]


@pytest.mark.parametrize(("function", "options", "std"), SCALES)
def test_scaled(function, options, std):
    values = drawn(function, 100, 200, **options)
    assert abs(values.mean()) < 0.03 * std
    assert values.std() == pytest.approx(std, rel=0.03)
    if "uniform" in function.__name__:
        assert np.abs(values).max() <= std * math.sqrt(3) * (1 + 1e-6)


def test_fans():
    assert init._calculate_fan_in_and_fan_out(pc.empty(3, 5)) == (5, 3)
    assert init._calculate_fan_in_and_fan_out(pc.empty(3, 5, 2, 4)) == (40, 24)
    with pytest.raises(ValueError, match=r"at least 2 dimensions; got shape \(3,\)"):
        init.xavier_uniform_(pc.empty(3))
    with pytest.raises(ValueError, match="`mode` must be fan_in or fan_out; got 'fan'"):
        init.kaiming_normal_(pc.empty(3, 3), mode="fan")
    for initialize in (init.kaiming_uniform_, init.kaiming_normal_):
        with pytest.warns(UserWarning, match=r"zero-element tensors is a no-op: .* \(0, 3\)"):
            assert initialize(pc.empty(0, 3)).shape == (0, 3)


def test_gains():
    assert init.calculate_gain("linear") == init.calculate_gain("conv2d") == 1
    assert init.calculate_gain("sigmoid") == 1
    assert init.calculate_gain("tanh") == pytest.approx(5 / 3)
    assert init.calculate_gain("relu") == pytest.approx(math.sqrt(2))
    assert init.calculate_gain("leaky_relu", 1) == pytest.approx(1)
    assert init.calculate_gain("selu") == 0.75
    with pytest.raises(ValueError, match="unsupported nonlinearity 'cube'"):
        init.calculate_gain("cube")
    with pytest.raises(ValueError, match="is not a number"):
        init.calculate_gain("leaky_relu", "steep")


def phi(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [
        (0.0, 1.0, -2.0, 2.0),
        (1.0, 0.5, 1.2, 1.4),
        (0.0, 1.0, 4.0, 100.0),
        (0.0, 0.02, -2.0, 2.0),
        (0.0, 1.0, -3.0, 0.5),
        (0.0, 1.0, 0.0, 1.0),
        (5.0, 2.0, -np.inf, 1.0),
        (0.0, 1.0, -np.inf, np.inf),
    ],
)
def test_truncated_normal(mean, std, a, b):
    values = drawn(init.trunc_normal_, 20000, mean=mean, std=std, a=a, b=b)
    assert values.min() >= np.float32(a) and values.max() <= np.float32(b)
    low, high = (a - mean) / std, (b - mean) / std
    for q in (0.1, 0.5, 0.9):  # the share below the q-quantile of the exact distribution
        lo, hi = max(low, -50.0), min(high, 50.0)
        mass = phi(-low) - phi(-high)
        for _ in range(80):
            mid = (lo + hi) / 2
            lo, hi = (mid, hi) if (phi(-low) - phi(-mid)) / mass < q else (lo, mid)
        assert (values < mean + std * lo).mean() == pytest.approx(q, abs=0.02)


@pytest.mark.parametrize("low", [25.0, 35.0, 50.0])
def test_truncated_normal_far_from_the_mean(low):
    # there the distribution is nearly an exponential one: x - low has the mean 1/low - 2/low^3
    values = pc.empty(100_000, dtype=pc.float64)
    for a, b in ((low, np.inf), (-np.inf, -low), (low, 2 * low)):
        init.trunc_normal_(values, a=a, b=b)
        beyond = values.abs() - low
        assert beyond.isfinite().all() and beyond.min() >= 0
        assert beyond.mean().item() == pytest.approx(1 / low - 2 / low**3, rel=0.02)


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16])
def test_truncated_normal_of_halves(dtype):
    values = init.trunc_normal_(pc.empty(20_000, dtype=dtype)).float()
    assert values.abs().max() <= 2
    assert values.std().item() == pytest.approx(0.88, abs=0.02)


def test_truncated_normal_needs_an_interval():
    with pytest.raises(ValueError, match=r"`a` must be less than `b`; got 2.0 and 1.0"):
        init.trunc_normal_(pc.empty(2), a=2.0, b=1.0)
    with pytest.raises(ValueError, match=r"`std` must be positive; got 0.0"):
        init.trunc_normal_(pc.empty(2), std=0.0)


@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3), (4, 2, 3, 3), (1, 4)])
def test_orthogonal(shape):
    values = drawn(init.orthogonal_, *shape, gain=2.0).reshape(shape[0], -1)
    short = min(values.shape)
    product = values @ values.T if values.shape[0] == short else values.T @ values
    np.testing.assert_allclose(product, 4 * np.eye(short), atol=1e-5)


def test_orthogonal_is_no_fixed_matrix():
    signs = [drawn(init.orthogonal_, 2, 2)[0, 0] > 0 for _ in range(40)]
    assert 5 < sum(signs) < 35
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        init.orthogonal_(pc.empty(3))


RANDOM = [init.uniform_, init.normal_, init.trunc_normal_, init.orthogonal_]
RANDOM += [init.xavier_uniform_, init.xavier_normal_, init.kaiming_uniform_, init.kaiming_normal_]


@pytest.mark.parametrize("function", RANDOM)
def test_a_generator_repeats(function):
    results = [
        drawn(function, 4, 5, generator=pc.Generator().manual_seed(7)).tolist() for _ in range(2)
    ]
    assert results[0] == results[1]


def test_parameters_are_written_in_place_unseen_by_autograd():
    layer = nn.Linear(4, 4)
    for function in (*RANDOM, init.zeros_, init.eye_):
        assert function(layer.weight) is layer.weight
        assert layer.weight.requires_grad and layer.weight.is_leaf
    init.dirac_(nn.Conv2d(2, 2, 3).weight)
    layer(pc.ones(1, 4)).sum().backward()
    assert layer.weight.grad is not None


def test_views_are_written_through():
    base = pc.zeros(4, 4)
    init.ones_(base.narrow(0, 1, 2))
    assert base.sum(1).tolist() == [0.0, 4.0, 4.0, 0.0]
