"""torchcrepe: pitch and periodicity of a tone by its shipped tiny model, filters, decoders."""

import numpy
import torch
import torchcrepe
from recording import array, record

rate = 16000
time = torch.arange(rate) / rate
sound = (0.6 * torch.sin(2 * torch.pi * 220 * time) + 0.02 * array(0, rate))[None]
for name, decoder in (("viterbi", torchcrepe.decode.viterbi), ("argmax", torchcrepe.decode.argmax)):
    numpy.random.seed(0)  # SciPy's generator: the pitches get noise of a width of 20 cents
    pitch, sure = torchcrepe.predict(
        sound,
        rate,
        160,
        50.0,
        550.0,
        "tiny",
        decoder=decoder,
        return_periodicity=True,
        batch_size=64,
        device="cpu",
        pad=True,
    )
    record(f"{name} periodicity", sure, rtol=1e-2)
    record(f"{name} pitch", pitch.median(), rtol=2e-2)
record("embedding", torchcrepe.embed(sound, rate, 800, "tiny", batch_size=16), rtol=1e-2)
record("median", torchcrepe.filter.median(sure, 3), rtol=1e-2)
record("mean", torchcrepe.filter.mean(sure, 5), rtol=1e-2)
record("loudness", torchcrepe.loudness.a_weighted(sound, rate, 160), rtol=1e-2)
record("cents", torchcrepe.convert.frequency_to_cents(torch.tensor([110.0, 440.0])))
