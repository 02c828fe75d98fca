"""nnAudio: spectrograms as layers: STFT, mel, MFCC, CQT, gammatone, their inverse and gradients."""

import torch
from nnAudio import features
from recording import array, record

sound = 0.1 * array(0, 2, 8000).requires_grad_()
layers = {
    "stft": features.STFT(n_fft=512, hop_length=128, output_format="Magnitude", verbose=False),
    "mel": features.MelSpectrogram(sr=8000, n_fft=512, n_mels=32, hop_length=128, verbose=False),
    "mfcc": features.MFCC(sr=8000, n_mfcc=12, n_mels=32, n_fft=512, hop_length=128, verbose=False),
    "cqt": features.CQT2010v2(sr=8000, hop_length=128, n_bins=36, verbose=False),
    "vqt": features.VQT(sr=8000, hop_length=128, n_bins=36, verbose=False),
    "gammatone": features.Gammatonegram(
        sr=8000, n_fft=512, n_bins=24, hop_length=128, verbose=False
    ),
}
for name, layer in layers.items():
    record(name, layer(sound), rtol=5e-3)
trained = features.STFT(n_fft=128, hop_length=64, trainable=True, iSTFT=True, verbose=False)
output = trained(sound)
output[..., 0].square().sum().backward()
record("kernels", trained.wsin.grad.abs().sum(), rtol=5e-3)
record("inverse", trained.inverse(output, length=8000), rtol=1e-2)
torch.save(layers["mel"].state_dict(), "mel.pt")
