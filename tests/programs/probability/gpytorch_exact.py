"""gpytorch: an exact Gaussian process trained 20 steps, its predictions, and a variational one."""

import gpytorch
import torch
from recording import array, record

torch.set_default_dtype(torch.float64)
x = torch.linspace(0, 1, 30)
y = torch.sin(x * 6) + 0.1 * array(0, 30, dtype=torch.float64)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

    def forward(self, points):
        return gpytorch.distributions.MultivariateNormal(self.mean(points), self.kernel(points))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, inducing):
        inside = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, inside))
        self.mean = gpytorch.means.ZeroMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, points):
        return gpytorch.distributions.MultivariateNormal(self.mean(points), self.kernel(points))


def train(model, likelihood, objective):
    model.train()
    likelihood.train()
    parameters = {id(p): p for m in (model, likelihood) for p in m.parameters()}
    optimizer = torch.optim.Adam(parameters.values(), lr=0.1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    return losses


points = torch.linspace(0, 1.2, 13)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
exact = Exact(likelihood)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, exact)
record("losses", train(exact, likelihood, objective))
record("trained", exact.state_dict())
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    predicted = likelihood(exact(points))
record("mean", predicted.mean)
record("variance", predicted.variance)
record("lower", predicted.confidence_region()[0])
record("fantasy", exact.get_fantasy_model(points[-2:], torch.zeros(2))(points).mean)

likelihood = gpytorch.likelihoods.GaussianLikelihood()
variational = Variational(x[::4].clone())
variational.variational_strategy.variational_params_initialized.fill_(1)
objective = gpytorch.mlls.VariationalELBO(likelihood, variational, num_data=len(x))
record("variational losses", train(variational, likelihood, objective))
record("variational mean", variational(points).mean)
