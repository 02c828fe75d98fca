"""Error texts of Python functions for arguments of the wrong kind.

Operators check their arguments. A function made of operators may read an attribute or compare a
number first, and would fail with a text of Python about its inside. The arguments are compared with
the function's annotations only after a call has failed. A function that only passes its arguments
on to operators, and is called often, is marked with `passes_on` and stays as it is.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType, NoneType
from typing import Any, TypeVar

from plait_abi.binding import Function

__all__ = ["name_arguments", "name_constructor", "passes_on"]

_F = TypeVar("_F", bound=Callable[..., Any])


class _Tensor:
    """The meaning of `Tensor` in annotations, for any package's tensors."""


_KNOWN = {
    "Any": Any, "Callable": Callable, "Iterable": Iterable, "Sequence": Sequence, "Tensor": _Tensor,
}  # fmt: skip


def name_arguments(module: dict[str, Any]) -> None:
    """Make the public functions of a module say which argument is of the wrong kind.

    Args:
        module: its globals; the functions in ``__all__`` whose parameters have annotations are
            replaced.

    Example:
        >>> from plait_abi.arguments import name_arguments
        >>> def half(input: "Tensor") -> int:
        ...     return input.numel() // 2
        >>> module = {"__name__": "mine", "__all__": ["half"], "half": half}
        >>> name_arguments(module)
        >>> try:
        ...     module["half"](3)
        ... except TypeError as error:
        ...     print(error)
        half: `input` must be a Tensor, got int
    """
    result: dict[FunctionType, Any] = {}  # two names of a function stay one
    for name in module["__all__"]:
        argument = module.get(name)  # None: found on demand
        function = argument.__wrapped__ if isinstance(argument, Function) else argument
        if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
            if function in result:
                module[name] = result[function]
            elif _has_annotations(function) and not hasattr(function, "_passes_on"):
                naming = _with_name(function, function.__name__)
                naming.__module__ = module["__name__"]  # where pickles find it
                module[name] = result[function] = (
                    naming if function is argument else Function(naming)
                )


def passes_on(function: _F) -> _F:
    """Mark a function whose operators check all arguments: `name_arguments` leaves it as it is.

    A call through the replacement takes 0.1 microseconds longer, as long as a small operator.

    Example:
        >>> from plait_abi.arguments import passes_on
        >>> @passes_on
        ... def total(input: "Tensor") -> "Tensor":
        ...     return input.sum()
    """
    function._passes_on = True  # type: ignore[attr-defined]
    return function


def _has_annotations(function: FunctionType) -> bool:
    return not set(function.__annotations__) <= {"return"}


