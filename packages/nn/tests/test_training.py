"""Small models learn; needs the package for automatic differentiation."""

import numpy as np

import plait_core as pc
import plait_nn as nn


def descend(model, loss_of, steps, rate):
    losses = []
    for _ in range(steps):
        model.zero_grad()
        loss = loss_of(model)
        loss.backward()
        for parameter in model.parameters():
            parameter.detach().sub_(parameter.grad, alpha=rate)
        losses.append(loss.item())
    return losses


def test_a_network_learns_exclusive_or():
    x = pc.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = pc.tensor([0, 1, 1, 0])
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    losses = descend(model, lambda m: nn.functional.cross_entropy(m(x), y), 300, 0.5)
    assert losses[-1] < 0.05 < losses[0]
    assert model(x).argmax(1).tolist() == y.tolist()


def test_a_convolution_learns_where_the_line_is():
    generator = np.random.default_rng(0)
    images = generator.normal(0, 0.1, (64, 1, 6, 6)).astype(np.float32)
    labels = generator.integers(0, 2, 64)
    images[labels == 0, 0, 2] += 1
    images[labels == 1, 0, :, 2] += 1
    x, y = pc.tensor(images), pc.tensor(labels)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 2)
    )
    losses = descend(model, lambda m: nn.functional.cross_entropy(m(x), y), 60, 0.2)
    assert losses[-1] < 0.1 * losses[0]
    assert (model(x).argmax(1) == y).float().mean().item() > 0.95


def test_linear_regression_finds_the_line():
    generator = np.random.default_rng(0)
    a = generator.standard_normal((100, 3)).astype(np.float32)
    w = np.array([1.0, -2.0, 0.5], np.float32)
    x, y = pc.tensor(a), pc.tensor((a @ w + 3)[:, None])
    model = nn.Linear(3, 1)
    descend(model, lambda m: nn.functional.mse_loss(m(x), y), 200, 0.1)
    np.testing.assert_allclose(model.weight.detach().numpy()[0], w, atol=1e-3)
    np.testing.assert_allclose(model.bias.detach().numpy(), [3.0], atol=1e-3)


def test_a_shared_layer_adds_up_its_gradients():
    layer = nn.Linear(2, 2, bias=False)
    x = pc.ones(1, 2)
    nn.Sequential(layer, layer)(x).sum().backward()
    w = layer.weight.detach().numpy().astype(np.float64)
    hidden = w @ np.ones(2)
    expected = np.outer(np.ones(2), hidden) + np.outer(w.T @ np.ones(2), np.ones(2))
    np.testing.assert_allclose(layer.weight.grad.numpy(), expected, rtol=1e-5)
