import numpy as np
import pytest
from nn_reference import log_softmax, sigmoid

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F

REDUCE = {"mean": np.mean, "sum": np.sum, "none": lambda v: v}


def huber(d, delta):
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


POINTWISE = [
    (nn.MSELoss, {}, lambda x, y: (x - y) ** 2),
    (nn.L1Loss, {}, lambda x, y: np.abs(x - y)),
    (nn.SmoothL1Loss, {"beta": 0.5}, lambda x, y: huber(np.abs(x - y), 0.5) / 0.5),
    (nn.HuberLoss, {"delta": 0.5}, lambda x, y: huber(np.abs(x - y), 0.5)),
]


@pytest.mark.parametrize("reduction", REDUCE)
@pytest.mark.parametrize(("kind", "options", "formula"), POINTWISE)
def test_pointwise(draw, kind, options, formula, reduction):
    x, y = draw(3, 4), draw(3, 4)
    loss = kind(reduction=reduction, **options)(pc.tensor(x), pc.tensor(y))
    np.testing.assert_allclose(loss.numpy(), REDUCE[reduction](formula(x, y)), rtol=1e-12)


@pytest.mark.parametrize("reduction", REDUCE)
@pytest.mark.parametrize("weighted", [False, True])
def test_binary(draw, reduction, weighted):
    logits, y = draw(3, 4), (draw(3, 4) > 0).astype(float)
    w = np.abs(draw(3, 4)) if weighted else np.ones((3, 4))
    weight = pc.tensor(w) if weighted else None
    s = sigmoid(logits)
    expected = REDUCE[reduction](-w * (y * np.log(s) + (1 - y) * np.log1p(-s)))
    loss = nn.BCELoss(weight, reduction=reduction)(pc.tensor(s), pc.tensor(y))
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-9)
    loss = nn.BCEWithLogitsLoss(weight, reduction=reduction)(pc.tensor(logits), pc.tensor(y))
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-9)


def test_binary_with_pos_weight(draw):
    logits, y, p = draw(3, 4), (draw(3, 4) > 0).astype(float), np.abs(draw(4))
    s = sigmoid(logits)
    expected = np.mean(-(p * y * np.log(s) + (1 - y) * np.log1p(-s)))
    loss = nn.BCEWithLogitsLoss(pos_weight=pc.tensor(p))(pc.tensor(logits), pc.tensor(y))
    np.testing.assert_allclose(loss.item(), expected, rtol=1e-9)


def test_binary_at_the_ends():
    zero, one = pc.tensor([0.0]), pc.tensor([1.0])
    assert nn.BCELoss()(zero, one).item() == 100.0
    assert nn.BCELoss()(one, one).item() == 0.0
    assert nn.BCEWithLogitsLoss()(pc.tensor([1000.0]), zero).item() == 1000.0
    assert nn.BCEWithLogitsLoss()(pc.tensor([1000.0]), one).item() == 0.0


@pytest.mark.parametrize("loss", [nn.BCELoss(), nn.BCEWithLogitsLoss()])
def test_binary_needs_equal_shapes(loss):
    with pytest.raises(ValueError, match=r"`target` must have .* got \(2,\) and \(2, 1\)"):
        loss(pc.full((2, 1), 0.5), pc.ones(2))


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss()])
def test_a_broadcast_target_warns(loss):
    with pytest.warns(UserWarning, match=r"target size \(.*3.*different to the input size .*3, 1"):
        loss(pc.ones(3, 1), pc.ones(3))


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_the_warning_shows_the_callers_line(loss):
    with pytest.warns(UserWarning, match="loss broadcasts them") as caught:
        loss(pc.ones(3, 1), pc.ones(3))
    assert caught[0].filename == __file__


def cross_entropy(x, y, w, ignore, reduction):
    reference = y != ignore
    index = np.where(reference, y, 0)
    picked = np.take_along_axis(log_softmax(x, 1), np.expand_dims(index, 1), 1).squeeze(1)
    factor = w[index] * reference
    values = -factor * picked
    return values.sum() / factor.sum() if reduction == "mean" else REDUCE[reduction](values)


@pytest.mark.parametrize("reduction", REDUCE)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(6, 4), (2, 4, 3), (2, 4, 3, 2)])
def test_class_losses(draw, shape, weighted, reduction):
    x = draw(*shape)
    y = np.random.default_rng(1).integers(0, 4, (shape[0], *shape[2:]))
    y.reshape(-1)[0] = -100
    w = np.array([0.5, 1.0, 2.0, 3.0]) if weighted else np.ones(4)
    weight = pc.tensor(w) if weighted else None
    expected = cross_entropy(x, y, w, -100, reduction)
    loss = nn.CrossEntropyLoss(weight, reduction=reduction)(pc.tensor(x), pc.tensor(y))
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-9, atol=1e-12)
    log_probabilities = pc.tensor(log_softmax(x, 1))
    loss = nn.NLLLoss(weight, reduction=reduction)(log_probabilities, pc.tensor(y))
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-9, atol=1e-12)


