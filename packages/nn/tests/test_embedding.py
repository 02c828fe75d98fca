import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F


def test_it_looks_rows_up():
    layer = nn.Embedding(5, 3)
    w = layer.weight.detach().numpy()
    indices = np.array([[0, 4, 4], [1, 2, 0]])
    result = layer(pc.tensor(indices))
    np.testing.assert_array_equal(result.detach().numpy(), w[indices])
    assert layer(pc.tensor(3)).shape == (3,)


def test_gradients_add_up_but_for_the_padding():
    layer = nn.Embedding(4, 2, padding_idx=-1)
    assert layer.weight.detach()[3].tolist() == [0.0, 0.0]
    layer(pc.tensor([0, 3, 0, 1, 3])).sum().backward()
    assert layer.weight.grad.tolist() == [[2.0, 2.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_it_starts_normal():
    values = nn.Embedding(200, 50).weight.detach().numpy()
    assert abs(values.mean()) < 0.05
    assert values.std() == pytest.approx(1, abs=0.05)


def test_from_pretrained():
    table = pc.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad
    assert layer(pc.tensor([1])).tolist() == [[3.0, 4.0]]
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    with pytest.raises(ValueError, match="must have 2 dimensions"):
        nn.Embedding.from_pretrained(pc.ones(2))


def test_a_row_that_is_not_there():
    with pytest.raises(IndexError, match=r"embedding.*5"):
        nn.Embedding(5, 3)(pc.tensor([0, 5]))


def test_sparse_gradients_have_the_rows_that_were_looked_up():
    layer = nn.Embedding(5, 2, sparse=True, padding_idx=-1)
    assert repr(layer) == "Embedding(5, 2, padding_idx=4, sparse=True)"
    layer(pc.tensor([[1, 4], [1, 0]])).sum().backward()
    gradient = layer.weight.grad
    assert isinstance(gradient, pc.SparseTensor) and gradient._indices().tolist() == [[1, 1, 0]]
    assert gradient.to_dense().tolist() == [[1, 1], [2, 2], [0, 0], [0, 0], [0, 0]]
    for mode in ("sum", "mean"):
        bags = nn.EmbeddingBag(5, 2, mode=mode, sparse=True)
        bags(pc.tensor([1, 2, 2]), pc.tensor([0, 1])).sum().backward()
        factor = 1 if mode == "sum" else 0.5
        assert bags.weight.grad._values().tolist() == [[1, 1], [factor] * 2, [factor] * 2]
    with pytest.raises(ValueError, match="max mode does not support sparse weights"):
        nn.EmbeddingBag(5, 2, mode="max", sparse=True)(pc.tensor([[1]]))
    scaled = nn.Embedding(5, 2, scale_grad_by_freq=True, sparse=True)(pc.tensor([0]))
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported"):
        scaled.sum().backward()


def test_rows_are_scaled_down_to_the_largest_norm():
    layer = nn.Embedding.from_pretrained(
        pc.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]]), max_norm=1.0
    )
    result = layer(pc.tensor([0, 1, 0]))
    assert pc.allclose(result, pc.tensor([[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]]))
    assert pc.allclose(layer.weight[2], pc.tensor([6.0, 8.0]))  # it was not looked up


def test_gradients_are_divided_by_how_often_a_row_was_looked_up():
    layer = nn.Embedding(4, 2, scale_grad_by_freq=True)
    layer(pc.tensor([[1, 1], [1, 3]])).sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [0.0, 2.0, 0.0, 2.0]


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"`padding_idx` must be in \[-5, 4\]; got 5"):
        nn.Embedding(5, 3, padding_idx=5)
    with pytest.raises(ValueError, match=r"embedding: `padding_idx` must be in \[-1, 0\]"):
        nn.functional.embedding(pc.tensor([0]), pc.ones(1, 1), padding_idx=2)
    with pytest.raises(ValueError, match=r"`_weight` must have shape \(5, 3\); got \(1, 1\)"):
        nn.Embedding(5, 3, _weight=pc.ones(1, 1))


def test_one_hot() -> None:
    rows = F.one_hot(pc.tensor([[0, 2], [1, 0]]))
    assert rows.shape == (2, 2, 3) and rows.dtype is pc.int64 and rows[0, 1].tolist() == [0, 0, 1]
    assert F.one_hot(pc.tensor(1), 2).tolist() == [0, 1]
    assert F.one_hot(pc.tensor([], dtype=pc.int64), 3).shape == (0, 3)
    for tensor, count, error, text in (
        (pc.tensor([0, 2]), 2, ValueError, "classes below `num_classes` 2, got 2"),
        (pc.tensor([-1, 2]), -1, ValueError, "no negative classes, got -1"),
        (pc.tensor([], dtype=pc.int64), -1, ValueError, "required for an empty tensor"),
        (pc.tensor([0]), 0, ValueError, "`num_classes` must be positive or -1, got 0"),
        (pc.tensor([0.0]), 1, pc.DTypeError, "integer dtype; got float32"),
        ([0], 1, TypeError, "`tensor` must be a Tensor, got list"),
    ):
        with pytest.raises(error, match=f"one_hot: .*{text}"):
            F.one_hot(tensor, count)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_of_bags_are_divided_too(mode):
    bags, counts = pc.tensor([[1, 1, 2], [1, 3, 3]]), pc.tensor([1.0, 3.0, 1.0, 2.0])
    plain = nn.EmbeddingBag(4, 2, mode=mode)
    scaled = nn.EmbeddingBag(4, 2, mode=mode, scale_grad_by_freq=True)
    for layer in (plain, scaled):
        layer(bags).sum().backward()
    assert pc.allclose(scaled.weight.grad, plain.weight.grad / counts[:, None])
    with pytest.raises(ValueError, match="`scale_grad_by_freq` must be False for mode max"):
        nn.functional.embedding_bag(bags, plain.weight, mode="max", scale_grad_by_freq=True)
