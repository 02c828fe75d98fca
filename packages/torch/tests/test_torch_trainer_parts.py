"""What trainers and their tests ask of `torch`: modes, hooks, lazy files, scalers of all ranks."""

from __future__ import annotations

import io
import zipfile
from types import SimpleNamespace
from typing import Any

import pytest


class Tagged:  # becomes a class derived from Tensor while `torch` means plait
    pass


def test_inference_mode_is_known_where_it_is_on(torch: Any) -> None:
    enabled = torch.is_inference_mode_enabled
    assert not enabled()
    with torch.inference_mode():
        assert enabled() and not torch.is_grad_enabled()
        with torch.enable_grad():
            assert enabled()
        with torch.inference_mode(False):
            assert not enabled() and torch.is_grad_enabled()
        assert enabled()
    assert not enabled()
    with torch.no_grad():
        assert not enabled()

    for decorator, result in ((torch.inference_mode, True), (torch.inference_mode(False), False)):

        @decorator
        def ask() -> bool:
            return bool(enabled())

        assert ask() is result
        with torch.inference_mode():
            assert ask() is result and enabled()
    with pytest.raises(ZeroDivisionError), torch.inference_mode():
        1 / 0  # noqa: B018
    assert not enabled()


def test_hooks_of_a_tensor_can_be_seen(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert x._backward_hooks is None and y._backward_hooks is None
    first = y.register_hook(lambda gradient: gradient * 10)
    second = y.register_hook(print)
    assert list(y._backward_hooks.values())[1] is print and len(y._backward_hooks) == 2
    second.remove()
    second.remove()
    assert len(y._backward_hooks) == 1 and (x * 2)._backward_hooks is None
    y.sum().backward()
    assert x.grad.tolist() == [20, 20]
    first.remove()
    assert not y._backward_hooks


def test_objects_that_stand_for_tensors_are_loaded(torch: Any) -> None:
    class Late:
        """A tensor that is made when an operator takes it."""

        def __init__(self, *shape: int) -> None:
            self.shape, self.dtype, self.device = torch.Size(shape), torch.float32, "cpu"

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            values = [torch.full(a.shape, 3.0) if isinstance(a, cls) else a for a in args]
            return func(*values, **(kwargs or {}))

    layer = torch.nn.Linear(2, 1)
    layer.load_state_dict({"weight": Late(1, 2), "bias": Late(1)})
    assert layer.weight.tolist() == [[3, 3]] and layer.bias.tolist() == [3]
    with pytest.raises(RuntimeError, match="size mismatch for bias"):
        layer.load_state_dict({"weight": Late(1, 2), "bias": Late(2)})


def test_files_of_classes_of_tensors_have_storages(torch: Any) -> None:
    cls = type("Tagged", (torch.Tensor,), {"__module__": __name__})
    globals()["Tagged"] = cls
    base = torch.arange(6.0)
    row = base[2:].as_subclass(cls)
    row.label = "row"
    file = io.BytesIO()
    torch.save({"row": row, "again": row, "base": base, "storage": base.storage()}, file)
    with zipfile.ZipFile(file) as archive:
        text = archive.read("archive/data.pkl")
        assert sum("/data/" in name for name in archive.namelist()) == 1
    assert b"_load_from_bytes" not in text
    file.seek(0)
    with torch.serialization.safe_globals([cls, torch.storage.TypedStorage]):
        loaded = torch.load(file)
    assert type(loaded["row"]) is cls and loaded["row"].label == "row"
    assert loaded["again"] is loaded["row"] and loaded["row"].tolist() == [2, 3, 4, 5]
    loaded["base"][2] = 9
    assert loaded["row"][0] == 9 and loaded["storage"][2] == 9
    # the bytes of a record, from which lazy readers make storages
    file.seek(0)
    reader = torch.PyTorchFileReader(file)
    untyped = torch.storage.UntypedStorage
    record = reader.get_storage_from_record("data/0", 24, untyped)
    assert record._typed_storage()._untyped_storage.nbytes() == 24
    assert reader.get_storage_from_record("data/0", 2, torch.float32).tolist() == [0, 1]


def test_all_ranks_skip_a_step(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("plait_distributed")
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    from plait_torch import _sharded_scaler

    sent: list[Any] = []

    others: list[float] = []

    def all_reduce(tensor: Any, op: Any, group: Any) -> None:
        sent.append((tensor.item(), op, group))
        tensor.fill_(others[-1])

    world = SimpleNamespace(
        is_initialized=lambda: True, all_reduce=all_reduce, ReduceOp=SimpleNamespace(MAX="max")
    )
    monkeypatch.setattr(_sharded_scaler, "require", lambda name: world)
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], 0.5)
    scaler = ShardedGradScaler("cpu", init_scale=4.0, process_group="part")
    for other, expected, scale in ((True, 1.0, 2.0), (False, 0.5, 2.0)):
        others.append(float(other))
        optimizer.zero_grad()
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert (weight.item(), scaler.get_scale()) == (expected, scale)
    optimizer.zero_grad()  # a rank without gradients takes part
    scaler.scale(torch.ones(1))
    scaler.unscale_(optimizer)
    assert sent == [(0.0, "max", "part")] * 3


def test_the_table_of_groups_takes_groups_of_tests(torch: Any) -> None:
    pytest.importorskip("plait_distributed")
    from torch.distributed import distributed_c10d

    table = distributed_c10d._pg_map
    assert dict(table) == {}
    table["group"] = ("gloo", None)
    assert table["group"] == ("gloo", None) and len(table) == 1 and list(table) == ["group"]
    del table["group"]
    assert "group" not in table


def test_launchers_set_numbers_as_text(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("plait_distributed")
    import argparse

    from plait_torch import _distributed_run

    flags: list[Any] = []

    def run(values: Any, prefix: Any) -> int:
        flags.append(values)
        return 0

    monkeypatch.setattr(_distributed_run._run(), "run", run)
    options = {"nproc_per_node": 2, "nnodes": 1, "node_rank": "0", "master_port": "29501"}
    _distributed_run.run(argparse.Namespace(training_script="train.py", **options))
    assert (flags[0].master_port, flags[0].node_rank, flags[0].nnodes) == (29501, 0, "1")
