"""Weight norm by a hook: the older form of `parametrizations.weight_norm`."""

from __future__ import annotations

from typing import Any, TypeVar

from plait_core import Tensor
from plait_nn._module import Module
from plait_nn._parameter import Parameter
from plait_nn.utils._norm_hooks import NormHook
from plait_nn.utils.parametrizations import WeightNormMap

__all__ = ["remove_weight_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


class _WeightNormHook(NormHook):
    what = "weight norm"

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.map = WeightNormMap(dim)

    def compute(self, module: Module) -> Tensor:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        weight: Tensor = self.map(g, v)
        return weight

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.compute(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    r"""Replace a parameter by a length and a direction, :math:`g \, v / \|v\|`.

    The parameters ``<name>_g`` and ``<name>_v`` replace it; a hook computes ``<name>`` before every
    call. New programs use `parametrizations.weight_norm`, which also works without a call.

    Args:
        module: The module.
        name: Its parameter.
        dim: The dimension that keeps its own lengths; None: there is one length.

    Raises:
        RuntimeError: The parameter has a weight norm already.
        ValueError: There is no such parameter.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.weight_norm(nn.Linear(20, 40))
        >>> tuple(layer.weight_g.shape), tuple(layer.weight_v.shape)
        ((40, 1), (40, 20))
    """
    weight = _WeightNormHook.parameter(module, name)
    hook = _WeightNormHook(name, dim)
    g, v = hook.map.right_inverse(weight.detach())
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(g, weight.requires_grad))
    module.register_parameter(name + "_v", Parameter(v, weight.requires_grad))
    setattr(module, name, hook.compute(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the weight an ordinary parameter again, with its present value.

    Raises:
        ValueError: The parameter has no weight norm.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(20, 40)))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    number, hook = _WeightNormHook.of(module, name)
    value = hook.compute(module).detach()
    requires_grad = getattr(module, name + "_v").requires_grad
    delattr(module, name)
    del module._parameters[name + "_g"], module._parameters[name + "_v"]
    module.register_parameter(name, Parameter(value, requires_grad))
    del module._forward_pre_hooks[number]
    return module
