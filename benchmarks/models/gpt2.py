"""GPT-2 with 124 million parameters: Radford et al., "Language models are unsupervised multitask
learners" (2019)."""

from __future__ import annotations

from typing import Any

__all__ = ["WORDS", "build"]

WORDS = 50257


def build(torch: Any, width: float = 1.0, layers: int = 12, words: int = WORDS) -> Any:
    """Return a module: (n, t) word numbers, t at most 1024, to scores (n, t, words).

    ``module(x, past, caches)`` goes on after `past` words, whose keys and values are in the caches
    of ``module.caches(n)``, and returns the scores (n, 1, words) after the last word alone.
    """
    nn, functional = torch.nn, torch.nn.functional
    heads = max(1, int(12 * width))
    size = 64 * heads

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(size)
            self.qkv = nn.Linear(size, 3 * size)
            self.out = nn.Linear(size, size)
            self.norm2 = nn.LayerNorm(size)
            self.mlp = nn.Sequential(
                nn.Linear(size, 4 * size), nn.GELU(approximate="tanh"), nn.Linear(4 * size, size)
            )

        def forward(self, x: Any, past: int = 0, cache: Any = None) -> Any:
            n, t, _ = x.shape
            qkv = self.qkv(self.norm1(x)).view(n, t, 3, heads, 64)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            if cache is not None:
                cache[0, :, :, past : past + t] = k
                cache[1, :, :, past : past + t] = v
                k, v = cache[:, :, :, : past + t]
            causal = t > 1  # a single word sees all before it
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            x = x + self.out(seen.transpose(1, 2).reshape(n, t, size))
            return x + self.mlp(self.norm2(x))

    class GPT2(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.word = nn.Embedding(words, size)
            self.position = nn.Embedding(1024, size)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(size)

        def forward(self, x: Any, past: int = 0, caches: Any = None) -> Any:
            y = self.word(x) + self.position.weight[past : past + x.shape[1]]
            if caches is None:
                y = self.blocks(y)
            else:
                for block, cache in zip(self.blocks, caches, strict=True):
                    y = block(y, past, cache)
                y = y[:, -1:]
            # the scores use the words' own vectors
            return functional.linear(self.norm(y), self.word.weight)

        def caches(self, n: int) -> list[Any]:
            """Room for the keys and values of 1024 words, for each layer."""
            dtype = self.word.weight.dtype
            return [torch.empty(2, n, heads, 1024, 64, dtype=dtype) for _ in self.blocks]

    return GPT2()
