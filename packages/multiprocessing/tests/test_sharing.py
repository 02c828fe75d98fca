"""share_memory_ and is_shared, of tensors, storages and modules."""

from __future__ import annotations

import weakref

import pytest

import plait_autograd as autograd
import plait_core as pc
import plait_multiprocessing as mp
import plait_nn as nn
import plait_optim as optim


def test_the_tensor_stays_and_keeps_its_elements() -> None:
    x = pc.arange(12.0).reshape(3, 4).clone()
    alive = weakref.ref(x)
    assert not x.is_shared() and not mp.is_shared(x)
    assert x.share_memory_() is x and alive() is x
    assert x.is_shared() and x[1:].is_shared() and x.untyped_storage().is_shared()
    assert x.tolist() == pc.arange(12.0).reshape(3, 4).tolist()
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address  # it is there already


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "bfloat16", "float64", "complex64"])
def test_dtypes(dtype: str) -> None:
    x = pc.ones(5).to(dtype)
    assert x.share_memory_().dtype is getattr(pc, dtype) and x.tolist() == [1] * 5


def test_empty_and_zero_dimensional_tensors() -> None:
    assert pc.empty(0, 3).share_memory_().shape == (0, 3)
    assert pc.empty(0, 3).share_memory_().is_shared()
    assert pc.tensor(4.0).share_memory_().item() == 4.0


def test_alignment_and_sizes() -> None:
    for n in (1, 7, 63, 64, 65, 1000, 4096, 100_000, 3_000_001):
        x = pc.ones(n, dtype=pc.uint8).share_memory_()
        assert x.data_ptr() % 64 == 0 and x.sum() == n


@pytest.mark.parametrize("other", [lambda x: x[1:], lambda x: x.detach(), lambda x: x.numpy()])
def test_a_storage_that_others_use_never_moves(other) -> None:
    x = pc.zeros(4)
    keep = other(x)
    with pytest.raises(RuntimeError, match=r"views, detach\(\), a NumPy array"):
        x.share_memory_()
    assert not x.is_shared()
    del keep
    assert x.share_memory_().is_shared()


def test_a_leaf_moves_under_its_graph() -> None:
    w = pc.ones(3, requires_grad=True)
    with autograd.no_grad():
        w.add_(1)  # a version of its own
    loss = (w * w).sum()
    assert w.share_memory_().is_shared() and w.requires_grad and w.is_leaf
    loss.backward()
    assert w.grad.tolist() == [4.0, 4.0, 4.0]
    loss = (w * w).sum()
    with autograd.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match=r"modified|changed|version"):
        loss.backward()


def test_what_is_no_tensor_is_refused() -> None:
    for wrong in (3, [1.0], None):
        with pytest.raises(TypeError, match="must be a tensor"):
            mp.share_memory_(wrong)
        with pytest.raises(TypeError, match="must be a tensor"):
            mp.is_shared(wrong)
    assert mp.share_memory_(pc.empty(2, device="meta")).device.type == "meta"


def test_writes_are_seen_by_versions() -> None:
    x = pc.ones(3).share_memory_()
    w = pc.ones(3, requires_grad=True)
    y = (w * x).sum()
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"modified|changed|version"):
        y.backward()


def test_a_module_shares_and_its_optimizer_goes_on() -> None:
    pc.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    before = list(model.parameters())
    assert model.share_memory() is model
    assert all(p is q for p, q in zip(before, model.parameters(), strict=True))
    assert all(t.is_shared() for t in [*model.parameters(), *model.buffers()])
    old = [p.detach().clone() for p in before]
    model(pc.randn(8, 3)).sum().backward()
    optimizer.step()
    assert all(p.is_shared() for p in before)
    assert any((p != q).any() for p, q in zip(before, old, strict=True))
    model.share_memory()
    assert all(p.grad.is_shared() for p in before)


def test_tied_parameters_are_shared_once() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    model.share_memory()
    assert model[1].weight is model[0].weight and model[0].weight.is_shared()


def test_storages_with_a_single_owner() -> None:
    storage = pc.arange(4, dtype=pc.uint8).untyped_storage()
    assert storage.share_memory_() is storage and storage.is_shared()
    assert storage.tolist() == [0, 1, 2, 3]
    x = pc.zeros(3)
    with pytest.raises(RuntimeError, match="cannot be moved"):
        x.untyped_storage().share_memory_()


def test_blocks_are_used_again() -> None:
    mp.trim()
    addresses = set()
    for _ in range(20):
        x = pc.zeros(1 << 18).share_memory_()
        addresses.add(x.data_ptr())
        del x
    assert len(addresses) == 1
    stats = mp.memory_stats()
    for _ in range(50):
        pc.zeros(1 << 18).share_memory_()
    assert mp.memory_stats() == stats


def test_trim_gives_memory_back() -> None:
    def committed() -> int:
        mp.trim()
        return mp.memory_stats().committed

    before = committed()
    x = pc.ones(8 << 20).share_memory_()
    assert mp.memory_stats().committed >= before + (32 << 20) - (1 << 20)
    del x
    assert committed() <= before + (1 << 20)
    y = pc.ones(8 << 20).share_memory_()  # punched memory comes back zeroed, and is written again
    assert y.sum() == 8 << 20


def test_threads_share_at_once() -> None:
    import threading

    failures: list[BaseException] = []

    def work() -> None:
        try:
            for n in range(200):
                x = pc.full((n + 1,), float(n)).share_memory_()
                assert x.sum() == n * (n + 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_no_grad_is_not_needed_for_leaves() -> None:
    w = pc.ones(3, requires_grad=True).share_memory_()
    with autograd.no_grad():
        w.add_(1)
    assert w.tolist() == [2, 2, 2]
