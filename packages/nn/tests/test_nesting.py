"""Modules that are nested deeper than Python's limit of recursion, and modules without an end."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn

LEVELS = 1500


class Half(nn.Module):
    """A module with methods of its own, which are called wherever it stands."""

    def __init__(self, child: nn.Module) -> None:
        super().__init__()
        self.child = child
        self.calls: list[str] = []

    def __repr__(self) -> str:
        return "Half(...)"

    def train(self, mode: bool = True) -> Any:
        self.calls.append("train")
        return super().train(mode)

    def apply(self, fn: Any) -> Any:
        self.calls.append("apply")
        return super().apply(fn)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.calls.append("_apply")
        return super()._apply(fn, recurse)

    def named_modules(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append("named_modules")
        return super().named_modules(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append("state_dict")
        return super().state_dict(*args, **kwargs)


def nested(levels: int, wrap: Callable[[nn.Module], nn.Module] = nn.Sequential) -> nn.Module:
    module: nn.Module = nn.Linear(1, 1)
    for _ in range(levels):
        module = wrap(module)
    return module


WRAPS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "sequential": nn.Sequential,
    "list": lambda module: nn.ModuleList([module]),
    "dict": lambda module: nn.ModuleDict({"0": module}),
}

# what passes through all modules; each gives something to compare with a shallow module
PASSES: dict[str, Callable[[nn.Module], Any]] = {
    "repr": lambda m: len(re.findall("Linear", repr(m))),
    "html": lambda m: m._repr_html_().count("Linear"),
    "state_dict": lambda m: len(m.state_dict()),
    "load_state_dict": lambda m: str(m.load_state_dict(m.state_dict())),
    "assign": lambda m: str(m.load_state_dict(m.state_dict(), assign=True)),
    "named_modules": lambda m: len(list(m.named_modules())) - len(list(m.modules())),
    "named_parameters": lambda m: [tuple(p.shape) for _, p in m.named_parameters()],
    "named_buffers": lambda m: list(m.named_buffers()),
    "apply": lambda m: type(m.apply(lambda each: setattr(each, "seen", True))).__name__,
    "to": lambda m: {p.dtype for p in m.to(pc.float64).parameters()},
    "half": lambda m: {p.dtype for p in m.half().parameters()},
    "train": lambda m: {each.training for each in m.train().modules()},
    "eval": lambda m: {each.training for each in m.eval().modules()},
    "requires_grad_": lambda m: {p.requires_grad for p in m.requires_grad_(False).parameters()},
    "zero_grad": lambda m: m.zero_grad(),
    "share_memory": lambda m: {p.is_shared() for p in m.share_memory().parameters()},
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", PASSES)
def test_deep_modules_are_as_shallow_ones(name: str, wrap: str) -> None:
    assert sys.getrecursionlimit() < LEVELS
    deep, shallow = nested(LEVELS, WRAPS[wrap]), nested(2, WRAPS[wrap])
    assert PASSES[name](deep) == PASSES[name](shallow)


@pytest.mark.parametrize("name", ["repr", "state_dict", "train", "apply", "to", "named_modules"])
def test_a_module_that_contains_itself(name: str) -> None:
    module = nn.Sequential(nn.Linear(1, 1))
    module.append(module)
    if name == "named_modules":
        assert len(list(module.named_modules())) == 2
        with pytest.raises(RecursionError, match="or one contains itself"):
            list(module.named_modules(remove_duplicate=False))
        return
    with pytest.raises(RecursionError, match="or one contains itself"):
        PASSES[name](module)


@pytest.mark.parametrize("work", [copy.deepcopy, pickle.dumps, lambda m: m(pc.ones(1, 1))])
def test_what_python_cannot_do_deeply_is_an_error(work: Any) -> None:
    with pytest.raises(RecursionError):
        work(nested(LEVELS))


def test_methods_of_subclasses_are_called_once_each() -> None:
    inner = Half(nn.Linear(1, 1))
    module = nested(3, nn.Sequential)
    module.append(nn.ModuleList([inner]))
    module.train()
    module.apply(lambda each: None)
    module.double()
    list(module.named_modules())
    module.state_dict()
    assert inner.calls == ["train", "apply", "_apply", "named_modules", "state_dict"]
    assert repr(module).count("Half(...)") == 1 and "Linear" in repr(module)


def test_a_replaced_method_of_module_is_called_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """As programs do that watch every module."""
    calls = []
    own = nn.Module.train

    def train(self: Any, mode: bool = True) -> Any:
        calls.append(type(self).__name__)
        return own(self, mode)

    monkeypatch.setattr(nn.Module, "train", train)
    nested(2).train()
    assert calls == ["Sequential", "Sequential", "Linear"]


def test_modules_that_are_replaced_while_they_are_listed() -> None:
    module = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    calls = []
    for name, each in module.named_modules():
        calls.append(type(each).__name__)
        if name == "0":
            module[1] = nn.ReLU()
    assert calls == ["Sequential", "Linear", "ReLU"]
