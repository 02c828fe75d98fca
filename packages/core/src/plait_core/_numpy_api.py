"""NumPy's functions that are not ufuncs, on tensors: where plait has the function, it runs and
returns tensors.

For all others NumPy's own function runs on arrays that share the tensors' memory, and returns
arrays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from plait_abi.imports import import_module
from plait_core._core import Tensor, from_numpy, is_tensor
from plait_core._numpy_table import adapter

__all__ = ["METHODS"]

# NumPy's functions that write to their first argument
_WRITERS = frozenset({"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"})


def __array_function__(  # noqa: N807
    self: Tensor, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run plait's version of a NumPy function, or NumPy's own on arrays that share the memory."""
    np = import_module("numpy")

    for kind in types:
        if not issubclass(kind, Tensor) and kind not in (np.ndarray, np.memmap):
            return NotImplemented
    ours = adapter(func)
    if ours is None:
        return _by_numpy(func, args, kwargs)
    values = [_mapped(value, np.ndarray, from_numpy) for value in args]
    named = {key: _mapped(value, np.ndarray, from_numpy) for key, value in kwargs.items()}
    out, given = named.pop("out", None), kwargs.get("out")
    try:
        inspect.signature(ours).bind(*values, **named)
    except TypeError as error:
        raise TypeError(
            f"np.{func.__name__}: on tensors, {error}; convert with x.numpy() first"
        ) from None
    result = ours(*values, **named)
    if given is None:
        return result
    out.copy_(result)
    return given


def _mapped(value: Any, kind: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to all instances of a class, also in lists, tuples and dicts."""
    if isinstance(value, kind):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_mapped(each, kind, change) for each in value)
    if type(value) is dict:
        return {key: _mapped(each, kind, change) for key, each in value.items()}
    return value


def _by_numpy(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    arrays: dict[int, Tensor] = {}

    def array_of(value: Tensor) -> Any:
        made = value.numpy()
        arrays[id(made)] = value
        return made

    values = [_mapped(value, Tensor, array_of) for value in args]
    named = {key: _mapped(value, Tensor, array_of) for key, value in kwargs.items()}
    result = func(*values, **named)
    written = [kwargs.get("out"), *(args[:1] if func.__name__ in _WRITERS else ())]
    for value in written:
        for each in value if isinstance(value, tuple) else (value,):
            if is_tensor(each):
                each._bump_version()
    return arrays.get(id(result), result)


METHODS: dict[str, Callable[..., Any]] = {"__array_function__": __array_function__}
