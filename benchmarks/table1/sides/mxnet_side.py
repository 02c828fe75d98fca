"""MXNet: the models of ``gluon.model_zoo`` with random weights, hybridized."""

from __future__ import annotations

from collections.abc import Callable

import mxnet as mx
from models import MODELS
from mxnet import autograd, gluon

from sides import NotWritten

__all__ = ["prepare", "version"]

NAMES = {
    "alexnet": "alexnet",
    "vgg19": "vgg19",
    "resnet50": "resnet50_v1",
    "mobilenet": "mobilenetv2_1.0",
}


def version() -> str:
    """The installed version."""
    return str(mx.__version__)


def without_dropout(block: gluon.Block) -> None:
    """Set the rate of every dropout to zero."""
    if isinstance(block, gluon.nn.Dropout):
        block._rate = 0.0
    for child in block._children.values():
        without_dropout(child)


def prepare(model: str, mode: str, batch: int, threads: int, tuned: bool) -> Callable[[], float]:
    """A step; threads come from OMP_NUM_THREADS."""
    if model not in NAMES:
        raise NotWritten("not written for this side")
    network = gluon.model_zoo.vision.get_model(NAMES[model], pretrained=False)
    without_dropout(network)
    network.initialize(mx.init.Xavier())
    network.hybridize(static_alloc=True, static_shape=True)
    images, labels = (mx.nd.array(array) for array in MODELS[model].data(batch))
    if mode == "inference":
        return lambda: float(network(images).reshape(-1)[0].asscalar())
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(
        network.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9, "wd": 1e-4}
    )

    def train() -> float:
        with autograd.record():
            loss = loss_function(network(images), labels)
        loss.backward()
        trainer.step(batch)
        mx.nd.waitall()  # the loss is there before the backward pass has run
        return float(loss.mean().asscalar())

    return train
