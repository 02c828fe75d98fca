"""The names of torch's modules, functions and optimizers that are not there."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
import torch

import plait

# with reasons in docs/guides/pytorch.md
MISSING = {
    "nn": {"factory_kwargs"},
    "nn.functional": {
        *("ScalingType", "SwizzleType", "scaled_grouped_mm", "scaled_mm"),
        *("assert_int_or_pair", "boolean_dispatch", "handle_torch_function"),
        *("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"),
    },
    "nn.init": set[str](),
    "nn.utils": set[str](),
    "nn.utils.rnn": {"bind", "copy_method_params"},
    "optim": {"swap_in_optimizer_params_and_state"},
    "optim.lr_scheduler": set[str](),
    "optim.swa_utils": set[str](),
}


def own(module: ModuleType) -> set[str]:
    """Classes and functions of torch's that a module shows."""
    results = set()
    for name in dir(module):
        thing = getattr(module, name)
        home = str(getattr(thing, "__module__", ""))
        builtin = type(thing).__name__ == "builtin_function_or_method"
        if not name.startswith("_") and callable(thing) and (home.startswith("torch") or builtin):
            results.add(name)
    return results - {"Tensor", "Module", "PackedSequence_", "Optimizer", "bisect_right"}


@pytest.mark.parametrize("name", MISSING)
def test_nothing_else_is_missing(name: str) -> None:
    theirs = importlib.import_module(f"torch.{name}")
    ours = importlib.import_module(f"plait.{name}")
    missing = {each for each in own(theirs) if not hasattr(ours, each)}
    assert missing <= MISSING[name], sorted(missing - MISSING[name])
    assert {each for each in MISSING[name] if hasattr(theirs, each)} <= missing | {"factory_kwargs"}


def test_versions() -> None:
    assert torch.__version__.startswith("2.13")
    assert plait.nn is importlib.import_module("plait_nn")
