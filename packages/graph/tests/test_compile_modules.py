"""Modules, compiled: outputs, gradients and buffers have the bits of eager calls."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
from plait_func.pytree import tree_leaves
from plait_graph import compile
from plait_nn.utils import parametrizations

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import bits


def of(*shapes: tuple[int, ...]) -> Callable[[], Any]:
    return lambda: [pc.randn(*shape, requires_grad=True) for shape in shapes]


def numbers(below: int, *shapes: tuple[int, ...]) -> Callable[[], Any]:
    return lambda: [pc.randint(0, below, shape) for shape in shapes]


def itself_three_times() -> Any:
    return [pc.randn(5, 3, 4, requires_grad=True)] * 3


MODULES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), of((3, 4))),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4, momentum=None), of((3, 4, 2, 2))),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), of((3, 4, 5))),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), of((3, 4, 5, 5))),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), of((3, 4, 5))),
    "LayerNorm": (lambda: nn.LayerNorm(4), of((3, 4))),
    "RMSNorm": (lambda: nn.RMSNorm(4), of((3, 4))),
    "PReLU": (nn.PReLU, of((3, 4))),
    "RReLU": (nn.RReLU, of((3, 4))),
    "Dropout": (lambda: nn.Dropout(0.5), of((3, 4))),
    "Dropout2d": (lambda: nn.Dropout2d(0.5), of((3, 4, 5, 5))),
    "AlphaDropout": (lambda: nn.AlphaDropout(0.5), of((3, 4))),
    "RNNCell": (lambda: nn.RNNCell(4, 3), of((3, 4))),
    "GRUCell": (lambda: nn.GRUCell(4, 3), of((3, 4), (3, 3))),
    "LSTMCell": (lambda: nn.LSTMCell(4, 3), of((3, 4))),
    "RNN": (lambda: nn.RNN(4, 3, 2), of((5, 3, 4))),
    "GRU": (lambda: nn.GRU(4, 3, bidirectional=True), of((5, 3, 4))),
    "LSTM": (lambda: nn.LSTM(4, 3, proj_size=2), of((5, 3, 4))),
    "Conv1d": (lambda: nn.Conv1d(4, 2, 3, padding="same"), of((3, 4, 7))),
    "Conv2d": (lambda: nn.Conv2d(4, 2, 3, padding=1, padding_mode="circular"), of((3, 4, 5, 5))),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 2, 3), of((3, 4, 7))),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, return_indices=True), of((3, 4, 6, 6))),
    "AvgPool2d": (lambda: nn.AvgPool2d(2, ceil_mode=True), of((3, 4, 5, 5))),
    "AdaptiveMaxPool1d": (lambda: nn.AdaptiveMaxPool1d(2), of((3, 4, 7))),
    "LPPool1d": (lambda: nn.LPPool1d(2, 2), of((3, 4, 6))),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), of((3, 4, 5, 5))),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), of((3, 4, 5, 5))),
    "Unfold": (lambda: nn.Unfold(2), of((3, 4, 5, 5))),
    "Fold": (lambda: nn.Fold((5, 5), 2), of((3, 16, 16))),
    "Bilinear": (lambda: nn.Bilinear(4, 4, 3), of((3, 4), (3, 4))),
    "CosineSimilarity": (nn.CosineSimilarity, of((3, 4), (3, 4))),
    "Embedding": (lambda: nn.Embedding(5, 3, padding_idx=1), numbers(5, (3, 4))),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(5, 3), numbers(5, (3, 4))),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(4, 2, dropout=0.2), itself_three_times),
    "Transformer": (lambda: nn.Transformer(4, 2, 1, 1, 8), of((5, 3, 4), (6, 3, 4))),
    "weight_norm": (lambda: parametrizations.weight_norm(nn.Linear(4, 3)), of((3, 4))),
    "spectral_norm": (lambda: parametrizations.spectral_norm(nn.Linear(4, 3)), of((3, 4))),
    "orthogonal": (lambda: parametrizations.orthogonal(nn.Linear(4, 4)), of((3, 4))),
}


def masked_attention(mask: Any) -> Callable[[Any], Any]:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2, batch_first=True)
    return lambda x: layer(x, src_mask=mask, is_causal=mask.dtype != pc.bool)


def unpooled(x: Any) -> Any:
    return nn.functional.max_unpool2d(*nn.functional.max_pool2d(x, 2, return_indices=True), 2)


HIDDEN_ROW = pc.tensor([[False, True, True], [False, False, True], [True, True, True]])
LABELS = pc.tensor([[2, 0, -1], [1, -1, 0]])

# Modules and functions that check elements of their arguments.
CHECKS: dict[str, tuple[Callable[[], Callable[..., Any]], Callable[[], Any]]] = {
    "attention, float mask": (
        lambda: masked_attention(nn.Transformer.generate_square_subsequent_mask(3)),
        of((2, 3, 4)),
    ),
    "attention, a hidden row": (lambda: masked_attention(HIDDEN_ROW), of((2, 3, 4))),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, lambda: [*of((3, 4), (3, 4))(), pc.rand(3, 4)]),
    "MultiMarginLoss": (nn.MultiMarginLoss, lambda: [*of((3, 4))(), *numbers(4, (3,))()]),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, lambda: [*of((2, 3))(), LABELS]),
    "max_unpool2d": (lambda: unpooled, of((1, 2, 4, 4))),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4], div_value=2.0),
        lambda: [*of((3, 4))(), *numbers(6, (3,))()],
    ),
    "ctc_loss": (
        lambda: lambda x, y: nn.functional.ctc_loss(x.log_softmax(2), y, (5, 5), (2, 3)),
        lambda: [*of((5, 2, 4))(), 1 + numbers(3, (2, 3))()[0]],
    ),
    "one_hot": (lambda: lambda i: nn.functional.one_hot(i, 4) * 1.0, numbers(4, (3,))),
}


@pytest.mark.parametrize("name", CHECKS)
def test_checks_of_elements_are_recorded(name: str) -> None:
    make, draw = CHECKS[name]
    pc.manual_seed(0)
    function = make()
    compiled = compile(function, frozen=True)
    for k in range(4):
        seen = []
        for each in (compiled, function):
            pc.manual_seed(k)
            inputs = draw()
            results = [t for t in tree_leaves(each(*inputs)) if isinstance(t, pc.Tensor)]
            if any(t.requires_grad for t in results):
                sum((t * 1.5).sin().sum() for t in results).backward()
            seen.append(bits([results, [t.grad for t in inputs], pc.rand(1)]))
        assert seen[0] == seen[1]


def after_a_call(function: Any, module: Any, draw: Callable[[], Any], k: int) -> Any:
    """Call a module and differentiate; return all that it leaves."""
    pc.manual_seed(k)
    inputs = draw()
    results = [t for t in tree_leaves(function(*inputs)) if isinstance(t, pc.Tensor)]
    module.zero_grad()
    sum((t * 1.5).sin().sum() for t in results if t.requires_grad).backward()
    grads = [t.grad for t in (*module.parameters(), *inputs)]
    return bits([results, grads, list(module.buffers())]), pc.rand(1).item()


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    make, draw = MODULES[name]
    pc.manual_seed(0)
    eager = make()
    module = copy.deepcopy(eager)
    compiled = compile(module, frozen=True)
    for k in range(6):
        if k == 4:
            eager.eval()
            module.eval()
        assert after_a_call(compiled, module, draw, k) == after_a_call(eager, eager, draw, k)


def test_sparse_gradients() -> None:
    module = nn.Embedding(10, 3, sparse=True)
    compiled: Any = compile(lambda i: (module(i) ** 2).sum(), frozen=True)
    for k in range(5):
        i = pc.tensor([1, 2 + k])
        module.zero_grad()
        (module(i) ** 2).sum().backward()
        expected = module.weight.grad.to_dense()
        module.zero_grad()
        try:
            compiled(i).backward()
        except NotImplementedError:
            return
        assert bits(module.weight.grad.to_dense()) == bits(expected)


def test_losses() -> None:
    pc.manual_seed(0)
    module = nn.Linear(4, 3)
    x, y, t = pc.randn(5, 4), pc.randint(0, 3, (5,)), pc.rand(5, 3)
    for loss, target in (
        (nn.CrossEntropyLoss(label_smoothing=0.1, weight=pc.tensor([1.0, 2.0, 3.0])), y),
        (nn.CrossEntropyLoss(ignore_index=1), y),
        (nn.BCEWithLogitsLoss(), t),
        (nn.KLDivLoss(reduction="batchmean"), t),
        (nn.HuberLoss(), t),
        (nn.L1Loss(reduction="none"), t),
        (nn.PoissonNLLLoss(), t),
    ):

        def function(x: Any, target: Any, loss: Any = loss) -> Any:
            return loss(module(x), target).sum()

        compiled: Any = compile(function, frozen=True)
        for k in range(4):
            seen = []
            for each in (compiled, function):
                module.zero_grad()
                each(x * (k + 1), target).backward()
                seen.append(bits([module.weight.grad, module.bias.grad]))
            assert seen[0] == seen[1], loss


def test_attributes_that_are_set_are_those_of_the_module() -> None:
    for frozen in (False, True):
        module = nn.Linear(2, 1)
        compiled = compile(module, frozen=frozen)
        compiled.weight = nn.Parameter(pc.zeros(1, 2))
        compiled.note = 3
        assert module.weight is compiled.weight and module.note == 3
        assert pc.equal(compiled(pc.ones(1, 2)), module.bias.view(1, 1))
        del compiled.note
        assert not hasattr(module, "note")
