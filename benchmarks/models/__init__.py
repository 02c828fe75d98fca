"""Whole models for the benchmarks, each written once for plait and for PyTorch.

``MODELS`` has them by name. A builder gets the library, ``build(plait)`` or ``build(torch)``, and
`fill` gives the module the same weights in both. Data are NumPy arrays.

    import plait
    from models import MODELS, fill

    model = MODELS["resnet50"]
    network = fill(plait, model.build(plait))
    images, labels = model.data(8)
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import alexnet, bert, gnmt, gpt2, mobilenet, neumf, resnet, vgg

__all__ = ["MODELS", "PAPER", "Model", "fill", "starting_value"]


@dataclass(frozen=True)
class Model:
    """A model, its data, and how it is trained and counted.

    Attributes:
        title: the name in tables.
        build: ``build(torch, **options)`` returns the module.
        data: ``data(batch, seed=0, **options)`` returns the inputs, then the target (if any).
        kind: ``"classes"`` (cross-entropy), ``"words"`` (cross-entropy of each word),
            ``"logits"`` (binary cross-entropy), or ``"inference"`` (is not trained here).
        batch: samples of a step.
        unit: what throughput counts.
        items: how many of these a sample is.
        images: the input is (n, c, h, w) images.
        small: options of ``build`` and of ``data`` for a version that a test can train.
    """

    title: str
    build: Callable[..., Any]
    data: Callable[..., tuple[np.ndarray, ...]]
    kind: str
    batch: int
    unit: str
    items: int = 1
    images: bool = False
    small: tuple[dict[str, Any], dict[str, Any]] = ({}, {})

    @property
    def trained(self) -> bool:
        """The model has a training step."""
        return self.kind != "inference"

    def loss(self, torch: Any, output: Any, target: Any) -> Any:
        """The loss of a batch, a tensor without dimensions."""
        functional = torch.nn.functional
        if self.kind == "words":
            return functional.cross_entropy(output.flatten(0, 1), target.flatten())
        if self.kind == "logits":
            return functional.binary_cross_entropy_with_logits(output, target)
        return functional.cross_entropy(output, target)

    def optimizer(self, torch: Any, parameters: Any, **options: Any) -> Any:
        """SGD with momentum for images and Adam for others, as the published trainings have."""
        if self.images:
            return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4, **options)
        return torch.optim.Adam(parameters, lr=1e-3, **options)


def _images(
    batch: int, seed: int = 0, *, size: int = 224, classes: int = 1000
) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng(seed)
    images = generator.standard_normal((batch, 3, size, size), dtype=np.float32)
    return images, generator.integers(0, classes, batch)


def _sentences(
    batch: int, seed: int = 0, *, words: int = 32000, length: int = 25
) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng(seed)
    source = generator.integers(0, words, (batch, length))
    target = generator.integers(0, words, (batch, length + 1))
    return source, target[:, :-1].copy(), target[:, 1:].copy()


def _ratings(
    batch: int, seed: int = 0, *, users: int = neumf.USERS, films: int = neumf.FILMS
) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng(seed)
    liked = (generator.random(batch) < 0.2).astype(np.float32)
    return generator.integers(0, users, batch), generator.integers(0, films, batch), liked


def _text(words: int, length: int) -> Callable[..., tuple[np.ndarray, ...]]:
    def data(
        batch: int, seed: int = 0, *, words: int = words, length: int = length
    ) -> tuple[np.ndarray, ...]:
        return (np.random.default_rng(seed).integers(0, words, (batch, length)),)

    return data


_FEW_WORDS = {"words": 50}
_FEW_RATINGS = {"users": 40, "films": 30}

MODELS = {
    "alexnet": Model(
        *("AlexNet", alexnet.build, _images, "classes", 32, "images/s"),
        images=True,
        small=({"width": 1 / 8, "classes": 10}, {"size": 64, "classes": 10}),
    ),
    "vgg19": Model(
        *("VGG-19", vgg.build, _images, "classes", 4, "images/s"),
        images=True,
        small=({"width": 1 / 8, "classes": 10}, {"size": 32, "classes": 10}),
    ),
    "resnet50": Model(
        *("ResNet-50", resnet.build, _images, "classes", 8, "images/s"),
        images=True,
        small=({"width": 1 / 8, "classes": 10}, {"size": 48, "classes": 10}),
    ),
    "mobilenet": Model(
        *("MobileNetV2", mobilenet.build, _images, "classes", 16, "images/s"),
        images=True,
        small=({"width": 1 / 4, "classes": 10}, {"size": 48, "classes": 10}),
    ),
    "gnmt": Model(
        *("GNMT-like", gnmt.build, _sentences, "words", 32, "words/s"),
        items=25,
        small=({"width": 1 / 16, **_FEW_WORDS}, {"length": 6, **_FEW_WORDS}),
    ),
    "neumf": Model(
        *("NeuMF", neumf.build, _ratings, "logits", 4096, "samples/s"),
        small=({"width": 1 / 8, **_FEW_RATINGS}, _FEW_RATINGS),
    ),
    "gpt2": Model(
        *("GPT-2 124M", gpt2.build, _text(gpt2.WORDS, 256), "inference", 1, "words/s"),
        items=256,
        small=({"width": 1 / 6, "layers": 2, **_FEW_WORDS}, {"length": 10, **_FEW_WORDS}),
    ),
    "bert": Model(
        *("BERT-base", bert.build, _text(bert.WORDS, 128), "inference", 4, "words/s"),
        items=128,
        small=({"width": 1 / 6, "layers": 2, **_FEW_WORDS}, {"length": 10, **_FEW_WORDS}),
    ),
}

PAPER = ("alexnet", "vgg19", "resnet50", "mobilenet", "gnmt", "neumf")
"""The models of the paper's Table 1, in its order."""


def starting_value(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return a parameter's first value as float64: a function of its name and shape alone.

    Vectors are 1 where the name ends in ``weight`` (of a normalisation), else 0; others are uniform
    with variance 1 / fan-in, so that no activation grows with depth.
    """
    if len(shape) == 1:
        return np.full(shape, 1.0 if name.endswith("weight") else 0.0)
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    bound = math.sqrt(3.0 / math.prod(shape[1:]))
    # float32 values, so that a float64 run starts where a float32 run does
    values = (generator.random(shape, dtype=np.float32) * 2 - 1) * np.float32(bound)
    return values.astype(np.float64)


def fill(torch: Any, module: Any) -> Any:
    """Give the module's parameters their starting values, and return it."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            value = starting_value(name, tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(value).to(parameter.dtype))
    return module
