"""The nodes of gradients: their names, and what programs read of them."""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import Any

import pytest

import plait
import plait_torch


def _expressions() -> list[tuple[str, str]]:
    """Return expressions, and the name of PyTorch's node of the result."""
    text = pathlib.Path(__file__).with_name("torch_node_names.json").read_text(encoding="utf-8")
    return [(each, name) for name, all_ in json.loads(text).items() for each in all_.split("; ")]


def _names(torch: Any) -> dict[str, Any]:
    def rising(*shape: int) -> Any:
        return (
            torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 7 + 0.1
        ).requires_grad_()

    def between(*shape: int) -> Any:
        count = torch.Size(shape).numel()
        return torch.linspace(0.1, 0.9, count).reshape(shape).requires_grad_()

    def setit(x: Any) -> Any:
        copy = x.clone()
        copy[0] = 1.0
        return copy

    parts = torch.linspace(0.1, 0.9, 6).reshape(2, 3), torch.linspace(0.2, 0.7, 6).reshape(2, 3)
    return {
        "torch": torch, "F": torch.nn.functional, "setit": setit,
        "x": rising(2, 3), "y": rising(2, 3), "z": rising(3, 2), "w": rising(2, 4),
        "im": rising(1, 1, 4, 4), "p": between(2, 3), "v": between(3), "b": between(2),
        "k1": between(1, 1, 2), "k2": between(1, 1, 2, 2),
        "s": (torch.eye(3) * 3 + torch.ones(3, 3) * 0.5).requires_grad_(),
        "c": torch.complex(*parts).requires_grad_(), "idx": torch.tensor([0, 1]),
        "m": torch.tensor([[True, False, True], [False, True, True]]),
    }  # fmt: skip


def test_names_of_operators(torch: Any) -> None:
    """Those of operators that are one step in PyTorch and here."""
    wrong = []
    expressions = _expressions()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = _names(torch)
        for expression, name in expressions:
            node = eval(expression, names).grad_fn
            if (node.name(), type(node).__name__) != (name, name):
                wrong.append(f"{expression}: {node.name()}, not {name}")
    assert len(expressions) > 430 and not wrong, "\n".join(wrong)


def test_joined_layers_have_the_name_of_the_activation(torch: Any) -> None:
    nn = torch.nn
    for activation, name in (
        (nn.ReLU(), "Relu"),
        (nn.ReLU6(), "Hardtanh"),
        (nn.LeakyReLU(), "LeakyRelu"),
        (nn.Hardswish(), "Hardswish"),
    ):
        y = nn.Sequential(nn.BatchNorm2d(3), activation)(torch.ones(2, 3, 4, 4))
        assert y.grad_fn.name() == f"{name}Backward0"


def test_saved_values_of_every_node(torch: Any) -> None:
    """Tools that draw a graph read all attributes of a node."""
    names = _names(torch)
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for expression in {name: each for each, name in _expressions()}.values():
            node = eval(expression, names).grad_fn
            saved = [each for each in dir(node) if each.startswith("_saved_")]
            count += sum(getattr(node, each) is not None for each in saved)
    assert count > 450


def test_types_and_leaves(torch: Any) -> None:
    parameter, leaf = torch.nn.Parameter(torch.ones(2)), torch.ones(2, requires_grad=True)
    y = parameter * leaf
    node = y.grad_fn
    assert repr(node).startswith("<MulBackward0 object at 0x")
    assert repr(type(node)) == "<class 'MulBackward0'>" and type(node) is type((y * y).grad_fn)
    assert isinstance(node, torch.autograd.graph.Node) and "grad_fn=<MulBackward0>" in repr(y)
    leaves = [each for each, _ in node.next_functions]
    assert {type(each).__name__ for each in leaves} == {"AccumulateGrad"}
    assert leaves[0].variable is parameter and leaves[1].variable is leaf
    assert not hasattr(node, "variable") and node == y.grad_fn and len({node, y.grad_fn}) == 1
    calls: list[Any] = []
    node.register_hook(lambda *gradients: calls.append(gradients))
    y.sum().backward()
    assert len(calls) == 1 and parameter.grad.tolist() == [1.0, 1.0]


def test_names_are_plaits_without_torch() -> None:
    y = plait.ones(1, requires_grad=True) * 2
    with plait_torch.installed():
        assert y.grad_fn.name() == "MulBackward0"
        inside = y.grad_fn
    assert y.grad_fn.name() == "MulBackward" and type(y.grad_fn) is plait.autograd.graph.Node
    assert inside == y.grad_fn and not hasattr(inside, "variable")
    assert repr(y.grad_fn).startswith("<MulBackward at 0x")


def test_writes_into_results(torch: Any) -> None:
    """Results that programs write into before they run backward, as PyTorch allows."""
    F = torch.nn.functional
    values = torch.linspace(-8, 8, 24).reshape(2, 3, 4)
    functions = {
        "relu6": F.relu6,
        "hardtanh": F.hardtanh,
        "hardswish": F.hardswish,
        "GRU": lambda x: torch.nn.GRU(4, 4)(x)[0],
        "GRU, batch_first": lambda x: torch.nn.GRU(4, 4, 2, batch_first=True)(x)[0],
        "RNN": lambda x: torch.nn.RNN(4, 4)(x)[0],
        "Linear": torch.nn.Linear(4, 4),
        "layer_norm": lambda x: F.layer_norm(x, (4,)),
    }
    for name, function in functions.items():
        gradients = []
        for written in (False, True):
            torch.manual_seed(0)
            x = values.clone().requires_grad_()
            y = function(x)
            (y.mul_(2) if written else y * 2).sum().backward()
            gradients.append(x.grad)
        assert torch.equal(*gradients), name
    for function in (F.relu, torch.sigmoid, torch.tanh, torch.exp, lambda x: F.softmax(x, -1)):
        y = function(values.clone().requires_grad_())
        with pytest.raises(RuntimeError, match="inplace"):
            y.mul_(2).sum().backward()
