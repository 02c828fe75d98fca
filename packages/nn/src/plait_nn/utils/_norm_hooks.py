"""The base of weight norm and spectral norm by hooks."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, TypeVar

from plait_nn._module import Module
from plait_nn._parameter import Parameter

__all__ = ["NormHook"]

H = TypeVar("H", bound="NormHook")


class NormHook(abc.ABC):
    """A hook that computes a parameter's value before every call of its module."""

    what: ClassVar[str]  # the name in errors

    def __init__(self, name: str) -> None:
        self.name = name

    @abc.abstractmethod
    def __call__(self, module: Module, args: Any) -> None:
        """Set the parameter's value."""

    @classmethod
    def _find(cls: type[H], module: Module, name: str) -> tuple[int, H] | None:
        for number, hook in module._forward_pre_hooks.items():
            if isinstance(hook, cls) and hook.name == name:
                return number, hook
        return None

    @classmethod
    def of(cls: type[H], module: Module, name: str) -> tuple[int, H]:
        """Return the number and the hook of a parameter that must have one."""
        hook = cls._find(module, name)
        if hook is None:
            function = "remove_" + cls.what.replace(" ", "_")
            raise ValueError(f"{function}: `{name}` must have a {cls.what}; it has none")
        return hook

    @classmethod
    def parameter(cls, module: Module, name: str) -> Parameter:
        """Return a parameter that must not have such a hook yet."""
        function = cls.what.replace(" ", "_")
        if cls._find(module, name) is not None:
            raise RuntimeError(f"{function}: `{name}` must not have a {cls.what}; it has one")
        parameter = module._parameters.get(name)
        if parameter is None:
            raise ValueError(f"{function}: `{name}` must be a parameter of {type(module).__name__}")
        return parameter
