"""`torch._C._functorch` and `torch._functorch`: transforms of functions, from within.

`vmap` and `grad` of `torch.func` call functions with ordinary tensors, so that the questions have
one answer; what makes tensors of a transform is in the table of names that refuse.
"""

from __future__ import annotations

from collections.abc import Callable
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


def _vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """Return what `vmap` of `torch.func` returns: the name before there was `torch.func`.

    Args:
        func: a function of one example.
        in_dims, out_dims: the dimensions of the examples, in arguments and in results.
        allow_none_pass_through: whether results may be None.

    Example:
        >>> import plait
        >>> from plait_torch._functorch import _vmap
        >>> _vmap(plait.dot)(plait.ones(2, 3), plait.ones(2, 3))
        tensor([3., 3.])
    """
    mapped = vmap(func, in_dims, out_dims)
    if not allow_none_pass_through:
        return mapped

    def some(*args: Any) -> Any:
        places: list[bool] = []

        def present(*each: Any) -> Any:
            results = func(*each)
            many = isinstance(results, tuple)
            results = results if many else (results,)
            places[:] = [many, *(result is not None for result in results)]
            return tuple(result for result in results if result is not None)

        values = list(vmap(present, in_dims, out_dims)(*args))
        result = tuple(values.pop(0) if there else None for there in places[1:])
        return result if places[0] else result[0]

    return some


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