def test_another_ignored_class(draw):
    x, y = draw(5, 3), np.array([0, 1, 2, 1, 0])
    expected = cross_entropy(x, y, np.ones(3), 1, "mean")
    loss = nn.CrossEntropyLoss(ignore_index=1)(pc.tensor(x), pc.tensor(y))
    np.testing.assert_allclose(loss.item(), expected, rtol=1e-9)


def test_label_smoothing_and_probabilities(draw):
    x, y = draw(5, 3), np.array([0, 1, 2, 1, 0])
    p = 0.7 * np.eye(3)[y] + 0.1
    expected = -(p * log_softmax(x, 1)).sum(1).mean()
    loss = nn.CrossEntropyLoss(label_smoothing=0.3)(pc.tensor(x), pc.tensor(y))
    np.testing.assert_allclose(loss.item(), expected, rtol=1e-9)
    loss = nn.CrossEntropyLoss()(pc.tensor(x), pc.tensor(p))
    np.testing.assert_allclose(loss.item(), expected, rtol=1e-9)


def test_one_sample(draw):
    x = draw(4)
    loss = F.cross_entropy(pc.tensor(x), pc.tensor(2))
    np.testing.assert_allclose(loss.item(), -log_softmax(x, 0)[2], rtol=1e-9)


def test_cross_entropy_gradient(draw):
    x = pc.tensor(draw(5, 3)).requires_grad_()
    y = np.array([0, 1, 2, 1, 0])
    nn.CrossEntropyLoss()(x, pc.tensor(y)).backward()
    expected = (np.exp(log_softmax(x.detach().numpy(), 1)) - np.eye(3)[y]) / 5
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-9)


def test_a_class_that_is_not_there():
    with pytest.raises(IndexError, match=r"(?i)target"):
        nn.CrossEntropyLoss()(pc.zeros(2, 3), pc.tensor([0, 3]))


def test_class_losses_name_the_shapes():
    with pytest.raises(ValueError, match=r"^cross_entropy.*\(4,\).*\(2, 3\)"):
        nn.CrossEntropyLoss()(pc.zeros(2, 3), pc.tensor([0, 1, 2, 0]))


def test_reductions_are_checked():
    with pytest.raises(
        ValueError, match="MSELoss: `reduction` must be mean, sum or none; got 'avg'"
    ):
        nn.MSELoss(reduction="avg")
    with pytest.raises(ValueError, match="reduction"):
        F.mse_loss(pc.zeros(1), pc.zeros(1), reduction="avg")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"size_average": False}, "sum"),
        ({"size_average": True}, "mean"),
        ({"reduce": False}, "none"),
        ({"reduce": True, "size_average": False}, "sum"),
    ],
)
def test_arguments_of_old_programs(old, new):
    with pytest.warns(UserWarning, match=f"reduction='{new}'"):
        assert nn.MSELoss(**old).reduction == new
    x, y = pc.tensor([1.0, 2.0]), pc.tensor([0.0, 0.0])
    with pytest.warns(UserWarning, match=f"reduction='{new}'"):
        loss = F.mse_loss(x, y, **old)
    assert loss.tolist() == F.mse_loss(x, y, reduction=new).tolist()


def test_class_weights_are_buffers():
    loss = nn.CrossEntropyLoss(pc.ones(3))
    assert list(loss.state_dict()) == ["weight"]
    assert loss.double().weight.dtype == pc.float64
    assert list(nn.CrossEntropyLoss().state_dict()) == []


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weights_of_elements(draw, name):
    x, y, w = draw(3, 4), draw(3, 4), np.abs(draw(3, 4))
    losses = {
        "mse_loss": (x - y) ** 2,
        "l1_loss": np.abs(x - y),
        "huber_loss": np.where(abs(x - y) <= 1, (x - y) ** 2 / 2, abs(x - y) - 0.5),
    }[name]
    a, b, weight = (pc.tensor(each) for each in (x, y, w))
    function = getattr(F, name)
    result = function(a, b, reduction="none", weight=weight)
    np.testing.assert_allclose(result.numpy(), losses * w, rtol=1e-12)
    total = (losses * w).sum()
    assert np.isclose(function(a, b, reduction="sum", weight=weight).item(), total)
    by = w.size if name == "huber_loss" else w.sum()  # as PyTorch has it
    assert np.isclose(function(a, b, weight=weight).item(), total / by)
    with pytest.raises(ValueError, match=rf"{name}: `weight` must have the shape .*\(4,\)"):
        function(a, b, weight=weight[0])
