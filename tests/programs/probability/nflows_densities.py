"""nflows: autoregressive and coupling flows with splines: densities, samples, 20 steps."""

import torch
from nflows import distributions, flows, nn, transforms
from recording import array, fill, record

torch.set_default_dtype(torch.float64)
x = array(0, 32, 4, dtype=torch.float64)
torch.manual_seed(0)
pairs = transforms.CompositeTransform(
    [
        transforms.ReversePermutation(4),
        transforms.MaskedAffineAutoregressiveTransform(4, 8),
        transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(4, 8, tails="linear"),
        transforms.LULinear(4),
        transforms.AffineCouplingTransform(
            torch.tensor([1, 0, 1, 0]), lambda i, o: nn.nets.ResidualNet(i, o, 8, num_blocks=1)
        ),
        transforms.BatchNorm(4),
    ]
)
flow = fill(flows.Flow(pairs, distributions.StandardNormal([4])))
optimizer = torch.optim.Adam(flow.parameters(), 5e-3)
losses = []
for _ in range(20):
    loss = -flow.log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=5e-3)
flow.eval()
record("noise", flow.transform_to_noise(x), rtol=2e-2)
torch.manual_seed(1)
record("samples", flow.sample(16).mean(), rtol=0.1, atol=0.1)
inverse, determinant = pairs.inverse(x)
record("inverse", inverse, rtol=2e-2)
record("determinant", determinant, rtol=2e-2)
