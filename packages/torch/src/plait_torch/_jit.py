"""`torch.jit`: code that PyTorch compiles runs as Python code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import plait
from plait_torch._futures import Future

__all__ = [
    "Attribute",
    "Final",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "_copy_to_script_wrapper",
    "_overload",
    "_overload_method",
    "_script_if_tracing",
    "annotate",
    "boolean_dispatch",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

T = TypeVar("T")
_isinstance = isinstance


class ScriptModule(plait.nn.Module):
    """A `Module`, as a base class; `script` does not return one.

    It has no graph: ``save`` raises, and ``code`` and ``graph`` do not exist.
    """

    def save(self, f: Any, **kwargs: Any) -> NoReturn:
        """Raise; see `save` of this module."""
        save(self, f)


class ScriptFunction:
    """A class without instances: `script` returns functions unchanged."""


def script(obj: T, *args: Any, **kwargs: Any) -> T:
    """Return a function, a module or a class unchanged.

    PyTorch compiles it, with the same results; plait runs it as Python code.

    Example:
        >>> from plait_torch._jit import script
        >>> @script
        ... def double(x):
        ...     return x * 2
        >>> double(3)
        6
    """
    return obj


def trace(func: T, example_inputs: Any = None, *args: Any, **kwargs: Any) -> T:
    """Return a function or a module unchanged, after one call with the examples.

    PyTorch records the path of this call; in plait conditions are evaluated in every call.

    Example:
        >>> import plait
        >>> from plait_torch._jit import trace
        >>> trace(lambda x: x + 1, plait.zeros(1))(plait.ones(1))
        tensor([2.])
    """
    if example_inputs is not None and callable(func):
        inputs = example_inputs if _isinstance(example_inputs, (tuple, list)) else (example_inputs,)
        with plait.no_grad():
            func(*inputs)
    return func


def trace_module(mod: T, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> T:
    """Return a module unchanged, after a call of each method with its examples."""
    for name, examples in inputs.items():
        trace(getattr(mod, name), examples)
    return mod


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise: there is no graph to write."""
    raise NotImplementedError(
        "torch.jit.save: plait runs Python as it stands and has no graph to write; "
        "torch.save the module's state_dict"
    )


def load(f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise: plait does not support TorchScript."""
    raise NotImplementedError(
        "torch.jit.load: plait does not run TorchScript; build the module from its class and "
        "load a state_dict"
    )


def _same(obj: T, *args: Any, **kwargs: Any) -> T:
    return obj


freeze = optimize_for_inference = export = interface = script_method = script_if_tracing = _same
_overload = _overload_method = _script_if_tracing = _same


class TracerWarning(Warning):
    """The class of warnings of PyTorch's tracer, which plait does not raise."""


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
    """Call the function at once, as PyTorch does outside of TorchScript, and return a future of its
    result.

    Example:
        >>> from plait_torch._jit import fork, wait
        >>> wait(fork(max, 1, 3))
        3
    """
    future: Future[T] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[T]) -> T:
    """Return the result of a future of `fork`."""
    return future.wait()


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return the function unchanged; also ``@ignore(drop=True)``."""
    return drop if callable(drop) else _same


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged."""
    return fn


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged."""
    return fn


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value."""
    return the_value


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """Return a function that calls one of two by the value of an argument.

    Example:
        >>> from plait_torch._jit import boolean_dispatch
        >>> pick = boolean_dispatch(
        ...     "up", 1, False, lambda x, up: x + 1, lambda x, up=False: x - 1, "", "pick"
        ... )
        >>> pick(1), pick(1, True), pick(1, up=True)
        (0, 2, 2)
    """

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        choice = args[arg_index] if len(args) > arg_index else kwargs.get(arg_name, default)
        return (if_true if choice else if_false)(*args, **kwargs)

    dispatch.__name__ = dispatch.__qualname__ = func_name
    dispatch.__doc__ = if_true.__doc__ or if_false.__doc__
    return dispatch


def Attribute(value: T, type: Any) -> T:  # noqa: N802 - PyTorch's name
    """Return the value."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether the object is an instance of the type, without checking type arguments."""
    origin = getattr(target_type, "__origin__", target_type)
    return _isinstance(obj, origin)


def is_scripting() -> bool:
    """Return False: code runs as Python code."""
    return False


def is_tracing() -> bool:
    """Return False: nothing is traced."""
    return False
