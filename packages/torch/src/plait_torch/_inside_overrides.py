"""The names of `torch._C` for `torch.overrides` and for modes."""

from __future__ import annotations

from plait_torch import _torch_dispatch, _torch_function
from plait_torch._torch_function import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_DisableTorchDispatch",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
]

_disabled_torch_function_impl = _torch_function.disabled
_disabled_torch_dispatch_impl = _torch_dispatch.disabled


class _DisableTorchDispatch:
    """A context whose operators neither modes nor classes see; only within one thread."""

    def __enter__(self) -> None:
        raise NotImplementedError(
            "plait_torch: torch._C._DisableTorchDispatch is not available; "
            "torch._C._disabled_torch_dispatch_impl makes one call unseen"
        )

    def __exit__(self, *exception: object) -> None:
        """Do nothing: the context was not entered."""
