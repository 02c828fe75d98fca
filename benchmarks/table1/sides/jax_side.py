"""JAX: pure functions over a list of weights; a step is compiled as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, random
from models import MODELS, mobilenet, neumf, resnet, vgg

from sides import NotWritten

__all__ = ["prepare", "version"]


def version() -> str:
    """The installed version."""
    return str(jax.__version__)


class Network:
    """Layers as calls on images (n, h, w, c).

    The first run makes the weights, in the order of the calls, and later runs read them.
    """

    def __init__(self, weights: list[Any] | None, training: bool) -> None:
        self.made: list[Any] = []
        self.rest = None if weights is None else iter(weights)
        self.training = training

    def weight(self, *shape: int, value: float | None = None) -> Any:
        if self.rest is not None:
            return next(self.rest)
        if value is None:
            bound = math.sqrt(3 / math.prod(shape[:-1]))
            key = random.key(len(self.made))
            result = random.uniform(key, shape, minval=-bound, maxval=bound)
        else:
            result = jnp.full(shape, value)
        self.made.append(result)
        return result

    def conv(self, x: Any, after: int, size: int, stride: int = 1, **options: Any) -> Any:
        padding, groups = options.get("padding", size // 2), options.get("groups", 1)
        y = lax.conv_general_dilated(
            x,
            self.weight(size, size, x.shape[-1] // groups, after),
            (stride, stride),
            [(padding, padding)] * 2,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )
        return y + self.weight(after, value=0.0) if options.get("bias") else y

    def norm(self, x: Any) -> Any:
        channels = x.shape[-1]
        scale, shift = self.weight(channels, value=1.0), self.weight(channels, value=0.0)
        # the running statistics are weights whose gradients are zero
        mean, var = self.weight(channels, value=0.0), self.weight(channels, value=1.0)
        if self.training:
            mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * (lax.rsqrt(var + 1e-5) * scale) + shift

    def pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        sides = ((0, 0), (padding, padding), (padding, padding), (0, 0))
        window = (1, size, size, 1), (1, stride, stride, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, *window, sides)

    def linear(self, x: Any, after: int) -> Any:
        return x @ self.weight(x.shape[-1], after) + self.weight(after, value=0.0)


def alexnet(net: Network, x: Any) -> Any:
    x = net.pool(jax.nn.relu(net.conv(x, 64, 11, 4, padding=2, bias=True)), 3, 2)
    x = net.pool(jax.nn.relu(net.conv(x, 192, 5, bias=True)), 3, 2)
    for channels in (384, 256, 256):
        x = jax.nn.relu(net.conv(x, channels, 3, bias=True))
    x = net.pool(x, 3, 2).reshape(x.shape[0], -1)
    for channels in (4096, 4096):
        x = jax.nn.relu(net.linear(x, channels))
    return net.linear(x, 1000)


def vgg19(net: Network, x: Any) -> Any:
    for channels, count in vgg.STAGES:
        for _ in range(count):
            x = jax.nn.relu(net.conv(x, channels, 3, bias=True))
        x = net.pool(x, 2, 2)
    x = x.reshape(x.shape[0], -1)
    for channels in (4096, 4096):
        x = jax.nn.relu(net.linear(x, channels))
    return net.linear(x, 1000)


def resnet50(net: Network, x: Any) -> Any:
    x = net.pool(jax.nn.relu(net.norm(net.conv(x, 64, 7, 2))), 3, 2, 1)
    for inner, count, first in resnet.STAGES:
        for i in range(count):
            stride = first if i == 0 else 1
            y = jax.nn.relu(net.norm(net.conv(x, inner, 1)))
            y = jax.nn.relu(net.norm(net.conv(y, inner, 3, stride)))
            y = net.norm(net.conv(y, 4 * inner, 1))
            x = net.norm(net.conv(x, 4 * inner, 1, stride)) if i == 0 else x
            x = jax.nn.relu(x + y)
    return net.linear(x.mean((1, 2)), 1000)


def mobilenet_v2(net: Network, x: Any) -> Any:
    x = jax.nn.relu6(net.norm(net.conv(x, 32, 3, 2)))
    for expansion, channels, count, first in mobilenet.STAGES:
        for i in range(count):
            before, stride = x.shape[-1], first if i == 0 else 1
            y = x
            if expansion != 1:
                y = jax.nn.relu6(net.norm(net.conv(y, before * expansion, 1)))
            inner = before * expansion
            y = jax.nn.relu6(net.norm(net.conv(y, inner, 3, stride, groups=inner)))
            y = net.norm(net.conv(y, channels, 1))
            x = x + y if stride == 1 and before == channels else y
    x = jax.nn.relu6(net.norm(net.conv(x, 1280, 1)))
    return net.linear(x.mean((1, 2)), 1000)


def neural_mf(net: Network, user: Any, film: Any) -> Any:
    tables = [
        net.weight(count, width) for width in (64, 128) for count in (neumf.USERS, neumf.FILMS)
    ]
    product = tables[0][user] * tables[1][film]
    deep = jnp.concatenate([tables[2][user], tables[3][film]], axis=-1)
    for channels in (256, 128, 64):
        deep = jax.nn.relu(net.linear(deep, channels))
    return net.linear(jnp.concatenate([product, deep], axis=-1), 1)[:, 0]


WRITTEN = {
    "alexnet": alexnet,
    "vgg19": vgg19,
    "resnet50": resnet50,
    "mobilenet": mobilenet_v2,
    "neumf": neural_mf,
}


def loss_of(kind: str, output: Any, target: Any) -> Any:
    """The model's loss, as in `models.Model.loss`."""
    if kind == "logits":
        return (jax.nn.softplus(output) - target * output).mean()
    choice = jnp.take_along_axis(jax.nn.log_softmax(output), target[:, None], axis=-1)
    return -choice.mean()


