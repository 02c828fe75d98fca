"""Running a random program about attributes of modules with one library or the other."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import pickle
import sys
import types
import warnings
from typing import Any

from module_programs import NAMES, Program

__all__ = ["run"]


class _Name(str):
    """A str that is not exactly one."""


class _Odd(dict):  # type: ignore[type-arg]
    """A dict that knows more than it holds."""

    def __contains__(self, key: object) -> bool:
        return key == "c" or super().__contains__(key)

    def __missing__(self, key: object) -> object:
        return "missing"


class _Reads:
    def __get__(self, instance: object, owner: object) -> str:
        return "read"


class _Stores:
    def __get__(self, instance: Any, owner: object) -> Any:
        if instance is None:
            return self
        return instance.__dict__.get("_stored", "nothing")

    def __set__(self, instance: Any, value: object) -> None:
        instance.__dict__["_stored"] = value

    def __delete__(self, instance: Any) -> None:
        raise AttributeError("kept")


class _Mixin:
    """A base that classes get and lose later."""

    b = "of the mixin"

    def __getattr__(self, name: str) -> Any:
        if name == "a":
            return "by the mixin"
        return super().__getattr__(name)  # type: ignore[misc]


class _Run:
    """One execution: what statements showed, and which objects have been seen."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.shown: list[str] = []
        self.kept: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.count = 0.0
        self.looked_up: set[str] = set()

    def tensor(self) -> Any:
        self.count += 1
        return self.library.tensor([[self.count]])

    def parameter(self) -> Any:
        return self.library.nn.Parameter(self.tensor())

    def number(self, value: object) -> int:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.kept)
            self.kept.append(value)
        return self.numbers[id(value)]

    def describe(self, value: Any) -> str:
        if isinstance(value, self.library.tensor_type):
            kind = "P" if isinstance(value, self.library.nn.Parameter) else "T"
            dtype = str(value.dtype).rpartition(".")[2]
            values = value.detach().tolist()
            return f"{kind}({values}, {dtype}, {value.requires_grad}, {self.number(value)})"
        if isinstance(value, self.library.nn.Module):
            return f"M({type(value).__name__}, {self.number(value)})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k}: {self.describe(v)}" for k, v in value.items()) + "}"
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return "[" + ", ".join(map(self.describe, value)) + "]"
        if isinstance(value, (bool, int, str, float, type(None))):
            return repr(value)
        if isinstance(value, tuple):  # names that a state and a module lack
            return "[" + ", ".join(map(str, map(list, value))) + "]"
        return type(value).__name__

    def show(self, *values: Any) -> None:
        self.shown.append(" ".join(map(self.describe, values)))

    def note(self, kind: str, name: str) -> None:
        """Show that a method was asked; lookups once a statement, for they may be repeated."""
        line = f"{kind} {name}"
        if name in NAMES and line not in self.looked_up:
            self.shown.append(line)
            if kind in ("get", "getattr", "answer", "forward", "watch"):
                self.looked_up.add(line)

    def state(self, module: Any) -> dict[str, Any]:
        own = object.__getattribute__(module, "__dict__")
        results = {n: own[n] for n in NAMES if n in own}
        for kind in ("_parameters", "_buffers", "_modules"):
            results[kind] = dict(own[kind]) if kind in own else "gone"
        return {**results, "transient": sorted(own.get("_non_persistent_buffers_set", ()))}

    def has_parameter(self, module: Any, name: str) -> bool:
        own = object.__getattribute__(module, "__dict__").get("_parameters", {}).get(name)
        result = isinstance(own, self.library.nn.Parameter) and getattr(module, name) is own
        return result and own.requires_grad  # torch's weight norm thaws a frozen one

    def has_tensor(self, module: Any, name: str) -> bool:
        own = object.__getattribute__(module, "__dict__")
        kinds = ("_parameters", "_buffers", "_modules")
        results = [own[kind][name] for kind in kinds if name in own.get(kind, {})]
        # torch leaves a module between two classes where a name is there twice
        if len(results) != 1 or not isinstance(results[0], self.library.tensor_type):
            return False
        return getattr(module, name) is results[0]

    @contextlib.contextmanager
    def caught(self) -> Any:
        mark = len(self.shown)
        try:
            yield
        except RecursionError:  # after as many steps as the implementation's frames allow
            del self.shown[mark:]
            self.shown.append("RecursionError")
        except Exception as error:
            known = (t for t in type(error).__mro__ if t.__module__ in ("builtins", "_pickle"))
            name = next(known).__name__
            self.shown.append("RuntimeError" if name == "AssertionError" else name)

    def names(self) -> dict[str, Any]:
        nn = self.library.nn

        def answering(module: Any, name: str) -> Any:
            self.note("answer", name)
            if name == "c":
                return "answered"
            raise AttributeError(name)

        def forwarded(module: Any, name: str) -> Any:
            self.note("forward", name)
            return nn.Module.__getattr__(module, name)

        def watching(module: Any, name: str) -> Any:
            self.note("watch", name)
            return object.__getattribute__(module, name)

        def kept(module: Any, name: str, value: Any) -> None:
            self.note("keep", name)
            nn.Module.__setattr__(module, name, value)

        class Twice(nn.Module):  # type: ignore[misc,name-defined]
            def forward(self, x: Any) -> Any:
                return x * 2

            def right_inverse(self, x: Any) -> Any:
                return x / 2

        Mixin = type("Mixin", (_Mixin,), {})
        return {
            "nn": nn,
            "NAMES": NAMES,
            "P": self.parameter,
            "T": self.tensor,
            "Name": _Name,
            "Odd": _Odd,
            "Reads": _Reads,
            "Stores": _Stores,
            "Mixin": Mixin,
            "Twice": Twice,
            "Generic": _generic(),
            "cached": lambda instance: "cached",
            "answering": answering,
            "forwarded": forwarded,
            "watching": watching,
            "kept": kept,
            "log": self.shown.append,
            "note": self.note,
            "show": self.show,
            "state": self.state,
            "parameter": self.has_parameter,
            "tensor": self.has_tensor,
            "caught": self.caught,
            "collections": collections,
            "copy": copy,
            "functools": functools,
            "pickle": pickle,
            "functional_call": self.library.functional_call,
            "parametrize": nn.utils.parametrize,
            "weight_norm": nn.utils.weight_norm,
            "remove_weight_norm": nn.utils.remove_weight_norm,
        }


def _generic() -> Any:
    from typing import Generic, TypeVar

    return Generic[TypeVar("T")]  # type: ignore[index,misc]


def run(program: Program, library: Any) -> list[str]:
    """Execute a program; return one line for everything it showed.

    Args:
        program: what to execute.
        library: it has ``nn``, ``tensor``, ``tensor_type`` and ``functional_call``.
    """
    done = _Run(library)
    module = types.ModuleType("generated")  # classes are pickled by the name of their module
    names = module.__dict__
    names.update(done.names())
    sys.modules["generated"] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with done.caught():
                exec(program.classes, names)
            for statement in program.statements:
                done.shown.append(f"> {statement}")
                done.looked_up.clear()
                with done.caught():
                    exec(statement, names)
    finally:
        del sys.modules["generated"]
    return done.shown
