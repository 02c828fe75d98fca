"""NumPy's own functions on tensors, for functions without an operator of plait.

They run on arrays that share the tensors' memory. Arrays and numbers in the result become tensors,
so that every function of NumPy takes tensors and gives tensors. There are no gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_core._core import Tensor, _share_array, is_tensor

# functions that write to their first argument
_WRITERS = frozenset({"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"})
_KINDS = frozenset("biufc")  # of dtypes that tensors can have


def by_numpy(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], method: str = "") -> Any:
    """Run NumPy's function on arrays, or a method of a ufunc, such as ``accumulate``.

    Raises:
        RuntimeError: a tensor requires grad.
    """
    name = f"{func.__name__}.{method}" if method else func.__name__
    arrays: dict[int, Tensor] = {}

    def array_of(value: Tensor) -> Any:
        if value.requires_grad:
            raise RuntimeError(
                f"np.{name}: NumPy computes this function, so it has no gradient; call detach() on "
                "the tensor first"
            )
        result = value.numpy()
        arrays[id(result)] = value
        return result

    values = [mapped(value, Tensor, array_of) for value in args]
    named = {key: mapped(value, Tensor, array_of) for key, value in kwargs.items()}
    result = (getattr(func, method) if method else func)(*values, **named)
    first = args[:1] if method == "at" or func.__name__ in _WRITERS else ()
    for value in (kwargs.get("out"), *first):
        for each in _each(value):
            if is_tensor(each):
                each._bump_version()
    import numpy as np

    identities = {id(value) for value in _each(kwargs.get("out"))}

    def tensor_of(value: Any) -> Any:
        if id(value) in arrays:
            return arrays[id(value)]
        if id(value) in identities or value.dtype.kind not in _KINDS:
            return value
        return _share_array(np.asarray(value))

    return mapped(result, (np.ndarray, np.generic), tensor_of)


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def mapped(value: Any, kind: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to all instances of a class, also in lists, tuples and dicts."""
    if isinstance(value, kind):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(each, kind, change) for each in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):  # a named tuple of results
        return value._make(mapped(each, kind, change) for each in value)
    if type(value) is dict:
        return {key: mapped(each, kind, change) for key, each in value.items()}
    return value
