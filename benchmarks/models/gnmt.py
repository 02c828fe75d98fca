"""A translator of LSTM layers with attention, as GNMT v2: Wu et al., "Google's neural machine
translation system" (2016).

Four encoder layers, the first one in both directions, and four decoder layers. The first decoder
layer asks the attention of Bahdanau et al. (2014) over the encoder's outputs, and its answer goes
into all later layers. 512 channels and 25 words a sentence; GNMT v2 has 1024 channels.
"""

from __future__ import annotations

from typing import Any

__all__ = ["build"]


def build(torch: Any, width: float = 1.0, words: int = 32000, dropout: float = 0.0) -> Any:
    """Return a module: source (n, s) and target (n, t) word numbers to scores (n, t, words)."""
    nn = torch.nn
    size = max(8, int(512 * width))

    class Attention(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.query = nn.Linear(size, size, bias=False)
            self.key = nn.Linear(size, size, bias=False)
            self.score = nn.Linear(size, 1, bias=False)

        def forward(self, query: Any, keys: Any) -> Any:
            both = self.query(query).unsqueeze(2) + self.key(keys).unsqueeze(1)
            weights = self.score(torch.tanh(both)).squeeze(-1).softmax(dim=-1)
            return weights @ keys

    class Encoder(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(words, size)
            self.both_ways = nn.LSTM(size, size, batch_first=True, bidirectional=True)
            self.second = nn.LSTM(2 * size, size, batch_first=True)
            self.later = nn.ModuleList(nn.LSTM(size, size, batch_first=True) for _ in range(2))
            self.dropout = nn.Dropout(dropout)

        def forward(self, source: Any) -> Any:
            x, _ = self.both_ways(self.dropout(self.embedding(source)))
            x, _ = self.second(self.dropout(x))
            for layer in self.later:
                x = x + layer(self.dropout(x))[0]
            return x

    class Decoder(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(words, size)
            self.first = nn.LSTM(size, size, batch_first=True)
            self.attention = Attention()
            self.second = nn.LSTM(2 * size, size, batch_first=True)
            self.later = nn.ModuleList(nn.LSTM(2 * size, size, batch_first=True) for _ in range(2))
            self.dropout = nn.Dropout(dropout)
            self.scores = nn.Linear(size, words)

        def forward(self, target: Any, context: Any) -> Any:
            x, _ = self.first(self.dropout(self.embedding(target)))
            seen = self.attention(x, context)
            x, _ = self.second(self.dropout(torch.cat([x, seen], dim=-1)))
            for layer in self.later:
                x = x + layer(self.dropout(torch.cat([x, seen], dim=-1)))[0]
            return self.scores(x)

    class Translator(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = Encoder()
            self.decoder = Decoder()

        def forward(self, source: Any, target: Any) -> Any:
            return self.decoder(target, self.encoder(source))

    return Translator()
