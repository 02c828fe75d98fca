"""Second derivatives of layers whose gradient does not depend on their input."""

import pytest

import plait_autograd as autograd
import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F

LAYERS = {
    **{
        f"{kind}_pool{n}d": (getattr(F, f"{kind}_pool{n}d"), n, 2)
        for kind in ("avg", "max", "adaptive_avg", "adaptive_max")
        for n in (1, 2, 3)
    },
    "lp_pool2d": (lambda x, size: F.lp_pool2d(x, 1, size), 2, 2),
    "reflect": (lambda x, size: F.pad(x, size, mode="reflect"), 2, (1, 1, 1, 1)),
    "replicate": (lambda x, size: F.pad(x, size, mode="replicate"), 2, (1, 1, 1, 1)),
    "area": (lambda x, size: F.interpolate(x, size, mode="area"), 2, (2, 3)),
    "nearest": (lambda x, size: F.interpolate(x, size), 2, (2, 3)),
    "bilinear": (lambda x, size: F.interpolate(x, size, mode="bilinear"), 2, (2, 3)),
    "nll_loss": (lambda x, size: F.nll_loss(x, pc.ones(size, dtype=pc.int64)), 2, (1, 4, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    layer, dims, size = LAYERS[name]
    x = pc.randn(1, 2, *(4,) * dims, dtype=pc.float64).requires_grad_()
    (g,) = autograd.grad(layer(x, size).sum(), x, create_graph=True)
    (h,) = autograd.grad(g.square().sum(), x)
    assert h.shape == x.shape and not h.any()


def test_the_grid_of_nearest_pixels():
    image = pc.randn(1, 1, 4, 4).requires_grad_()
    grid = pc.tensor([[[[0.1, 0.2], [float("nan"), 0.0]]]]).requires_grad_()
    y = F.grid_sample(image, grid, mode="nearest", align_corners=False)
    plain = F.grid_sample(image.detach(), grid.detach(), mode="nearest", align_corners=False)
    assert pc.equal(y.detach(), plain)
    of_image, of_grid = autograd.grad(y.sum(), [image, grid], create_graph=True)
    assert of_image.any() and not of_grid.any()
    for g in (of_image, of_grid):
        assert all(not h.any() for h in autograd.grad(g.sum(), [image, grid], retain_graph=True))


def test_a_gradient_penalty_of_a_network_with_pooling():
    convolution = nn.Conv2d(1, 2, 3)
    linear = nn.Linear(2, 1)
    x = pc.randn(3, 1, 6, 6).requires_grad_()
    y = linear(F.avg_pool2d(F.max_pool2d(convolution(x), 2), 2).flatten(1))
    (g,) = autograd.grad(y.sum(), x, create_graph=True)
    penalty = (g.flatten(1).norm(dim=1) - 1).square().mean()
    parameters = [*convolution.parameters(), *linear.parameters()]
    result = autograd.grad(penalty, [x, *parameters])
    assert [bool(each.any()) for each in result] == [False, True, False, True, False]
