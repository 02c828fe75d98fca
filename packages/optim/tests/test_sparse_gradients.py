"""Optimizers on sparse gradients: updates are those of dense ones where there are elements."""

from __future__ import annotations

from typing import Any

import pytest

import plait_core as pc
import plait_optim as optim

ROWS = [[1.0, -2.0], [3.0, 0.5], [0.25, 1.0]]


def gradient() -> Any:
    return pc.sparse_coo_tensor([[2, 0, 2]], pc.tensor(ROWS), (4, 2))


def start() -> Any:
    return pc.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.1),
        lambda p: optim.SGD(p, lr=0.1, maximize=True),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.2, initial_accumulator_value=0.5),
    ],
)
def test_steps_are_those_of_the_dense_gradient(make: Any) -> None:
    sparse, dense = start(), start()
    one, other = make([sparse]), make([dense])
    for _ in range(4):
        one.step(grads=[gradient()])
        other.step(grads=[gradient().to_dense()])
        assert pc.allclose(sparse, dense)
    other.step(grads=[gradient()])  # dense state and a sparse gradient, and the reverse
    one.step(grads=[gradient().to_dense()])
    assert pc.allclose(sparse, dense)


def test_sparse_adam_is_adam_where_all_steps_have_elements() -> None:
    sparse, dense = start(), start()
    one = optim.SparseAdam([sparse], lr=0.1, eps=1e-30)
    other = optim.Adam([dense], lr=0.1, eps=1e-30)
    for _ in range(4):
        one.step(grads=[gradient()])
        other.step(grads=[gradient().to_dense()])
    assert pc.allclose(sparse, dense)
    before = sparse.clone()
    one.step(grads=[pc.sparse_coo_tensor([[1]], [[1.0, 1.0]], (4, 2))])
    changed = (sparse != before).any(1).tolist()
    assert changed == [False, True, False, False]
    one.step(grads=[pc.sparse_coo_tensor((4, 2))])
    assert one.state[sparse]["step"] == 6


def test_elements_without_dense_dimensions() -> None:
    sparse, dense = start(), start()
    gradient = pc.sparse_coo_tensor([[0, 3, 0], [1, 0, 1]], [1.0, 2.0, 3.0], (4, 2))
    optim.Adagrad([sparse], lr=0.1).step(grads=[gradient])
    optim.Adagrad([dense], lr=0.1).step(grads=[gradient.to_dense()])
    assert pc.allclose(sparse, dense)


def test_what_is_refused_changes_nothing() -> None:
    params = [start(), start()]
    for make, text in (
        (optim.Adam, "Adam does not support sparse gradients, please consider SparseAdam instead"),
        (optim.RMSprop, "RMSprop does not support sparse gradients"),
        (lambda p: optim.Adagrad(p, weight_decay=0.1), "not compatible with sparse gradients"),
        (optim.SparseAdam, "SparseAdam does not support dense gradients"),
    ):
        with pytest.raises(RuntimeError, match=text):
            make(params).step(grads=[gradient().to_dense(), gradient()])
    wrong = pc.sparse_coo_tensor([[0]], [[1.0, 2.0]], (5, 2))
    with pytest.raises(pc.ShapeError, match=r"\(4, 2\); got \(5, 2\)"):
        optim.SGD(params[:1], lr=0.1).step(grads=[wrong])
    with pytest.raises(NotImplementedError, match="needs dense gradients"):
        optim.SGD(params, lr=0.1).step(grads=[gradient(), gradient()], max_norm=1.0)
    with pytest.raises(ValueError, match="requires dense parameter tensors"):
        optim.SparseAdam([gradient()])
    assert all((param == start()).all() for param in params)
