"""botorch: a Gaussian process fitted with L-BFGS, acquisition functions and their optimum."""

import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    UpperConfidenceBound,
    qLogExpectedImprovement,
)
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood
from recording import array, record

x = array(0, 12, 2, dtype=torch.float64).sigmoid()
y = -(x - 0.4).square().sum(1, keepdim=True) + 0.01 * array(1, 12, 1, dtype=torch.float64)
model = SingleTaskGP(x, y, input_transform=Normalize(2), outcome_transform=Standardize(1))
mll = ExactMarginalLogLikelihood(model.likelihood, model)
fit_gpytorch_mll(mll)
record("fitted", dict(model.named_parameters()), rtol=2e-2, atol=2e-2)
points = array(2, 7, 2, dtype=torch.float64).sigmoid()
posterior = model.posterior(points)
record("mean", posterior.mean, rtol=1e-2)
record("variance", posterior.variance, rtol=5e-2)

bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
for name, acquisition in {
    "ei": LogExpectedImprovement(model, best_f=y.max()),
    "ucb": UpperConfidenceBound(model, beta=0.2),
}.items():
    record(f"{name} values", acquisition(points[:, None]), rtol=2e-2)
    best, value = optimize_acqf(
        acquisition,
        bounds=bounds,
        q=1,
        num_restarts=4,
        batch_initial_conditions=points[:4, None],
    )
    record(f"{name} best", best, rtol=2e-2, atol=1e-2)
    record(f"{name} value", value, rtol=2e-2)

sampler = SobolQMCNormalSampler(torch.Size([256]), seed=0)
several = qLogExpectedImprovement(model, best_f=y.max(), sampler=sampler)
record("several", several(points[None, :3]), rtol=0.3)
