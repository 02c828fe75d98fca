"""silero-vad: speech found by its shipped ONNX model: probabilities, and where it begins."""

import torch
from recording import array, record
from silero_vad import get_speech_timestamps, load_silero_vad
from silero_vad.utils_vad import VADIterator, collect_chunks

model = load_silero_vad(onnx=True)
rate = 16000
time = torch.arange(3 * rate) / rate
voice = sum(torch.sin(2 * torch.pi * 140 * k * time) / k for k in range(1, 20))
sound = 0.3 * voice * (torch.sin(2 * torch.pi * 3 * time) > 0) * ((time > 1) & (time < 2))
sound = sound + 0.001 * array(0, 3 * rate)
record("probabilities", model.audio_forward(sound, sr=rate), rtol=1e-2)
stamps = get_speech_timestamps(sound, model, threshold=0.2)
record("number", len(stamps))
record("stamps", str(stamps))
record("chunks", collect_chunks([{"start": 100, "end": 900}], sound))
iterator = VADIterator(model, threshold=0.2)
record("iterated", str([iterator(chunk) for chunk in sound.split(512)[:-1]]))
