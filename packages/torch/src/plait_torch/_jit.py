"""`torch.jit`: archives of TorchScript, and modules and functions that run as Python code."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final, TypeVar

import plait
from plait_torch import _torchscript, _traced_graph
from plait_torch._futures import Future
from plait_torch._torchscript import (
    Error,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    _scripting,
    load,
    save,
)

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "_copy_to_script_wrapper",
    "_get_trace_graph",
    "_overload",
    "_overload_method",
    "_script_if_tracing",
    "_unwrap_optional",
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
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

T = TypeVar("T")
_get_trace_graph = _traced_graph.get_trace_graph
_isinstance = isinstance


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """Return a module or function of TorchScript: `ScriptModule`, `ScriptFunction`.

    It runs as Python code, with the results of the original, whose tensors a module shares; a class
    is returned unchanged.

    With `example_inputs`, a list of tuples of arguments, it can be saved: the archive has what a
    call with the first example records, as after `trace`. Branches on the elements of tensors are
    refused then, so that no other program is written.

    Example:
        >>> from plait_torch._jit import script
        >>> @script
        ... def double(x):
        ...     return x * 2
        >>> double(3)
        6
    """
    return _scripting.script(obj, example_inputs)


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return a module or function of TorchScript, after one call with the examples.

    It runs as Python code: conditions are evaluated in every call, where PyTorch keeps the path of
    the example. `save` writes an archive of what a call with the example records, whose sizes are
    free where they can be.

    Example:
        >>> import plait
        >>> from plait_torch._jit import trace
        >>> trace(lambda x: x + 1, plait.zeros(1))(plait.ones(1))
        tensor([2.])
    """
    named = kwargs.get("example_kwarg_inputs")
    if (example_inputs is None and named is None) or not callable(func):
        return _scripting.script(func)
    inputs = example_inputs if _isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    inputs = () if example_inputs is None else tuple(inputs)
    with plait.no_grad():
        func(*inputs, **(named or {}))
    return _scripting.trace(func, inputs, dict(named or {}))


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Return a module of TorchScript, after a call of each method with its examples."""
    examples = dict(inputs)
    forward = examples.pop("forward", None)
    for name, each in examples.items():
        with plait.no_grad():
            getattr(mod, name)(*(each if _isinstance(each, tuple) else (each,)))
    return trace(mod, forward)


class CompilationUnit:
    """Functions of a text in TorchScript.

    Args:
        lang: the text: functions with types, as an archive has them.

    Example:
        >>> import plait
        >>> from plait_torch._jit import CompilationUnit
        >>> unit = CompilationUnit("def positive(x):\\n    return torch.relu(x) + 1")
        >>> unit.positive(plait.tensor([-1.0, 2.0]))
        tensor([1., 3.])
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._functions: dict[str, Any] = {}
        if lang is not None:
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Add the functions of a text."""
        unit = _torchscript.Unit({"__torch__.py": textwrap.dedent(lang)}.get)
        found: dict[str, Any] = dict(unit.read("__torch__"))
        for name, each in found.items():
            if _isinstance(each, _torchscript.Function):  # classes are for the functions alone
                self._functions[name] = _torchscript.UnitFunction(each)

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        raise AttributeError(f"CompilationUnit has no function {name!r}")

    def get_functions(self) -> list[Any]:
        """Return the functions."""
        return list(self._functions.values())


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


class optimized_execution(nullcontext[None]):  # noqa: N801 - PyTorch's name
    """A context without effect: functions run as they are, and nothing is optimized."""

    def __init__(self, should_optimize: bool) -> None:
        super().__init__()


_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Store how a compiler would specialize functions for shapes; return the former value.

    Example:
        >>> from plait_torch._jit import set_fusion_strategy
        >>> set_fusion_strategy(set_fusion_strategy([("DYNAMIC", 3)]))
        [('DYNAMIC', 3)]
    """
    before = list(_strategy)
    if not all(len(each) == 2 and each[0] in ("STATIC", "DYNAMIC") for each in strategy):
        raise ValueError(
            "set_fusion_strategy: pairs of 'STATIC' or 'DYNAMIC' and a number are required; got "
            f"{strategy!r}"
        )
    _strategy[:] = strategy
    return before


def _unwrap_optional(x: T | None) -> T:
    """Return the value, which must not be None."""
    if x is None:
        raise AssertionError("_unwrap_optional: Unwrapping null optional")
    return x


def is_scripting() -> bool:
    """Return False: code runs as Python code."""
    return False


def is_tracing() -> bool:
    """Return whether `_get_trace_graph` runs in this thread."""
    return _traced_graph.tracing_state() is not None
