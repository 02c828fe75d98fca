"""The text of modules, character for character."""

import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn._layer import Layer

TEXTS = [
    (nn.Identity(), "Identity()"),
    (nn.ConstantPad1d(2, 3.5), "ConstantPad1d(padding=(2, 2), value=3.5)"),
    (nn.ZeroPad1d(2), "ZeroPad1d((2, 2))"),
    (nn.Linear(2, 3), "Linear(in_features=2, out_features=3, bias=True)"),
    (nn.Linear(2, 3, bias=False), "Linear(in_features=2, out_features=3, bias=False)"),
    (
        nn.Bilinear(2, 3, 4),
        "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)",
    ),
    (nn.Conv2d(1, 6, 5), "Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1))"),
    (
        nn.Conv2d(2, 4, (3, 1), 2, 1, 2, 2, False, "circular"),
        "Conv2d(2, 4, kernel_size=(3, 1), stride=(2, 2), padding=(1, 1), dilation=(2, 2), "
        "groups=2, bias=False, padding_mode=circular)",
    ),
    (
        nn.Conv2d(1, 1, 3, padding="same"),
        "Conv2d(1, 1, kernel_size=(3, 3), stride=(1, 1), padding=same)",
    ),
    (
        nn.MaxPool2d(2),
        "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
    ),
    (nn.AvgPool2d((2, 1), 3), "AvgPool2d(kernel_size=(2, 1), stride=3, padding=0)"),
    (nn.AdaptiveAvgPool2d((1, 1)), "AdaptiveAvgPool2d(output_size=(1, 1))"),
    (nn.ReLU(), "ReLU()"),
    (nn.ReLU(inplace=True), "ReLU(inplace=True)"),
    (nn.ReLU6(), "ReLU6()"),
    (nn.LeakyReLU(0.2), "LeakyReLU(negative_slope=0.2)"),
    (nn.ELU(), "ELU(alpha=1.0)"),
    (nn.CELU(), "CELU(alpha=1.0)"),
    (nn.SELU(), "SELU()"),
    (nn.GELU(), "GELU(approximate='none')"),
    (nn.SiLU(), "SiLU()"),
    (nn.Sigmoid(), "Sigmoid()"),
    (nn.Tanh(), "Tanh()"),
    (nn.Softplus(), "Softplus(beta=1.0, threshold=20.0)"),
    (nn.Hardtanh(), "Hardtanh(min_val=-1.0, max_val=1.0)"),
    (nn.PReLU(), "PReLU(num_parameters=1)"),
    (nn.Softmax(dim=1), "Softmax(dim=1)"),
    (nn.LogSoftmax(), "LogSoftmax(dim=None)"),
    (nn.GLU(), "GLU(dim=-1)"),
    (nn.Dropout(0.25), "Dropout(p=0.25, inplace=False)"),
    (nn.Dropout2d(), "Dropout2d(p=0.5, inplace=False)"),
    (nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
    (nn.Unflatten(1, (2, 3)), "Unflatten(dim=1, unflattened_size=(2, 3))"),
    (nn.Embedding(10, 3), "Embedding(10, 3)"),
    (nn.Embedding(10, 3, padding_idx=-1), "Embedding(10, 3, padding_idx=9)"),
    (nn.LayerNorm(3), "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)"),
    (nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
    (nn.MSELoss(), "MSELoss()"),
    (nn.Sequential(), "Sequential()"),
    (nn.ModuleList(), "ModuleList()"),
    (nn.ModuleDict(), "ModuleDict()"),
    (nn.ParameterList(), "ParameterList()"),
]


@pytest.mark.parametrize(("module", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_layer(module, text):
    assert repr(module) == text


def test_containers_nest():
    net = nn.Sequential(
        nn.Linear(1, 2),
        nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]),
        nn.ModuleDict({"a": nn.Sequential(nn.Flatten())}),
    )
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Linear(in_features=1, out_features=2, bias=True)\n"
        "  (1): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n"
        "    (2): Tanh()\n"
        "  )\n"
        "  (2): ModuleDict(\n"
        "    (a): Sequential(\n"
        "      (0): Flatten(start_dim=1, end_dim=-1)\n"
        "    )\n"
        "  )\n"
        ")"
    )


def test_extra_lines_and_children():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def extra_repr(self):
            return "size=3"

    assert repr(Both()) == "Both(\n  size=3\n  (act): ReLU()\n)"


def test_parameter_list():
    weights = nn.ParameterList([pc.ones(2, 3)])
    assert (
        repr(weights) == f"ParameterList(  (0): Parameter containing: [{pc.float32} of size 2x3])"
    )


def test_a_bag_shows_what_is_unusual():
    assert repr(nn.EmbeddingBag(4, 3)) == "EmbeddingBag(4, 3, mode='mean')"
    bag = nn.EmbeddingBag(4, 3, 1.5, 1.0, True, "sum", padding_idx=0)
    shown = "max_norm=1.5, norm_type=1.0, scale_grad_by_freq=True, mode='sum', padding_idx=0"
    assert repr(bag) == f"EmbeddingBag(4, 3, {shown})"


def test_absent_submodules_are_shown():
    net = nn.Module()
    net.register_module("skip", None)
    assert repr(net) == "Module(\n  (skip): None\n)"


def test_layers_show_their_fields() -> None:
    def subclasses(kind: type) -> set[type]:
        below = set(kind.__subclasses__())
        return below.union(*map(subclasses, below))

    hidden = {
        kind.__name__
        for kind in subclasses(Layer)
        if "_shown" in vars(kind) and kind.extra_repr is not Layer.extra_repr
    }
    assert not hidden
