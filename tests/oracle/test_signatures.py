"""Signatures of public classes, methods and functions against torch's, with what differs and why.

A default may have another type of number (0 and 0.0), and where torch only says ``*args,
**kwargs``, ours may say more.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.utils.prune

import plait

SPACES = (
    "nn",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "optim",
    "optim.lr_scheduler",
)

OPERATOR = "an operator, whose first argument has the name self; input= is accepted too"
STEP = "a step may take the gradients and clip them in one pass"
# names below the space, or a method of any class as .name
DIFFERENT = {
    "nn.functional.sigmoid": OPERATOR,
    "nn.functional.softsign": OPERATOR,
    "nn.functional.tanh": OPERATOR,
    "nn.functional.tanhshrink": OPERATOR,
    "nn.ModuleList.pop": "the last element by default, as of a list",
    "nn.LazyLinear.initialize_parameters": "as of other lazy layers",
    ".step": STEP,
    ".apply": "one method for all ways of pruning",
}
MISSING = {
    ".ipu": "a device of torch",
    ".mtia": "a device of torch",
    ".xpu": "a device of torch",
    ".profile_hook_step": "a decorator for the profiler of torch",
    "nn.DataParallel.gather": "there are no further devices",
    "nn.DataParallel.parallel_apply": "there are no further devices",
    "nn.DataParallel.replicate": "there are no further devices",
    "nn.DataParallel.scatter": "there are no further devices",
    "nn.MultiheadAttention.merge_masks": "a step of torch's fused path",
    "optim.Adagrad.share_memory": "states of optimizers are not shared between processes",
    "optim.lr_scheduler.SequentialLR.recursive_undo": "a step of torch's __init__",
    **{
        f"nn.{kind}.{name}": "a step of torch's forward"
        for kind in ("RNNBase", "RNN", "LSTM", "GRU")
        for name in (
            "check_forward_args",
            "check_hidden_size",
            "check_input",
            "get_expected_cell_size",
            "get_expected_hidden_size",
            "permute_hidden",
        )
    },
}


def space(library: Any, path: str) -> Any:
    for name in path.split("."):
        library = getattr(library, name)
    return library


def pairs(path: str) -> Iterator[tuple[str, Any, Any]]:
    """Each name of a space with ours and theirs, and the methods of classes."""
    ours, theirs = space(plait, path), space(torch, path)
    for name in sorted(dir(theirs)):
        expected, result = getattr(theirs, name), getattr(ours, name, None)
        of_torch = str(getattr(expected, "__module__", "")).startswith(theirs.__name__)
        if name.startswith("_") or not callable(expected) or not of_torch or result is None:
            continue  # names that are missing stand in test_torch_names.py
        yield f"{path}.{name}", result, expected
        if inspect.isclass(expected) and inspect.isclass(result):
            for method in sorted(
                vars(expected) if expected is not torch.nn.Module else dir(expected)
            ):
                function = getattr(expected, method)
                if not method.startswith("_") and inspect.isroutine(function):
                    yield f"{path}.{name}.{method}", getattr(result, method, None), function


def parameters(value: Any) -> list[tuple[str, Any, Any]] | None:
    try:
        return [
            (each.name, each.kind, _default(each.default))
            for each in inspect.signature(value).parameters.values()
        ]
    except (TypeError, ValueError):
        return None


def _default(value: Any) -> Any:
    if callable(value) and value is not inspect.Parameter.empty:
        return getattr(value, "__name__", value)
    return value if isinstance(value, (int, float, str, tuple, type(None))) else repr(value)


def is_listed(name: str, table: dict[str, str]) -> bool:
    return name in table or "." + name.rpartition(".")[2] in table


def difference(name: str, ours: Any, theirs: Any) -> str:
    expected = parameters(theirs)
    if expected is None or [kind for _, kind, _ in expected] in ([2, 4], [0, 2, 4]):
        return ""
    if ours is None:
        return f"{name}: missing"
    result = parameters(ours)
    return "" if result == expected else f"{name}: {result}; in torch {expected}"


@pytest.mark.parametrize("path", SPACES)
def test_signatures_are_the_same(path: str) -> None:
    results = []
    for name, ours, theirs in pairs(path):
        table = MISSING if ours is None else DIFFERENT
        if not is_listed(name, table):
            results += filter(None, [difference(name, ours, theirs)])
    assert "\n".join(results) == ""


def test_what_is_listed_differs() -> None:
    """A name that is the same now must leave the tables."""
    known = {name: (ours, theirs) for path in SPACES for name, ours, theirs in pairs(path)}
    for table in (DIFFERENT, MISSING):
        for name in table:
            if not name.startswith("."):
                pair = known.get(name)
                if pair is not None:
                    assert difference(name, *pair), name
                else:  # a method that is only in some classes
                    assert name.rpartition(".")[2] in ("get_expected_cell_size", "check_input") or (
                        name.startswith("nn.") and table is MISSING
                    )
