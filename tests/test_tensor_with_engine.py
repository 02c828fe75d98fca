"""Tensor's members that need an engine: core and autograd together."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import plait_autograd
import plait_core as pc


class Tagged(pc.Tensor):
    """A subclass with attributes."""


def test_requires_grad_loads_the_engine_on_demand() -> None:
    code = """
import sys, plait_core as pc
x = pc.ones(2)
assert "plait_autograd" not in sys.modules
x.requires_grad = True
(x * x).sum().backward()
print(x.grad.tolist(), "plait_autograd" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[2.0, 2.0] True"


def test_without_an_engine_the_error_names_the_package() -> None:
    code = """
import plait_core as pc
for use in (
    lambda: pc.ones(2, requires_grad=True), pc.ones(2).backward, pc.ones(2).retain_grad
):
    try:
        use()
    except ModuleNotFoundError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PLAIT_COMPONENTS": "autograd=plait_missing"},
    )
    assert done.stdout.count("pip install plait-missing") == 3


def test_grad_and_its_identity() -> None:
    x = pc.tensor([1.0, 2.0], requires_grad=True)
    assert x.grad is None
    (x * 3).sum().backward()
    assert x.grad is x.grad
    assert x.grad.tolist() == [3, 3]
    x.grad.note = "kept"
    gc.collect()
    assert x.grad.note == "kept"
    x.grad = None
    assert x.grad is None
    x.grad = pc.ones(2)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_leaf_and_node() -> None:
    x = pc.ones(2, requires_grad=True)
    y = x * 2
    assert (x.is_leaf, y.is_leaf, y.requires_grad) == (True, False, True)
    assert x.grad_fn is None
    assert y.grad_fn is not None
    assert "Mul" in y.grad_fn.name()
    assert f"grad_fn=<{y.grad_fn.name()}>" in repr(y)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert y.grad_fn == y.grad_fn
    assert hash(y.grad_fn) == hash(y.grad_fn)
    assert isinstance(y.grad_fn, plait_autograd.Node)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x.numpy(), RuntimeError),
        (lambda x: np.asarray(x), RuntimeError),
        (lambda x: x.__dlpack__(), BufferError),
        (lambda x: np.from_dlpack(x), BufferError),
        (lambda x: memoryview(x), BufferError),
    ],
)
def test_exchange_is_refused_where_grad_is_required(function: Any, error: type[Exception]) -> None:
    x = pc.ones(2, requires_grad=True)
    for tensor in (x, x * 2):
        with pytest.raises(error, match=r"call detach\(\) first"):
            function(tensor)
    assert x.detach().numpy().tolist() == x.numpy(force=True).tolist() == [1, 1]
    assert x.detach().data_ptr() == x.data_ptr()


def test_indexing_is_differentiated() -> None:
    x = pc.arange(12).to(pc.float32).view(3, 4).requires_grad_()
    y = x[1:, ::-1][0, [0, 0, 3]].sum() + x[x > 9].sum() * 10 + x[2, 0] * 100
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0, 0, 0], [1, 0, 0, 2], [100, 0, 10, 10]]


def test_assignment_is_differentiated() -> None:
    x = pc.ones(4, requires_grad=True)
    value = pc.tensor(5.0, requires_grad=True)
    y = x * 2
    y[0] = 7
    y[1:3] = value
    (y * pc.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert x.grad is not None
    assert value.grad is not None
    assert x.grad.tolist() == [0, 0, 0, 8]
    assert value.grad.item() == 5


def test_backward_arguments() -> None:
    x, w = pc.ones(2, requires_grad=True), pc.ones(2, requires_grad=True)
    y = x * w
    y.backward(pc.tensor([1.0, 10.0]), retain_graph=True)
    y.backward(gradient=pc.tensor([1.0, 10.0]), inputs=[w])
    assert x.grad is not None
    assert w.grad is not None
    assert x.grad.tolist() == [1, 10]
    assert w.grad.tolist() == [2, 20]
    with pytest.raises(TypeError, match="backward: `gradient` must be a Tensor or None, got float"):
        (x * 2).sum().backward(1.0)
    with pytest.raises(ValueError, match="backward: `inputs` must not be empty"):
        (x * 2).sum().backward(inputs=[])
    with pytest.raises(TypeError, match="backward: `inputs` must be Tensors, got int"):
        (x * 2).sum().backward(inputs=[3])
    with pytest.raises(RuntimeError):
        pc.ones(1).backward()


def test_data_and_repointing_keep_the_leaf() -> None:
    x = pc.ones(2, requires_grad=True)
    assert not x.data.requires_grad
    x.data -= 1
    assert x.tolist() == [0, 0]
    x.data = pc.full((2,), 4.0)
    assert x.requires_grad
    assert x.is_leaf
    (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [8, 8]


def test_copies_keep_grad_and_whether_it_is_required() -> None:
    x = pc.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    deep = copy.deepcopy(x)
    assert (deep.requires_grad, deep.grad.tolist()) == (True, [2, 2])  # type: ignore[union-attr]
    assert deep.grad is not x.grad
    assert pickle.loads(pickle.dumps(x)).requires_grad
    text = r"a tensor that is not a leaf does not support deepcopy; call detach\(\) first"
    with pytest.raises(RuntimeError, match=text):
        copy.deepcopy(x * 2)
    back = pickle.loads(pickle.dumps(x * 2))
    assert (back.requires_grad, back.is_leaf, back.tolist()) == (True, True, [2, 2])


def test_a_wrapper_that_only_the_graph_refers_to_is_reused() -> None:
    x = pc.Tensor._make_subclass(Tagged, pc.ones(2), True)
    x.note = "kept"  # type: ignore[attr-defined]
    address, y = id(x), x.view(1, 2)
    del x
    gc.collect()
    back = y._base
    assert (id(back), type(back), back.note) == (address, Tagged, "kept")
    (y * y).sum().backward()
    assert back.grad.tolist() == [2, 2]


def test_the_graph_frees_its_values() -> None:
    class Value:
        pass

    x = pc.Tensor._make_subclass(Tagged, pc.ones(2), True)
    value = Value()
    x.note = value  # type: ignore[attr-defined]
    reference = weakref.ref(value)
    y = (x * x).sum()
    del x, value
    gc.collect()
    assert reference() is not None
    del y
    pc.ones(1) + 1
    gc.collect()
    assert reference() is None


def test_creation_takes_requires_grad() -> None:
    for x in (
        pc.zeros(2, requires_grad=True),
        pc.randn(2, 3, requires_grad=True),
        pc.tensor([1.0], requires_grad=True),
        pc.full((2,), 1.0, requires_grad=True),
        pc.asarray([1.0], requires_grad=True),
    ):
        assert x.requires_grad
        assert x.is_leaf
    with pytest.raises(RuntimeError):
        pc.tensor([1], requires_grad=True)


def test_new_tensors_may_require_grad() -> None:
    x = pc.ones(2, requires_grad=True)
    assert x.new_zeros(2, 3, requires_grad=True).requires_grad
    assert not x.new_zeros(2, 3).requires_grad
    assert not pc.tensor([[x, [3, 4]]], dtype=pc.float64).requires_grad


def test_numpy_functions_are_recorded_or_refused() -> None:
    x = pc.ones(2, 3, requires_grad=True)
    assert np.sum(x, axis=0).requires_grad
    with pytest.raises(RuntimeError, match="detach"):
        np.median(x)


def test_views_of_other_dtypes_are_not_recorded() -> None:
    assert not pc.ones(2, requires_grad=True).view(pc.int32).requires_grad


def test_softmax_of_sparse_tensors_is_differentiated() -> None:
    full = pc.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.5]], requires_grad=True)
    weights = pc.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for dim in (0, 1):
        result = pc.sparse.softmax(full.to_sparse(), dim).to_dense()
        (got,) = plait_autograd.grad((result * weights).sum(), full)
        reference = pc.where(full == 0, float("-inf"), full).softmax(dim)
        (want,) = plait_autograd.grad((reference * weights).sum(), full)
        assert pc.allclose(result, reference)
        assert pc.allclose(got, want, atol=1e-6)


def test_igamma_differentiates_for_its_shape() -> None:
    a = pc.tensor([0.4, 2.0, 30.0], dtype=pc.float64, requires_grad=True)
    x = pc.tensor([0.7, 1.0, 33.0], dtype=pc.float64)
    for operator, sign in ((pc.igamma, 1), (pc.igammac, -1)):
        a.grad = None
        operator(a, x).sum().backward()
        constant = a.detach()
        slope = (pc.igamma(constant + 1e-5, x) - pc.igamma(constant - 1e-5, x)) / 2e-5
        assert a.grad is not None
        np.testing.assert_allclose(a.grad.numpy(), sign * slope.numpy(), rtol=1e-8)


def test_functions_without_an_operator_have_no_gradient() -> None:
    x = pc.ones(2, requires_grad=True)
    for call, name in (
        (lambda: np.spacing(x), "spacing"),
        (lambda: np.add.accumulate(x), "add.accumulate"),
        (lambda: np.median(x), "median"),
        (lambda: np.sum(x, where=[True, False]), "sum"),
    ):
        with pytest.raises(RuntimeError, match=rf"np.{name}: .* no gradient; call detach\(\)"):
            call()
    with pytest.raises(RuntimeError, match="detach"):
        x.to_numpy()
