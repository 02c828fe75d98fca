"""`torch.utils._contextlib`: contexts that decorate functions."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _DecoratorContextManager(ContextDecorator):
    """The base of context managers that decorate functions; each call enters a `clone`."""

    def clone(self) -> Any:
        """Return a new context manager; one with arguments overrides this."""
        return self.__class__()

    def _recreate_cm(self) -> Any:
        return self.clone()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same without arguments: the class itself decorates a function."""

    def __new__(cls, orig_func: Any = None) -> Any:
        self = super().__new__(cls)
        return self if orig_func is None else self(orig_func)
