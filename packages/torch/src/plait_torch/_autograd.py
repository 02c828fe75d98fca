"""Additions to plait's `autograd` for `torch.autograd`: `Variable`, which is a tensor."""

from __future__ import annotations

from typing import Any

import plait
from plait_torch._engine import _ImperativeEngine

__all__ = [
    "InplaceFunction",
    "Variable",
    "_disable_profiler",
    "_is_checkpoint_valid",
    "_profiler_enabled",
    "is_multithreading_enabled",
    "set_multithreading_enabled",
]


class _VariableType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, plait.Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        if data is None:
            data = plait.empty(0)
        if not plait.is_tensor(data):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        own = data.detach()
        return own.requires_grad_() if requires_grad else own


class Variable(metaclass=_VariableType):
    """PyTorch's older name of a tensor that has a history: ``Variable(x)`` is a tensor.

    Example:
        >>> import plait
        >>> from plait_torch._autograd import Variable
        >>> Variable(plait.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
        >>> isinstance(plait.ones(2), Variable)
        True
    """

    _execution_engine = _ImperativeEngine()


_ContextMethodMixin = plait.autograd.function.FunctionCtx  # the older name


class InplaceFunction(plait.autograd.Function):
    """A `Function` with a flag; PyTorch's older base class of functions that work in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _profiler_enabled() -> bool:
    """Return False: what records is plait's profiler."""
    return False


def _disable_profiler() -> list[Any]:
    """Return []: what records is plait's profiler."""
    return []


def _is_checkpoint_valid() -> bool:
    """Return True: `checkpoint` works in all backward passes."""
    return True


def is_multithreading_enabled() -> bool:
    """Return True: backward passes use several threads."""
    return True


class set_multithreading_enabled:  # noqa: N801 - PyTorch's name
    """A context manager without effect, as results do not depend on the number of threads."""

    def __init__(self, mode: bool) -> None:
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None
