"""NumPy's functions that are not ufuncs, on tensors, which return tensors.

Where plait has the function it runs, with gradients. For all others NumPy's own function runs on
arrays that share the tensors' memory, without gradients.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from plait_core._core import Tensor, from_numpy
from plait_core._numpy._fallback import by_numpy, mapped
from plait_core._numpy._table import adapter


def __array_function__(  # noqa: N807
    self: Tensor, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run plait's version of a NumPy function, or NumPy's own on arrays that share the memory."""
    import numpy as np

    for kind in types:
        if not issubclass(kind, Tensor) and kind not in (np.ndarray, np.memmap):
            return NotImplemented
    ours = adapter(func)
    if ours is None:
        return by_numpy(func, args, kwargs)
    values = [mapped(value, np.ndarray, from_numpy) for value in args]
    named = {key: mapped(value, np.ndarray, from_numpy) for key, value in kwargs.items()}
    out, kwarg_out = named.pop("out", None), kwargs.get("out")
    try:
        inspect.signature(ours).bind(*values, **named)
    except TypeError:  # an argument that plait's version does not have
        return by_numpy(func, args, kwargs)
    result = ours(*values, **named)
    if kwarg_out is None:
        return result
    out.copy_(result)
    return kwarg_out


METHODS: dict[str, Callable[..., Any]] = {"__array_function__": __array_function__}
