"""Sparse gradients on their way through engines, hooks, leaves and optimizers."""

from __future__ import annotations

import copy
import gc
import os
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import plait
import plait_core as pc
from plait import nn, optim

F = nn.functional
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "tape"


def table() -> Any:
    return nn.Parameter(plait.arange(8.0).reshape(4, 2))


def looked_up(weight: Any, *indices: int) -> Any:
    return F.embedding(plait.tensor(indices), weight, sparse=True)


def test_a_step_does_not_allocate_the_table() -> None:
    layer = nn.Embedding(10**6, 64, sparse=True)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        gc.collect()
        pc.empty_cache()
        pc.reset_peak_memory_stats()
        before = pc.memory_stats()["live_bytes"]
        layer(plait.tensor([[1, 5, 5], [7, 999_999, 0]])).sum().backward()
        optimizer.step()
        assert pc.memory_stats()["peak_bytes"] - before < 2**24  # the table has 256 MB
    gradient = layer.weight.grad
    assert gradient.nnz() == 6 and tuple(gradient.shape) == (10**6, 64)


def test_a_leaf_has_one_gradient_object() -> None:
    weight = table()
    looked_up(weight, 1, 3).sum().backward()
    gradient = weight.grad
    assert type(gradient) is pc.SparseTensor and weight.grad is gradient
    assert weight.grad.is_sparse and not gradient.is_coalesced()
    there = weakref.ref(gradient)
    del gradient
    gc.collect()
    assert there() is None and weight.grad.nnz() == 2
    weight.grad = None
    assert weight.grad is None
    weight.grad = argument = pc.sparse_coo_tensor([[2]], [[1.0, 2.0]], (4, 2))
    assert weight.grad is argument
    with pytest.raises(ValueError, match="shape"):
        weight.grad = pc.sparse_coo_tensor([[2]], [[1.0, 2.0]], (5, 2))
    looked_up(weight, 0).sum().backward()
    assert weight.grad.nnz() == 2 and argument.nnz() == 1
    assert weight.grad.to_dense().tolist() == [[1, 1], [0, 0], [1, 2], [0, 0]]


def test_work_in_place_is_seen_by_the_next_pass() -> None:
    weight = table()
    looked_up(weight, 1, 1).sum().backward()
    weight.grad.mul_(2)
    looked_up(weight, 0).sum().backward()
    assert weight.grad.to_dense().tolist() == [[1, 1], [4, 4], [0, 0], [0, 0]]
    optim.SGD([weight], lr=1.0).zero_grad(set_to_none=False)
    assert weight.grad.nnz() == 0
    looked_up(weight, 3).sum().backward()
    assert weight.grad.to_dense().tolist() == [[0, 0], [0, 0], [0, 0], [1, 1]]


def test_hooks_see_and_replace_sparse_gradients() -> None:
    weight, seen = table(), []
    weight.register_hook(lambda g: seen.append(g) or g * 3)
    weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))
    looked_up(weight, 1, 3).sum().backward()
    assert [type(g) for g in seen] == [pc.SparseTensor] * 2
    assert [g.nnz() for g in seen] == [2, 2] and weight.grad.to_dense().sum() == 12
    other = table()
    other.register_hook(lambda g: g.to_dense())
    looked_up(other, 1, 3).sum().backward()
    assert plait.is_tensor(other.grad) and other.grad.sum() == 4
    third = table()
    third.register_hook(lambda g: plait.ones(3, 3).to_sparse())
    with pytest.raises(ValueError, match=r"a hook must return .* of shape \(4, 2\)"):
        looked_up(third, 1).sum().backward()


def test_what_is_no_leaf_gets_a_dense_gradient() -> None:
    for change in (
        lambda x: x * 2,
        lambda x: x.relu(),
        lambda x: x.t().contiguous().t(),
        lambda x: x[:],
        lambda x: x.double().float(),
        lambda x: x.reshape(2, 2, 2).reshape(4, 2),
        lambda x: plait.cat([x, x])[2:6],
        lambda x: plait.softmax(x, 1),
        lambda x: x.clone(),
        lambda x: x.expand(4, 2),
    ):
        results = []
        for sparse in (True, False):
            weight = table()
            rows = F.embedding(plait.tensor([1, 3, 3]), change(weight), sparse=sparse)
            (rows * rows).sum().backward()
            results.append(weight.grad.to_dense())
        assert plait.allclose(*results)


def test_kept_and_captured_gradients() -> None:
    weight = table()
    inner = weight * 1
    inner.retain_grad()
    looked_up(inner, 1, 3).sum().backward()
    assert type(inner.grad) is pc.SparseTensor and inner.grad.nnz() == 2
    (gradient,) = plait.autograd.grad(looked_up(weight, 2).sum(), weight)
    assert type(gradient) is pc.SparseTensor and weight.grad.nnz() != 1
    weight.grad = None
    looked_up(weight, 2).sum().backward(inputs=[weight])
    assert weight.grad.nnz() == 1


def test_second_derivatives() -> None:
    results = []
    for sparse in (True, False):
        weight = table()
        rows = F.embedding(plait.tensor([1, 3, 3]), weight, sparse=sparse)
        (gradient,) = plait.autograd.grad((rows**3).sum(), weight, create_graph=True)
        assert gradient.requires_grad
        (gradient.to_dense() ** 2).sum().backward()
        results.append(weight.grad.to_dense())
    assert plait.allclose(*results)


