"""Initial values of parameters. Every function writes to its tensor, without recording, and returns
it; ``generator=None`` means the default one of `plait_core`.
"""

from plait_abi.arguments import name_arguments as _name_arguments
from plait_nn._older_names import older as _older
from plait_nn.init._constant import constant_, dirac_, eye_, ones_, zeros_
from plait_nn.init._fans import (
    calculate_gain,
    correct_fan as _calculate_correct_fan,
    fan_in_and_fan_out as _calculate_fan_in_and_fan_out,
)
from plait_nn.init._random import normal_, orthogonal_, sparse_, trunc_normal_, uniform_
from plait_nn.init._scaled import kaiming_normal_, kaiming_uniform_, xavier_normal_, xavier_uniform_

# names of older programs
constant = _older("nn.init", "constant", constant_)
dirac = _older("nn.init", "dirac", dirac_)
eye = _older("nn.init", "eye", eye_)
kaiming_normal = _older("nn.init", "kaiming_normal", kaiming_normal_)
kaiming_uniform = _older("nn.init", "kaiming_uniform", kaiming_uniform_)
normal = _older("nn.init", "normal", normal_)
orthogonal = _older("nn.init", "orthogonal", orthogonal_)
sparse = _older("nn.init", "sparse", sparse_)
uniform = _older("nn.init", "uniform", uniform_)
xavier_normal = _older("nn.init", "xavier_normal", xavier_normal_)
xavier_uniform = _older("nn.init", "xavier_uniform", xavier_uniform_)

# names of parts of them in PyTorch, which programs call
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
_no_grad_normal_, _no_grad_trunc_normal_, _no_grad_uniform_ = normal_, trunc_normal_, uniform_

__all__ = [
    "_calculate_correct_fan",
    "_calculate_fan_in_and_fan_out",
    "_no_grad_fill_",
    "_no_grad_normal_",
    "_no_grad_trunc_normal_",
    "_no_grad_uniform_",
    "_no_grad_zero_",
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_name_arguments(globals())
