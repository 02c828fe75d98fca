"""The package `functorch`, which PyTorch ships: functions of `torch.func` by their older names.

Each warns when it is called, as PyTorch's do, and says which function of `torch` replaces it.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

from plait import func
from plait_torch import _func_transforms, _functional_modules
from plait_torch._functional_modules import FunctionalModule, FunctionalModuleWithBuffers
from plait_torch._version import __version__ as __version__

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


def _deprecated(function: Any, instead: str) -> Any:
    """Return a function that warns, and then does what another one does."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"PyTorch has integrated functorch: `functorch.{function.__name__}` is deprecated; "
            f"use `{instead}` instead",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return call


vmap = _deprecated(func.vmap, "torch.vmap")
grad = _deprecated(func.grad, "torch.func.grad")
grad_and_value = _deprecated(func.grad_and_value, "torch.func.grad_and_value")
vjp = _deprecated(func.vjp, "torch.func.vjp")
jvp = _deprecated(func.jvp, "torch.func.jvp")
jacrev = _deprecated(func.jacrev, "torch.func.jacrev")
jacfwd = _deprecated(func.jacfwd, "torch.func.jacfwd")
hessian = _deprecated(func.hessian, "torch.func.hessian")
make_functional = _deprecated(_functional_modules.make_functional, "torch.func.functional_call")
functionalize = _deprecated(_func_transforms.functionalize, "torch.func.functionalize")
make_functional_with_buffers = _deprecated(
    _functional_modules.make_functional_with_buffers, "torch.func.functional_call"
)
combine_state_for_ensemble = _deprecated(
    _functional_modules.combine_state_for_ensemble, "torch.func.stack_module_state"
)
