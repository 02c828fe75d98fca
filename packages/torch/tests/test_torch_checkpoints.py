"""`torch.save`, `torch.load` and the names that files may use.

``files/sequential.pt`` was written by PyTorch 2.13: ``torch.save`` of
``Sequential(Linear(2, 3), BatchNorm1d(3), ReLU())``.
"""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parent / "files" / "sequential.pt"
NAMES = [
    "torch.nn.modules.container.Sequential",
    "torch.nn.modules.linear.Linear",
    "torch.nn.modules.batchnorm.BatchNorm1d",
    "torch.nn.modules.activation.ReLU",
]


@pytest.fixture(autouse=True)
def _nothing_listed(torch: Any) -> Iterator[None]:
    torch.serialization.clear_safe_globals()
    yield
    torch.serialization.clear_safe_globals()


def hook(*args: Any) -> None:
    pass


def classes(torch: Any) -> list[Any]:
    nn = torch.nn
    return [nn.Sequential, nn.Linear, nn.BatchNorm1d, nn.ReLU]


def check(torch: Any, model: Any) -> None:
    assert type(model) is torch.nn.Sequential and not model.training
    assert all(type(p) is torch.nn.Parameter and p.requires_grad for p in model.parameters())
    expected = torch.tensor([[EXPECTED]])[0]
    torch.testing.assert_close(model(torch.tensor([[1.0, 2.0]])), expected)


EXPECTED = [0.9999988079071045, 0.0, 1.4999982118606567]  # what PyTorch gives