def test_functions_of_users() -> None:
    class Rows(plait.autograd.Function):
        @staticmethod
        def forward(ctx: Any, weight: Any, index: Any) -> Any:
            ctx.save_for_backward(index)
            ctx.shape = tuple(weight.shape)
            return weight.index_select(0, index)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            (index,) = ctx.saved_tensors
            return pc.sparse_coo_tensor(index.unsqueeze(0), gradient, ctx.shape), None

    weight = table()
    Rows.apply(weight, plait.tensor([2, 2])).sum().backward()
    assert weight.grad.to_dense().tolist() == [[0, 0], [0, 0], [2, 2], [0, 0]]

    class Passed(plait.autograd.Function):
        @staticmethod
        def forward(ctx: Any, matrix: Any, x: Any) -> Any:
            ctx.save_for_backward(matrix)
            return matrix @ x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return None, ctx.saved_tensors[0].t() @ gradient

    x = plait.ones(2, 1, requires_grad=True)
    Passed.apply(plait.eye(2).to_sparse() * 3, x).sum().backward()
    assert x.grad.tolist() == [[3], [3]]


def test_checks_and_modes() -> None:
    weight, index = table(), plait.tensor([1, 3])
    rows = F.embedding(index, weight, sparse=True)
    index[0] = 2
    with pytest.raises(RuntimeError, match="overwritten by an in-place operator"):
        rows.sum().backward()
    with plait.no_grad():
        assert not looked_up(weight, 1).requires_grad
    assert not looked_up(weight.detach(), 1).requires_grad
    with plait.autograd.set_detect_anomaly(True):
        looked_up(weight, 1).sum().backward()
    assert weight.grad.nnz() == 1
    with plait.autograd.forward_ad.dual_level():
        dual = plait.autograd.forward_ad.make_dual(weight, plait.ones(4, 2))
        tangent = plait.autograd.forward_ad.unpack_dual(looked_up(dual, 1)).tangent
    assert tangent.tolist() == [[1, 1]]


def test_copies() -> None:
    weight = table()
    looked_up(weight, 1).sum().backward()
    for result in (copy.deepcopy(weight.grad), weight.grad.clone(), weight.grad.detach()):
        assert result is not weight.grad and result.to_dense().sum() == 2
    again = copy.deepcopy(weight)
    assert again.grad is None or again.grad.to_dense().sum() == 2


def test_states_of_sparse_momentum_are_saved() -> None:
    def stepped(optimizer: Any, weight: Any, *indices: int) -> None:
        optimizer.zero_grad()
        looked_up(weight, *indices).sum().backward()
        optimizer.step()

    for make in (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.SparseAdam(p, lr=0.1),
        lambda p: optim.Adagrad(p, lr=0.1),
    ):
        first, second = table(), table()
        one, other = make([first]), make([second])
        stepped(one, first, 1, 2)
        with plait.no_grad():
            second.copy_(first)
        other.load_state_dict(copy.deepcopy(one.state_dict()))
        for optimizer, weight in ((one, first), (other, second)):
            stepped(optimizer, weight, 2, 3)
        assert (first == second).all()


def test_dense_and_sparse_parameters_in_one_group() -> None:
    sparse, dense, plain = table(), table(), table()
    optimizer = optim.SGD([sparse, dense, plain], lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        index = plait.tensor([1, 3])
        looked_up(sparse, 1, 3).sum().backward()
        F.embedding(index, dense).sum().backward()
        optimizer.step()
    assert plait.allclose(sparse, dense) and (plain == table()).all()
    with pytest.raises(NotImplementedError, match="needs dense gradients"):
        optimizer.step(max_norm=1.0)


def test_memory_is_given_back() -> None:
    weight = table()
    gc.collect()
    before = pc.memory_stats()["live_blocks"]
    for _ in range(5):
        looked_up(weight, 1, 2).sum().backward()
        (weight * weight).sum().backward()
        weight.grad = None
    gc.collect()
    assert pc.memory_stats()["live_blocks"] <= before


STEPS = """
import plait, plait_core as pc
plait.use(autograd="plait_tape")
from plait import nn, optim
F = nn.functional
start = plait.arange(8.0).reshape(4, 2)
for name in ("SGD", "SparseAdam", "Adam"):
    weight, other = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    make = getattr(optim, name)
    pair = (weight, True, make([weight], lr=0.1)), (other, False, optim.SGD([other], lr=0.1))
    for step in range(3):
        for w, sparse, optimizer in pair:
            optimizer.zero_grad()
            rows = F.embedding(plait.tensor([1, 3, 3]), w, sparse=sparse)
            ((rows * rows).sum() + (w * w).sum()).backward()
            optimizer.step() if name == "SGD" else None
    print(plait.allclose(weight, other), plait.is_tensor(weight.grad))
    assert plait.allclose(weight.grad.to_dense(), other.grad)
    weight.grad = None
    F.embedding(plait.tensor([1, 3, 3]), weight, sparse=True).sum().backward()
    F.embedding(plait.tensor([0]), weight * 2, sparse=True).sum().backward()
    print(weight.grad.to_dense().tolist())
"""


def test_another_engine_gets_right_values(tmp_path: Path) -> None:
    folder = tmp_path / "tape"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "*.so"))
    subprocess.run([sys.executable, "setup.py", "build_inplace"], cwd=folder, check=True)
    path = os.pathsep.join(filter(None, [str(folder / "src"), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-c", STEPS],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.splitlines()
        == [
            "True True",
            "[[2.0, 2.0], [1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]",
        ]
        * 3
    )
