import math

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


def test_shrinking_and_thresholds():
    x = pc.tensor([-1.0, -0.25, 0.25, 2.0])
    assert F.hardshrink(x).tolist() == [-1.0, 0.0, 0.0, 2.0]
    assert F.softshrink(x).tolist() == [-0.5, 0.0, 0.0, 1.5]
    assert F.threshold(x, 0.0, 9.0).tolist() == [9.0, 9.0, 0.25, 2.0]
    with pytest.raises(ValueError, match="softshrink: `lambd` must not be negative; got -1"):
        F.softshrink(x, -1.0)


@pytest.mark.parametrize(
    "function", [F.elu_, F.celu_, F.selu_, F.leaky_relu_, F.hardtanh_, F.rrelu_]
)
def test_underscores_write_into_their_input_and_have_the_gradient(draw, function):
    plain = getattr(F, function.__name__[:-1])
    x, y = (pc.tensor(draw(5)).requires_grad_() for _ in range(2))
    y.detach().copy_(x.detach())
    copy = x * 1
    assert function(copy) is copy
    copy.sum().backward()
    plain(y).sum().backward()
    assert pc.equal(copy.detach(), plain(y.detach())) and pc.equal(x.grad, y.grad)


def test_random_slopes():
    x = -pc.ones(1000)
    slopes = -nn.RReLU(0.25, 0.5)(x)
    assert 0.25 <= slopes.min().item() < 0.3 and 0.45 < slopes.max().item() <= 0.5
    assert nn.RReLU(0.25, 0.5).eval()(x).unique().tolist() == [-0.375]


def test_gumbel_softmax():
    drawn = F.gumbel_softmax(pc.tensor([0.0, math.log(3.0)]).expand((4000, 2)), hard=True)
    assert set(drawn.flatten().tolist()) == {0.0, 1.0}
    assert abs(drawn[:, 1].mean().item() - 0.75) < 0.05
    x = pc.zeros(3, requires_grad=True)
    (F.gumbel_softmax(x, tau=0.5, hard=True) * pc.arange(3.0)).sum().backward()
    assert abs(x.grad.sum().item()) < 1e-6 and x.grad.abs().sum().item() > 0


def test_margins(draw):
    x, y = draw(4, 3), np.array([0, 2, 1, 1])
    right = x[np.arange(4), y][:, None]
    values = np.maximum(0, 0.5 - right + x)
    values[np.arange(4), y] = 0
    loss = nn.MultiMarginLoss(margin=0.5, reduction="none")(pc.tensor(x), pc.tensor(y))
    np.testing.assert_allclose(loss.numpy(), values.sum(1) / 3, atol=1e-12)
    a, p, n = draw(4, 3), draw(4, 3), draw(4, 3)
    near = np.linalg.norm(a - p + 1e-6, axis=1)
    far = np.linalg.norm(a - n + 1e-6, axis=1)
    loss = nn.TripletMarginLoss(reduction="none")(*map(pc.tensor, (a, p, n)))
    np.testing.assert_allclose(loss.numpy(), np.maximum(0, near - far + 1), atol=1e-12)


def test_soft_margin_does_not_overflow():
    assert F.soft_margin_loss(pc.tensor([1e4]), pc.tensor([-1.0])).item() == 1e4


def test_the_error_of_divergence_names_the_mean():
    x, y = pc.tensor([[0.5, 0.5]]).log(), pc.tensor([[1.0, 0.0]])
    with pytest.warns(UserWarning, match="batchmean"):
        assert abs(nn.KLDivLoss()(x, y).item() - math.log(2) / 2) < 1e-6
    with pytest.raises(ValueError, match="KLDivLoss: `reduction` must be batchmean, mean, sum or"):
        nn.KLDivLoss(reduction="all")


def paths(log_probs, target):
    """The likelihood of a target, by trying every path."""
    steps, classes = log_probs.shape
    total = 0.0
    for path in np.ndindex(*(classes,) * steps):
        merged = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
        if [c for c in merged if c != 0] == target:
            total += np.exp(sum(log_probs[t, c] for t, c in enumerate(path)))
    return -np.log(total)


