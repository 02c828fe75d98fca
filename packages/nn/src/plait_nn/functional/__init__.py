"""Layers as functions: what a `plait_nn.Module` computes, with the parameters as arguments.

Names, argument order and defaults are PyTorch's. Several of the functions are the operators of
``plait_core`` themselves.
"""

from plait_core.arguments import name_arguments as _name_arguments
from plait_nn.functional._activation import (
    celu,
    elu,
    gelu,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softsign,
    tanh,
    tanhshrink,
)
from plait_nn.functional._conv import (
    conv2d,
)
from plait_nn.functional._dropout import (
    dropout,
    dropout2d,
)
from plait_nn.functional._linear import (
    bilinear,
    embedding,
    linear,
    one_hot,
)
from plait_nn.functional._loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from plait_nn.functional._normalization import (
    batch_norm,
    cosine_similarity,
    layer_norm,
    normalize,
)
from plait_nn.functional._padding import (
    pad,
)
from plait_nn.functional._pooling import (
    adaptive_avg_pool2d,
    avg_pool2d,
    max_pool2d,
)
from plait_nn.functional._statistics import (
    group_norm,
    instance_norm,
    local_response_norm,
    rms_norm,
)

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv2d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout2d",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "instance_norm",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "max_pool2d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softsign",
    "tanh",
    "tanhshrink",
]

_name_arguments(globals())
