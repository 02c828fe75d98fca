"""Running a random program about modules with one library or the other."""

from __future__ import annotations

import collections
import contextlib
import copy
import pickle
import re
import sys
import traceback
import types
import warnings
from typing import Any

from module_surface_programs import Program

__all__ = ["Raised", "run"]


class Raised(str):
    """What an exception showed: its type, and its text where it is one of modules."""


class _Hook:
    """A hook that notes its arguments."""

    def __init__(self, number: int, effect: str | None, counts: bool = False) -> None:
        self.number = number
        self.effect = effect
        self.counts = counts  # it notes that it was called, and not with what

    def __call__(self, *args: Any) -> Any:
        done = _Run.current
        # the values of what is registered may be uninitialised memory
        registers = len(args) == 3 and isinstance(args[1], str) and args[1]
        done.note(f"hook {self.number}", *(() if self.counts else args[:2] if registers else args))
        if self.effect == "fails":
            raise LookupError(f"hook {self.number}")
        tensors = [each for each in args if isinstance(each, done.library.Tensor)]
        if self.effect == "twice" and tensors:
            return tensors[-1] * 2
        pairs = [each for each in args if isinstance(each, tuple) and each]
        if self.effect == "twice" and pairs and isinstance(pairs[0][0], done.library.Tensor):
            return tuple(
                each * 2 if isinstance(each, done.library.Tensor) else each for each in pairs[0]
            )
        return None


