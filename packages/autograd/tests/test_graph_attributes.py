"""A tensor's attributes of the graph, and the warning of a `grad` that is not retained."""

from __future__ import annotations

import copy
import warnings

import pytest

import plait_autograd as pa
import plait_core as pc
from plait_autograd import forward_ad


def test_only_tensors_that_are_no_leaves_have_retains_grad():
    x = pc.ones(2, requires_grad=True)
    y = x * 2
    assert (x.retains_grad, y.retains_grad, pc.ones(1).retains_grad) == (False, False, False)
    x.retain_grad()
    y.retain_grad()
    assert (x.retains_grad, y.retains_grad) == (False, True)
    y.mul_(3)  # stays with the tensor
    assert y.retains_grad
    assert not (y * 1).retains_grad
    view = (x * 1)[0]
    view.retain_grad()
    assert view.retains_grad


def test_output_numbers():
    x = pc.ones(3, requires_grad=True)

    class Two(pa.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    first, second = Two.apply(x)
    assert (first.output_nr, second.output_nr, x.output_nr, x.detach().output_nr) == (0, 1, 0, 0)


def test_reading_a_gradient_that_is_not_retained_warns():
    x = pc.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(
        UserWarning, match=r"this tensor of shape \(2,\) was made.*retain_grad\(\)"
    ) as w:
        assert y.grad is None
    assert w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad is None
        assert pc.ones(2).grad is None
        assert y.detach().grad is None
        y.retain_grad()
        assert y.grad is None
        y.sum().backward()
        assert y.grad.tolist() == [1.0, 1.0]
        z = x * 3
        with pytest.raises(UserWarning, match="is not a leaf"):
            z.grad  # noqa: B018


def test_copies_of_duals_keep_their_tangents():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(pc.tensor([1.0, 2.0]), pc.tensor([3.0, 4.0]))
        deep, (twin, same) = copy.deepcopy(x), copy.deepcopy([x, x])
        for result in (deep, copy.copy(x), twin):
            assert forward_ad.unpack_dual(result).tangent.tolist() == [3.0, 4.0]
        assert twin is same
        deep.mul_(2)
        assert forward_ad.unpack_dual(deep).tangent.tolist() == [6.0, 8.0]
        assert forward_ad.unpack_dual(x).tangent.tolist() == [3.0, 4.0]
        assert x.tolist() == [1.0, 2.0]
    assert copy.deepcopy(x).tolist() == [1.0, 2.0]


def test_gradients_have_the_dtype_of_their_leaf() -> None:
    x = pc.ones(2, dtype=pc.float64, requires_grad=True)
    assert x.grad_dtype is pc.float64
    x.grad_dtype = pc.float64
    for dtype in (None, pc.float32):
        with pytest.raises(NotImplementedError, match="register_post_accumulate_grad_hook"):
            x.grad_dtype = dtype
    with pytest.raises(RuntimeError, match="must be a dtype or None, but got int"):
        x.grad_dtype = 3
    with pytest.raises(RuntimeError, match="can only be accessed on leaf tensors"):
        _ = (x * 2).grad_dtype
