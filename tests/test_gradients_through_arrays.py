"""Gradients through sparse tensors and NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc

EDGES = [[0, 1, 1, 2, 2], [1, 0, 2, 1, 1]]  # (2, 1) occurs twice
VALUES = [1.0, 2.0, 3.0, 4.0, 5.0]
DENSE = [[0, 1, 0], [2, 0, 3], [0, 9, 0]]


def test_a_graph_convolution_learns_like_a_dense_one() -> None:
    rng = np.random.default_rng(0)
    features = pc.from_numpy(rng.standard_normal((3, 4), dtype=np.float32))
    start = rng.standard_normal((4, 2), dtype=np.float32)
    losses, grads = [], []
    for dense in (False, True):
        edges = pc.tensor(VALUES, requires_grad=True)
        weight = pc.from_numpy(start.copy()).requires_grad_()
        adjacency: Any = pc.sparse_coo_tensor(pc.tensor(EDGES), edges, (3, 3))
        degree = adjacency.sum(1).to_dense()
        if dense:
            adjacency = adjacency.to_dense()
        hidden = (adjacency @ (features @ weight) / degree.unsqueeze(1)).relu()
        loss = (hidden * hidden).sum()
        loss.backward()
        losses.append(loss.item())
        grads.append((edges.grad, weight.grad))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for ours, theirs in zip(*grads, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


def test_gradients_flow_through_every_step() -> None:
    values = pc.tensor(VALUES, requires_grad=True)
    x = pc.sparse_coo_tensor(pc.tensor(EDGES), values, (3, 3))
    total = (2 * (x + x.t())).coalesce().to_dense().sum() + x.sum()
    total.backward()
    assert values.grad is not None and values.grad.tolist() == [5] * 5
    dense = pc.tensor(DENSE).float().requires_grad_()
    dense.to_sparse().values().sum().backward()
    assert dense.grad is not None
    assert dense.grad.tolist() == [[float(v != 0) for v in row] for row in DENSE]
    leaf = pc.sparse_coo_tensor(pc.tensor(EDGES), pc.tensor(VALUES), (3, 3), requires_grad=True)
    assert leaf.requires_grad and not leaf.detach().requires_grad


def test_gradients_flow_through_numpys_functions() -> None:
    x = pc.tensor([1.0, 2.0], requires_grad=True)
    np.multiply(x, np.array([3.0, 4.0], np.float32)).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 4]
