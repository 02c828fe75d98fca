"""normflows: RealNVP, planar and spline flows, reverse KL against a given target, 10 steps."""

import normflows as nf
import torch
from recording import array, fill, record

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
target = nf.distributions.TwoMoons()
x = 0.5 * array(0, 32, 2, dtype=torch.float64)
mask = torch.tensor([1, 0])
couplings = []
for step in range(4):
    nets = [nf.nets.MLP([2, 16, 2], init_zeros=True) for _ in range(2)]
    couplings += [
        nf.flows.MaskedAffineFlow(mask if step % 2 else 1 - mask, *nets),
        nf.flows.ActNorm(2),
    ]
spline = [nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8), nf.flows.LULinearPermute(2)]
planar = [nf.flows.Planar((2,)), nf.flows.Radial((2,))]
for name, parts in (("affine", couplings), ("spline", spline)):
    model = nf.NormalizingFlow(nf.distributions.DiagGaussian(2), parts, target)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(10):
        loss = model.forward_kld(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    record(name, losses, rtol=2e-2)
    record(f"{name} density", model.log_prob(x), rtol=2e-2)
for part in planar:
    record(type(part).__name__, list(fill(part)(x)), rtol=1e-2)
record("target", target.log_prob(x))
torch.manual_seed(2)
record(
    "reverse",
    nf.NormalizingFlow(nf.distributions.DiagGaussian(2), couplings, target).reverse_kld(64),
    rtol=0.05,
)
