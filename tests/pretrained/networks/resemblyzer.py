"""Resemblyzer's voice encoder: mel spectrograms to unit vectors, alike for one speaker."""

from plait import Tensor, nn


class VoiceEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(40, 256, num_layers=3, batch_first=True)
        self.linear = nn.Linear(256, 256)

    def forward(self, mels: Tensor) -> Tensor:
        _, (hidden, _) = self.lstm(mels)
        x = self.linear(hidden[-1]).relu()
        return x / x.norm(dim=1, keepdim=True)
