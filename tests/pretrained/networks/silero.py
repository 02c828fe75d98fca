"""Silero's voice activity detector: the probability of speech in 32 ms of sound at 16 kHz."""

import plait
from plait import Tensor, nn
from plait.nn import functional as F

WINDOW = 512  # samples a step, in front of which the last 64 of the step before stand
CONTEXT = 64


class Silero(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        x = F.pad(x.unsqueeze(1), (0, 64), mode="reflect")
        real, imaginary = self.stft_conv(x).chunk(2, 1)
        x = (real**2 + imaginary**2).sqrt()
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = layer(x).relu()
        state = self.lstm_cell(x.squeeze(-1), state)
        x = self.final_conv(state[0].relu().unsqueeze(-1)).sigmoid()
        return x.flatten(1), state

    def speech(self, sound: Tensor) -> Tensor:
        """Return the probability of each window of ``sound``, of shape (batch, samples)."""
        padded = F.pad(sound, (CONTEXT, -sound.shape[1] % WINDOW))
        state, result = None, []
        for start in range(CONTEXT, padded.shape[1], WINDOW):
            chance, state = self(padded[:, start - CONTEXT : start + WINDOW], state)
            result.append(chance)
        return plait.cat(result, 1)
