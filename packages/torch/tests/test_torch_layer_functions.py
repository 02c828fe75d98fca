"""Functions of `torch` that PyTorch's layers and losses call."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest


def test_losses_with_numbers_for_the_reduction(torch: Any) -> None:
    functional = torch.nn.functional
    torch.manual_seed(0)
    x, y, z = torch.rand(3, 4), torch.rand(3, 4), torch.rand(3, 4)
    sign = torch.tensor([1.0, -1.0, 1.0])
    log = torch.randn(6, 2, 5).log_softmax(-1)
    lengths = torch.tensor([6, 5]), torch.tensor([2, 3])
    targets = torch.tensor([[1, 2, 0], [3, 1, 4]])
    for number, word in enumerate(("none", "mean", "sum")):
        for name, args, options in (
            ("hinge_embedding_loss", (x, y.sub(0.5).sign(), 0.5), {}),
            ("margin_ranking_loss", (x, y, z.sub(0.5).sign(), 0.1), {}),
            ("cosine_embedding_loss", (x, y, sign, 0.1), {}),
            ("triplet_margin_loss", (x, y, z), {"swap": True}),
        ):
            result = getattr(torch, name)(*args, reduction=number, **options)
            expected = getattr(functional, name)(*args, reduction=word, **options)
            assert torch.equal(result, expected), name
        terms = functional.kl_div(x.log(), y, reduction="none")
        expected = terms if word == "none" else getattr(terms, word)()
        assert torch.equal(torch.kl_div(x.log(), y, number), expected)
        result = torch.poisson_nll_loss(x, y, True, False, 1e-8, number)
        assert torch.equal(result, functional.poisson_nll_loss(x, y, reduction=word))
        result = torch.ctc_loss(log, targets, *lengths, reduction=number)
        assert torch.equal(result, functional.ctc_loss(log, targets, *lengths, reduction=word))


def test_layers(torch: Any) -> None:
    functional = torch.nn.functional
    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 4, 6), torch.rand(4), torch.rand(4)
    result = torch.instance_norm(x, weight, bias, None, None, True, 0.1, 1e-5, True)
    expected = functional.instance_norm(x, None, None, weight, bias, True, 0.1, 1e-5)
    assert torch.equal(result, expected)
    mean, var = torch.zeros(4), torch.ones(4)
    result, reference, scale = torch.native_batch_norm(x, weight, bias, mean, var, True, 0.1, 1e-5)
    assert torch.allclose(reference, x.mean((0, 2))) and torch.allclose(mean, 0.1 * reference)
    assert torch.allclose(
        (x - reference[:, None]) * (scale * weight)[:, None] + bias[:, None], result
    )
    result = torch.native_batch_norm(x, weight, bias, mean, var, False, 0.1, 1e-5)
    assert [each.numel() for each in result] == [48, 0, 0]
    for result in (torch.adaptive_max_pool1d(x, 2), torch.max_pool1d_with_indices(x, 3)):
        assert torch.equal(x.gather(-1, result[1]), result[0]) and result[0].shape == (2, 4, 2)
    theta = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]])
    expected = functional.affine_grid(theta, [1, 1, 2, 2], align_corners=True)
    assert torch.equal(torch.affine_grid_generator(theta, [1, 1, 2, 2], True), expected)
    kernel = torch.randn(3, 4, 5)
    expected = functional.conv_tbc(x, kernel[:, :, :].new_ones(3, 6, 5), torch.ones(5), 1)
    assert torch.equal(torch.conv_tbc(x, torch.ones(3, 6, 5), torch.ones(5), 1), expected)
    assert torch.equal(torch.native_channel_shuffle(x, 2), functional.channel_shuffle(x, 2))
    filters = torch.randn(4, 2, 3)
    result = torch.convolution(x, filters, None, [2], [1], [1], False, [0], 2)
    assert torch.equal(result, functional.conv1d(x, filters, None, 2, 1, 1, 2))
    result = torch.convolution(x, filters, None, [2], [1], [1], True, [1], 2)
    assert torch.equal(result, functional.conv_transpose1d(x, filters, None, 2, 1, 1, 2))


def test_bags(torch: Any) -> None:
    rows, starts = torch.tensor([0, 2, 1, 1]), torch.tensor([0, 3, 3])
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    sums, bag_of, sizes, _ = torch.embedding_bag(table, rows, starts)
    assert sums.tolist() == [[9, 6], [0, 0], [3, 4]]
    assert bag_of.tolist() == [0, 0, 0, 2] and sizes.tolist() == [3, 0, 1]
    ends = torch.tensor([0, 3, 4])
    maxima, bag_of, sizes, _ = torch.embedding_bag(
        table, rows, ends, mode=2, include_last_offset=True
    )
    assert maxima.tolist() == [[5, 4], [3, 4]] and sizes.tolist() == [3, 1]


def test_norms_of_all_dimensions_but_one(torch: Any) -> None:
    x = torch.randn(3, 4, 2)
    assert torch.allclose(torch.norm_except_dim(x)[:, 0, 0], x.flatten(1).norm(dim=1))
    result = torch.norm_except_dim(x, 1, 2)
    assert result.shape == (1, 1, 2) and torch.allclose(result[0, 0], x.abs().sum((0, 1)))
    assert torch.allclose(torch.norm_except_dim(x, 2, -1), x.norm())
    assert torch.equal(torch.norm_except_dim(x[0, 0]), x[0, 0].abs())


def test_dropout_of_channels_and_in_place(torch: Any) -> None:
    torch.manual_seed(0)
    x = torch.ones(20, 30, 4)
    result = torch.feature_dropout(x, 0.5, True)
    assert set(result.unique().tolist()) == {0, 2} and (result == result[..., :1]).all()
    assert torch.equal(torch.feature_dropout(x, 0.5, False), x)
    for function in (torch.feature_dropout_, torch.alpha_dropout_, torch.feature_alpha_dropout_):
        y = x.clone()
        assert function(y, 0.5, True) is y and not torch.equal(y, x)
    with pytest.raises(RuntimeError, match="2 dimensions"):
        torch.feature_dropout(torch.ones(3), 0.5, True)


def test_methods_in_place_as_functions(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True) * 2
    assert torch.detach_(x) is x and not x.requires_grad
    assert torch.as_strided_(x, (1,), (1,)) is x and x.shape == (1,)
    assert torch.resize_as_(x, torch.ones(2, 3)).shape == (2, 3)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_recurrent_layers(torch: Any, name: str, bidirectional: bool) -> None:
    torch.manual_seed(0)
    kinds = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
    options = {"nonlinearity": "relu"} if name == "rnn_relu" else {}
    layer = kinds.get(name, torch.nn.RNN)(3, 4, 2, bidirectional=bidirectional, **options)
    x, state = torch.randn(5, 2, 3), torch.randn(2 * (1 + bidirectional), 2, 4)
    hx = (state, state * 2) if name == "lstm" else state
    params, function = list(layer.parameters()), getattr(torch, name)
    expected, last = layer(x, hx)
    result = function(x, hx, params, True, 2, 0.0, False, bidirectional, False)
    assert torch.equal(result[0], expected) and len(result) == (3 if name == "lstm" else 2)
    assert torch.equal(result[1], last[0] if name == "lstm" else last)
    result[0].sum().backward()
    assert all(parameter.grad is not None for parameter in params)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    expected, _ = layer(packed, hx)
    result = function(
        packed.data, packed.batch_sizes, hx, params, True, 2, 0.0, True, bidirectional
    )
    assert torch.equal(result[0], expected.data)


def test_a_projection_and_no_biases(torch: Any) -> None:
    layer = torch.nn.LSTM(3, 4, proj_size=2, bias=False, batch_first=True)
    x, zeros = torch.randn(2, 5, 3), (torch.zeros(1, 2, 2), torch.zeros(1, 2, 4))
    result = torch.lstm(x, zeros, list(layer.parameters()), False, 1, 0.0, False, False, True)
    assert torch.equal(result[0], layer(x)[0])


@pytest.mark.parametrize("name", ["lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"])
def test_recurrent_cells(torch: Any, name: str) -> None:
    kinds = {"lstm_cell": torch.nn.LSTMCell, "gru_cell": torch.nn.GRUCell}
    options = {"nonlinearity": "relu"} if name == "rnn_relu_cell" else {}
    cell = kinds.get(name, torch.nn.RNNCell)(3, 4, **options)
    x, state = torch.randn(2, 3), torch.randn(2, 4)
    hx = (state, state * 2) if name == "lstm_cell" else state
    result = getattr(torch, name)(x, hx, *cell.parameters())
    expected = cell(x, hx)
    if name == "lstm_cell":
        assert torch.equal(result[1], expected[1])
        result, expected = result[0], expected[0]
    assert torch.equal(result, expected)
    weights = [cell.weight_ih, cell.weight_hh]
    assert not torch.equal(getattr(torch, name)(x, hx, *weights)[0], result[0])


def test_settings_that_change_nothing(torch: Any) -> None:
    assert torch.autocast_increment_nesting() == 1 and torch.autocast_decrement_nesting() == 0
    torch.clear_autocast_cache()
    torch.set_autocast_cache_enabled(False)
    assert not torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(True)
    torch.set_autocast_enabled(True)
    torch.set_autocast_cpu_enabled(True)
    assert torch.is_autocast_cpu_enabled()
    torch.set_autocast_cpu_enabled(False)
    torch.set_autocast_dtype("cpu", torch.float16)
    torch.set_autocast_cpu_dtype(torch.float16)
    torch.set_autocast_gpu_dtype(torch.float16)
    torch.set_autocast_cpu_dtype(torch.bfloat16)
    assert not torch.is_autocast_enabled() and not torch.is_distributed(torch.ones(1))
    assert torch._C._jit_set_profiling_mode(False) is True
    assert torch._C._jit_set_profiling_mode(True) is False
    assert torch._C._jit_set_profiling_executor(True) is True
    assert torch.autograd._disable_profiler() == [] and not torch.autograd._profiler_enabled()
    assert torch.autograd._is_checkpoint_valid()
    torch.set_anomaly_enabled(True, False)
    assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    torch.set_anomaly_enabled(False)
    assert torch.wait(torch.fork(max, 1, 2)) == 2 and torch.ScriptModule is torch.jit.ScriptModule
    assert torch.PyTorchFileReader is torch._C.PyTorchFileReader


def test_conditions_and_loops(torch: Any) -> None:
    x = torch.ones(2)
    assert torch.cond(x.sum() > 1, lambda x: x + 1, lambda x: x - 1, (x,)).tolist() == [2, 2]
    assert torch.cond(False, lambda: 1, lambda: 2) == 2
    result = torch.while_loop(lambda x: x.sum() < 10, lambda x: x * 2, (x,))
    assert result[0].tolist() == [8, 8]


def test_tensors_over_files(torch: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "numbers"
    x = torch.from_file(str(path), shared=True, size=3)
    assert x.tolist() == [0, 0, 0] and x.dtype is torch.float32
    x[1] = 2.5
    y = torch.from_file(str(path), shared=False, size=3)
    assert y.tolist() == [0, 2.5, 0]
    y[0] = 1
    assert torch.from_file(str(path), size=2).tolist() == [0, 2.5]
    assert torch.from_file(str(path)).shape == (0,)
    with pytest.raises((ValueError, RuntimeError)):
        torch.from_file(str(path), size=100)


def test_largest_eigenvalues(torch: Any) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(6, 6, dtype=torch.float64), torch.randn(6, 6, dtype=torch.float64)
    a, b = a + a.mT, b @ b.mT + torch.eye(6, dtype=torch.float64)
    values, vectors = torch.lobpcg(a, k=2)
    assert torch.allclose(values, torch.linalg.eigvalsh(a)[-2:].flip(0))
    assert torch.allclose(a @ vectors, vectors * values)
    values, vectors = torch.lobpcg(a, k=3, B=b, largest=False)
    assert torch.allclose(a @ vectors, b @ vectors * values) and (values.diff() >= 0).all()
    assert torch.lobpcg(a, X=torch.ones(6, 2, dtype=torch.float64))[0].shape == (2,)
    assert torch.lobpcg(a.to_sparse())[0].shape == (1,)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(torch: Any, dims: int) -> None:
    x = torch.randn(2, 4, *[5] * dims, requires_grad=True)
    weight = torch.randn(6, 2, *[3] * dims, requires_grad=True)
    options = {"stride": 2, "padding": 1, "groups": 2}
    result = getattr(torch.nn.functional, f"conv{dims}d")(x, weight, **options)
    grad = torch.randn(result.shape)
    result.backward(grad)
    by_input = getattr(torch.nn.grad, f"conv{dims}d_input")
    by_weight = getattr(torch.nn.grad, f"conv{dims}d_weight")
    assert torch.equal(by_input(x.shape, weight, grad, **options), x.grad)
    with torch.no_grad():
        assert torch.equal(by_weight(x, weight.shape, grad, **options), weight.grad)


def test_names_about_checkpoints(torch: Any) -> None:
    from torch.utils import checkpoint as module

    x = torch.ones(2, requires_grad=True)
    result = module.checkpoint(torch.exp, x, use_reentrant=False, context_fn=module.noop_context_fn)
    result.sum().backward()
    assert torch.allclose(x.grad, x.exp())
    with module.set_checkpoint_debug_enabled(True), module.set_checkpoint_early_stop(False):
        module.check_backward_validity((x,))
    (detached, reference) = module.detach_variable((x * 2, "kept"))
    assert detached.is_leaf and detached.requires_grad and reference == "kept"
    with pytest.raises(RuntimeError, match="a tuple"):
        module.detach_variable([x])
    assert module.CheckpointPolicy.MUST_SAVE.name == "MUST_SAVE"
    with pytest.raises(NotImplementedError, match="context_fn"):
        module.checkpoint(torch.exp, x, context_fn=lambda: None)
