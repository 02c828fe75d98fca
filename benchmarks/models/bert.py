"""BERT-base: Devlin et al., "BERT: pre-training of deep bidirectional transformers" (2018)."""

from __future__ import annotations

from typing import Any

__all__ = ["WORDS", "build"]

WORDS = 30522


def build(torch: Any, width: float = 1.0, layers: int = 12, words: int = WORDS) -> Any:
    """Return a module: (n, t) word numbers, t at most 512, to vectors (n, t, 768 * width)."""
    nn = torch.nn
    heads = max(1, int(12 * width))
    size = 64 * heads

    class Bert(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.word = nn.Embedding(words, size)
            self.position = nn.Embedding(512, size)
            self.segment = nn.Embedding(2, size)
            self.norm = nn.LayerNorm(size, 1e-12)
            layer = nn.TransformerEncoderLayer(
                *(size, heads, 4 * size),
                dropout=0.0,
                activation="gelu",
                layer_norm_eps=1e-12,
                batch_first=True,
            )
            self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

        def forward(self, x: Any) -> Any:
            places = self.position.weight[: x.shape[1]]
            return self.layers(self.norm(self.word(x) + places + self.segment.weight[0]))

    return Bert()
