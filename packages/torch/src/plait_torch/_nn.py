"""Additions to plait's `nn` for `torch.nn`."""

from __future__ import annotations

from typing import Any

import plait

__all__ = [
    "NonDynamicallyQuantizableLinear",
    "UninitializedTensorMixin",
    "_ParameterMeta",
    "is_lazy",
]

# the class of a layer in PyTorch's attention, which tools skip
NonDynamicallyQuantizableLinear = plait.nn.Linear
_ParameterMeta = type(plait.nn.Parameter)


def is_lazy(param: Any) -> bool:
    """Return whether the parameter has no shape yet."""
    return isinstance(param, plait.nn.UninitializedParameter)


class _OfUninitialized(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (plait.nn.UninitializedParameter, plait.nn.UninitializedBuffer))

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, (plait.nn.UninitializedParameter, plait.nn.UninitializedBuffer))


class UninitializedTensorMixin(metaclass=_OfUninitialized):
    """The class of parameters and buffers without a shape, for `isinstance`.

    Example:
        >>> import plait
        >>> from plait_torch._nn import UninitializedTensorMixin
        >>> isinstance(plait.nn.LazyLinear(3).weight, UninitializedTensorMixin)
        True
    """
