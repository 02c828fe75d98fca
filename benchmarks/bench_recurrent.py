"""Recurrent layers and what surrounds them in a translator: embedding, attention, cross entropy.

A forward pass alone runs without gradients; gradients of the step before are dropped first on both
sides, as `zero_grad` does. Tensors are (T, N, features).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as torch_functional
from timing import Case

import plait_autograd
import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F

__all__ = ["cases"]

Library = tuple[Any, Any, Any, Any]
OURS: Library = (pc, nn, F, plait_autograd)
THEIRS: Library = (torch, torch.nn, torch_functional, torch)
BAR = 0.67  # 1.5 times as fast
SHAPES = ((32, 25, 512), (1, 100, 256))  # batch, steps, features in and hidden
WORDS, CLASSES = 32_000, 16_000
Work = Callable[..., Any]  # of leaves, to a tensor


def run(library: Library, backward: bool, work: Work, *leaves: Any) -> Callable[[], object]:
    """Return a call of ``work``: forward only, or forward and backward to the leaves."""
    if not backward:

        def forward() -> Any:
            with library[3].no_grad():
                return work(*leaves)

        return forward
    grad = library[0].ones_like(work(*leaves).detach())

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        work(*leaves).backward(grad)

    return step


def leaf(library: Library, *shape: int) -> Any:
    """Return a tensor that has a gradient."""
    return library[0].randn(*shape).requires_grad_()


def recurrent(
    library: Library, backward: bool, kind: str, shape: tuple[int, int, int], both: bool
) -> Callable[[], object]:
    """A layer of one or both directions over a batch of sequences."""
    batch, steps, width = shape
    layer = getattr(library[1], kind)(width, width, bidirectional=both)
    x = leaf(library, steps, batch, width)
    return run(library, backward, lambda x, *_: layer(x)[0], x, *layer.parameters())


def embedding(library: Library, backward: bool, sparse: bool) -> Callable[[], object]:
    """The vectors of 32 x 25 words of 32,000."""
    tensors, _, functional, _ = library
    words = tensors.randint(0, WORDS, (32, 25))
    return run(
        library,
        backward,
        lambda weight: functional.embedding(words, weight, sparse=sparse),
        leaf(library, WORDS, 512),
    )


def attention(library: Library, backward: bool) -> Callable[[], object]:
    """A decoder's step that looks at 25 vectors of each of 32 sentences."""
    query, keys = leaf(library, 32, 1, 512), leaf(library, 32, 25, 512)

    def work(query: Any, keys: Any) -> Any:
        weights = library[0].bmm(query, keys.transpose(1, 2)).softmax(-1)
        return library[0].bmm(weights, keys)

    return run(library, backward, work, query, keys)


def cross_entropy(library: Library, backward: bool) -> Callable[[], object]:
    """The loss of 800 rows of 16,000 scores."""
    tensors, _, functional, _ = library
    target = tensors.randint(0, CLASSES, (800,))
    return run(
        library,
        backward,
        lambda scores: functional.cross_entropy(scores, target),
        leaf(library, 800, CLASSES),
    )


def pair(make: Callable[..., Callable[[], object]], *args: Any) -> tuple[Any, Any]:
    """Return the same work on both sides."""
    return make(OURS, *args), make(THEIRS, *args)


def cases() -> Iterator[Case]:
    """The cases: see `timing.Case`."""
    for backward in (False, True):
        which = "forward and backward" if backward else "forward"
        for kind in ("LSTM", "GRU"):
            for shape in SHAPES:
                for both in (False, True):
                    name = f"{kind}, {' x '.join(map(str, shape))}{', both ways' * both}, {which}"
                    yield name, *pair(recurrent, backward, kind, shape, both), BAR
        for sparse in (False, True) if backward else (False,):
            name = f"embedding, 32 x 25 words{', sparse' * sparse}, {which}"
            yield name, *pair(embedding, backward, sparse), BAR
        yield f"attention, 32 x 1 to 25 x 512, {which}", *pair(attention, backward), BAR
        yield f"cross entropy, 800 x 16,000, {which}", *pair(cross_entropy, backward), BAR
