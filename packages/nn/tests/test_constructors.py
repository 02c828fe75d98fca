"""A layer that is called in place of being constructed, and layers in plain containers."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn

LAYERS = [
    layer
    for layer in (getattr(nn, name) for name in nn.__all__)
    if inspect.isclass(layer) and issubclass(layer, nn.Module) and layer is not nn.Module
]
# a weight, random samples or the members come first, or any arguments are taken
WITH_TENSORS = {
    "BCELoss",
    "BCEWithLogitsLoss",
    "Container",
    "CrossEntropyLoss",
    "Identity",
    "NLLLoss",
    "NLLLoss2d",
    "MultiLabelSoftMarginLoss",
    "ParameterDict",
    "ParameterList",
    "Sequential",
}


@pytest.mark.parametrize(
    "layer",
    [each for each in LAYERS if each.__name__ not in WITH_TENSORS],
    ids=lambda c: c.__name__,
)
def test_a_tensor_in_place_of_arguments_says_how_a_layer_is_called(layer: Any) -> None:
    with pytest.raises(TypeError) as caught:
        layer(pc.ones(2, 3))
    assert f"{layer.__name__}(...), then layer(input)" in str(caught.value)


def test_a_second_tensor_is_refused_where_the_first_is_a_weight() -> None:
    with pytest.raises(TypeError, match=r"CrossEntropyLoss: `size_average` must not be a tensor"):
        nn.CrossEntropyLoss(pc.ones(2, 3), pc.tensor([0, 1]))
    assert nn.CrossEntropyLoss(pc.ones(3)).weight.tolist() == [1.0] * 3


def test_a_number_may_be_a_tensor_without_dimensions() -> None:
    assert nn.LeakyReLU(pc.tensor(0.5))(pc.tensor(-1.0)).item() == -0.5


class Plain(nn.Module):
    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: pc.Tensor) -> Any:
        return self.layers(x)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes of exceptions are of Python 3.11")
@pytest.mark.parametrize(
    ("layers", "container"),
    [([nn.ReLU()], "ModuleList"), ((nn.ReLU(),), "ModuleList"), ({"a": nn.ReLU()}, "ModuleDict")],
)
def test_a_call_of_a_plain_container_names_the_registered_one(layers: Any, container: str) -> None:
    with pytest.raises(TypeError, match="is not callable") as caught:
        Plain(layers)(pc.ones(2))
    (note,) = caught.value.__notes__
    assert f"`layers` is a {type(layers).__name__} of layers" in note and container in note
    with pytest.raises(TypeError, match="is not callable") as caught:
        Plain([1])(pc.ones(2))
    assert "of layers" not in caught.value.__notes__[0]