def name_constructor(cls: type, constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Return a constructor of a class that says which argument is of the wrong kind.

    Example:
        >>> from plait_abi.arguments import name_constructor
        >>> class Ring:
        ...     def __init__(self, size: int):
        ...         self.last = size - 1
        >>> Ring.__init__ = name_constructor(Ring, Ring.__init__)
        >>> try:
        ...     Ring("a")
        ... except TypeError as error:
        ...     print(error)
        Ring: `size` must be an int, got str
    """
    if not isinstance(constructor, FunctionType):
        return constructor
    return _with_name(constructor, cls.__name__)


def _with_name(function: FunctionType, public_name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError, ValueError) as error:
            if str(error).startswith(f"{public_name}: ") or _is_raised(error):
                raise
            text = _complaint(
                function, public_name, args, kwargs, not isinstance(error, AttributeError)
            )
            if not text:
                raise
        raise TypeError(text)

    return call


def _is_raised(error: Exception) -> bool:
    """Return whether code in Python has raised an error, with a text of its own, by `raise`.

    The line of the source says so. Errors of this module may be about arguments that a caller of
    the function had got.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_globals is globals():
        return False
    import linecache  # takes longer than the rest of this module, as `inspect` does

    frame = trace.tb_frame  # its globals find the source of a module in an archive
    line = linecache.getline(frame.f_code.co_filename, trace.tb_lineno, frame.f_globals)
    return line.lstrip().startswith("raise ")


def _complaint(
    function: FunctionType,
    public_name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arrays_pass: bool,
) -> str:
    import inspect

    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return ""  # Python's own text names the function and the argument
    notes = _annotations(function)
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        required = notes.get(name, Any)
        if kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if kind is inspect.Parameter.VAR_POSITIONAL:
            required = Sequence[required]  # type: ignore[valid-type]
        wrong = _wrong(value, required, arrays_pass)
        if wrong:
            got = "None" if wrong[0] is None else type(wrong[0]).__name__
            inside = "" if wrong[0] is value else " in it"
            return f"{public_name}: `{name}` must be {_text(required)}, got {got}{inside}"
    return ""


def _annotations(function: FunctionType) -> dict[str, Any]:
    """Return the annotations, without those of names that are only there for type checkers."""
    results = {}
    for name, note in function.__annotations__.items():
        one = types.SimpleNamespace(__annotations__={name: note})
        space = {**function.__globals__, **_KNOWN}
        try:
            results.update(typing.get_type_hints(one, space))
        except (NameError, TypeError, AttributeError):
            continue
    return results


def _options(required: Any) -> tuple[Any, ...]:
    if typing.get_origin(required) in (typing.Union, types.UnionType):
        return typing.get_args(required)
    return (required,)


def _wrong(value: Any, required: Any, arrays_pass: bool) -> list[Any]:
    """Return what does not fit an annotation, the value or one in it: one object, or none."""
    options = _options(required)
    results = [_wrong_for(value, each, arrays_pass) for each in options]
    if any(not each for each in results):
        return []
    inside = [each for each in results if each[0] is not value]
    return inside[0] if inside else [value]


def _wrong_for(value: Any, required: Any, arrays_pass: bool) -> list[Any]:
    origin = typing.get_origin(required)
    if origin in _SEQUENCES or required in _SEQUENCES:
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            return [value]
        element = next(iter(typing.get_args(required)), Any)
        if not isinstance(value, (list, tuple)):
            return []
        return next((w for each in value if (w := _wrong(each, element, arrays_pass))), [])
    if required is _Tensor:
        kind = type(value)
        fits = hasattr(kind, "__plait_tensor__") or (arrays_pass and hasattr(kind, "__dlpack__"))
        return [] if fits else [value]
    if required in _METHODS:
        fits = hasattr(value, _METHODS[required]) and not isinstance(value, type)
    elif required is NoneType:
        fits = value is None
    elif required is str:
        fits = isinstance(value, str)
    elif origin is Callable or origin is typing.get_origin(Callable[..., Any]):
        fits = callable(value)
    elif isinstance(required, type) and required not in (Any, bool, object):
        fits = _is_instance(value, required)
    else:
        fits = True
    return [] if fits else [value]


def _is_instance(value: Any, required: type) -> bool:
    try:
        return isinstance(value, required)
    except TypeError:  # a protocol, or another type that only checkers know
        return True


_SEQUENCES = {Sequence, Iterable, list, tuple}
# whoever has the method is taken for such a number
_METHODS = {int: "__index__", float: "__float__", complex: "__abs__"}
_SINGULAR = {
    int: "an int", float: "a number", complex: "a number", bool: "a bool", str: "a string",
    _Tensor: "a Tensor", NoneType: "None",
}  # fmt: skip
_PLURAL = {
    int: "ints", float: "numbers", complex: "numbers", bool: "bools", str: "strings",
    _Tensor: "Tensors", NoneType: "None",
}  # fmt: skip


def _text(required: Any, several: bool = False) -> str:
    texts: list[str] = []
    for each in _options(required):
        text = _text_of(each, several)
        if text not in texts:
            texts.append(text)
    return " or ".join([each for each in texts if each != "None"] + ["None"] * ("None" in texts))


def _text_of(required: Any, several: bool) -> str:
    if typing.get_origin(required) in _SEQUENCES or required in _SEQUENCES:
        inner = next(iter(typing.get_args(required)), Any)
        return "sequences" if several else f"a sequence of {_text(inner, True)}"
    if required in _SINGULAR:
        return (_PLURAL if several else _SINGULAR)[required]
    if callable(required) and isinstance(required, type):
        return f"{required.__name__}s" if several else f"a {required.__name__}"
    if typing.get_origin(required) is typing.get_origin(Callable[..., Any]):
        return "functions" if several else "a function"
    return "objects" if several else "an object"
