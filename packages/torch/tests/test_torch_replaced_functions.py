"""Functions of `torch.nn.functional` that a program replaces: layers call the replacement."""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import Any
from unittest import mock

import pytest


def _calls() -> list[tuple[str, str, str]]:
    """Return layers, their arguments, and the functions that PyTorch's layer calls."""
    text = pathlib.Path(__file__).with_name("torch_layer_calls.json").read_text(encoding="utf-8")
    return [(layer, args, names) for layer, args, names in json.loads(text)]


def _recording(functional: Any, called: list[str]) -> dict[str, Any]:
    """Return a replacement for each function, which notes the outermost call and makes it."""
    depth = 0

    def replacement(name: str, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            if not depth:
                called.append(name)
            depth += 1
            try:
                return function(*args, **kwargs)
            finally:
                depth -= 1

        return call

    names = [name for name in dir(functional) if not name.startswith(("_", "has_torch"))]
    functions = {name: getattr(functional, name) for name in names}
    return {
        name: replacement(name, each)
        for name, each in functions.items()
        if callable(each) and not isinstance(each, type)
    }


def test_layers_call_the_functions_that_pytorchs_layers_call(torch: Any) -> None:
    F, nn = torch.nn.functional, torch.nn
    x, y = torch.linspace(-1, 1, 12).reshape(3, 4), torch.linspace(0.1, 0.9, 12).reshape(3, 4)
    names = {
        "F": F, "nn": nn, "torch": torch, "x": x, "y": y, "index": torch.tensor([0, 1, 2]),
        "one": torch.ones(3), "im1": torch.ones(1, 2, 8), "im2": torch.ones(1, 2, 8, 8),
        "im3": torch.ones(1, 2, 6, 6, 6),
    }  # fmt: skip
    entries = _calls()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [
            (eval(f"nn.{layer}", names), eval(f"({args},)", names)) for layer, args, _ in entries
        ]
        called: list[str] = []
        with mock.patch.multiple(F, **_recording(F, called)):
            results = []
            for module, args in made:
                called.clear()
                module(*args)
                results.append(" ".join(sorted(set(called))))
        called.clear()
        made[0][0](*made[0][1])
    assert not called  # the functions are the former ones again
    wrong = [
        f"{layer}: {result!r}, not {names!r}"
        for (layer, _, names), result in zip(entries, results, strict=True)
        if result != names
    ]
    assert len(entries) > 130 and not wrong, wrong


@pytest.mark.parametrize("place", ["torch.nn.functional", "torch.nn.modules.linear.F"])
def test_ways_to_replace_a_function(torch: Any, place: str) -> None:
    layer, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    with mock.patch(f"{place}.linear", return_value=5):
        assert layer(x) == 5
    assert layer(x).shape == (1, 2)


def test_layers_that_call_functions_of_torch(torch: Any) -> None:
    with mock.patch("torch.tanh", return_value=7), mock.patch("torch.sigmoid", return_value=8):
        assert torch.nn.Tanh()(torch.ones(1)) == 7 and torch.nn.Sigmoid()(torch.ones(1)) == 8
    assert torch.nn.Tanh()(torch.zeros(1)).tolist() == [0.0]
