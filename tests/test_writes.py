"""Writes between forward and backward are errors, also writes by other packages."""

from __future__ import annotations

import numpy as np
import pytest

import plait_core as pc
import plait_optim as optim


def recorded() -> tuple[pc.Tensor, pc.Tensor]:
    w = pc.tensor([1.0, 2.0, 3.0], requires_grad=True)
    return w, (w * w).sum()


def test_a_step_between_forward_and_backward_is_an_error() -> None:
    w, loss = recorded()
    w.grad = pc.ones(3)
    optim.SGD([w], lr=0.1).step()
    np.testing.assert_allclose(w.detach().numpy(), [0.9, 1.9, 2.9], rtol=1e-6)
    with pytest.raises(RuntimeError, match=r"mul.*version"):
        loss.backward()


class OnlyDLPack:
    """An array that offers DLPack only."""

    def __init__(self, tensor: pc.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options: object) -> object:
        return self.tensor.detach().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


def test_a_step_on_a_tensor_from_dlpack_is_an_error_too() -> None:
    w, loss = recorded()
    optim.SGD([OnlyDLPack(w)], lr=0.1).step(grads=[np.ones(3, np.float32)])
    np.testing.assert_allclose(w.detach().numpy(), [0.9, 1.9, 2.9], rtol=1e-6)
    with pytest.raises(RuntimeError, match=r"mul.*version"):
        loss.backward()


def test_a_step_on_a_numpy_view_is_an_error_too() -> None:
    w, loss = recorded()
    view = w.detach().numpy()
    optim.SGD([view], lr=0.1).step(grads=[np.ones(3, np.float32)])
    np.testing.assert_allclose(view, [0.9, 1.9, 2.9], rtol=1e-6)
    with pytest.raises(RuntimeError, match=r"mul.*version"):
        loss.backward()


def test_a_write_to_a_view_of_another_library_is_an_error_too() -> None:
    w, loss = recorded()
    view = memoryview(w.detach())
    pc.from_numpy(np.asarray(view)[1:]).mul_(2)
    assert w.detach().tolist() == [1, 4, 6]
    with pytest.raises(RuntimeError, match=r"mul.*version"):
        loss.backward()


def test_a_step_after_backward_is_no_error() -> None:
    w, loss = recorded()
    loss.backward()
    optim.SGD([w], lr=0.1).step()
    np.testing.assert_allclose(w.detach().numpy(), [0.8, 1.6, 2.4], rtol=1e-6)


def test_numpy_is_refused_where_grad_is_required() -> None:
    w, _ = recorded()
    with pytest.raises(RuntimeError, match="detach"):
        w.numpy()
    assert np.shares_memory(w.detach().numpy(), w.detach().numpy())


def test_a_declared_write_through_an_exported_view_is_detected() -> None:
    w, loss = recorded()
    w.detach().numpy()[0] = 5
    pc.mark_written(w)
    with pytest.raises(RuntimeError, match=r"mul.*version"):
        loss.backward()
