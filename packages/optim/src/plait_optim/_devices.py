"""Arrays on several devices: operators run on one, and numbers stay where they were computed."""

from __future__ import annotations

from typing import Any

from plait_optim._arrays import number, sort_of
from plait_optim._component import operator


def by_device(arrays: list[Any]) -> dict[str, list[int]]:
    """Return the positions of the arrays on each device; what isn't plait's is on the CPU."""
    parts: dict[str, list[int]] = {}
    for position, array in enumerate(arrays):
        device = str(array.device) if sort_of(type(array)) == "plait" else "cpu"
        parts.setdefault(device, []).append(position)
    return parts


def norm_of(arrays: list[Any]) -> Any:
    """Return the 2-norm of all arrays together, as a 0-d result on their device; on one other than
    the CPU if they are on several.
    """
    norm = operator("grad_norm")
    try:
        return norm(arrays)
    except ValueError:
        parts = by_device(arrays)
        if len(parts) < 2:
            raise
    norms = {device: norm([arrays[i] for i in positions]) for device, positions in parts.items()}
    there = next(device for device in norms if device != "cpu")
    return norm([each.to(there) for each in norms.values()])


def number_on(value: Any, array: Any) -> Any:
    """Return a number, a float or a 0-d tensor, for arithmetic with an array."""
    if isinstance(value, float):
        return value
    return value.to(array.device) if sort_of(type(array)) == "plait" else number(value)
