import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_dropout_zeroes_and_scales(p):
    values = nn.Dropout(p)(pc.ones(20000)).numpy()
    reference = values != 0
    np.testing.assert_allclose(values[reference], 1 / (1 - p), rtol=1e-6)
    assert 1 - reference.mean() == pytest.approx(p, abs=0.02)


def test_every_call_draws_anew_and_a_seed_repeats():
    layer, x = nn.Dropout(), pc.ones(100)
    first = layer(x).tolist()
    assert layer(x).tolist() != first
    pc.manual_seed(0)
    assert layer(x).tolist() == first


@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.Dropout2d(0.5)])
def test_evaluation_changes_nothing(layer):
    x = pc.randn(2, 3, 4, 4)
    assert layer.eval()(x).tolist() == x.tolist()
    layer.train()
    assert layer(x).tolist() != x.tolist()


def test_the_ends():
    x = pc.ones(10)
    assert F.dropout(x, 0.0).tolist() == [1.0] * 10
    assert F.dropout(x, 1.0).tolist() == [0.0] * 10
    for p in (-0.1, 1.5):
        with pytest.raises(ValueError, match=r"Dropout: `p` must be in \[0, 1\]; got"):
            nn.Dropout(p)
        with pytest.raises(ValueError, match=r"dropout: `p` must be in \[0, 1\]; got"):
            F.dropout(x, p)


def test_the_gradient_has_the_same_mask():
    x = pc.ones(100).requires_grad_()
    out = nn.Dropout()(x)
    out.sum().backward()
    assert x.grad.tolist() == out.tolist()


def test_in_place():
    for layer in (nn.Dropout(inplace=True), nn.Dropout2d(inplace=True)):
        x = pc.ones(1, 50, 2, 2)
        assert layer(x) is x
        assert set(x.flatten().tolist()) == {0.0, 2.0}


def test_dropout2d_zeroes_channels():
    values = nn.Dropout2d()(pc.ones(10, 200, 3, 3)).numpy().reshape(2000, 9)
    assert (values == values[:, :1]).all()
    assert (values[:, 0] == 0).mean() == pytest.approx(0.5, abs=0.05)
    with (
        pytest.warns(UserWarning, match=r"dropout2d: Received a 1-D .* `input` \(3,\)"),
        pytest.raises(ValueError, match=r"`input` must be \(N, C, H, W\), or \(N, C, \*\)"),
    ):
        F.dropout2d(pc.ones(3))


def test_dropout2d_takes_more_dimensions_than_it_names():
    with pytest.warns(UserWarning, match=r"is not \(N, C, H, W\)"):
        values = F.dropout2d(pc.ones(20, 30, 2, 2, 3)).numpy().reshape(600, 12)
    assert (values == values[:, :1]).all()
    assert {*values[:, 0].tolist()} == {0.0, 2.0}
    with pytest.warns(UserWarning, match=r"is not \(N, C, H, W\)"):
        values = F.dropout2d(pc.ones(3), training=False)
    assert values.tolist() == [1.0] * 3  # nothing to do


def test_dropout2d_reads_three_dimensions_as_channels_of_samples():
    with pytest.warns(UserWarning, match=r"is read as \(N, C, L\)"):
        values = F.dropout2d(pc.ones(200, 30, 4)).numpy().reshape(6000, 4)
    assert (values == values[:, :1]).all()
    assert (values[:, 0] == 0).mean() == pytest.approx(0.5, abs=0.05)
    with pytest.warns(UserWarning, match="a 2-D input to dropout2d"):
        values = F.dropout2d(pc.ones(50, 40)).numpy()
    assert (values == 0).mean() == pytest.approx(0.5, abs=0.1)


def test_features_of_any_shape_pass_while_nothing_is_dropped():
    x = pc.ones(5)
    assert F.feature_alpha_dropout(x, 0.5) is x
    assert F.feature_alpha_dropout(x, 0.0, training=True) is x
    with pytest.raises(ValueError, match=r"must be \(N, C, \*\); got \(5,\)"):
        F.feature_alpha_dropout(x, 0.5, training=True)
