"""Subclasses of `Parameter` and `Buffer` with a constructor of their own."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import plait_nn as nn

pc = pytest.importorskip("plait_core")


class Scaled(nn.Parameter):
    """A parameter with an argument of its own, by keyword."""

    def __new__(cls, data: Any = None, requires_grad: bool = True, *, scale: float = 1.0) -> Any:
        self: Any = super().__new__(cls, data, requires_grad)
        self.scale = scale
        return self


class Named(nn.Parameter):
    """A parameter whose first argument is another one, and with an `__init__` too."""

    def __new__(cls, name: str, *sizes: int) -> Any:
        return pc.Tensor._make_subclass(cls, pc.zeros(sizes), False)

    def __init__(self, name: str, *sizes: int) -> None:
        self.name_ = name


class Tagged(nn.Buffer):
    """A buffer with an argument of its own."""

    def __new__(cls, data: Any, *, persistent: bool = True, tag: str = "") -> Any:
        self: Any = super().__new__(cls, data, persistent=persistent)
        self.tag = tag
        return self


def test_arguments_of_subclasses() -> None:
    layer: Any = nn.Module()
    layer.weight = Scaled(pc.ones(2), scale=3.0)
    layer.other = Named("a", 2, 3)
    layer.count = Tagged(pc.zeros(1), tag="t")
    assert type(layer.weight) is Scaled and layer.weight.scale == 3.0
    assert layer.other.name_ == "a" and layer.other.shape == (2, 3)
    assert dict(layer.named_buffers())["count"].tag == "t"
    assert [name for name, _ in layer.named_parameters()] == ["weight", "other"]
    again = copy.deepcopy(layer.weight)
    assert type(again) is Scaled and again.tolist() == [1.0, 1.0]


def test_wrong_arguments_of_the_classes_themselves() -> None:
    wrong: Any = nn.Parameter
    for args, kwargs in (((pc.ones(1), True, 3), {}), ((), {"grad": True}), ((3,), {})):
        with pytest.raises(TypeError, match=r"Parameter|argument"):
            wrong(*args, **kwargs)
