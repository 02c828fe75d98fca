"""Modules against torch's on float64: names and shapes of parameters, results, gradients."""

from __future__ import annotations

import copy
import pathlib
import sys
from typing import Any

import numpy as np
import pytest
import torch

import plait_core as pc
import plait_nn as nn

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from module_cases import CASES, Case, Draw

ids = [case.id for case in CASES]
pytestmark = [
    pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning:torch"),
    pytest.mark.filterwarnings("ignore:.NLLLoss2d. has been deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Using padding='same' with even:UserWarning:torch"),
]


def build(case: Case) -> tuple[Any, Any]:
    """Torch's module with drawn parameters, and ours with the same ones."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, case.name)(*case.args, **case.kwargs).double()
    for parameter in theirs.parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64) * 0.5
    ours = getattr(nn, case.name)(*case.ours_args, **case.ours_kwargs).double()
    state = theirs.state_dict()
    own = ours.state_dict()
    assert list(own) == list(state)
    assert [tuple(v.shape) for v in own.values()] == [tuple(v.shape) for v in state.values()]
    ours.load_state_dict(state)
    return ours, theirs


def flat(result: Any) -> list[Any]:
    """The tensors of a nest of tuples."""
    if isinstance(result, (tuple, list)):
        return [tensor for each in result for tensor in flat(each)]
    return [] if result is None else [result]


def close(ours: Any, theirs: Any) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_results_and_gradients(case: Case, training: bool) -> None:
    ours, theirs = build(case)
    ours.train(training)
    theirs.train(training)
    draw = Draw(1)
    arrays = case.inputs(draw)
    my_args: list[Any] = []
    their_args: list[Any] = []
    for array in arrays:
        if isinstance(array, np.ndarray):
            own, their = pc.tensor(array), torch.tensor(array)
            if array.dtype == np.float64:
                own.requires_grad_()
                their.requires_grad_()
            my_args.append(own)
            their_args.append(their)
        else:
            my_args.append(array)
            their_args.append(array)
    for _ in range(case.calls):
        my_results, their_results = flat(ours(*my_args)), flat(theirs(*their_args))
    assert len(my_results) == len(their_results)
    my_sum, their_sum = 0.0, 0.0
    for own, their in zip(my_results, their_results, strict=True):
        close(own, their)
        if their.requires_grad:
            factor = draw.normal(*their.shape)
            my_sum = my_sum + (own * pc.tensor(factor)).sum()
            their_sum = their_sum + (their * torch.tensor(factor)).sum()
    if isinstance(their_sum, torch.Tensor):
        my_sum.backward()
        their_sum.backward()
        for own, their in zip(my_args, their_args, strict=True):
            if isinstance(their, torch.Tensor) and their.grad is not None:
                close(own.grad, their.grad)
        for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None), name
            if q.grad is not None:
                close(p.grad, q.grad)
    for p, q in zip(ours.buffers(), theirs.buffers(), strict=True):
        close(p, q)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_text(case: Case) -> None:
    if case.same_text:
        ours = getattr(nn, case.name)(*case.ours_args, **case.ours_kwargs)
        assert repr(ours) == repr(getattr(torch.nn, case.name)(*case.args, **case.kwargs))


@pytest.mark.parametrize("args", [(3,), (4, 0.5, 0.6, 2.0), (9, 0.5), (1, 0.5)])
def test_values_of_the_norm_across_maps(args: Any) -> None:
    # torch's gradient is that of another formula than its values
    x = Draw(1).normal(2, 7, 4, 3)
    close(nn.CrossMapLRN2d(*args)(pc.tensor(x)), torch.nn.CrossMapLRN2d(*args)(torch.tensor(x)))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("joined", [False, True])
def test_ctc(reduction: str, joined: bool) -> None:
    logits = Draw(2).normal(7, 4, 5)
    rows = [[1, 2, 2, 4], [3, 3], [1, 1, 1, 1], [2, 3]]  # the third needs 7 steps
    flat = np.array([label for row in rows for label in row])
    padded = np.array([row + [0] * (4 - len(row)) for row in rows])
    targets, expected = (flat if joined else padded), [len(row) for row in rows]
    x, y = pc.tensor(logits).requires_grad_(), torch.tensor(logits).requires_grad_()
    for steps, zero in (([7, 5, 7, 6], False), ([7, 5, 6, 6], True)):
        ours = nn.CTCLoss(0, reduction, zero)(
            x.log_softmax(2), pc.tensor(targets), steps, pc.tensor(expected)
        )
        theirs = torch.nn.CTCLoss(0, reduction, zero)(
            y.log_softmax(2), torch.tensor(targets), torch.tensor(steps), torch.tensor(expected)
        )
        close(ours, theirs)
        x.grad = y.grad = None
        ours.sum().backward()
        theirs.sum().backward()
        close(x.grad, y.grad)
    if reduction == "none":
        impossible = nn.functional.ctc_loss(
            x.log_softmax(2), pc.tensor(padded), [6] * 4, expected, reduction="none"
        )
        assert impossible.isinf().tolist() == [False, False, True, False]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("in_order", [True, False])
def test_packed_sequences(kind: str, in_order: bool) -> None:
    lengths = [5, 3, 3, 1] if in_order else [3, 1, 5, 3]
    case = Case(kind, (4, 3, 2), {"bidirectional": True}, lambda draw: (), 1, False)
    ours, theirs = build(case)
    draw = Draw(3)
    array = draw.normal(5, 4, 4)
    state = [draw.normal(4, 4, 3) for _ in range(2 if kind == "LSTM" else 1)]
    results = []
    for library, module, rnn in (
        (pc, ours, nn.utils.rnn),
        (torch, theirs, torch.nn.utils.rnn),
    ):
        x = library.tensor(array).requires_grad_()
        hx = tuple(library.tensor(s).requires_grad_() for s in state)
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=in_order)
        output, last = module(packed, hx if kind == "LSTM" else hx[0])
        padded, counts = rnn.pad_packed_sequence(output, padding_value=0.5, total_length=6)
        assert counts.tolist() == lengths
        assert output.batch_sizes.tolist() == [4, 3, 3, 1, 1]
        result = [padded, *flat(last)]
        total = sum((library.cos(m) * (i + 1)).sum() for i, m in enumerate(result))
        total.backward()
        gradients = [x.grad, *(h.grad for h in hx), *(p.grad for p in module.parameters())]
        results.append([*result, output.data, *gradients])
    for own, their in zip(*results, strict=True):
        close(own, their)


def test_lstm_takes_a_state() -> None:
    case = Case("LSTM", (4, 3), {"proj_size": 2}, lambda draw: (), 1, False)
    ours, theirs = build(case)
    draw = Draw(3)
    x, h, c = draw.normal(5, 2, 4), draw.normal(1, 2, 2), draw.normal(1, 2, 3)
    own = ours(pc.tensor(x), (pc.tensor(h), pc.tensor(c)))
    their = theirs(torch.tensor(x), (torch.tensor(h), torch.tensor(c)))
    for a, b in zip(flat(own), flat(their), strict=True):
        close(a, b)


@pytest.mark.parametrize("kind", ["none", "bool", "float", "causal"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_scaled_dot_product_attention(kind: str, scale: float | None) -> None:
    draw = Draw(4)
    arrays = [draw.normal(2, 4, 5, 3), draw.normal(2, 2, 6, 3), draw.normal(2, 2, 6, 4)]
    mask: Any = None
    if kind == "bool":
        mask = draw.below(2, 5, 6).astype(bool)
        mask[2] = False
    elif kind == "float":
        mask = draw.normal(2, 4, 5, 6)
        mask[0, 1, 2] = -np.inf
    output = []
    for library, function in (
        (pc, nn.functional.scaled_dot_product_attention),
        (torch, torch.nn.functional.scaled_dot_product_attention),
    ):
        tensors = [library.tensor(a).requires_grad_() for a in arrays]
        argument = None if mask is None else library.tensor(mask)
        result = function(
            *tensors, argument, is_causal=kind == "causal", scale=scale, enable_gqa=True
        )
        library.cos(result).sum().backward()
        output.append([result, *(t.grad for t in tensors)])
    for own, their in zip(*output, strict=True):
        close(own, their)


def test_transformer_encoder_with_masks() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True),
        2,
        torch.nn.LayerNorm(6),
        enable_nested_tensor=False,
    ).double()
    ours = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True), 2, nn.LayerNorm(6)
    ).double()
    ours.load_state_dict(theirs.state_dict())
    x = Draw(5).normal(2, 4, 6)
    padding = np.array([[False] * 4, [False, False, True, True]])
    result = []
    for library, module, transformer in (
        (pc, ours, nn.Transformer),
        (torch, theirs, torch.nn.Transformer),
    ):
        mask = transformer.generate_square_subsequent_mask(4, dtype=library.float64)
        result.append(
            module(library.tensor(x), mask, library.tensor(padding).to(mask.dtype) * -9.0)
        )
    close(*result)


def test_weight_norm_and_its_state() -> None:
    result = []
    draw = Draw(6)
    state = None
    x, g = draw.normal(2, 3, 5), draw.normal(2, 4, 3)
    for library, module, utils in (
        (torch, torch.nn.Conv1d(3, 4, 3).double(), torch.nn.utils),
        (pc, nn.Conv1d(3, 4, 3).double(), nn.utils),
    ):
        layer = utils.parametrizations.weight_norm(module)
        state = layer.state_dict() if state is None else state
        assert list(layer.state_dict()) == list(state)
        layer.load_state_dict(state)
        (layer(library.tensor(x)) * library.tensor(g)).sum().backward()
        result.append([layer.weight, *(p.grad for p in layer.parameters())])
    for their, own in zip(*result, strict=True):
        close(own, their)


@pytest.mark.parametrize("training", [True, False])
def test_spectral_norm_and_its_state(training: bool) -> None:
    output = []
    draw = Draw(6)
    state = None
    x = draw.normal(2, 3, 5, 5)
    for library, module, utils in (
        (torch, torch.nn.ConvTranspose2d(3, 4, 3).double(), torch.nn.utils),
        (pc, nn.ConvTranspose2d(3, 4, 3).double(), nn.utils),
    ):
        layer = utils.parametrizations.spectral_norm(module).train(training)
        state = copy.deepcopy(layer.state_dict()) if state is None else state
        assert list(layer.state_dict()) == list(state)
        layer.load_state_dict(state)
        result = layer(library.tensor(x))
        library.cos(result).sum().backward()
        output.append([result, *(p.grad for p in layer.parameters()), *layer.buffers()])
    for their, own in zip(*output, strict=True):
        close(own, their)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling(dims: int) -> None:
    array = Draw(7).normal(*(2, 3, 6, 5, 4)[: dims + 2])
    result = []
    for library, functional in ((pc, nn.functional), (torch, torch.nn.functional)):
        x = library.tensor(array).requires_grad_()
        pooled = getattr(functional, f"max_pool{dims}d")(x, 2, return_indices=True)
        back = getattr(functional, f"max_unpool{dims}d")(*pooled, 2, output_size=x.shape)
        library.cos(back).sum().backward()
        result.append((back, x.grad))
    for own, their in zip(*result, strict=True):
        close(own, their)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("dims", [2, 3])
def test_grids(mode: str, padding: str, align: bool, dims: int) -> None:
    draw = Draw(8)
    image = draw.normal(*(2, 3, 4, 5, 3)[: dims + 2])
    theta = draw.normal(2, dims, dims + 1) * 1.5
    result = []
    for library, functional in ((pc, nn.functional), (torch, torch.nn.functional)):
        x = library.tensor(image).requires_grad_()
        maps = library.tensor(theta).requires_grad_()
        size = (2, 3, 6, 4, 5)[: dims + 2]
        grid = functional.affine_grid(maps, size, align_corners=align)
        sampled = functional.grid_sample(x, grid, mode, padding, align)
        library.cos(sampled).sum().backward()
        result.append((grid, sampled, x.grad, *([maps.grad] if mode == "bilinear" else [])))
    for own, their in zip(*result, strict=True):
        close(own, their)


NAMED: list[tuple[str, tuple[int, ...], tuple[Any, ...]]] = [
    ("max_pool1d_with_indices", (2, 3, 9), (3, 2, 1)),
    ("max_pool2d_with_indices", (2, 3, 9, 8), ((3, 2), 2, 1)),
    ("max_pool3d_with_indices", (2, 3, 5, 6, 4), (2,)),
    ("adaptive_max_pool1d_with_indices", (2, 3, 9), (4,)),
    ("adaptive_max_pool2d_with_indices", (2, 3, 9, 8), ((4, 3),)),
    ("adaptive_max_pool3d_with_indices", (2, 3, 5, 6, 4), ((2, 3, 4),)),
    ("native_channel_shuffle", (2, 6, 3, 2), (3,)),
    ("upsample_bilinear", (2, 3, 4, 5), ((7, 8),)),
    ("upsample_nearest", (2, 3, 4, 5), (None, 2)),
]


@pytest.mark.filterwarnings("ignore:.nn.functional.upsample:UserWarning")
@pytest.mark.filterwarnings("ignore:.nn.functional.upsample:FutureWarning")
@pytest.mark.parametrize(("name", "shape", "args"), NAMED, ids=[name for name, _, _ in NAMED])
def test_functions_with_fixed_arguments(name: str, shape: Any, args: Any) -> None:
    x = Draw(5).normal(*shape)
    own = flat(getattr(nn.functional, name)(pc.tensor(x), *args))
    theirs = flat(getattr(torch.nn.functional, name)(torch.tensor(x), *args))
    for a, b in zip(own, theirs, strict=True):
        close(a, b)


def test_convolution_of_time_batch_channels() -> None:
    draw = Draw(6)
    arrays = draw.normal(7, 2, 3), draw.normal(4, 3, 5), draw.normal(5)
    own = nn.functional.conv_tbc(*map(pc.tensor, arrays), 2)
    close(own, torch.nn.functional.conv_tbc(*map(torch.tensor, arrays), 2))


def test_adaptive_softmax_predicts() -> None:
    case = Case("AdaptiveLogSoftmaxWithLoss", (8, 30, [4, 12], 2.0), {}, lambda draw: (), 1, True)
    ours, theirs = build(case)
    x = Draw(7).normal(40, 8)
    close(ours.log_prob(pc.tensor(x)), theirs.log_prob(torch.tensor(x)))
    assert ours.predict(pc.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()
