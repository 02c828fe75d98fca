"""Training of modules: recurrent layers, attention, and whole steps of a small network.

Gradients of the step before are dropped first on both sides, as `zero_grad` does.
"""

from __future__ import annotations

import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from timing import Case, Figure

import plait_autograd  # noqa: F401 - the engine
import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F
import plait_optim as optim

__all__ = ["FIGURES", "cases"]

Library = tuple[Any, Any, Any, Any]
OURS: Library = (pc, nn, F, optim)
THEIRS: Library = (torch, torch.nn, torch.nn.functional, torch.optim)
REPEATS = 20  # tiny steps in one call
LOADS = 15


def recurrent(library: Library, kind: str, **options: Any) -> Callable[[], object]:
    """Forward and backward of 32 steps, batch of 25, 512 features in and hidden."""
    tensors, layers, _, _ = library
    layer = getattr(layers, kind)(512, 512, **options)
    x = tensors.randn(32, 25, 512).requires_grad_()
    width = 1024 if options.get("bidirectional") else 512
    g = tensors.randn(32, 25, width)

    def step() -> None:
        layer.zero_grad()
        x.grad = None
        out, _ = layer(x)
        out.backward(g)

    return step


def attention(
    library: Library, batch: int = 1, tokens: int = 512, width: int = 64, **options: Any
) -> Callable[[], object]:
    """Forward and backward of eight heads, laid out as a projection leaves them."""
    tensors, _, functional, _ = library
    leaves = [tensors.randn(batch, tokens, 8, width).requires_grad_() for _ in range(3)]
    g = tensors.randn(batch, 8, tokens, width)
    if options.pop("masked", False):
        options["attn_mask"] = tensors.randn(tokens, tokens)

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        q, k, v = (leaf.transpose(1, 2) for leaf in leaves)
        functional.scaled_dot_product_attention(q, k, v, **options).backward(g)

    return step


def attention_forward(library: Library) -> Callable[[], object]:
    """The same without gradients."""
    tensors, _, functional, _ = library
    q, k, v = (tensors.randn(1, 8, 512, 64) for _ in range(3))
    return lambda: functional.scaled_dot_product_attention(q, k, v)


def encoder(library: Library) -> Callable[[], object]:
    """Forward and backward of a Transformer layer, 512 features, 8 heads, 128 tokens, batch 4."""
    tensors, layers, _, _ = library
    layer = layers.TransformerEncoderLayer(512, 8, 1024, 0.0, batch_first=True)
    x, g = tensors.randn(4, 128, 512), tensors.randn(4, 128, 512)

    def step() -> None:
        layer.zero_grad()
        layer(x).backward(g)

    return step


def training(library: Library, make: Callable[[Any, Any], Any], hidden: int) -> Callable[[], None]:
    """Steps of a perceptron on a batch of 8, cross entropy included."""
    tensors, layers, functional, optimizers = library
    parts = [layers.Linear(16, 32), layers.ReLU()]
    parts += [layers.Linear(32, 32), layers.ReLU()] * hidden
    model = layers.Sequential(*parts, layers.Linear(32, 4))
    optimizer = make(optimizers, model.parameters())
    x, y = tensors.randn(8, 16), tensors.arange(8) % 4

    def run() -> None:
        for _ in range(REPEATS):
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    return run


def pair(make: Callable[..., Callable[[], object]], *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return the same work on both sides."""
    return make(OURS, *args, **options), make(THEIRS, *args, **options)


def cases() -> list[Case]:
    """The cases: see `timing.Case`."""
    sgd = lambda optimizers, p: optimizers.SGD(p, lr=0.01)  # noqa: E731
    adam = lambda optimizers, p: optimizers.Adam(p)  # noqa: E731
    return [
        ("LSTM, 32 x 25 x 512", *pair(recurrent, "LSTM"), 0.7),
        ("LSTM, 32 x 25 x 512, bidirectional", *pair(recurrent, "LSTM", bidirectional=True), None),
        ("GRU, 32 x 25 x 512", *pair(recurrent, "GRU"), None),
        ("RNN, 32 x 25 x 512", *pair(recurrent, "RNN"), None),
        ("attention, 8 heads of 64, 512 tokens", *pair(attention), 0.6),
        ("attention, batch of 4", *pair(attention, 4), None),
        ("attention, causal", *pair(attention, is_causal=True), None),
        ("attention, mask of numbers", *pair(attention, masked=True), None),
        ("attention, 2048 tokens", *pair(attention, tokens=2048), None),
        ("attention, forward", *pair(attention_forward), None),
        ("TransformerEncoderLayer, 4 x 128 x 512", *pair(encoder), None),
        ("training step, 2 layers, batch of 8, SGD", *pair(training, sgd, 0), 0.15),
        ("training step, 2 layers, batch of 8, Adam", *pair(training, adam, 0), 0.15),
        ("training step, 3 layers, batch of 8, SGD", *pair(training, sgd, 1), 0.15),
        ("training step, 3 layers, batch of 8, Adam", *pair(training, adam, 1), 0.15),
    ]


def digest() -> Iterator[Figure]:
    """The part of a load that checks digests, with the file in the page cache."""
    with tempfile.TemporaryDirectory() as folder:
        for name, count, each in (
            ("64 tensors of 4 MB", 64, 1 << 20),
            ("1000 tensors of 40 kB", 1000, 10000),
        ):
            path = pathlib.Path(folder, "model.safetensors")
            pc.save({str(i): pc.randn(each) for i in range(count)}, path)
            spent: dict[bool, list[float]] = {False: [], True: []}
            for i in range(2 * LOADS):
                start = time.perf_counter()
                pc.load(path, verify=bool(i % 2))
                spent[bool(i % 2)].append(time.perf_counter() - start)
            plain, checked = (statistics.median(spent[side]) for side in (False, True))
            note = f"load {1e3 * checked:.1f} ms, unchecked {1e3 * plain:.1f} ms"
            share = 100 * (checked - plain) / checked
            yield Figure(f"digest's share of loading {name}", share, 10, "%", note)


FIGURES: dict[str, Callable[[], Iterator[Figure]]] = {"digest": digest}
