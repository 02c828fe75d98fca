"""Inference with small weights: halves against float32, int8 against PyTorch's `quantize_dynamic`.

Weights are random, so that near scores are as near as they get: agreement of the first place is a
hard test here, which trained models pass more easily.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from bench_inference import inputs, network, without_gradients, writing
from timing import Case, Figure

import plait

__all__ = ["CHEAP", "FIGURES", "cases"]

CHEAP = False
KINDS = {
    "bfloat16": (plait, "bfloat16"),
    "float16": (plait, "float16"),
    "int8": (plait, "int8"),
    "int8, activations too": (plait, "activations"),
    "torch, quantize_dynamic": (torch, "activations"),
}
LAYERS = {  # rows and sizes of the models' linear layers
    "ResNet-50, 1 picture": (1, (2048, 1000)),
    "ResNet-50, 16 pictures": (16, (2048, 1000)),
    "BERT, 8 x 128": (1024, (768, 3072, 768)),
}


def quantized(library: Any, model: Any, kind: str) -> Any:
    """Return `model` with weights of that kind, which may be the model itself."""
    if kind in ("bfloat16", "float16"):
        return model.to(getattr(library, kind))
    if library is plait:
        return plait.nn.quantize_(model, activations=kind == "activations")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it moved to another package
        return torch.ao.quantization.quantize_dynamic(model, inplace=True)


@cache
def gpt2(library: Any, kind: str) -> Any:
    """GPT-2 with weights of a kind."""
    model = network(library, "gpt2")
    return model if kind == "float32" else quantized(library, model, kind)


def prompt(library: Any, kind: str) -> Callable[[], Any]:
    """A prompt of 512 words."""
    x = inputs(library, "gpt2", 1, length=512)
    return without_gradients(library, gpt2(library, kind), x)


def words(library: Any, kind: str) -> Callable[[], Any]:
    """Words one after the other, behind as many."""
    return writing(library, gpt2(library, kind))


def layers(library: Any, rows: int, sizes: tuple[int, ...], kind: str) -> Callable[[], Any]:
    """Linear layers alone."""
    pairs = itertools.pairwise(sizes)
    model = library.nn.Sequential(*[library.nn.Linear(a, b) for a, b in pairs]).eval()
    x = library.ones(rows, sizes[0])
    return without_gradients(library, quantized(library, model, kind), x)


def cases() -> Iterator[Case]:
    """Bars are the goals: against float32 of plait, and against PyTorch's int8."""
    for kind in ("bfloat16", "float16"):
        name = f"GPT-2 {kind} against float32"
        yield f"{name}, one by one", words(plait, kind), words(plait, "float32"), 1 / 1.8
        yield f"{name}, prompt", prompt(plait, kind), prompt(plait, "float32"), 1 / 0.9
    for kind in ("int8", "activations"):
        name = f"GPT-2 {'int8' if kind == 'int8' else 'int8 activations'}"
        for label, make in (("one by one", words), ("prompt", prompt)):
            own = make(plait, kind)
            yield f"{name} against float32, {label}", own, make(plait, "float32"), None
            yield f"{name} against torch, {label}", own, make(torch, "activations"), 1.0
    for name, (rows, sizes) in LAYERS.items():
        peer = layers(torch, rows, sizes, "activations")
        for kind in ("int8", "activations"):
            yield f"{name}, linear, {kind}", layers(plait, rows, sizes, kind), peer, 1.0


def accuracy() -> Iterator[Figure]:
    """Of the scores after 512 words, against float32 of the same library."""
    for name, (library, kind) in KINDS.items():
        exact = prompt(library, "float32")()
        scores = prompt(library, kind)().to(library.float32)
        error = float((scores - exact).norm() / exact.norm())
        same = float((scores.argmax(-1) == exact.argmax(-1)).to(library.float32).mean())
        yield Figure(f"GPT-2 {name}: relative error of scores", error, None, "")
        yield Figure(f"GPT-2 {name}: words of the same first place", same, None, "")


FIGURES = {"accuracy of small weights": accuracy}
