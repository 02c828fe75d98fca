"""What a function can see besides its arguments: modules, tensors, optimizers, and plain values."""

from __future__ import annotations

import functools
import types
from typing import Any

import plait_core as pc
import plait_nn
from plait_abi.origins import module_of
from plait_graph._cpython import globals_in

_PLAIN = (bool, int, float, complex, str, type(None))
_DEEPEST = 3  # functions within functions, attributes of objects
_LONGEST = 1000  # of containers that are looked into
_OF_MODULES = frozenset(vars(plait_nn.Module()))  # attributes that each module has
_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


class Reach:
    """What was found from a function and its arguments.

    Args:
        roots: the function, and what it got.

    Attributes:
        modules: with their submodules.
        tensors: also parameters and buffers of the modules.
        optimizers: with ``param_groups`` and ``state``.
        entries: what must stay as it is, for `plait_graph._graph.Guard`.
    """

    def __init__(self, *roots: Any) -> None:
        self.modules: list[plait_nn.Module] = []
        self.tensors: list[pc.Tensor] = []
        self.optimizers: list[Any] = []
        self.entries: list[tuple[Any, ...]] = []
        self._seen: set[int] = set()
        self._names: set[str] = set()  # that the code of the functions reads
        self._cells: dict[int, str] = {}  # names of variables, by the cell that has the value
        for root in roots:
            self._see(root, 0)

    def change(self) -> str:
        """Return a text about the first of the entries that is not as it was, or ""."""
        return next((self._text(entry) for entry in self.entries if not _holds(*entry)), "")

    def _text(self, entry: tuple[Any, ...]) -> str:
        container, *rest = entry
        if len(rest) == 2:
            return f"{rest[0]!r}" if isinstance(container, dict) else f"item {rest[0]} of a list"
        if id(container) in self._cells:
            return f"{self._cells[id(container)]!r}"
        owner = next((each for each in self.entries if each[-1] is container), None)
        return f"the size of {self._text(owner) if owner else 'a ' + type(container).__name__}"

    def _see(self, value: Any, depth: int) -> None:
        if isinstance(value, (*_PLAIN, type, types.ModuleType)) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, pc.Tensor):
            self.tensors.append(value)
        elif isinstance(value, plait_nn.Module):
            for module in value.modules():
                self._see_module(module, depth)
        elif isinstance(value, types.FunctionType):
            self._see_function(value, depth)
        elif isinstance(value, types.MethodType):
            self._see(value.__func__, depth)
            self._see_object(value.__self__, depth)
        elif isinstance(value, functools.partial):
            for each in (value.func, *value.args, *value.keywords.values()):
                self._see(each, depth)
        elif isinstance(value, (list, tuple, set, frozenset)):
            self._see_items(value, value, depth)
        elif isinstance(value, dict):
            self._see_items(value, value.values(), depth)
        else:
            self._see_object(value, depth)

    def _see_items(self, container: Any, items: Any, depth: int) -> None:
        if isinstance(container, (list, dict)):
            self.entries.append((container, len(container)))
        if len(container) > _LONGEST:
            return
        if isinstance(container, (list, dict)):
            pairs = enumerate(container) if isinstance(container, list) else container.items()
            self.entries += [(container, key, value) for key, value in pairs]
        for item in list(items):
            self._see(item, depth)

    def _see_function(self, function: types.FunctionType, depth: int) -> None:
        package = module_of(function).partition(".")[0]
        if depth > _DEEPEST or package == "plait" or package.startswith("plait_"):
            return
        names = _names_in(function.__code__)
        self._names.update(names)
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                content = cell.cell_contents
            except ValueError:
                continue  # it has no value yet
            self.entries.append((cell, content))
            self._cells[id(cell)] = name
            self._see(content, depth + 1)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._see(default, depth + 1)
        space = function.__globals__
        for name in globals_in(function.__code__):
            if name in space:
                self.entries.append((space, name, space[name]))
                self._see(space[name], depth + 1)

    def _see_object(self, value: Any, depth: int) -> None:
        if isinstance(value, plait_nn.Module):
            self._see(value, depth)
            return
        attributes = getattr(value, "__dict__", None)
        if not isinstance(attributes, dict) or depth > _DEEPEST:
            return
        if "param_groups" in attributes and "state" in attributes:
            self._see_optimizer(value)
            return
        for name, each in list(attributes.items()):
            if name not in self._names:
                continue
            if isinstance(each, (*_PLAIN, pc.Tensor, plait_nn.Module)):
                self.entries.append((attributes, name, each))
            self._see(each, depth + 1)

    def _see_module(self, module: plait_nn.Module, depth: int) -> None:
        self._seen.add(id(module))
        self.modules.append(module)
        self._see(type(module).forward, depth)
        attributes = module.__dict__
        self.entries.append((attributes, len(attributes)))
        for name, value in attributes.items():
            if isinstance(value, _PLAIN):
                self.entries.append((attributes, name, value))
            elif name not in _OF_MODULES:
                self.entries.append((attributes, name, value))
                self._see(value, depth + 1)
        for entries in (module._parameters, module._buffers, module._modules):
            self.entries.append((entries, len(entries)))
            for name, each in entries.items():
                self.entries.append((entries, name, each))
                if isinstance(each, pc.Tensor):
                    self._see(each, depth)
        for name in _HOOKS:
            if isinstance(attributes.get(name), dict):
                self.entries.append((attributes[name], len(attributes[name])))

    def _see_optimizer(self, optimizer: Any) -> None:
        self.optimizers.append(optimizer)
        groups, state = optimizer.param_groups, optimizer.state
        self.entries.append((optimizer.__dict__, "param_groups", groups))
        self.entries.append((optimizer.__dict__, "state", state))
        self.entries.append((groups, len(groups)))
        self.entries.append((state, len(state)))
        for group in groups:
            self.entries.append((group["params"], len(group["params"])))
            for name, value in group.items():
                if name != "params" and type(value) is not float:  # floats are numbers of the graph
                    self.entries.append((group, name, value))
        items = getattr(
            state, "_items", {}
        )  # a pair for each parameter, the same while it is there
        self.entries += [(items, key, pair) for key, pair in items.items()]
        for each in state.values():
            for name, value in each.items():
                if isinstance(value, pc.Tensor):
                    self.entries.append((each, name, value))


def _holds(container: Any, *rest: Any) -> bool:
    """Return whether an entry is as it was, as a guard does."""
    if len(rest) == 1:
        if hasattr(container, "cell_contents"):
            return bool(container.cell_contents is rest[0])
        return bool(len(container) == rest[0])
    key, value = rest
    there = key < len(container) if isinstance(container, list) else key in container
    return bool(there and container[key] is value)


def _names_in(code: types.CodeType) -> set[str]:
    """Return the names that a function reads, also in functions and comprehensions within it."""
    result = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            result |= _names_in(constant)
    return result
