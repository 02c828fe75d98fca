"""Additions to plait's `optim.optimizer`, for third-party optimizers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import plait
from plait_optim._groups import required

__all__ = [
    "DeviceDict",
    "DeviceDtypeDict",
    "ParamsT",
    "StateDict",
    "_default_to_fused_or_foreach",
    "_disable_dynamo_if_unsupported",
    "_dispatch_sqrt",
    "_get_capturable_supported_devices",
    "_get_scalar_dtype",
    "_get_value",
    "_stack_if_compiling",
    "_to_scalar",
    "_use_grad_for_differentiable",
    "_view_as_real",
    "params_t",
    "required",
]

ParamsT: TypeAlias = Iterable[Any]
params_t = ParamsT
StateDict: TypeAlias = dict[str, Any]
DeviceDict: TypeAlias = dict[Any, Any]
DeviceDtypeDict: TypeAlias = dict[tuple[Any, Any], Any]


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate an optimizer's `step`, which is differentiated only if the optimizer is made for it.

    Example:
        >>> import plait
        >>> from plait_torch._optimizer import _use_grad_for_differentiable
        >>> class Still(plait.optim.Optimizer):
        ...     def __init__(self, params):
        ...         super().__init__(params, {"differentiable": False})
        ...     @_use_grad_for_differentiable
        ...     def step(self):
        ...         return plait.is_grad_enabled()
        >>> Still([plait.ones(1, requires_grad=True)]).step()
        False
    """

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with plait.set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return func(self, *args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Any = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that returns its function."""
    return lambda func: func


def _default_to_fused_or_foreach(
    params: Sequence[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return (False, False): one call for all parameters is never faster than single calls."""
    return False, False


def _get_value(x: Any) -> Any:
    """Return the number that a tensor of one element holds; other values as they are."""
    return x.item() if isinstance(x, plait.Tensor) else x


_to_scalar = _get_value


def _stack_if_compiling(x: Any) -> Any:
    """Return the value."""
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """Return the square root of a tensor or a number."""
    return x.sqrt() if isinstance(x, plait.Tensor) else math.sqrt(x)


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Return the dtype of an optimizer's counters."""
    return plait.float32 if is_fused or plait.get_default_dtype() != plait.float64 else (
        plait.float64
    )  # fmt: skip


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace complex parameters and their states in the lists by views of real numbers."""
    for i, param in enumerate(params):
        if param.dtype.is_complex:
            params[i] = plait.view_as_real(param)
            for states in state_and_grads:
                states[i] = plait.view_as_real(states[i])


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the kinds of devices for which PyTorch's optimizers have ``capturable``.

    Example:
        >>> from plait_torch._optimizer import _get_capturable_supported_devices
        >>> _get_capturable_supported_devices(supports_xla=False)
        ['cuda', 'xpu', 'hpu', 'privateuseone']
    """
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]
