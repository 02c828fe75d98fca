import math

import numpy as np
import pytest
from nn_reference import softmax

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F


def attention(q, k, v, added=0.0):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]) + added
    return softmax(scores, -1) @ v


def test_attention_computes_its_formula(draw):
    q, k, v = draw(2, 3, 5, 4), draw(2, 3, 6, 4), draw(2, 3, 6, 2)
    tensors = [pc.tensor(x) for x in (q, k, v)]
    result = F.scaled_dot_product_attention(*tensors).numpy()
    np.testing.assert_allclose(result, attention(q, k, v), atol=1e-12)
    causal = np.where(np.tri(5, 6), 0, -np.inf)
    result = F.scaled_dot_product_attention(*tensors, is_causal=True).numpy()
    np.testing.assert_allclose(result, attention(q, k, v, causal), atol=1e-12)
    result = F.scaled_dot_product_attention(*tensors, pc.tensor(causal == 0)).numpy()
    np.testing.assert_allclose(result, attention(q, k, v, causal), atol=1e-12)


@pytest.mark.parametrize("queries", [1, 3, 4, 100, 200])
@pytest.mark.parametrize("heads", [1, 5])
def test_few_queries_and_many(draw, queries, heads):
    q, k, v = draw(heads, queries, 20), draw(heads, 2100, 20), draw(heads, 2100, 35)
    tensors = [pc.tensor(x) for x in (q, k, v)]
    bias = np.where(np.arange(2100) % 3, draw(queries, 2100), -np.inf)
    for mask, options in (
        (0.0, {}),
        (np.where(np.tri(queries, 2100), 0, -np.inf), {"is_causal": True}),
        (bias, {"attn_mask": pc.tensor(bias)}),
    ):
        result = F.scaled_dot_product_attention(*tensors, **options).numpy()
        np.testing.assert_allclose(result, attention(q, k, v, mask), atol=1e-12)


def test_a_row_that_sees_nothing_is_zero_and_has_a_gradient(draw):
    q, k, v = (pc.tensor(draw(3, 4)).requires_grad_() for _ in range(3))
    calls = pc.tensor([[True] * 3, [False] * 3, [True] * 3])
    for mask in (calls, pc.zeros(3, 3, dtype=pc.float64).masked_fill(~calls, -math.inf)):
        result = F.scaled_dot_product_attention(q, k, v, mask)
        assert result[1].tolist() == [0.0] * 4
        result.sum().backward()
        assert q.grad.isfinite().all().item() and q.grad[1].tolist() == [0.0] * 4


def test_heads_share_keys(draw):
    q, k, v = draw(4, 5, 3), draw(2, 5, 3), draw(2, 5, 3)
    result = F.scaled_dot_product_attention(*map(pc.tensor, (q, k, v)), enable_gqa=True)
    expected = attention(q, k.repeat(2, 0), v.repeat(2, 0))
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-12)


def test_multihead_attention_is_attention_of_projections(draw):
    layer = nn.MultiheadAttention(6, 2, batch_first=True, dtype=pc.float64)
    x = draw(2, 5, 6)
    w, b = layer.in_proj_weight.detach().numpy(), layer.in_proj_bias.detach().numpy()
    parts = np.split(x @ w.T + b, 3, 2)
    q, k, v = (p.reshape(2, 5, 2, 3).transpose(0, 2, 1, 3) for p in parts)
    joined = attention(q, k, v).transpose(0, 2, 1, 3).reshape(2, 5, 6)
    out = layer.out_proj
    expected = joined @ out.weight.detach().numpy().T + out.bias.detach().numpy()
    tensor = pc.tensor(x)
    for need_weights in (True, False):
        result, weights = layer(tensor, tensor, tensor, need_weights=need_weights)
        np.testing.assert_allclose(result.detach().numpy(), expected, atol=1e-12)
        assert (weights is None) != need_weights
    weights = layer(tensor, tensor, tensor, average_attn_weights=False)[1]
    np.testing.assert_allclose(weights.sum(-1).detach().numpy(), np.ones((2, 2, 5)), atol=1e-12)


