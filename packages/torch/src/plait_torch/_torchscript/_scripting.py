"""What `torch.jit.script` and `torch.jit.trace` make: modules and functions that run as Python.

They are of the classes that programs ask for, share the tensors of what they were made of, and, if
they were traced, can be written as an archive.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import plait
from plait_torch._torchscript._errors import script_error
from plait_torch._torchscript._late import late
from plait_torch._torchscript._module import ScriptFunction, ScriptModule


class PythonModule(ScriptModule):
    """The base of modules of `script` and `trace`; the other base is the class of the original."""

    _script_example: tuple[tuple[Any, ...], dict[str, Any]] | None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            if (result := script_error(error)) is error:
                raise
            raise result from error

    @property
    def original_name(self) -> str:
        """The name of the module's class in the program."""
        return _base_of(type(self)).__name__

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the class in the program, and what that one says."""
        said = super().extra_repr()
        return f"original_name={self.original_name}" + (f", {said}" if said else "")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _made_again, (_base_of(type(self)), type(self).__name__, dict(self.__dict__))


def _base_of(kind: type) -> type:
    return kind.__bases__[1]


@functools.cache
def _class_of(base: type, name: str) -> Any:
    return type(name, (PythonModule, base), {"__module__": "torch.jit._script"})


def _made_again(base: type, name: str, state: dict[str, Any]) -> Any:
    kind = _class_of(base, name)
    result = kind.__new__(kind)
    result.__dict__.update(state)
    return result


def as_scripted(module: Any, name: str, memo: dict[int, Any] | None = None) -> Any:
    """Return a module of `ScriptModule` with a module's tensors, attributes and methods."""
    memo = {} if memo is None else memo
    if isinstance(module, ScriptModule):
        return module
    if id(module) not in memo:
        result = _made_again(type(module), name, dict(module.__dict__))
        memo[id(module)] = result
        for each in ("_parameters", "_buffers"):
            result.__dict__[each] = type(module.__dict__[each])(module.__dict__[each])
        modules = module.__dict__["_modules"]
        result.__dict__["_modules"] = type(modules)(
            (key, None if child is None else as_scripted(child, "RecursiveScriptModule", memo))
            for key, child in modules.items()
        )
        result.__dict__["_script_example"] = None
    return memo[id(module)]


class PythonFunction(ScriptFunction):
    """A function of `script` or `trace`."""

    def __init__(
        self, function: Callable[..., Any], example: tuple[tuple[Any, ...], dict[str, Any]] | None
    ) -> None:
        functools.update_wrapper(self, function)
        self.name = getattr(function, "__name__", "function")
        self._call, self._script_example = function, example

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._call(*args, **kwargs)
        except Exception as error:
            if (result := script_error(error)) is error:
                raise
            raise result from error

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Write an archive, as `torch.jit.save`."""
        late.save(self, f, _extra_files)

    def __get__(self, owner: Any, kind: Any = None) -> Any:  # a method of a class
        return self if owner is None else functools.partial(self, owner)

    def __reduce__(self) -> str:
        return str(vars(self)["__qualname__"])  # the module holds it under the name of the function


def script(obj: Any, examples: Any = None) -> Any:
    """Return a module or function of TorchScript that runs as Python; `save` records it with the
    first of the examples, if there is one.
    """
    example: Any = None if examples is None else (tuple(_first(examples)), {})
    if isinstance(obj, plait.nn.Module):
        result = obj if isinstance(obj, ScriptModule) else as_scripted(obj, "RecursiveScriptModule")
        if example is not None and isinstance(result, PythonModule):
            result.__dict__["_script_example"] = example
        return result
    if isinstance(obj, (ScriptFunction, type)):
        return obj
    return PythonFunction(obj, example) if callable(obj) else obj


def _first(examples: Any) -> Any:
    """Return the arguments of the first example, of a list or of the first method's list."""
    lists = list(examples.values()) if isinstance(examples, dict) else [examples]
    if not lists or not isinstance(lists[0], list) or not lists[0]:
        raise TypeError(
            "script: `example_inputs` must be a list of tuples, or a dict of such lists"
        )
    if not isinstance(lists[0][0], (tuple, list)):
        raise TypeError(
            "script: `example_inputs` must have a tuple of arguments for each call, got "
            f"{type(lists[0][0]).__name__}"
        )
    return lists[0][0]


def trace(obj: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a module or function that remembers the example for `save`."""
    if isinstance(obj, plait.nn.Module):
        if isinstance(obj, ScriptModule):
            obj.__dict__["_script_example"] = (args, kwargs)
            return obj
        result = as_scripted(obj, "TopLevelTracedModule")
        result.__dict__["_script_example"] = (args, kwargs)
        return result
    return PythonFunction(obj, (args, kwargs))
