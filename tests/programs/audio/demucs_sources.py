"""demucs: HDemucs and the hybrid transformer in small sizes, applied in overlapping parts."""

import torch
from demucs.apply import apply_model
from demucs.hdemucs import HDemucs
from demucs.htdemucs import HTDemucs
from recording import array, fill, record

sound = 0.1 * array(0, 1, 2, 44100)
size = {"channels": 8, "nfft": 1024, "depth": 4}
models = {
    "hybrid": HDemucs(["drums", "voice"], **size, hybrid_old=False, multi_freqs=[]),
    "transformer": HTDemucs(["drums", "voice"], **size, t_layers=1, t_heads=2, segment=1),
}
for name, model in models.items():
    fill(model).eval()
    output = model(sound)
    record(name, output, rtol=2e-2)
    loss = output.abs().mean()
    loss.backward()
    record(f"{name} gradient", model.encoder[0].conv.weight.grad, rtol=5e-2)
    with torch.no_grad():
        parts = apply_model(
            model, sound[..., :30000], shifts=0, split=True, overlap=0.25, segment=0.5
        )
    record(f"{name} applied", parts, rtol=2e-2)