class _Run:
    """One execution: what statements showed, and which objects have been seen."""

    current: Any = None

    def __init__(self, library: Any) -> None:
        self.library = library
        self.shown: list[str] = []
        self.kept: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.handles: list[Any] = []
        self.count = 0.0

    def tensor(self) -> Any:
        self.count += 1
        return self.library.tensor([[self.count]])

    def parameter(self, requires_grad: bool = True) -> Any:
        return self.library.nn.Parameter(self.tensor(), requires_grad)

    def number(self, value: object) -> int:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.kept)
            self.kept.append(value)
        return self.numbers[id(value)]

    def describe(self, value: Any) -> str:
        if isinstance(value, self.library.Tensor):
            kind = "P" if isinstance(value, self.library.nn.Parameter) else "T"
            dtype = str(value.dtype).rpartition(".")[2]
            values = self.describe(value.detach().double().tolist())
            more = value.requires_grad, self.number(value) if kind == "P" else ""
            return f"{kind}({values}, {dtype}, {more})"
        if isinstance(value, self.library.nn.Module):
            return f"M({type(value).__name__}, {self.number(value)})"
        if isinstance(value, dict):
            entries = ", ".join(f"{k}: {self.describe(v)}" for k, v in value.items())
            return f"{type(value).__name__}{{{entries}}}"
        if isinstance(value, (list, tuple)):
            return f"{type(value).__name__.strip('_')}[{', '.join(map(self.describe, value))}]"
        if isinstance(value, float):
            return f"{value:.4g}"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (bool, int, set, type(None))):
            return repr(value)
        return type(value).__name__.strip("_")

    def text(self, text: str) -> str:
        """A text without the places of classes, whose names differ."""
        text = text.replace("(torch Tensor", "(Tensor")
        text = re.sub(r"\bC\d: ", "", text)  # errors of ours begin with the class
        # ours writes nothing after another error, so these may be missing
        text = re.sub(r"\n\tWhile copying[^\n]*an exception occurred[^\n]*", "", text)
        text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)
        return re.sub(r"\b[A-Z][a-z]+Tensor\b", "Tensor", text)

    def note(self, *values: Any) -> None:
        self.shown.append("| " + " ".join(map(self.describe, values)))

    def show(self, *values: Any) -> None:
        self.shown.append(" ".join(map(self.describe, values)))

    def state(self, module: Any) -> str:
        """All attributes in their order, numbers of hooks as ranks."""
        parts = []
        for name, value in module.__dict__.items():
            if isinstance(value, dict) and "_hooks" in name:
                entries = [
                    (number if number >= 1000000 else "n", self.of_hook(hook))
                    for number, hook in value.items()
                ]
                parts.append(f"{name}={type(value).__name__}{entries}")
            elif isinstance(value, set):
                parts.append(f"{name}={sorted(value)}")
            else:
                parts.append(f"{name}={self.describe(value)}")
        return f"{type(module).__name__}: {', '.join(parts)}"

    def of_hook(self, hook: Any) -> str:
        if hook is True:
            return "True"
        return f"{hook.number}" if isinstance(hook, _Hook) else f"{hook.hook.number} wrapped"

    def grads(self, module: Any) -> list[Any]:
        return [each.grad for each in module.parameters()]

    def backward(self, module: Any, of_input: bool = True) -> None:
        x = self.tensor().requires_grad_(of_input)
        result = module(x)
        result = result[0] if isinstance(result, tuple) else result
        result.sum().backward()
        self.show(result, x.grad, self.grads(module))

    def direct(self, module: Any, state: Any, prefix: str, strict: bool) -> None:
        names: tuple[list[str], ...] = ([], [], [])
        module._load_from_state_dict(dict(state), prefix, {}, strict, *names)
        self.show(names, list(module.parameters()))

    def load(self, module: Any, state: Any, strict: bool, assign: bool) -> None:
        """Load a state; after an error, torch has written a part, which is undone here."""
        before: list[Any] = []
        mark, known = len(self.shown), len(self.kept)
        pending, seen = [module], set()
        while pending:
            each = pending.pop()
            if each is None or id(each) in seen:
                continue
            seen.add(id(each))
            for members in (each._parameters, each._buffers):
                values = [None if t is None else t.detach().clone() for t in members.values()]
                before.append((members, dict(members), values))
            pending += each._modules.values()
        if hasattr(state, "_metadata"):  # torch writes into what it gets
            state, metadata = collections.OrderedDict(state), copy.deepcopy(state._metadata)
            state._metadata = metadata
        try:
            self.show(module.load_state_dict(state, strict=strict, assign=assign))
        except RuntimeError:
            if assign:
                del self.shown[mark:]
                for value in self.kept[known:]:
                    del self.numbers[id(value)]
                del self.kept[known:]
            for members, reference, values in before:
                members.update(reference)
                for tensor, value in zip(reference.values(), values, strict=True):
                    if tensor is not None:
                        tensor.data.copy_(value)
            raise

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
            place = traceback.extract_tb(error.__traceback__)[-1].filename
            text = str(error.args[0] if isinstance(error, KeyError) else error)
            if self.library.__name__ == "torch" and not place.endswith("nn/modules/module.py"):
                text = ""
            text = text.partition("Reached a code path")[0]
            self.shown.append(Raised(f"{next(known).__name__}: {self.text(text)}"))

    def names(self) -> dict[str, Any]:
        nn = self.library.nn
        return {
            "lib": self.library,
            "nn": nn,
            "place": nn.modules.module if self.library.__name__ == "torch" else nn,
            "P": self.parameter,
            "T": self.tensor,
            "shared": self.parameter(),
            "hook": _Hook,
            "counting": lambda number: _Hook(number, None, True),
            "twice": "twice",
            "fails": "fails",
            "handles": self.handles,
            "kept": [collections.OrderedDict()],
            "note": self.note,
            "show": self.show,
            "grads": self.grads,
            "backward": self.backward,
            "direct": self.direct,
            "load": self.load,
            "collections": collections,
            "copy": copy,
            "pickle": pickle,
        }


def _ones(layer: Any) -> None:
    for each in layer.parameters():
        each.data.fill_(1.0)


def run(program: Program, library: Any) -> list[str]:
    """Execute a program; return what it showed, and all attributes of its modules after it."""
    done = _Run.current = _Run(library)
    module = types.ModuleType("generated")  # classes are pickled by the name of their module
    names = module.__dict__
    names.update(done.names())
    sys.modules["generated"] = module
    initial = library.nn.Linear.reset_parameters
    library.nn.Linear.reset_parameters = _ones
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with done.caught():
                exec(program.classes, names)
            for statement in program.statements:
                done.shown.append(f"> {statement}")
                with done.caught():
                    exec(statement, names)
        for handle in done.handles:  # those of hooks of all modules
            handle.remove()
        for name in [name for name in names if re.fullmatch(r"m\d+", name)]:
            with done.caught():
                for path, each in names[name].named_modules(remove_duplicate=False):
                    done.shown.append(f"{name} {path} {done.state(each)}")
    finally:
        library.nn.Linear.reset_parameters = initial
        del sys.modules["generated"]
        for handle in done.handles:
            handle.remove()
    return done.shown
