"""`torch.nn.utils._named_member_accessor`: parameters, buffers and attributes by their names.

tensordict uses it.
"""

from __future__ import annotations

from typing import Any

from plait.nn import Module

__all__ = ["swap_tensor"]

_MISSING = object()


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of a parameter, buffer or attribute; return what was there.

    Args:
        module: the module that has the member itself.
        name: the member's name, without dots.
        tensor: the new tensor, of any class.
        allow_missing: return None for a member that is not available, instead of an error.

    Raises:
        TypeError: if the first argument is no module.
        KeyError: for a name with a dot, or an empty one.
        AttributeError: if there is no such member.

    Example:
        >>> import plait
        >>> from plait_torch._member_swap import swap_tensor
        >>> layer = plait.nn.Linear(1, 1)
        >>> before = swap_tensor(layer, "bias", plait.zeros(1))
        >>> type(before).__name__, layer.bias
        ('Parameter', tensor([0.]))
    """
    if not isinstance(module, Module):
        raise TypeError(f"swap_tensor: a module is required; got {type(module).__name__}")
    if not name or "." in name:
        raise KeyError(f"swap_tensor: the name of one member is required; got {name!r}")
    for members in (module._parameters, module._buffers):
        if name in members:
            before = members[name]
            members[name] = tensor
            return before
    before = module.__dict__.get(name, _MISSING)
    if before is _MISSING:
        if not allow_missing:
            raise AttributeError(f"swap_tensor: {type(module).__name__} has no tensor {name!r}")
        before = None
    module.__dict__[name] = tensor
    return before
