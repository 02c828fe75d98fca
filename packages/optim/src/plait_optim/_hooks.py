"""Hooks of optimizers, and handles to remove them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["Hooks", "RemovableHandle", "hooked"]


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
    """Hooks of one kind by number, in the order of their calls."""

    _next = 0

    def register(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Add a hook at the end, or at the beginning with ``prepend``."""
        number = self._next
        self._next += 1
        later = dict(self) if prepend else {}
        if prepend:
            self.clear()
        self[number] = hook
        self.update(later)
        return RemovableHandle(self, number)

    def in_order(self) -> list[Callable[..., Any]]:
        """Return a copy of the list of hooks, as a hook may remove itself while it runs."""
        return list(self.values())

    # a copied or a loaded optimizer starts without hooks, as in PyTorch
    def __reduce__(self) -> tuple[type[Hooks], tuple[()]]:
        return Hooks, ()


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """Run an optimizer's step hooks around a ``step`` method, for the outermost call only."""
    if getattr(step, "hooked", False):
        return step

    @functools.wraps(step)
    def with_hooks(self: Any, *args: Any, **kwargs: Any) -> Any:
        # an optimizer that wraps another may not have called `__init__`; then it has no hooks
        known = self.__dict__
        before, after = known.get("_step_pre_hooks"), known.get("_step_post_hooks")
        if not (before or after) or before is None or after is None or self._stepping:
            return step(self, *args, **kwargs)
        args = (self, *args)
        self._stepping = True
        try:
            for hook in before.in_order():
                changed = hook(self, args, kwargs)
                if changed is not None:
                    args, kwargs = _checked(changed)
            result = step(*args, **kwargs)
            for hook in after.in_order():
                hook(self, args, kwargs)
            return result
        finally:
            self._stepping = False

    with_hooks.hooked = True  # type: ignore[attr-defined]
    return with_hooks


def _checked(changed: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(changed, tuple) and len(changed) == 2:
        return changed
    raise RuntimeError(
        "a step pre hook must return None or a tuple of new arguments and keyword arguments; "
        f"got {changed!r}"
    )