def test_the_gradient_of_ctc_keeps_the_sum_of_the_probabilities(draw):
    logits, targets = pc.tensor(draw(5, 2, 4)), pc.tensor([[1, 2], [3, 0]])
    x = logits.log_softmax(2).requires_grad_()
    before = logits.clone().requires_grad_()
    for scores in (x, before.log_softmax(2)):
        F.ctc_loss(scores, targets, [5, 4], [2, 1], reduction="sum").backward()
    np.testing.assert_allclose(x.grad.numpy(), before.grad.numpy(), atol=1e-12)
    assert x.grad[4, 1].tolist() == [0.0] * 4
    # numbers whose exponential is infinite have a loss, too
    assert math.isfinite(F.ctc_loss(logits + 1e3, targets, [5, 4], [2, 1]).item())


@pytest.mark.parametrize("target", [[1, 2], [1, 1], [2], []])
def test_ctc_sums_over_all_paths(draw, target):
    x = pc.tensor(draw(4, 3)).log_softmax(1)
    loss = F.ctc_loss(x, pc.tensor(target, dtype=pc.int64), 4, len(target), reduction="none")
    np.testing.assert_allclose(loss.item(), paths(x.numpy(), target), rtol=1e-9)


def test_ctc_of_impossible_targets():
    x = pc.zeros(2, 1, 3).requires_grad_()
    loss = nn.CTCLoss()(x, pc.tensor([[1, 1]]), [2], [2])
    assert loss.item() == math.inf
    nn.CTCLoss(zero_infinity=True)(x, pc.tensor([[1, 1]]), [2], [2]).backward()
    assert x.grad.abs().sum().item() == 0.0


def test_errors_name_the_shapes():
    x = pc.ones(2, 3)
    with pytest.raises(ValueError, match=r"multi_margin_loss: .* \(2, 3\) and \(3,\)"):
        F.multi_margin_loss(x, pc.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="multi_margin_loss: `p` must be 1 or 2; got 3"):
        F.multi_margin_loss(x, pc.tensor([0, 1]), p=3)
    with pytest.raises(ValueError, match=r"multilabel_margin_loss: .*\(2, 3\) and \(2,\)"):
        F.multilabel_margin_loss(x, pc.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"cosine_embedding_loss: .*\(2, 3\), \(2, 3\) and \(\)"):
        F.cosine_embedding_loss(x, x, pc.tensor(1))
    with pytest.raises(ValueError, match="gaussian_nll_loss: `var` must not be negative"):
        F.gaussian_nll_loss(x, x, -x)
    with pytest.raises(ValueError, match=r"gaussian_nll_loss: .*\(2, 3\).* got \(3,\)"):
        F.gaussian_nll_loss(x, x, pc.ones(3))
    with pytest.raises(ValueError, match=r"triplet_margin_loss: .*\(2, 3\), \(2, 3\) and \(3,\)"):
        F.triplet_margin_loss(x, x, pc.ones(3))
    with pytest.raises(ValueError, match="ctc_loss: `targets` must be in"):
        F.ctc_loss(pc.zeros(2, 1, 3), pc.tensor([[7]]), [2], [1])
    with pytest.raises(ValueError, match="ctc_loss: `input_lengths` must not exceed the 2 steps"):
        F.ctc_loss(pc.zeros(2, 1, 3), pc.tensor([[1]]), [3], [1])
    with pytest.raises(ValueError, match="ctc_loss: `target_lengths` must hold 1 lengths"):
        F.ctc_loss(pc.zeros(2, 1, 3), pc.tensor([[1]]), [2], [1, 1])


@pytest.mark.parametrize("number", [3, -1])
def test_classes_that_are_not_there(number):
    with pytest.raises(IndexError, match=rf"multi_margin_loss: .* in \[0, 3\); got {number}"):
        F.multi_margin_loss(pc.ones(2, 3), pc.tensor([0, number]))
    if number > 0:
        with pytest.raises(IndexError, match=r"multilabel_margin_loss: .* got 3"):
            F.multilabel_margin_loss(pc.ones(1, 3), pc.tensor([[0, number, -1]]))


def test_a_single_score_has_one_class():
    assert F.multi_margin_loss(pc.tensor(0.3), pc.tensor(0)).item() == 0.0
    assert F.multilabel_margin_loss(pc.tensor(0.3), pc.tensor(-1)).item() == 0.0
    with pytest.raises(IndexError, match=r"classes in \[0, 1\); got 1"):
        F.multi_margin_loss(pc.tensor(0.3), pc.tensor(1))
