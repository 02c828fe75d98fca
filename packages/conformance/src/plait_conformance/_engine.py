"""Functions for the tests of role ``engine``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import plait_abi

RETAIN, CREATE, ALLOW_UNUSED = 1, 2, 4  # PLAIT_BACKWARD_* of plait/abi.h


def engine_in_force() -> str | None:
    """Return the plug-in that provides the role."""
    for record in plait_abi.records():
        if (record.kind, record.name, record.active) == ("role", "engine", True):
            return record.provider
    return None


def leaf(values: Any, dtype: str = "float64") -> Any:
    """Make a tensor that requires grad, with a copy of the values."""
    core = plait_abi.require("core")
    return core.from_numpy(np.array(values, dtype=dtype)).requires_grad_()


def backward(root: Any, seed: Any = None, flags: int = 0) -> None:
    """Accumulate into the leaves."""
    plait_abi.run_backward((root,), (seed,), None, flags)


def gradients(root: Any, *inputs: Any, seed: Any = None, flags: int = 0) -> tuple[Any, ...]:
    """Return the gradients of `inputs`."""
    return plait_abi.run_backward((root,), (seed,), inputs, flags)


def mode() -> bool:
    """Return whether this thread records operators."""
    before = plait_abi.set_grad_enabled(True)
    plait_abi.set_grad_enabled(before)
    return before


class no_grad:  # noqa: N801
    """A context manager that turns recording off, by the role's functions."""

    def __enter__(self) -> None:
        self.before = plait_abi.set_grad_enabled(False)

    def __exit__(self, *error: object) -> None:
        plait_abi.set_grad_enabled(self.before)


def right_or_refused(program: Callable[..., Any], *points: Any) -> bool:
    """Compare the gradients of a program with central differences, or accept a NotImplementedError.

    An engine must raise NotImplementedError for a program that it cannot differentiate, and must
    not return a wrong gradient.

    Args:
        program: a function of float64 tensors that returns one number.
        points: an array for each tensor.

    Returns:
        False if the engine raised NotImplementedError.
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
        for index in np.ndindex(np.shape(point)):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [np.array(p, dtype="float64") for p in points]
                moved[k][index] += step
                ends.append(program(*[core.from_numpy(array) for array in moved]).item())
            want[index] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6, err_msg=f"input {k}")
    return True
