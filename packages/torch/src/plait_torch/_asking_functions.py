"""Functions written in Python that call ``__torch_function__``, while a class or mode has it.

Operators call it by themselves. A function in Python would run up to its first operator, and a
class would see this operator in place of the function. So while a mode is entered, and once a class
with a ``__torch_function__`` of its own exists, such functions get other code, which calls the
handlers, and the function's own code if none answers. The function object stays the same in all
modules that imported it. A program without modes and such classes runs the functions unchanged.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import plait
from plait_abi.binding import Function
from plait_core import overrides

_lock = threading.RLock()
_users = 0  # modes that are entered
_kept = False  # a class exists
_unbound: dict[Any, Function] = {}  # what `torch` shows of functions that do not bind
_codes: dict[FunctionType, CodeType] = {}  # the own code of functions that ask
# called if no mode and no argument answered; returns NotImplemented if it does not answer either
_last: list[Callable[[Any, Any, Any], Any]] = []

# methods that programs call on classes, or that Python calls while an object is made
_NOT_METHODS = frozenset({
    "__array_function__", "__array_namespace__", "__array_ufunc__", "__class_getitem__", "__copy__",
    "__dir__", "__getstate__", "__init__", "__init_subclass__", "__new__", "__reduce__",
    "__subclasshook__", "__torch_dispatch__", "__torch_function__", "as_subclass",
})  # fmt: skip
# functions of `torch` that take no tensors, or accept objects of any kind
_NOT_FUNCTIONS = frozenset({
    "broadcast_shapes", "can_cast", "compile", "compiled_with_cxx11_abi", "dtype_of", "explain",
    "fork", "from_dlpack", "initial_seed", "is_distributed", "is_fusion_enabled", "is_storage",
    "is_tensor", "is_vulkan_available", "load", "manual_seed", "mark_written", "name_of", "paths",
    "promote_types", "report", "save", "seed", "typename", "use", "vmap", "wait",
})  # fmt: skip
_SETTINGS = ("_", "set_", "get_", "is_autocast", "is_grad_", "is_inference_mode", "is_warn", "use_",
             "autocast_", "clear_autocast", "are_", "is_deterministic", "is_anomaly")  # fmt: skip
_PRIVATE = ("_assert",)  # private functions that ask
_OF_INIT = ("constant_", "kaiming_uniform_", "normal_", "uniform_")


def _names() -> Iterator[tuple[Any, str]]:
    from plait_torch import _fx_names

    for function, name in _fx_names.functions().values():
        last = name.rpartition(".")[2]
        setting = last.startswith(_SETTINGS) and last not in _PRIVATE
        if last not in _NOT_FUNCTIONS and not setting:
            yield function, name
    init = plait.nn.init
    yield plait.autograd.grad, "torch.autograd.grad"
    for name in _OF_INIT:
        yield getattr(init, name), f"torch.nn.init.{name}"
    for name, value in vars(plait.Tensor).items():
        if name.startswith("_") and not name.startswith("__"):
            continue
        if name not in _NOT_METHODS:
            yield value, f"torch.Tensor.{name}"


def functions() -> list[tuple[FunctionType, str]]:
    """Return the functions in Python that ask, with their names in PyTorch; those of properties
    too, and those that do not bind.
    """
    results: list[tuple[FunctionType, str]] = []
    for value, name in _names():
        if isinstance(value, Function):
            results.append((value.__wrapped__, name))
            _unbound[value.__wrapped__] = value
        elif isinstance(value, FunctionType):
            results.append((value, name))
        elif isinstance(value, property):
            both = ((value.fget, "__get__"), (value.fset, "__set__"))
            results += [(f, f"{name}.{kind}") for f, kind in both if isinstance(f, FunctionType)]
    return results


_MARK = 0x706C616974  # stands for the function to call, in the code below


@functools.cache
def _template(free: tuple[str, ...]) -> CodeType:
    """Return the code of a function that calls a constant with its arguments, and has as many free
    variables as another one.
    """
    names = [f"_{i}" for i in range(len(free))]
    text = (
        f"def outer({', '.join(names)}):\n"
        "  def inner(*args, **kwargs):\n"
        f"    return {_MARK}(*args, **kwargs)\n"
        f"    {', '.join(names) or None}\n"
        "  return inner\n"
    )
    space: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a number is called
        exec(compile(text, __file__, "exec"), space)
    code: CodeType = space["outer"](*names).__code__
    return code


def _with_code(function: FunctionType, code: CodeType) -> FunctionType:
    result = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    result.__kwdefaults__ = function.__kwdefaults__
    return result


def _asker(function: FunctionType, public_function: Any) -> Any:
    """Return code that calls the handlers of a function, and its own code if none answers."""
    own = _with_code(function, function.__code__)
    ask = overrides.ask

    def asking(*args: Any, **kwargs: Any) -> Any:
        answer = ask(public_function, args, kwargs)
        for each in _last:
            if answer is NotImplemented:
                answer = each(public_function, args, kwargs)
        return own(*args, **kwargs) if answer is NotImplemented else answer

    return asking


def _find_public(function: FunctionType, name: str) -> Any:
    """Return the function for handlers: the function itself, or the method of a property."""
    first, _, last = name.rpartition(".")
    if last not in ("__get__", "__set__"):
        return _unbound.get(function, function)
    attribute = vars(plait.Tensor)[first.rpartition(".")[2]]
    return getattr(attribute, last)


def _place() -> None:
    for function, name in functions():
        if function in _codes:
            continue
        asker = _asker(function, _find_public(function, name))
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            continue
        own = function.__code__
        template = _template(own.co_freevars)
        consts = tuple(asker if each == _MARK else each for each in template.co_consts)
        _codes[function] = own
        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__code__ = template.replace(
            co_consts=consts, co_name=own.co_name, co_firstlineno=own.co_firstlineno,
            co_filename=own.co_filename,
        )  # fmt: skip


def _restore() -> None:
    for function, own in _codes.items():
        function.__code__ = own
        function.__dict__.pop("__signature__", None)
    _codes.clear()


def own(function: Any) -> Any:
    """Return a function of Python as it is without the code that asks."""
    code = _codes.get(function)
    return function if code is None else _with_code(function, code)


def are_asking() -> bool:
    """Return whether functions in Python ask now."""
    return bool(_codes)


def begin() -> None:
    """Let functions ask until `end`, which is called as often."""
    global _users
    with _lock:
        _users += 1
        if not _codes:
            _place()


def end() -> None:
    """Let functions run their own code again, if nothing else needs the handlers."""
    global _users
    with _lock:
        _users -= 1
        if not _users and not _kept:
            _restore()


def keep() -> None:
    """Let functions ask from now on."""
    global _kept
    with _lock:
        _kept = True
        if not _codes:
            _place()


def ask_last(answers: Callable[[Any, Any, Any], Any]) -> None:
    """Let functions ask from now on, and this one last: with the function, args and kwargs."""
    with _lock:
        if answers not in _last:
            _last.append(answers)
    keep()


def forget() -> None:
    """Let functions ask only as long as modes are entered."""
    global _kept
    with _lock:
        _kept = False
        _last.clear()
        if not _users:
            _restore()


# methods that are Python in PyTorch
_METHODS_WITH_ALL = ("istft", "lu", "norm", "split", "stft", "unique", "unique_consecutive")


@functools.cache
def _with_all() -> frozenset[int]:
    """Return the ids of functions that PyTorch shows with all arguments, those with defaults as
    keywords.
    """
    visible = ("torch.nn.functional.", "torch.functional.")
    methods = {f"torch.Tensor.{name}" for name in _METHODS_WITH_ALL}
    return frozenset(
        id(f) for f, name in functions() if name.startswith(visible) or name in methods
    )


def arguments(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments as PyTorch passes them to handlers."""
    request = function.__wrapped__ if isinstance(function, Function) else function
    if id(request) not in _with_all():
        return args, kwargs
    from plait_torch import _fx_recording

    return _fx_recording.all_arguments(function, args, kwargs)
