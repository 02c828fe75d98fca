"""Modules in modules: what PyTorch does with so many levels, plait does with as many."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

import plait_core as pc
import plait_nn as nn

MOST = 1000
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "repr": lambda m, x: repr(m),
    "state_dict": lambda m, x: m.state_dict(),
    "load_state_dict": lambda m, x: m.load_state_dict(m.state_dict()),
    "named_modules": lambda m, x: list(m.named_modules()),
    "named_parameters": lambda m, x: list(m.named_parameters()),
    "named_buffers": lambda m, x: list(m.named_buffers()),
    "double": lambda m, x: m.double(),
    "apply": lambda m, x: m.apply(id),
    "eval": lambda m, x: m.eval(),
    "zero_grad": lambda m, x: m.zero_grad(),
    "requires_grad_": lambda m, x: m.requires_grad_(False),
    "to_empty": lambda m, x: m.to_empty(device="cpu"),
    "deepcopy": lambda m, x: copy.deepcopy(m),
    "pickle": lambda m, x: pickle.loads(pickle.dumps(m)),
    "pickle to a file": lambda m, x: pickle.dump(m, io.BytesIO()),
    "forward": lambda m, x: m(x),
    "backward": lambda m, x: m(x).sum().backward(),
}


class Mine(nn.Module):
    def __init__(self, inside: Any) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: Any) -> Any:
        return self.inside(x)


class Theirs(torch.nn.Module):
    def __init__(self, inside: Any) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: Any) -> Any:
        return self.inside(x)


def works(call: Callable[[Any, Any], Any], innermost: Any, level: Any, x: Any, depth: int) -> bool:
    """Return whether a call works on a module in so many others."""
    module = innermost
    for _ in range(depth):
        module = level(module)
    try:
        call(module, x)
    except RuntimeError as error:  # RecursionError, or one of PyTorch's that says it
        assert "recursion" in str(error)
        return False
    return True


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_as_many_levels(call: Callable[[Any, Any], Any]) -> None:
    few, many = 1, MOST
    while many - few > 1:
        half = (few + many) // 2
        if works(call, torch.nn.Linear(1, 1), Theirs, torch.ones(1, 1), half):
            few = half
        else:
            many = half
    assert works(call, nn.Linear(1, 1), Mine, pc.ones(1, 1), few), few
