"""zuko: neural spline, masked and continuous flows under a condition, trained and sampled."""

import torch
import zuko
from recording import array, fill, record

x, c = array(0, 32, 3), array(1, 32, 2)
kinds = {
    "maf": zuko.flows.MAF(3, 2, transforms=2, hidden_features=(16,)),
    "nsf": zuko.flows.NSF(3, 2, bins=4, transforms=2, hidden_features=(16,)),
    "nice": zuko.flows.NICE(3, 2, transforms=2, hidden_features=(16,)),
    "sospf": zuko.flows.SOSPF(3, 2, degree=2, polynomials=2, transforms=1, hidden_features=(16,)),
    "bpf": zuko.flows.BPF(3, 2, degree=4, transforms=1, hidden_features=(16,)),
    "cnf": zuko.flows.CNF(3, 2, hidden_features=(16,)),
}
for name, flow in kinds.items():
    fill(flow)
    optimizer = torch.optim.Adam(flow.parameters(), 5e-3)
    losses = []
    torch.manual_seed(0)
    for _ in range(6):
        loss = -flow(c).log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    record(f"{name} losses", losses, rtol=1e-2)
    torch.manual_seed(1)
    with torch.no_grad():
        samples = flow(c[0]).sample((64,))
    record(f"{name} samples", samples.mean(0), rtol=0.05, atol=0.05)
record("mixture", fill(zuko.mixtures.GMM(3, 2, components=3))(c).log_prob(x), rtol=1e-2)
