"""Modules and objects of an archive."""

from __future__ import annotations

import ast
import io
from typing import Any

import plait
from plait_torch._torchscript._errors import ScriptError
from plait_torch._torchscript._late import late
from plait_torch._torchscript._unit import Class, Function
from plait_torch._torchscript._values import Scripted, bound


class ScriptModule(plait.nn.Module):
    """The class of modules that `torch.jit` gives: of `script`, `trace` and `load`."""

    def save(self, f: Any, _extra_files: Any = None, **kwargs: Any) -> None:
        """Write an archive, as `torch.jit.save`."""
        late.save(self, f, _extra_files)


class ScriptFunction:
    """The class of functions that `torch.jit` gives: of `script`, `trace`, `CompilationUnit`."""


class UnitFunction(ScriptFunction):
    """A function of an archive or of a text."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self.__name__ = self.name = function.name.rpartition(".")[2]
        self.qualified_name = function.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ScriptFunction {self.name}>"


class ScriptObject(Scripted):
    """An object of a class of an archive."""

    def __init__(self, script_class: Class, values: dict[str, Any] | None = None) -> None:
        self.script_class, self._values = script_class, values if values is not None else {}

    def script_get(self, name: str) -> Any:
        """Return an attribute."""
        if name in self._values:
            return self._values[name]
        if name in self.script_class.values:
            return self.script_class.values[name]
        raise ScriptError(f"TorchScript: {self.script_class.name} has no attribute {name!r}")

    def script_set(self, name: str, value: Any) -> None:
        """Set a declared attribute."""
        if name not in self.script_class.types:
            raise ScriptError(f"TorchScript: {self.script_class.name} declares no {name!r}")
        self._values[name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "script_class":
            raise AttributeError(name)
        if name in self.script_class.methods:
            return bound(self, self.script_class.methods[name])
        try:
            return self.script_get(name)
        except ScriptError as error:
            raise AttributeError(str(error)) from None

    def __repr__(self) -> str:
        return f"<object of {self.script_class.name}>"


late.new_object = ScriptObject


class RecursiveScriptModule(ScriptModule, Scripted):
    """A module of an archive: its parameters, buffers and modules are those of a `Module`, its
    methods those of the archive's class.
    """

    def __init__(self, script_class: Class, values: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__["script_class"] = script_class
        self.__dict__["_script_values"] = {}
        for name, value in values.items():
            if name == "training":
                self.training = bool(value)
            elif isinstance(value, plait.Tensor) and name in script_class.parameters:
                value = plait.nn.Parameter(value.detach(), requires_grad=value.requires_grad)
                self._parameters[name] = value
            elif isinstance(value, plait.Tensor) and name in script_class.buffers:
                self._buffers[name] = value
            elif isinstance(value, RecursiveScriptModule):
                self._modules[name] = value
            else:
                self._script_values[name] = value

    @property
    def original_name(self) -> str:
        """The name of the class, without its module."""
        return self.script_class.name.rpartition(".")[2]

    def script_get(self, name: str) -> Any:
        """Return a declared attribute, parameter, buffer or module."""
        for each in (self._parameters, self._buffers, self._modules, self._script_values):
            if name in each:
                return each[name]
        if name == "training":
            return self.training
        if name in self.script_class.values:
            return self.script_class.values[name]
        if name == "":  # the modules of a list, in their order
            return list(self._modules.values())
        raise ScriptError(f"TorchScript: {self.script_class.name} has no attribute {name!r}")

    def script_set(self, name: str, value: Any) -> None:
        """Set a declared attribute."""
        places: tuple[dict[str, Any], ...] = (self._parameters, self._buffers, self._modules)
        for each in places:
            if name in each:
                each[name] = value
                return
        if name == "training":
            self.training = bool(value)
        elif name in self.script_class.types or name in self._script_values:
            self._script_values[name] = value
        else:
            raise ScriptError(f"TorchScript: {self.script_class.name} declares no {name!r}")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the archive's ``forward``."""
        function = self.script_class.methods.get("forward")
        if function is None:
            raise NotImplementedError(
                f"TorchScript: {self.script_class.name} has no forward; it has "
                f"{', '.join(self.script_class.methods) or 'no methods'}"
            )
        return function.call(self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_script_values", {})
        if name in values:
            return values[name]
        found = self.__dict__.get("script_class")
        if found is not None and name in found.methods:
            return bound(self, found.methods[name])
        if found is not None and name in found.values:
            return found.values[name]
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_script_values", {}):
            self._script_values[name] = value
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        more = [*self._script_values, *self.script_class.methods]
        return sorted({*super().__dir__(), *more})

    def __len__(self) -> int:
        return len(self._modules)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Any:
        return iter(self._modules.values())

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._modules[key]
        return list(self._modules.values())[key]

    def extra_repr(self) -> str:
        """Return the name of the class in the program that wrote the archive."""
        return f"original_name={self.original_name}"

    def _get_name(self) -> str:
        return "RecursiveScriptModule"

    @property
    def code(self) -> str:
        """The code of ``forward``."""
        function = self.script_class.methods.get("forward")
        return "" if function is None else ast.unparse(function.node) + "\n"

    @property
    def graph(self) -> Any:
        """Raises: plait runs the code and makes no graph of PyTorch's of it."""
        raise NotImplementedError(
            "ScriptModule.graph: plait runs TorchScript's code without PyTorch's graph; `code` has "
            "the text, and plait.export makes a graph of plait"
        )

    inlined_graph = graph

    def __reduce__(self) -> Any:
        file = io.BytesIO()
        self.save(file)
        return _from_bytes, (file.getvalue(),)


def _from_bytes(data: bytes) -> Any:
    return late.load(io.BytesIO(data))
