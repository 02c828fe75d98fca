"""`torch.utils.checkpoint`: runs the forward pass again instead of saving values for backward."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import wraps
from typing import Any

import plait
import plait.autograd
from plait_autograd.checkpointing import CheckpointError
from plait_torch._autocast import same_regions

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

# keyword arguments of PyTorch's function that are not passed on
_OPTIONS = ("context_fn", "determinism_check", "debug", "early_stop")


def _settled(options: dict[str, Any]) -> dict[str, Any]:
    if options.get("context_fn") not in (None, noop_context_fn):
        raise NotImplementedError(
            "torch.utils.checkpoint: `context_fn` is not available; everything is computed again"
        )
    selection = {name: value for name, value in options.items() if name not in _OPTIONS}
    selection["use_reentrant"] = bool(selection.get("use_reentrant"))
    return selection


def _with_regions(function: Any) -> Any:
    """Return the function as it runs now: with the regions of `autocast` that are active."""
    if not callable(function):
        return function  # refused behind
    regions = same_regions()

    @wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        with regions:
            return function(*args, **kwargs)

    return run


def checkpoint(function: Any, *args: Any, **options: Any) -> Any:
    """Return ``function(*args)``, which is called again in the backward pass.

    Args:
        function: the function, which is called twice.
        args: its arguments; keyword arguments go to it as well.
        options: ``use_reentrant`` and ``preserve_rng_state``, see `plait.autograd.checkpoint`; None
            is False.

    Example:
        >>> import plait
        >>> from plait_torch._checkpoint import checkpoint
        >>> x = plait.ones(2, requires_grad=True)
        >>> checkpoint(lambda x: x.exp().sum(), x, use_reentrant=False).backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """
    return plait.autograd.checkpoint(_with_regions(function), *args, **_settled(options))


class CheckpointFunction:
    """The function behind PyTorch's reentrant `checkpoint`, which programs call by ``apply``.

    Example:
        >>> import plait
        >>> from plait_torch._checkpoint import CheckpointFunction
        >>> x = plait.ones(2, requires_grad=True)
        >>> CheckpointFunction.apply(lambda x: (3 * x).sum(), True, x).backward()
        >>> x.grad
        tensor([3., 3.])
    """

    @staticmethod
    def apply(run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Return ``run_function(*args)``, which is called again in the backward pass."""
        return checkpoint(
            run_function, *args, use_reentrant=True, preserve_rng_state=preserve_rng_state
        )


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:
    """Return the result of a sequence of functions, which backward computes again by segments."""
    steps = functions.children() if hasattr(functions, "children") else functions
    return plait.autograd.checkpoint_sequential(
        [_with_regions(each) for each in steps], segments, input, **_settled(options)
    )


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return ``[], []``: the random states of the GPUs that the tensors are on."""
    return [], []


def set_device_states(devices: Any, states: Any, **options: Any) -> None:
    """Do nothing: there are no GPUs whose random states could be set."""


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return two contexts that do nothing: the default of `checkpoint`'s ``context_fn``."""
    return nullcontext(), nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the tensors detached, and requiring grad as before; other values as they are.

    Example:
        >>> import plait
        >>> from plait_torch._checkpoint import detach_variable
        >>> x = plait.ones(1, requires_grad=True) * 2
        >>> detach_variable((x, 3))
        (tensor([2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: a tuple is required; got {type(inputs).__name__}")
    return tuple(
        each.detach().requires_grad_(each.requires_grad) if plait.is_tensor(each) else each
        for each in inputs
    )


def check_backward_validity(inputs: Any) -> None:
    """Do nothing: `checkpoint` always gives the gradients of all tensors that its function uses."""


class CheckpointPolicy(Enum):
    """What PyTorch's selective checkpoints keep; here everything is computed again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


class _WithoutEffect(nullcontext[None]):
    def __init__(self, enabled: Any = None) -> None:
        super().__init__()


class set_checkpoint_debug_enabled(_WithoutEffect):  # noqa: N801 - PyTorch's name
    """A context manager without effect."""


class set_checkpoint_early_stop(_WithoutEffect):  # noqa: N801 - PyTorch's name
    """A context manager without effect: the function runs again to its end."""
