"""schnetpack: SchNet and PaiNN with forces of a molecule, neighbour lists, a few steps."""

import schnetpack as spk
import schnetpack.transform as trn
import torch
from ase.build import molecule
from recording import fill, record

converter = spk.interfaces.AtomsConverter(
    neighbor_list=trn.ASENeighborList(cutoff=5.0), dtype=torch.float32
)
inputs = converter([molecule("CH3OH"), molecule("H2O")])
record("neighbours", inputs["_idx_j"])
radial = spk.nn.GaussianRBF(n_rbf=10, cutoff=5.0)
cutoff = spk.nn.CosineCutoff(5.0)
for name, kind in (("schnet", spk.representation.SchNet), ("painn", spk.representation.PaiNN)):
    net = kind(n_atom_basis=16, n_interactions=2, radial_basis=radial, cutoff_fn=cutoff)
    model = spk.model.NeuralNetworkPotential(
        representation=net,
        input_modules=[spk.atomistic.PairwiseDistances()],
        output_modules=[spk.atomistic.Atomwise(16, output_key="energy"), spk.atomistic.Forces()],
    )
    fill(model)
    output = model(dict(inputs))
    record(f"{name} energy", output["energy"])
    record(f"{name} forces", output["forces"], rtol=5e-3)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for _ in range(5):
        output = model(dict(inputs))
        loss = output["energy"].square().mean() + output["forces"].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    record(f"{name} losses", losses, rtol=5e-3)
