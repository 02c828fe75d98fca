"""laplace-torch: Laplace's approximation of a trained regressor and classifier, its evidence."""

import torch
from laplace import Laplace
from recording import array, fill, record

x, y = array(0, 40, 3), array(1, 40, 1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 20)
model = fill(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(30):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
record("loss", loss)
for subset, structure in (
    ("all", "full"),
    ("all", "diag"),
    ("last_layer", "kron"),
    ("all", "kron"),
):
    la = Laplace(model, "regression", subset_of_weights=subset, hessian_structure=structure)
    la.fit(data)
    record(f"{subset} {structure} evidence", la.log_marginal_likelihood(), rtol=5e-3)
    mean, variance = la(x[:5])
    record(f"{subset} {structure} mean", mean, rtol=5e-3)
    record(f"{subset} {structure} variance", variance, rtol=1e-2)
    la.optimize_prior_precision(method="marglik", n_steps=5)
    record(f"{subset} {structure} prior", la.prior_precision, rtol=1e-2)
