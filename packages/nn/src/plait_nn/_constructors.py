"""Checks of the arguments with which layers are constructed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

from plait_abi.arguments import name_constructor
from plait_core import Tensor


def check_constructor(cls: type) -> None:
    """Let errors of a layer's constructor name the layer and the argument, also where a private
    base class defines it; a tensor for another argument than a weight says how a layer is called.
    """
    result = cls.__init__  # type: ignore[misc]
    own = "__init__" in vars(cls) or result.__qualname__.startswith("_")
    if (
        cls.__module__.startswith("plait_nn.")
        and not cls.__name__.startswith("_")
        and isinstance(result, FunctionType)
        and own
    ):
        function = FunctionType(
            result.__code__,
            result.__globals__,
            result.__name__,
            result.__defaults__,
            result.__closure__,
        )
        function.__kwdefaults__, function.__doc__ = result.__kwdefaults__, result.__doc__
        function.__annotations__, function.__module__ = result.__annotations__, result.__module__
        function.__qualname__ = f"{cls.__qualname__}.__init__"
        named = name_constructor(cls, function)
        cls.__init__ = _refuse_inputs(named)  # type: ignore[misc]


def _refuse_inputs(constructor: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that refuses tensors, except for arguments that may be tensors."""

    @functools.wraps(constructor)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        for index, value in enumerate(args):
            if isinstance(value, Tensor) and value.ndim:  # one without dimensions is a number
                _check_tensor(type(self).__name__, constructor, index, value)
        constructor(self, *args, **kwargs)

    return construct


def _check_tensor(name: str, constructor: Callable[..., None], index: int, value: Tensor) -> None:
    """Raise unless the constructor's positional argument `index` may be a tensor."""
    _, *parameters = signature(constructor).parameters.values()  # without self
    names = [each.name for each in parameters if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    takes_more = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters)
    allowed = {each.name for each in parameters if "Tensor" in str(each.annotation)}
    argument = names[index] if index < len(names) else f"argument {index + 1}"
    if argument not in allowed and (index < len(names) or not takes_more):
        raise TypeError(
            f"{name}: `{argument}` must not be a tensor; got one of shape {tuple(value.shape)}. "
            f"{called_afterwards(name)}"
        )


def called_afterwards(name: str) -> str:
    """Return the sentence that says how a layer gets its input."""
    call = f"layer = {name}(...), then layer(input)"
    return f"A layer is constructed first and called with the tensor afterwards: {call}"
