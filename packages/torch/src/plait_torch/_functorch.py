"""`torch._C._functorch` and `torch._functorch`: transforms of functions, from within.

`vmap` and `grad` of `torch.func` call functions with ordinary tensors, so that the questions have
one answer; what makes tensors of a transform is in the table of names that refuse.
"""

from __future__ import annotations

from typing import Any

import plait
from plait.func import functional_call, grad, grad_and_value, stack_module_state, vmap
from plait.func.pytree import tree_flatten, tree_unflatten
from plait_torch._pytree import _broadcast_to_and_flatten

__all__ = [
    "Tensor",
    "_broadcast_to_and_flatten",
    "_get_name",
    "functional_call",
    "get_unwrapped",
    "grad",
    "grad_and_value",
    "is_batchedtensor",
    "is_functionaltensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_get_bdim",
    "maybe_get_level",
    "peek_interpreter_stack",
    "stack_module_state",
    "tree_flatten",
    "tree_unflatten",
    "unwrap_if_dead",
    "vmap",
]

Tensor = plait.Tensor


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Return False: transforms call functions with ordinary tensors.

    Example:
        >>> import plait
        >>> from plait_torch._functorch import is_functorch_wrapped_tensor
        >>> is_functorch_wrapped_tensor(plait.ones(1))
        False
    """
    return False


is_batchedtensor = is_gradtrackingtensor = is_functorch_wrapped_tensor
is_functionaltensor = is_legacy_batchedtensor = is_functorch_wrapped_tensor


def maybe_get_level(tensor: Any) -> int:
    """Return -1: the tensor belongs to no transform."""
    return -1


maybe_get_bdim = maybe_get_level


def get_unwrapped(tensor: Any) -> Any:
    """Return the tensor, which nothing is wrapped around."""
    return tensor


unwrap_if_dead = get_unwrapped


def peek_interpreter_stack() -> None:
    """Return None: no transform is kept while a function runs."""
    return None


def _get_name(func: Any) -> str:
    """Return the name of a function, or how it prints."""
    return getattr(func, "__name__", None) or repr(func)
