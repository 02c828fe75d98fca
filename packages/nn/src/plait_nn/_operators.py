"""The operators that this package calls and that are no functions of `plait_core`.

`plait_core` has the names that PyTorch has at its top; layers as functions are in
`plait.nn.functional`, which is made of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from plait_abi import operator
from plait_core import Tensor  # which defines the operators

Function = Callable[..., Tensor]
Functions = Callable[..., tuple[Tensor, ...]]

adaptive_avg_pool2d: Function = operator("adaptive_avg_pool2d")
avg_pool2d: Function = operator("avg_pool2d")
batch_norm_activation: Function = operator("batch_norm_activation")
binary_cross_entropy: Function = operator("binary_cross_entropy")
conv2d_activation: Function = operator("conv2d_activation")
conv2d_backward_input: Function = operator("conv2d_backward_input")
cross_entropy: Function = operator("cross_entropy")
dirichlet_sample: Function = operator("dirichlet_sample")
elu: Function = operator("elu")
gru_sequence: Functions = operator("gru_sequence")
hardsigmoid: Function = operator("hardsigmoid")
hardswish: Function = operator("hardswish")
glu: Function = operator("glu")
hardtanh: Function = operator("hardtanh")
prelu: Function = operator("prelu")
huber_loss: Function = operator("huber_loss")
linear_int8: Function = operator("linear_int8")
l1_loss: Function = operator("l1_loss")
leaky_relu: Function = operator("leaky_relu")
lstm_sequence: Functions = operator("lstm_sequence")
max_pool2d_with_indices: Callable[..., tuple[Tensor, Tensor]] = operator("max_pool2d_with_indices")
mish: Function = operator("mish")
mse_loss: Function = operator("mse_loss")
nll_loss: Function = operator("nll_loss")
one_hot: Function = operator("one_hot")
relu6: Function = operator("relu6")
scaled_dot_product_attention: Function = operator("scaled_dot_product_attention")
silu: Function = operator("silu")
smooth_l1_loss: Function = operator("smooth_l1_loss")
softshrink: Function = operator("softshrink")
standard_gamma: Function = operator("_standard_gamma")

if TYPE_CHECKING:  # these are functions of `plait.nn.functional` as they are

    def gelu(input: Tensor, *, approximate: str = "none") -> Tensor: ...
    def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor: ...
    def log_sigmoid(input: Tensor) -> Tensor: ...
    def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor: ...
    def softsign(input: Tensor) -> Tensor: ...
    def tanhshrink(input: Tensor) -> Tensor: ...
else:
    gelu = operator("gelu")
    linear = operator("linear")
    log_sigmoid = operator("log_sigmoid")
    softplus = operator("softplus")
    softsign = operator("softsign")
    tanhshrink = operator("tanhshrink")
