"""blitz-bayesian-pytorch: Bayesian layers, frozen and sampled, the ELBO of a small regressor."""

import torch
from blitz.losses import kl_divergence_from_nn
from blitz.modules import BayesianConv2d, BayesianGRU, BayesianLinear, BayesianLSTM
from blitz.utils import variational_estimator
from recording import array, fill, record


@variational_estimator
class Regressor(torch.nn.Module):
    """Two Bayesian layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = BayesianLinear(4, 8), BayesianLinear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the prediction."""
        return self.last(torch.relu(self.first(x)))


torch.manual_seed(0)
model = fill(Regressor())
x, y = array(0, 16, 4), array(1, 16, 1)
optimizer = torch.optim.Adam(model.parameters(), 0.01)
losses = []
for _ in range(10):
    loss = model.sample_elbo(x, y, torch.nn.MSELoss(), sample_nbr=3, complexity_cost_weight=0.01)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=1e-2)
record("divergence", kl_divergence_from_nn(model), rtol=1e-2)
model.freeze_()
record("frozen", model(x), rtol=1e-2)
model.unfreeze_()
for layer, size in ((BayesianLSTM(4, 6), (2, 5, 4)), (BayesianGRU(4, 6), (2, 5, 4))):
    fill(layer).freeze = True
    record(type(layer).__name__, layer(array(2, *size))[0], rtol=1e-2)
conv = fill(BayesianConv2d(3, 4, (3, 3)))
conv.freeze = True
record("convolution", conv(array(3, 2, 3, 8, 8)), rtol=1e-2)
