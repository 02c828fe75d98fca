"""TensorFlow: Keras layers, and a step that is one ``tf.function``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from models import MODELS, mobilenet, neumf, resnet, vgg

from sides import NotWritten

__all__ = ["prepare", "version"]

layers = tf.keras.layers


def version() -> str:
    """The installed version."""
    return str(tf.__version__)


def conv(x: Any, after: int, size: int, stride: int = 1, bias: bool = False) -> Any:
    if size > 1:
        x = layers.ZeroPadding2D(size // 2)(x) if stride > 1 else x
    padding = "valid" if stride > 1 else "same"
    return layers.Conv2D(after, size, stride, padding, use_bias=bias)(x)


def norm_relu(x: Any, most: float | None = None) -> Any:
    x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return layers.ReLU(most)(x)


def classifier(x: Any) -> Any:
    for channels in (4096, 4096):
        x = layers.Dense(channels, "relu")(x)
    return layers.Dense(1000)(x)


def alexnet(x: Any) -> Any:
    x = layers.ZeroPadding2D(2)(x)
    x = layers.MaxPooling2D(3, 2)(layers.ReLU()(layers.Conv2D(64, 11, 4)(x)))
    x = layers.MaxPooling2D(3, 2)(layers.ReLU()(conv(x, 192, 5, bias=True)))
    for channels in (384, 256, 256):
        x = layers.ReLU()(conv(x, channels, 3, bias=True))
    return classifier(layers.Flatten()(layers.MaxPooling2D(3, 2)(x)))


def vgg19(x: Any) -> Any:
    for channels, count in vgg.STAGES:
        for _ in range(count):
            x = layers.ReLU()(conv(x, channels, 3, bias=True))
        x = layers.MaxPooling2D(2)(x)
    return classifier(layers.Flatten()(x))


def resnet50(x: Any) -> Any:
    def norm(x: Any) -> Any:
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    x = norm_relu(conv(x, 64, 7, 2))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for inner, count, first in resnet.STAGES:
        for i in range(count):
            stride = first if i == 0 else 1
            y = norm_relu(conv(x, inner, 1))
            y = norm_relu(conv(y, inner, 3, stride))
            y = norm(conv(y, 4 * inner, 1))
            x = norm(conv(x, 4 * inner, 1, stride)) if i == 0 else x
            x = layers.ReLU()(layers.Add()([x, y]))
    return layers.Dense(1000)(layers.GlobalAveragePooling2D()(x))


def mobilenet_v2(x: Any) -> Any:
    x = norm_relu(conv(x, 32, 3, 2), 6.0)
    for expansion, channels, count, first in mobilenet.STAGES:
        for i in range(count):
            before, stride = x.shape[-1], first if i == 0 else 1
            y = norm_relu(conv(x, before * expansion, 1), 6.0) if expansion != 1 else x
            y = layers.ZeroPadding2D(1)(y) if stride > 1 else y
            padding = "valid" if stride > 1 else "same"
            y = layers.DepthwiseConv2D(3, stride, padding, use_bias=False)(y)
            y = conv(norm_relu(y, 6.0), channels, 1)
            y = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(y)
            x = layers.Add()([x, y]) if stride == 1 and before == channels else y
    x = norm_relu(conv(x, 1280, 1), 6.0)
    return layers.Dense(1000)(layers.GlobalAveragePooling2D()(x))


def neural_mf(user: Any, film: Any) -> Any:
    def table(count: int, width: int, numbers: Any) -> Any:
        return layers.Embedding(count, width)(numbers)

    product = layers.Multiply()([table(neumf.USERS, 64, user), table(neumf.FILMS, 64, film)])
    deep = layers.Concatenate()([table(neumf.USERS, 128, user), table(neumf.FILMS, 128, film)])
    for channels in (256, 128, 64):
        deep = layers.Dense(channels, "relu")(deep)
    return layers.Reshape(())(layers.Dense(1)(layers.Concatenate()([product, deep])))


WRITTEN = {
    "alexnet": alexnet,
    "vgg19": vgg19,
    "resnet50": resnet50,
    "mobilenet": mobilenet_v2,
    "neumf": neural_mf,
}


def prepare(model: str, mode: str, batch: int, threads: int, tuned: bool) -> Callable[[], float]:
    """A compiled step."""
    if model not in WRITTEN:
        raise NotWritten("not written for this side")
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    choice = MODELS[model]
    arrays = list(choice.data(batch))
    if choice.images:
        arrays[0] = arrays[0].transpose(0, 2, 3, 1)
        inputs = [tf.keras.Input(arrays[0].shape[1:])]
    else:
        inputs = [tf.keras.Input((), dtype="int64") for _ in arrays[:-1]]
    network = tf.keras.Model(inputs, WRITTEN[model](*inputs))
    *arguments, target = [tf.constant(array) for array in arrays]
    if mode == "inference":
        infer = tf.function(lambda *inputs: network(list(inputs), training=False))
        return lambda: float(tf.reshape(infer(*arguments), [-1])[0])
    if choice.images:
        optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9, weight_decay=1e-4)
    else:
        optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(network.trainable_variables)

    @tf.function
    def step(*arguments: Any) -> Any:
        with tf.GradientTape() as tape:
            output = network(list(arguments), training=True)
            if choice.kind == "logits":
                losses = tf.nn.sigmoid_cross_entropy_with_logits(target, output)
            else:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(target, output)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
        return loss

    return lambda: float(step(*arguments))
