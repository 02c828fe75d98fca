"""asteroid: ConvTasNet and DPRNN in their small sizes, losses that find the order of sources."""

import torch
from asteroid.losses import PITLossWrapper, multisrc_neg_sisdr, pairwise_neg_sisdr
from asteroid.models import ConvTasNet, DPRNNTasNet
from recording import array, fill, record

mixture, sources = array(0, 2, 2000), array(1, 2, 2, 2000)
size = {"n_src": 2, "n_filters": 16, "kernel_size": 16, "stride": 8}
models = {
    "conv": ConvTasNet(**size, n_blocks=2, n_repeats=1, bn_chan=8, hid_chan=16, skip_chan=8),
    "dual": DPRNNTasNet(**size, n_repeats=1, bn_chan=8, hid_size=8, chunk_size=20),
}
pit = PITLossWrapper(pairwise_neg_sisdr, pit_from="pw_mtx")
for name, model in models.items():
    fill(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for _ in range(4):
        output = model(mixture)
        loss, order = pit(output, sources, return_est=True)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    record(f"{name} losses", losses, rtol=1e-2)
    record(f"{name} output", output, rtol=2e-2)
record("whole", multisrc_neg_sisdr(sources.flip(1), sources))
torch.save(models["conv"].state_dict(), "model.pth")
fill(models["conv"]).load_state_dict(torch.load("model.pth"))
record("again", models["conv"].separate(mixture[:1]), rtol=2e-2)
