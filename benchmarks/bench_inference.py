"""Inference without gradients: networks in `eval`, torch's in its faster layout of memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from models import MODELS, fill
from timing import Case, Figure

import plait

__all__ = ["CHEAP", "FIGURES", "cases"]

CHEAP = False  # fills networks

WORDS = 32  # that decoding writes, after as many
BYTES = 4 * 124e6  # of GPT-2's weights, each of which is read for every word


def network(library: Any, name: str) -> Any:
    """A model in evaluation mode, with the same weights on both sides."""
    return fill(library, MODELS[name].build(library)).eval()


def without_gradients(library: Any, model: Any, x: Any) -> Callable[[], object]:
    """Return a call of the model."""

    def call() -> object:
        with library.inference_mode():
            return model(x)

    call()  # what is made once is not timed
    return call


def inputs(library: Any, name: str, batch: int, **options: Any) -> Any:
    """The model's inputs, the same on both sides."""
    return library.from_numpy(MODELS[name].data(batch, **options)[0])


def pictures(name: str, batch: int) -> tuple[Any, Any]:
    """Return both sides' calls on pictures of 224 x 224; torch's in its faster layout."""
    ours = without_gradients(plait, network(plait, name), inputs(plait, name, batch))
    x, model = inputs(torch, name, batch), network(torch, name)
    plain = without_gradients(torch, model, x)
    last: Any = torch.channels_last
    model = network(torch, name).to(memory_format=last)
    other = without_gradients(torch, model, x.to(memory_format=last))
    return ours, min((plain, other), key=seconds)


def seconds(call: Callable[[], object]) -> float:
    """The shortest of three calls."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def sentences(library: Any, name: str, batch: int, length: int) -> Callable[[], object]:
    """A call on `batch` sentences of `length` words."""
    x = inputs(library, name, batch, length=length)
    return without_gradients(library, network(library, name), x)


def writing(library: Any, model: Any) -> Callable[[], object]:
    """Words one after the other, behind as many, with GPT-2's caches of keys and values."""
    x = inputs(library, "gpt2", 1, length=WORDS)

    def write() -> object:
        with library.inference_mode():
            caches = model.caches(1)
            word = model(x, 0, caches).argmax(-1)
            for i in range(WORDS):
                word = model(word, WORDS + i, caches).argmax(-1)
            return word

    write()
    return write


def decoding(library: Any) -> Callable[[], object]:
    """GPT-2 writes words."""
    return writing(library, network(library, "gpt2"))


def cases() -> Iterator[Case]:
    """Bars are the goals: how much faster than the peer."""
    sides = plait, torch
    yield (
        "GPT-2, prompt of 512 words",
        *(sentences(side, "gpt2", 1, 512) for side in sides),
        1 / 1.1,
    )
    yield "GPT-2, 32 words one by one", *(decoding(side) for side in sides), 1.0
    yield "BERT, 8 x 128", *(sentences(side, "bert", 8, 128) for side in sides), 1 / 1.1
    yield "ResNet-50, 1 picture", *pictures("resnet50", 1), 1 / 1.5
    yield "ResNet-50, 16 pictures", *pictures("resnet50", 16), 1 / 1.5
    yield "MobileNetV2, 1 picture", *pictures("mobilenet", 1), 1 / 2


def bandwidth() -> Iterator[Figure]:
    """Of the memory: the share that decoding reads weights with."""
    big = plait.ones(64 << 20)
    copy = min(seconds(big.sum) for _ in range(3))
    most = big.nbytes / copy
    call = decoding(plait)
    rate = WORDS * BYTES / seconds(call)
    yield Figure("GPT-2 decoding: share of the bandwidth, with the prompt", rate / most, None, "")


FIGURES = {"bandwidth": bandwidth}
