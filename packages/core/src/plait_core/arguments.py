"""Error texts of Python functions for arguments that should be tensors.

Operators check their arguments. A function made of operators may read an attribute first, and would
fail with the attribute's name. The arguments are checked only after a call has failed. Functions
that only pass their arguments on to operators are not changed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from plait_abi._binding import Function
from plait_core._core import is_tensor

__all__ = ["name_arguments"]

_ONE = frozenset({"Tensor", "Tensor | None"})
_READ = frozenset({"device", "dtype", "is_complex", "is_floating_point", "ndim", "numel", "shape"})
_MANY = frozenset({"Sequence[Tensor]", "list[Tensor]", "tuple[Tensor, ...]"})


def name_arguments(module: dict[str, Any]) -> None:
    """Make the public functions of a module say which argument is not a tensor.

    Args:
        module: its globals; the functions in ``__all__`` that read attributes of tensors, such as
            ``shape``, are replaced.

    Example:
        >>> from plait_core import Tensor
        >>> from plait_core.arguments import name_arguments
        >>> def half(input: Tensor) -> int:
        ...     return input.numel() // 2
        >>> module = {"__name__": "mine", "__all__": ["half"], "half": half}
        >>> name_arguments(module)
        >>> try:
        ...     module["half"](3)
        ... except TypeError as error:
        ...     print(error)
        half: `input` must be a Tensor, got int
    """
    for name in module["__all__"]:
        given = module.get(name)  # None: found on demand
        function = given.__wrapped__ if isinstance(given, Function) else given
        if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
            found = _tensors(function)
            if found and _READ & _names(function):
                naming = _naming(function, found)
                naming.__module__ = module["__name__"]  # where pickles find it
                module[name] = naming if function is given else Function(naming)


def _names(function: FunctionType) -> set[str]:
    """Return the attributes and globals that a function reads, including those of functions it
    calls in its module.
    """
    names = set(function.__code__.co_names)
    for name in function.__code__.co_names:
        helper = function.__globals__.get(name)
        if isinstance(helper, FunctionType) and helper.__module__ == function.__module__:
            names.update(helper.__code__.co_names)
    return names


def _tensors(function: FunctionType) -> dict[str, str]:
    """Return the parameters that are annotated as tensors."""
    notes = {
        name: getattr(note, "__name__", str(note)) if isinstance(note, type) else str(note)
        for name, note in function.__annotations__.items()
        if name != "return"
    }
    return {name: note for name, note in notes.items() if note in _ONE | _MANY}


def _naming(function: FunctionType, tensors: dict[str, str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            if str(error).startswith(f"{function.__name__}: "):
                raise
            text = _complaint(function, tensors, args, kwargs, isinstance(error, TypeError))
            if not text:
                raise
        raise TypeError(text)

    return call


def _complaint(
    function: FunctionType,
    tensors: dict[str, str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arrays_pass: bool,
) -> str:
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return ""  # Python's own text names the function and the argument
    for name, value in bound.items():
        if name not in tensors:
            continue
        several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        many = several or tensors[name] in _MANY
        for each in _wrong(value, many):
            if each is None and "None" in tensors[name]:
                continue
            if not (arrays_pass and hasattr(each, "__dlpack__")):
                kind = "None" if each is None else type(each).__name__
                got = kind if each is value else f"{kind} in it"
                what = "a sequence of Tensors" if many else "a Tensor"
                return f"{function.__name__}: `{name}` must be {what}, got {got}"
    return ""


def _wrong(value: Any, several: bool) -> Iterator[Any]:
    if not several:
        yield from () if is_tensor(value) else (value,)
    elif isinstance(value, (list, tuple)):
        yield from (each for each in value if not is_tensor(each))
    else:
        yield value
