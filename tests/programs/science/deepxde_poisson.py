"""deepxde: Poisson's equation in one dimension by a network, 100 steps of Adam, then L-BFGS."""

import os

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde as dde
import numpy as np
import torch
from recording import fill, record

dde.config.set_random_seed(0)


def equation(x, y):
    """Return the residual of -y'' = pi^2 sin(pi x)."""
    return -dde.grad.hessian(y, x) - np.pi**2 * torch.sin(np.pi * x)


geometry = dde.geometry.Interval(-1, 1)
edge = dde.icbc.DirichletBC(geometry, lambda x: 0, lambda x, on: on)
data = dde.data.PDE(
    geometry,
    equation,
    edge,
    16,
    2,
    train_distribution="uniform",
    solution=lambda x: np.sin(np.pi * x),
    num_test=50,
)
net = dde.nn.FNN([1] + [16] * 2 + [1], "tanh", "Glorot uniform")
model = dde.Model(data, fill(net))
model.compile("adam", lr=1e-3, metrics=["l2 relative error"])
losses, _ = model.train(iterations=100, display_every=20, verbose=0)
record("losses", np.array(losses.loss_train), rtol=1e-2)
record("metrics", np.array(losses.metrics_test), rtol=1e-2)
dde.optimizers.set_LBFGS_options(maxiter=30)
model.compile("L-BFGS")
model.train(verbose=0)
record("solution", model.predict(np.linspace(-1, 1, 9)[:, None]), rtol=0.05, atol=0.02)
