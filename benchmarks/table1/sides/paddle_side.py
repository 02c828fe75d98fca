"""PaddlePaddle: the models of ``paddle.vision`` with random weights."""

from __future__ import annotations

from collections.abc import Callable

import paddle
from models import MODELS

from sides import NotWritten

__all__ = ["prepare", "version"]

NAMES = {
    "alexnet": "alexnet",
    "vgg19": "vgg19",
    "resnet50": "resnet50",
    "mobilenet": "mobilenet_v2",
}


def version() -> str:
    """The installed version."""
    return str(paddle.__version__)


def prepare(model: str, mode: str, batch: int, threads: int, tuned: bool) -> Callable[[], float]:
    """A step; threads come from OMP_NUM_THREADS and the processors that the worker may use."""
    if model not in NAMES:
        raise NotWritten("not written for this side")
    paddle.set_device("cpu")
    network = getattr(paddle.vision.models, NAMES[model])(pretrained=False)
    for layer in network.sublayers():
        if isinstance(layer, paddle.nn.Dropout):
            layer.p = 0.0
    images, labels = map(paddle.to_tensor, MODELS[model].data(batch))
    if mode == "inference":
        network.eval()

        def infer() -> float:
            with paddle.no_grad():
                return float(network(images).flatten()[0])

        return infer
    optimizer = paddle.optimizer.Momentum(
        0.01, 0.9, parameters=network.parameters(), weight_decay=1e-4
    )

    def train() -> float:
        loss = paddle.nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return float(loss)

    return train