def sgd(weights: Any, state: Any, gradients: Any) -> tuple[Any, Any]:
    """Momentum 0.9, weight decay 1e-4, rate 0.01."""
    state = [0.9 * s + g + 1e-4 * w for w, s, g in zip(weights, state, gradients, strict=True)]
    return [w - 0.01 * s for w, s in zip(weights, state, strict=True)], state


def adam(weights: Any, state: Any, gradients: Any) -> tuple[Any, Any]:
    """Adam with rate 1e-3."""
    count, first, second = state
    count = count + 1
    first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients, strict=True)]
    second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients, strict=True)]
    rate, scale = 1e-3 / (1 - 0.9**count), 1 / (1 - 0.999**count)
    weights = [
        w - rate * m / (jnp.sqrt(v * scale) + 1e-8)
        for w, m, v in zip(weights, first, second, strict=True)
    ]
    return weights, (count, first, second)


def prepare(model: str, mode: str, batch: int, threads: int, tuned: bool) -> Callable[[], float]:
    """A compiled step; the processors that the worker may use are its threads."""
    if model not in WRITTEN:
        raise NotWritten("not written for this side")
    selection, run = MODELS[model], WRITTEN[model]
    arrays = list(selection.data(batch))
    if selection.images:
        arrays[0] = arrays[0].transpose(0, 2, 3, 1)
    data = [jnp.asarray(array) for array in arrays]
    net = Network(None, True)
    run(net, *[x[:1] for x in data[:-1]])
    weights = net.made
    if mode == "inference":
        infer = jax.jit(lambda weights, *inputs: run(Network(weights, False), *inputs))
        return lambda: float(infer(weights, *data[:-1]).block_until_ready().flatten()[0])

    def loss(weights: Any, *data: Any) -> Any:
        return loss_of(selection.kind, run(Network(weights, True), *data[:-1]), data[-1])

    update = sgd if selection.images else adam

    def step(weights: Any, state: Any, *data: Any) -> tuple[Any, Any, Any]:
        value, gradients = jax.value_and_grad(loss)(weights, *data)
        return (*update(weights, state, gradients), value)

    compiled = jax.jit(step, donate_argnums=(0, 1))
    zeros = [jnp.zeros_like(w) for w in weights]
    now = [weights, zeros if selection.images else (0, zeros, [jnp.zeros_like(w) for w in weights])]

    def train() -> float:
        *now[:], value = compiled(*now, *data)
        return float(value)

    return train
