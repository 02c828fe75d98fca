"""torchaudio: spectrograms, mel scales, MFCC, filters, resampling, and gradients through them."""

import torch
import torchaudio.functional as F
import torchaudio.transforms as T
from recording import array, record

wave = array(0, 2, 4000) * 0.1
window = torch.hann_window(256)
record("spectrogram", F.spectrogram(wave, 0, window, 256, 128, 256, 2.0, False))
record("mel", T.MelSpectrogram(8000, n_fft=256, n_mels=20)(wave))
record("decibels", T.AmplitudeToDB()(T.MelSpectrogram(8000, n_fft=256, n_mels=20)(wave)))
record("mfcc", T.MFCC(8000, 13, melkwargs={"n_fft": 256, "n_mels": 20})(wave), rtol=5e-3)
record("mel matrix", F.melscale_fbanks(129, 0.0, 4000.0, 20, 8000))
record("dct", F.create_dct(13, 20, "ortho"))
record("resample", F.resample(wave, 8000, 6000))
record("deltas", F.compute_deltas(array(1, 1, 4, 30)))
record("mu law", F.mu_law_encoding(wave, 256))
record("decoded", F.mu_law_decoding(F.mu_law_encoding(wave, 256), 256))
record("convolve", F.convolve(wave[:, :200], array(2, 2, 30)))
record("preemphasis", F.preemphasis(wave))
record("gain", F.gain(wave, 3.0))
record("loudness", F.loudness(array(3, 1, 16000) * 0.1, 16000))
record("low pass", F.lowpass_biquad(wave, 8000, 1000.0))
record("lfilter", F.lfilter(wave, torch.tensor([1.0, -0.5]), torch.tensor([0.3, 0.2])))
record("stretch", T.TimeStretch(n_freq=129)(torch.stft(wave, 256, return_complex=True), 1.2).abs())
record("griffin", T.GriffinLim(n_fft=256, rand_init=False)(T.Spectrogram(256)(wave)), rtol=2e-2)
record("masked", T.SpecAugment(0, 1, 0, 1)(array(4, 1, 20, 30)))

leaf = wave.clone().requires_grad_()
T.MelSpectrogram(8000, n_fft=256, n_mels=20)(leaf).log1p().sum().backward()
record("gradient", leaf.grad)
record("emphasis", F.deemphasis(F.preemphasis(wave)), atol=1e-4)
