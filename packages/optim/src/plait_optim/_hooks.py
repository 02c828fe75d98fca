"""Hooks of optimizers, and handles to remove them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import plait_abi

_RANGE = 16  # PLAIT_EVENT_RANGE
# PyTorch's names: optimizers that wrap another one put dicts there
_BEFORE, _AFTER = "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"


class RemovableHandle:
    """A handle that removes a hook: by `remove`, or at the end of a ``with``."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], number: int) -> None:
        self._hooks = hooks
        self.id = number

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class Hooks(dict[int, Callable[..., Any]]):
    """Hooks of one kind by number, in the order of their calls. A plain dict does as well."""

    # a copied or a loaded optimizer starts without hooks, as in PyTorch
    def __reduce__(self) -> tuple[type[Hooks], tuple[()]]:
        return Hooks, ()


_numbers = itertools.count()
_all_pre_hooks, _all_post_hooks = Hooks(), Hooks()


def register(
    hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    """Add a hook at the end, or at the beginning with ``prepend``."""
    number = next(_numbers)
    later = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[number] = hook
    hooks.update(later)
    return RemovableHandle(hooks, number)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer.

    It may return new arguments, as a hook of `Optimizer.register_step_pre_hook`. Hooks of all
    optimizers run before an optimizer's own.

    Args:
        hook: The function to call.

    Example:
        >>> import numpy as np, plait_optim as optim
        >>> sgd = optim.SGD([np.ones(2)], lr=0.1)
        >>> with optim.register_optimizer_step_pre_hook(lambda *args: print("a step")):
        ...     sgd.step(grads=[np.ones(2)])
        a step
    """
    return register(_all_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer.

    Args:
        hook: The function to call.

    Example:
        >>> import numpy as np, plait_optim as optim
        >>> sgd = optim.SGD([np.ones(2)], lr=0.1)
        >>> with optim.register_optimizer_step_post_hook(lambda *args: print("done")):
        ...     sgd.step(grads=[np.ones(2)])
        done
    """
    return register(_all_post_hooks, hook)


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """Run an optimizer's step hooks around a ``step`` method, for the outermost call only.

    Observers see the call as a range, with the name that PyTorch gives it.
    """
    if getattr(step, "hooked", False):
        return step

    @functools.wraps(step)
    def with_hooks(self: Any, *args: Any, **kwargs: Any) -> Any:
        # an optimizer that wraps another may not have called `__init__`; then it has no hooks
        attributes = self.__dict__
        before, after = attributes.get(_BEFORE), attributes.get(_AFTER)
        if before is None or after is None or self._stepping:
            return step(self, *args, **kwargs)
        self._opt_called = True  # for schedules, which are stepped afterwards
        if not (before or after or _all_pre_hooks or _all_post_hooks or plait_abi.observed(_RANGE)):
            return step(self, *args, **kwargs)
        args = (self, *args)
        self._stepping = True
        try:
            with plait_abi.Range(f"Optimizer.step#{type(self).__name__}.step"):
                for hook in (*_all_pre_hooks.values(), *before.values()):
                    changed = hook(self, args, kwargs)
                    if changed is not None:
                        args, kwargs = _pair(changed)
                result = step(*args, **kwargs)
                for hook in (*_all_post_hooks.values(), *after.values()):
                    hook(self, args, kwargs)
            return result
        finally:
            self._stepping = False

    with_hooks.hooked = True  # type: ignore[attr-defined]
    return with_hooks


def _pair(changed: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(changed, tuple) and len(changed) == 2:
        return changed
    raise RuntimeError(
        "a step pre hook must return None or a tuple of new arguments and keyword arguments; "
        f"got {changed!r}"
    )
