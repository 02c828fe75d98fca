"""e3nn: spherical harmonics, tensor products, gates, and a convolution trained 20 steps."""

import torch
from e3nn import nn as enn, o3
from e3nn.math import soft_one_hot_linspace
from recording import array, fill, record

places = array(0, 10, 3)
record("harmonics", o3.spherical_harmonics([0, 1, 2], places, normalize=True))
angles = (torch.tensor(0.3), torch.tensor(0.5), torch.tensor(-0.2))
record("wigner", o3.wigner_D(2, *angles))
record("symbols", o3.wigner_3j(1, 2, 1))
record("rotation", o3.angles_to_matrix(*angles))
record("simplified", str(o3.Irreps("2x0e+1x1o+1x0e").sort().irreps.simplify()))

irreps = o3.Irreps("4x0e + 2x1o")
linear = fill(o3.Linear(irreps, irreps))
record("linear", linear(array(1, 5, irreps.dim)))
product = fill(o3.FullyConnectedTensorProduct(irreps, "1x0e+1x1o", irreps))
features, direction = array(2, 5, irreps.dim), array(3, 5, 4)
record("product", product(features, direction))
turn = irreps.D_from_matrix(o3.angles_to_matrix(*angles))
side = o3.Irreps("1x0e+1x1o").D_from_matrix(o3.angles_to_matrix(*angles))
turned = product(features @ turn.T, direction @ side.T)
record("equivariant", torch.allclose(turned, product(features, direction) @ turn.T, atol=1e-4))
gate = enn.Gate("4x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
record("gate", gate(array(4, 5, gate.irreps_in.dim)))
record("norm", enn.BatchNorm(irreps)(features))

source, target = torch.arange(10).repeat(2), (torch.arange(20) * 3 + 1) % 10
vectors = places[target] - places[source]
harmonics = o3.spherical_harmonics("1x0e+1x1o", vectors, normalize=True)
radial = soft_one_hot_linspace(vectors.norm(dim=1), 0.0, 4.0, 6, "smooth_finite", cutoff=True)
conv = o3.FullyConnectedTensorProduct("3x0e", "1x0e+1x1o", "2x0e+1x1o", shared_weights=False)
net = fill(enn.FullyConnectedNet([6, 16, conv.weight_numel], torch.relu))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    message = conv(array(5, 10, 3)[source], harmonics, net(radial))
    out = torch.zeros(10, message.shape[1]).index_add(0, target, message)
    loss = (out.square().sum(1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
record("trained", net.state_dict())