def saved(torch: Any, value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def test_a_module_of_pytorch_needs_its_classes_listed(torch: Any) -> None:
    serialization = torch.serialization
    assert serialization.get_unsafe_globals_in_checkpoint(FILE) == NAMES
    with pytest.raises(pickle.UnpicklingError) as caught:
        torch.load(FILE)
    text = str(caught.value)
    assert f"GLOBAL {NAMES[0]} was not an allowed global by default" in text
    assert f"`torch.serialization.add_safe_globals([{NAMES[0]}])`" in text
    with serialization.safe_globals(classes(torch)):
        assert serialization.get_unsafe_globals_in_checkpoint(FILE) == []
        check(torch, torch.load(FILE, weights_only=True))
    with serialization.safe_globals(classes(torch)[1:]), pytest.raises(pickle.UnpicklingError):
        torch.load(FILE)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(FILE)
    serialization.add_safe_globals(classes(torch))
    check(torch, torch.load(FILE))
    check(torch, torch.load(FILE, weights_only=False))


def test_a_module_of_plait(torch: Any) -> None:
    model = torch.load(FILE, weights_only=False)
    model[0].register_forward_hook(hook)
    model[0]._register_load_state_dict_pre_hook(print)
    data = saved(torch, {"model": model, "epoch": 3, "same": model[0].weight})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert "archive/data.pkl" in archive.namelist()
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        torch.load(io.BytesIO(data))
    torch.serialization.add_safe_globals([*classes(torch), hook])
    names = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    assert sorted(name.split(".")[-1] for name in names) == ["_WrappedHook", "print"]
    wrapper = sys.modules[names[0].rpartition(".")[0]]._WrappedHook
    with torch.serialization.safe_globals([wrapper, print]):
        back = torch.load(io.BytesIO(data))
    check(torch, back["model"])
    assert back["same"] is back["model"][0].weight and back["epoch"] == 3
    assert len(back["model"][0]._forward_hooks) == 1
    check(torch, torch.load(io.BytesIO(data), weights_only=False)["model"])


def test_the_list(torch: Any) -> None:
    serialization = torch.serialization
    pair = (torch.nn.ReLU, "my.Activation")
    serialization.add_safe_globals([torch.nn.Linear])
    serialization.add_safe_globals([torch.nn.Linear, pair])
    assert serialization.get_safe_globals() == [torch.nn.Linear, pair]
    with serialization.safe_globals([hook]):
        assert hook in serialization.get_safe_globals()
    assert hook not in serialization.get_safe_globals()
    serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []


def test_blocked_modules(torch: Any) -> None:
    import os

    torch.serialization.add_safe_globals([os.system])
    data = saved(torch, {"x": 1})
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as changed:
        for name in archive.namelist():
            text = archive.read(name)
            if name.endswith("data.pkl"):
                text = b"\x80\x02c" + os.system.__module__.encode() + b"\nsystem\nX\x00\0\0\0\x85R."
            changed.writestr(name, text)
    with pytest.raises(pickle.UnpicklingError, match=r"whose module .* is blocked"):
        torch.load(io.BytesIO(out.getvalue()))


def test_the_environment(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    never, always = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    for value in ("1", "y", "YES", "true"):
        monkeypatch.setenv(never, value)
        with pytest.warns(UserWarning, match=never):
            check(torch, torch.load(FILE))
        with pytest.raises(pickle.UnpicklingError):
            torch.load(FILE, weights_only=True)
    monkeypatch.setenv(always, "1")
    with pytest.raises(RuntimeError, match="both were set"):
        torch.load(FILE)
    monkeypatch.setenv(never, "0")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(FILE, weights_only=False)
    monkeypatch.delenv(always)
    check(torch, torch.load(FILE, weights_only=False))


def test_pickle_modules(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="pickle_module"):
        torch.load(FILE, pickle_module=pickle, weights_only=True)
    check(torch, torch.load(FILE, pickle_module=pickle))
    assert torch.serialization.DEFAULT_PROTOCOL == 2


def test_records(torch: Any, tmp_path: Path) -> None:
    reader = torch._C.PyTorchFileReader(str(FILE))
    names = reader.get_all_records()
    assert names[0] == "data.pkl" and {"data/0", "version", "byteorder"} <= set(names)
    assert reader.has_record("data/0") and not reader.has_record("data/100")
    assert reader.get_record("version") == b"3\n" and len(reader.serialization_id()) == 40
    begin, size = reader.get_record_offset("data/0"), reader.get_record_size("data/0")
    assert FILE.read_bytes()[begin : begin + size] == reader.get_record("data/0")
    assert reader.get_record_header_offset("data.pkl") == 0
    with pytest.raises(RuntimeError, match="nope"):
        reader.get_record("nope")
    with pytest.raises(RuntimeError, match="cannot be read"):
        torch._C.PyTorchFileReader(io.BytesIO(b"abc"))
    # the records of a file, written again, are the file
    writer = torch._C.PyTorchFileWriter(str(tmp_path / "copy.pt"))
    assert writer.archive_name() == "copy"
    for name in names:
        writer.write_record(name, reader.get_record(name), reader.get_record_size(name))
    with pytest.raises(RuntimeError, match="of this name"):
        writer.write_record("version", "4", 1)
    writer.write_end_of_file()
    with pytest.raises(RuntimeError, match="end"):
        writer.write_record("more", "4", 1)
    check(torch, torch.load(tmp_path / "copy.pt", weights_only=False))


def test_records_of_storages(torch: Any) -> None:
    file = io.BytesIO()
    writer = torch._C.PyTorchFileWriter(file)
    x = torch.arange(3.0)
    writer.write_record("x", x.untyped_storage(), 12)
    writer.write_record("text", "abcdef", 3)
    with pytest.raises(ValueError, match="10 bytes"):
        writer.write_record("short", b"abc", 10)
    assert writer.get_all_written_records() == {"x", "text"}
    writer.write_end_of_file()
    reader = torch._C.PyTorchFileReader(io.BytesIO(file.getvalue()))
    assert reader.get_record("x") == x.numpy().tobytes() and reader.get_record("text") == b"abc"
    assert reader.get_record("byteorder") == sys.byteorder.encode()


def test_members_of_an_open_zip(torch: Any) -> None:
    model, file = torch.nn.Linear(2, 1), io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, value in (("whole", model), ("state", model.state_dict())):
            with archive.open(name, "w") as member:
                torch.save(value, member)
    with zipfile.ZipFile(file) as archive:
        with archive.open("state") as member:
            assert list(torch.load(member)) == ["weight", "bias"]
        with torch.serialization.safe_globals([torch.nn.Linear]), archive.open("whole") as member:
            assert torch.equal(torch.load(member).weight, model.weight)
