"""`torch.utils.checkpoint`: runs the forward pass again instead of saving values for backward."""

from __future__ import annotations

from typing import Any

import plait.autograd

__all__ = ["checkpoint", "checkpoint_sequential", "get_device_states", "set_device_states"]

# keyword arguments of PyTorch's function that are not passed on
_OPTIONS = ("context_fn", "determinism_check", "debug", "early_stop")


def _settled(options: dict[str, Any]) -> dict[str, Any]:
    if options.get("context_fn") is not None:
        raise NotImplementedError(
            "torch.utils.checkpoint: `context_fn` is not there; everything is computed again"
        )
    kept = {name: value for name, value in options.items() if name not in _OPTIONS}
    kept["use_reentrant"] = bool(kept.get("use_reentrant"))
    return kept


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
    return plait.autograd.checkpoint(function, *args, **_settled(options))


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:
    """Return the result of a sequence of functions, which backward computes again by segments."""
    return plait.autograd.checkpoint_sequential(functions, segments, input, **_settled(options))


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return ``[], []``: the random states of the GPUs that the tensors are on."""
    return [], []


def set_device_states(devices: Any, states: Any, **options: Any) -> None:
    """Do nothing: there are no GPUs whose random states could be set."""
