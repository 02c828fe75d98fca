"""Speech-like frames to letters: spectrograms, convolutions in time, the CTC loss, decoding."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.default_rng(0)
letters, blank, rate, n_fft = 4, 0, 1600, 64
frequencies = [0, 100, 250, 400, 600]


def utterance():
    words = rng.integers(1, letters + 1, int(rng.integers(2, 5)))
    t = np.arange(240) / rate
    wave = np.concatenate([np.sin(2 * np.pi * frequencies[w] * t) for w in words])
    return torch.from_numpy((wave + rng.normal(0, 0.1, wave.shape)).astype(np.float32)), words


def features(wave):
    window = torch.hann_window(n_fft)
    spec = torch.stft(wave, n_fft, hop_length=32, window=window, return_complex=True)
    return torch.log1p(spec.abs().pow(2)).t()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(n_fft // 2 + 1, 16, 5, stride=2, padding=2),
            nn.BatchNorm1d(16),
            nn.Hardtanh(0, 20, inplace=True),
        )
        self.rnn = nn.LSTM(16, 12, bidirectional=True)
        self.fc = nn.Linear(24, letters + 1)

    def forward(self, x):
        x = self.conv(x.transpose(1, 2)).permute(2, 0, 1)
        out, _ = self.rnn(x)
        return F.log_softmax(self.fc(out), dim=-1)


pairs = [utterance() for _ in range(16)]
frames = [features(w) for w, _ in pairs]
print(tuple(frames[0].shape), f"{frames[0].mean().item():.4f}")
batch = nn.utils.rnn.pad_sequence(frames, batch_first=True)
input_lengths = torch.tensor([(len(f) + 1) // 2 for f in frames])
targets = torch.cat([torch.from_numpy(w) for _, w in pairs])
target_lengths = torch.tensor([len(w) for _, w in pairs])
model = Model()
for p in model.parameters():
    if p.dim() > 1:
        p.data = torch.from_numpy(rng.normal(0, 0.2, tuple(p.shape))).float()
    elif p is not model.conv[1].weight:
        p.data.zero_()
criterion = nn.CTCLoss(blank=blank, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(40):
    log_probs = model(batch)
    loss = criterion(log_probs, targets, input_lengths, target_lengths)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    if step in (0, 5, 10):
        print(f"{step} {loss.item():.3f}")
best = model(batch).argmax(-1).t()
right = 0
for i, (_, words) in enumerate(pairs):
    path = torch.unique_consecutive(best[i, : input_lengths[i]])
    right += path[path != blank].tolist() == words.tolist()
print("# right", right, "of", len(pairs), loss.item())
assert loss.item() < 1.0
