"""Resemblyzer: voices compared by its shipped model: embeddings of whole and partial utterances."""

import numpy as np
from recording import record
from resemblyzer import VoiceEncoder
from resemblyzer.audio import normalize_volume, wav_to_mel_spectrogram

encoder = VoiceEncoder("cpu", verbose=False)
rate = 16000
time = np.arange(2 * rate) / rate
noise = np.random.default_rng(0).standard_normal(2 * rate)
voices = [sum(np.sin(2 * np.pi * f * k * time) / k for k in range(1, 9)) for f in (110, 190)]
voices = [normalize_volume((0.1 * v + 0.01 * noise).astype(np.float32), -30) for v in voices]
record("mel", wav_to_mel_spectrogram(voices[0]))
whole, partial, slices = encoder.embed_utterance(voices[0], return_partials=True)
record("embedding", whole, rtol=1e-2)
record("partials", partial, rtol=1e-2)
record("slices", str([(s.start, s.stop) for s in slices]))
record("speaker", encoder.embed_speaker(voices), rtol=1e-2)
