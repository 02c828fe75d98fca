"""Values compared by their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core as pc


def bits(value: Any) -> Any:
    """Return a value in a form that ``==`` compares by bits, dtypes and shapes."""
    if isinstance(value, pc.Tensor):
        value = value.detach()
        if value.dtype == pc.bfloat16:
            value = value.view(pc.int16)
        array = value.contiguous().clone().numpy()  # memory that NumPy has had is no longer ours
        return (str(value.dtype), tuple(value.shape), array.tobytes())
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits(item) for item in value]
    return value


def assert_same(got: Any, expected: Any) -> None:
    """Raise if one of the values has other bits, another dtype or another shape."""
    assert bits(got) == bits(expected), (got, expected)


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.function(*args, **kwargs)