def test_padded_keys_count_for_nothing(draw):
    layer = nn.MultiheadAttention(6, 2, dtype=pc.float64)
    x, y = pc.tensor(draw(3, 2, 6)), draw(4, 2, 6)
    padding = pc.tensor([[False, False, True, True], [False, False, False, True]])
    first = layer(x, pc.tensor(y), pc.tensor(y), padding)[0].detach().numpy()
    y[2:, 0], y[3:, 1] = 100.0, -100.0
    second = layer(x, pc.tensor(y), pc.tensor(y), padding)[0].detach().numpy()
    np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_causal_encoder_does_not_look_ahead(draw, norm_first):
    layer = nn.TransformerEncoderLayer(6, 2, 8, 0.0, norm_first=norm_first, dtype=pc.float64)
    encoder = nn.TransformerEncoder(layer, 2)
    x = draw(5, 1, 6)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=pc.float64)
    first = encoder(pc.tensor(x), mask, is_causal=True).detach().numpy()
    x[3:] += 1.0
    second = encoder(pc.tensor(x), mask).detach().numpy()
    np.testing.assert_allclose(first[:3], second[:3], atol=1e-12)
    assert np.abs(first[3:] - second[3:]).max() > 1e-3


def test_transformer_members():
    model = nn.Transformer(8, 2, 1, 2, 16, batch_first=True)
    assert model(pc.randn(2, 5, 8), pc.randn(2, 3, 8)).shape == (2, 3, 8)
    names = dict(model.named_parameters())
    assert "encoder.layers.0.self_attn.in_proj_weight" in names
    assert "decoder.layers.1.multihead_attn.out_proj.bias" in names
    assert len({id(p) for p in names.values()}) == len(names)
    with pytest.raises(ValueError, match="`activation` must be relu or gelu; got 'tanh'"):
        nn.TransformerEncoderLayer(8, 2, activation="tanh")


def test_errors_name_the_shapes():
    q = pc.ones(2, 3)
    with pytest.raises(pc.ShapeError, match=r"attention: .*\(2, 3\), \(2, 4\) and \(2, 3\)"):
        F.scaled_dot_product_attention(q, pc.ones(2, 4), q)
    with pytest.raises(ValueError, match="`attn_mask` must be None where `is_causal`"):
        F.scaled_dot_product_attention(q, q, q, pc.ones(2, 2), is_causal=True)
    with pytest.raises(ValueError, match="divisible by `num_heads`; got 6 and 4"):
        nn.MultiheadAttention(6, 4)
    layer, x = nn.MultiheadAttention(6, 2), pc.ones(3, 2, 6)
    with pytest.raises(pc.ShapeError, match=r"`key_padding_mask` must have shape \(2, 3\)"):
        layer(x, x, x, pc.zeros(3, 2, dtype=pc.bool))
    with pytest.raises(pc.ShapeError, match=r"`attn_mask` must have shape \(3, 3\) or \(4, 3, 3\)"):
        layer(x, x, x, attn_mask=pc.zeros(2, 2))
    with pytest.raises(pc.ShapeError, match=r"`query` must be \(L, N, 6\).*\(3, 2, 5\)"):
        layer(pc.ones(3, 2, 5), x, x)
    with pytest.raises(pc.ShapeError, match=r"Transformer: .* the same batch"):
        nn.Transformer(6, 2, 1, 1, 8)(x, pc.ones(3, 1, 6))


def test_gradients_of_gradients_and_of_masks(draw):
    autograd = pytest.importorskip("plait_autograd")
    q, k, v, mask = (
        pc.tensor(x) for x in (draw(2, 3, 2), draw(2, 4, 2), draw(2, 4, 2), draw(3, 4))
    )
    leaves = [each.requires_grad_() for each in (q, k, v, mask)]
    assert autograd.gradcheck(F.scaled_dot_product_attention, leaves)
    assert autograd.gradgradcheck(F.scaled_dot_product_attention, leaves)


def test_dropout_of_weights_keeps_their_mean():
    q, v = pc.zeros(1, 1, 4), pc.ones(1, 4000, 1)
    result = F.scaled_dot_product_attention(q, pc.zeros(1, 4000, 4), v, dropout_p=0.5)
    assert 0.9 < result.item() < 1.1 and result.item() != 1.0
    with pytest.raises(pc.ShapeError, match=r"attention: .*\(1, 2\)"):
        F.scaled_dot_product_attention(q, pc.ones(1, 2), v, dropout_p=0.5)


@pytest.mark.parametrize("dtype", [pc.uint8, pc.int64])
def test_integers_are_no_masks(dtype):
    x, mask = pc.ones(2, 3, 4), pc.ones(3, 3, dtype=dtype)
    for rate in (0.0, 0.5):
        with pytest.raises(pc.DTypeError, match="scaled_dot_product_attention: `attn_mask` must"):
            F.scaled_dot_product_attention(x, x, x, mask, rate)
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    with pytest.raises(pc.DTypeError, match="multi_head_attention_forward: `attn_mask` must"):
        layer(x, x, x, attn_mask=mask)
    with pytest.raises(pc.DTypeError, match="`key_padding_mask` must be bool or floating"):
        layer(x, x, x, key_padding_mask=mask[:2])
