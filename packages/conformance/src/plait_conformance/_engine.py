"""What the contract of role ``engine`` is written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import plait_abi

__all__ = [
    "ALLOW_UNUSED",
    "CREATE",
    "RETAIN",
    "backward",
    "engine_in_force",
    "gradients",
    "leaf",
    "mode",
    "no_grad",
    "right_or_refused",
]

RETAIN, CREATE, ALLOW_UNUSED = 1, 2, 4  # PLAIT_BACKWARD_* of plait/abi.h


def engine_in_force() -> str | None:
    """Return the plug-in that provides the role."""
    for record in plait_abi.records():
        if (record.kind, record.name, record.active) == ("role", "engine", True):
            return record.provider
    return None


def leaf(values: Any, dtype: str = "float64") -> Any:
    """Make a tensor that requires grad, of values of its own."""
    core = plait_abi.require("core")
    return core.from_numpy(np.array(values, dtype=dtype)).requires_grad_()


def backward(root: Any, seed: Any = None, flags: int = 0) -> None:
    """Accumulate into the leaves."""
    plait_abi.run_backward((root,), (seed,), None, flags)


def gradients(root: Any, *inputs: Any, seed: Any = None, flags: int = 0) -> tuple[Any, ...]:
    """Return the gradients of `inputs`."""
    return plait_abi.run_backward((root,), (seed,), inputs, flags)


def mode() -> bool:
    """Whether this thread records."""
    before = plait_abi.set_grad_enabled(True)
    plait_abi.set_grad_enabled(before)
    return before


class no_grad:  # noqa: N801
    """Switches recording off for a block, through the role."""

    def __enter__(self) -> None:
        self.before = plait_abi.set_grad_enabled(False)

    def __exit__(self, *error: object) -> None:
        plait_abi.set_grad_enabled(self.before)


def right_or_refused(program: Callable[..., Any], *points: Any) -> bool:
    """Compare the gradients of a program with central differences, or accept that it is refused.

    What an engine cannot differentiate it must refuse with a NotImplementedError that says so; it
    must not give another gradient.

    Args:
        program: takes tensors of float64 and returns one number.
        points: arrays, one a tensor.

    Returns:
        False if the engine refused.
    """
    core = plait_abi.require("core")
    leaves = [leaf(point) for point in points]
    try:
        backward(program(*leaves))
    except NotImplementedError as error:
        assert str(error), "a refusal must say what is refused"
        return False
    for k, point in enumerate(points):
        gradient = leaves[k].grad
        got = np.zeros(np.shape(point)) if gradient is None else gradient.numpy()
        want = np.zeros(np.shape(point))
        for place in np.ndindex(np.shape(point)):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [np.array(p, dtype="float64") for p in points]
                moved[k][place] += step
                ends.append(program(*[core.from_numpy(array) for array in moved]).item())
            want[place] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6, err_msg=f"input {k}")
    return True
