"""The objects of storages: one for each, and what happens when they are freed."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

import plait_core as pc


def work_of(name: str) -> Callable[[], Any]:
    x = pc.arange(6.0).reshape(2, 3)
    return {
        "untyped_storage": lambda: x.clone().untyped_storage(),
        "deepcopy": lambda: copy.deepcopy(x),
        "pickle": lambda: pickle.loads(pickle.dumps(x)),
        "view": lambda: x.view(pc.int32),
    }[name]


@pytest.mark.parametrize("name", ["untyped_storage", "deepcopy", "pickle", "view"])
def test_no_python_code_runs_when_storages_are_freed(name: str) -> None:
    """Ctrl-C that comes in such code is printed and lost."""
    work, calls = work_of(name), []
    work()
    results = [work() for _ in range(3)]
    gc.collect()
    gc.disable()
    sys.setprofile(lambda frame, event, _: calls.append(frame) if event == "call" else None)
    try:
        del results
    finally:
        sys.setprofile(None)
        gc.enable()
    assert not calls


def test_a_storage_has_one_object_while_that_lives() -> None:
    living = [pc.ones(i + 1) for i in range(300)]
    objects = [x.untyped_storage() for x in living]
    for i in range(3000):  # others that come and go
        pc.ones(i % 17 + 1).untyped_storage()
    assert all(x[:1].untyped_storage() is s for x, s in zip(living, objects, strict=True))


def test_a_storage_without_tensors_has_another_size() -> None:
    storage = pc.UntypedStorage([1, 2, 3])
    assert storage.resize_(2) is storage and storage.tolist() == [1, 2]
    assert storage.resize_(300).nbytes() == 300 and storage.tolist()[:2] == [1, 2]
    assert storage.resize_(0).nbytes() == 0 and storage.resize_(4).nbytes() == 4
    on_meta = pc.zeros(3, device="meta").untyped_storage()
    assert on_meta.resize_(5).nbytes() == 5
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        storage.resize_(-1)
    of_tensor = pc.arange(4).untyped_storage()
    assert of_tensor.resize_(8).tolist() == [0] * 8


@pytest.mark.parametrize("size", [0, 8, 31, 33, 64])
def test_the_bytes_of_tensors_do_not_move(size: int) -> None:
    x = pc.arange(4)
    with pytest.raises(RuntimeError, match=f"never move; make a new storage of {size} bytes"):
        x.untyped_storage().resize_(size)
    assert x.untyped_storage().resize_(32).nbytes() == 32 and x.tolist() == [0, 1, 2, 3]
