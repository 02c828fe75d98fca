"""mace-torch: a small potential of atoms: energy, forces, stress, 5 steps of training."""

import numpy as np
import torch
from e3nn import o3
from mace import data, modules, tools
from recording import array, fill, record

torch.set_default_dtype(torch.float64)
table = tools.AtomicNumberTable([1, 8])
model = modules.ScaleShiftMACE(
    r_max=4.0,
    num_bessel=4,
    num_polynomial_cutoff=5,
    max_ell=2,
    interaction_cls=modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
    interaction_cls_first=modules.interaction_classes["RealAgnosticInteractionBlock"],
    num_interactions=2,
    num_elements=2,
    hidden_irreps=o3.Irreps("8x0e + 8x1o"),
    MLP_irreps=o3.Irreps("8x0e"),
    gate=torch.nn.functional.silu,
    atomic_energies=np.array([-1.0, -3.0]),
    avg_num_neighbors=4,
    atomic_numbers=table.zs,
    correlation=2,
    radial_type="bessel",
    atomic_inter_scale=1.0,
    atomic_inter_shift=0.0,
)
fill(model)
places = array(0, 6, 3, dtype=torch.float64).numpy() * 1.5
config = data.Configuration(
    atomic_numbers=np.array([8, 1, 1, 8, 1, 1]),
    positions=places,
    properties={"energy": -8.0, "forces": np.ones((6, 3))},
    property_weights={},
    cell=np.eye(3) * 8,
    pbc=(True,) * 3,
)
atoms = data.AtomicData.from_config(config, z_table=table, cutoff=4.0)
loader = tools.torch_geometric.dataloader.DataLoader([atoms, atoms], batch_size=2)
batch = next(iter(loader))
output = model(batch.to_dict(), training=True, compute_stress=True)
for name in ("energy", "forces", "stress"):
    record(name, output[name], rtol=1e-4)
measure = modules.WeightedEnergyForcesLoss(energy_weight=1.0, forces_weight=10.0)
optimizer = torch.optim.Adam(model.parameters(), 1e-3, amsgrad=True)
losses = []
for _ in range(5):
    loss = measure(pred=model(batch.to_dict(), training=True), ref=batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
