"""The handle that the registration of a hook returns."""

from __future__ import annotations

from collections.abc import Callable


class RemovableHandle:
    """A handle that removes a hook: by `remove`, or at the end of a ``with``.

    It keeps neither the hook's node nor the graph alive.

    Args:
        hook: The hook.
        unhook: Called to remove it.

    Example:
        >>> import plait_core as pc
        >>> x = pc.ones(2, requires_grad=True)
        >>> with x.register_hook(lambda g: 2 * g):
        ...     x.sum().backward()
        >>> x.sum().backward()
        >>> x.grad.tolist()
        [3.0, 3.0]
    """

    __slots__ = ("_hook", "_unhook")

    def __init__(self, hook: object, unhook: Callable[[object], None]) -> None:
        self._hook: object | None = hook
        self._unhook = unhook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        hook, self._hook = self._hook, None
        if hook is not None:
            self._unhook(hook)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
