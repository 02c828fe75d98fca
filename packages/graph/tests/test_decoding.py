"""Decoding of a language model: a loop that ends at a token, compiled and from C."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import plait_abi
import plait_autograd
import plait_core as pc
import plait_nn as nn
from plait_graph import compile, cond, export, load, while_loop

sys.path.insert(0, str(Path(__file__).parent))

import c_interface as c

WORDS, LENGTH, WIDTH, HEADS, END = 11, 12, 8, 2, 0


class Block(nn.Module):
    """A layer of a transformer, which reads and fills a cache of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Any, at: Any, cache: Any) -> Any:
        parts = self.projections(self.norm(x)).reshape(-1, 1, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        keys, values = cache.unbind(0)
        keys.index_copy_(2, at, key)
        values.index_copy_(2, at, value)
        seen = (pc.arange(LENGTH) <= at).reshape(1, LENGTH)
        x = x + self.out(
            nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=seen)
            .transpose(1, 2)
            .reshape(-1, 1, WIDTH)
        )
        return x + self.mlp(self.second_norm(x))


class Model(nn.Module):
    """A small GPT: logits of the next word."""

    def __init__(self) -> None:
        super().__init__()
        pc.manual_seed(1)
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, WORDS)
        with plait_autograd.no_grad():
            self.head.weight.mul_(3)

    def forward(self, word: Any, at: Any, caches: Any) -> Any:
        x = (self.words(word) + self.places(at)).reshape(-1, 1, WIDTH)
        for block, cache in zip(self.blocks, caches.unbind(0), strict=True):
            x = block(x, at, cache)
        return self.head(x).reshape(-1, WORDS)


def new_caches(beams: int) -> Any:
    return pc.zeros(2, 2, beams, HEADS, LENGTH, WIDTH // HEADS)


class Greedy(nn.Module):
    """The most likely word after each word, until the last place or END."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    def next_word(self, at: Any, text: Any, caches: Any) -> Any:
        word = self.model(text.index_select(0, at), at, caches).argmax(1)
        text.index_copy_(0, at + 1, word)
        return at + 1, text, caches

    def goes_on(self, at: Any, text: Any, caches: Any) -> Any:
        return (at < LENGTH - 1) & (text.index_select(0, at) != END)

    def forward(self, text: Any) -> Any:
        start = (pc.zeros(1, dtype=pc.int64), text, new_caches(1))
        at, text, _ = while_loop(self.goes_on, self.next_word, start)
        return text, at


def python_greedy(model: Greedy, text: Any) -> Any:
    state = (pc.zeros(1, dtype=pc.int64), text.clone(), new_caches(1))
    while bool(model.goes_on(*state)):
        state = model.next_word(*state)
    return state[1], state[0]


class Beam(nn.Module):
    """The most likely texts, of which a fixed number are followed; one that ended stays."""

    def __init__(self, beams: int = 3) -> None:
        super().__init__()
        self.model, self.beams = Model(), beams

    def extend(self, at: Any, texts: Any, scores: Any, caches: Any) -> Any:
        last = texts.index_select(1, at).reshape(-1)
        logits = self.model(last, at, caches).log_softmax(1)
        ended = (last == END).reshape(-1, 1)
        only_end = pc.where(pc.arange(WORDS) == END, 0.0, -float("inf"))
        totals = scores.reshape(-1, 1) + pc.where(ended, only_end, logits)
        scores, best = totals.reshape(-1).topk(self.beams)
        parents = best // WORDS
        texts = texts.index_select(0, parents)
        texts.index_copy_(1, at + 1, (best % WORDS).reshape(-1, 1))
        return at + 1, texts, scores, caches.index_select(2, parents)

    def goes_on(self, at: Any, texts: Any, scores: Any, caches: Any) -> Any:
        return (at < LENGTH - 1) & (texts.index_select(1, at) != END).any()

    def start(self, text: Any) -> Any:
        scores = pc.full((self.beams,), -1e9)
        scores[0] = 0
        texts = text.expand(self.beams, LENGTH).contiguous()
        return pc.zeros(1, dtype=pc.int64), texts, scores, new_caches(self.beams)

    def forward(self, text: Any) -> Any:
        at, texts, scores, _ = while_loop(self.goes_on, self.extend, self.start(text))
        # a text that has ended is worth more by its length
        best = cond(
            (texts[0] == END).any(),
            lambda texts, scores: texts[scores.argmax().reshape(1)],
            lambda texts, scores: texts[:1],
            (texts, scores),
        )
        return best.reshape(-1), at, scores


def python_beam(model: Beam, text: Any) -> Any:
    state = model.start(text)
    while bool(model.goes_on(*state)):
        state = model.extend(*state)
    at, texts, scores, _ = state
    best = texts[int(scores.argmax())] if bool((texts[0] == END).any()) else texts[0]
    return best, at, scores


def text_from(word: int) -> Any:
    text = pc.zeros(LENGTH, dtype=pc.int64)
    text[0] = word
    return text


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Greedy, Path]:
    """Return a model and its file."""
    model = Greedy().eval()
    path = tmp_path_factory.mktemp("greedy") / "greedy.safetensors"
    export(model, (text_from(3),), path)
    return model, path


@pytest.mark.parametrize(("kind", "loop"), [(Greedy, python_greedy), (Beam, python_beam)])
def test_decoding_is_that_of_a_loop_in_python(kind: Any, loop: Any, tmp_path: Path) -> None:
    model = kind().eval()
    lengths = set()
    with plait_autograd.no_grad():
        compiled = compile(model, frozen=True)
        export(model, (text_from(1),), tmp_path / "file")
        loaded = load(tmp_path / "file")
        for word in range(WORDS):
            expected = loop(model, text_from(word))
            for run in (model, compiled, loaded):
                got = run(text_from(word))
                for one, other in zip(got, expected, strict=True):
                    assert one.tolist() == other.tolist(), (word, run)
            lengths.add(expected[1].item())
        assert len(compiled.graphs()) == 1
    assert len(lengths) > 1
    names = {f"model.{name}" for name, _ in model.model.named_parameters()}
    assert names <= set(loaded.weights)


def test_decoding_from_c(greedy: tuple[Greedy, Path], libraries: str, tmp_path: Path) -> None:
    model, path = greedy
    library = c.load(plait_abi.paths("plait_graph")["libplait_run.so"])
    run = c.Run(library, str(path), libraries)
    with plait_autograd.no_grad():
        for word in (3, 0, 5, 3):
            run.set(c.INPUT, 0, text_from(word).numpy().tobytes())
            run.execute()
            text, at = python_greedy(model, text_from(word))
            assert run.read(c.OUTPUT, 0)[2] == text.numpy().tobytes()
            assert run.read(c.OUTPUT, 1)[2] == at.numpy().tobytes()
    caches = 4 * new_caches(1).numel()
    weights = sum(4 * p.numel() for p in model.parameters())
    scratch = 2**18  # of the kernels, at most
    assert weights + 2 * caches < run.memory() < weights + 4 * caches + scratch
    copy = tmp_path / "copy.safetensors"
    run.save(str(copy))
    run.close()
    run = c.Run(library, str(copy), libraries)
    run.set(c.INPUT, 0, text_from(3).numpy().tobytes())
    run.execute()
    assert run.read(c.OUTPUT, 0)[2] == text.numpy().tobytes()
    run.close()


def test_plait_run_runs_loops(greedy: tuple[Greedy, Path], plait_run: Path, libraries: str) -> None:
    words = [plait_run, "--libraries", libraries, greedy[1]]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "output output.0: int64[12]" in done.stdout
