"""Checkpoints between PyTorch and plait, both ways, in both of PyTorch's formats."""

from __future__ import annotations

import argparse
import io
import random
import struct
import warnings
import zipfile
import zlib
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_torch._zip_records import PyTorchFileReader, PyTorchFileWriter

DTYPES = [
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]
ZIP = pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])


def from_torch(value: Any, new: bool = True, **options: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=new)
    return pc.load(io.BytesIO(file.getvalue()), **options)


def to_torch(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    pc.save(value, file, format="torch")
    return torch.load(io.BytesIO(file.getvalue()), **options)


def same(ours: Any, theirs: Any) -> bool:
    """Equal values in equal places, ours of plait's classes and theirs of torch's."""
    if isinstance(theirs, torch.Tensor):
        if theirs.is_sparse:
            return same(ours.to_dense(), theirs.to_dense())
        return (
            isinstance(ours, pc.Tensor)
            and str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
            and (tuple(ours.shape), ours.stride()) == (tuple(theirs.shape), theirs.stride())
            and ours.requires_grad == theirs.requires_grad
            and repr(ours.tolist()) == repr(theirs.tolist())
        )
    if isinstance(theirs, dict):
        keys = list(ours) == list(theirs) and type(ours) is type(theirs)
        return keys and all(same(ours[key], theirs[key]) for key in theirs)
    if type(theirs) in (list, tuple):
        pairs = zip(ours, theirs, strict=True)
        return type(ours) is type(theirs) and all(same(a, b) for a, b in pairs)
    if isinstance(theirs, torch.dtype):
        return str(ours).split(".")[1] == str(theirs).split(".")[1]
    if isinstance(theirs, torch.device):
        return str(ours) == str(theirs)
    if isinstance(theirs, np.ndarray):
        return ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    if isinstance(theirs, torch.Size):
        return type(ours) is pc.Size and tuple(ours) == tuple(theirs)
    return type(ours) is type(theirs) and ours == theirs


def trained() -> tuple[Any, Any]:
    """A model with every kind of parameter and buffer, and its optimizer's state."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(2, 3, 3, 3)).sum().backward()
        optimizer.step()
    return model, optimizer


def all_objects() -> dict[str, Any]:
    model, optimizer = trained()
    x = torch.arange(6.0).reshape(2, 3)
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "views": [x, x.t(), x[1:], x[:, ::2]],
        "lr": 1e-3,
        "mixed": (None, True, 2**70, -1, "ä", b"ab", bytearray(b"x"), 1 + 2j, {1, 2}),
        "facts": [torch.float16, torch.device("cpu"), x.shape],
        "conjugate": torch.tensor([1 + 2j, 3j]).conj(),
        "sparse": torch.eye(3).to_sparse(),
        "numpy": [np.float64(0.5), np.arange(3), np.float32(2)],
        "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "expanded": torch.ones(1).expand(5),
        "counter": Counter("aab"),
        "grad": torch.ones(2, requires_grad=True),
        "empty": torch.zeros(0, 3),
        "ordered": OrderedDict(a=1),
    }


def test_what_torch_saved() -> None:
    theirs = all_objects()
    for new in (True, False):
        ours = from_torch(theirs, new)
        for key in theirs:
            assert same(ours[key], theirs[key]), (new, key)
        assert ours["model"]._metadata == theirs["model"]._metadata
        ours["views"][0][1, 0] = 9.0
        assert (ours["views"][1][0, 1], ours["views"][2][0, 0]) == (9, 9)


@ZIP
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, new: bool) -> None:
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, dtype))
    assert same(from_torch([x, x.t(), x[1]], new), [x, x.t(), x[1]])
    back = to_torch(from_torch([x, x.t(), x[1]], new))
    assert all(torch.equal(a, b) for a, b in zip(back, [x, x.t(), x[1]], strict=True))
    assert back[1].data_ptr() == back[0].data_ptr() and back[1].stride() == x.t().stride()


def test_there_and_back_loses_nothing() -> None:
    theirs = all_objects()
    ours = from_torch(theirs)
    numpy = ours.pop("numpy")
    back = to_torch(ours)  # by torch's own reader of weights only
    for key in ours:
        assert same(ours[key], back[key]), key
    assert back["model"]._metadata == theirs["model"]._metadata
    assert same(numpy, to_torch(numpy, weights_only=False))
    assert back["views"][0].data_ptr() == back["views"][1].data_ptr()


def test_through_our_format() -> None:
    theirs = all_objects()
    file = io.BytesIO()
    pc.save(from_torch(theirs), file)
    back = pc.load(io.BytesIO(file.getvalue()))
    for key in theirs:
        assert same(back[key], theirs[key]), key


@ZIP
def test_what_torch_only_notes_is_computed(new: bool) -> None:
    x = torch.tensor([1 + 2j, 3j]).conj()
    assert from_torch(x.imag, new).tolist() == [-2.0, -3.0]
    assert from_torch(x, new).tolist() == x.tolist()


def test_mapped_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    x = torch.arange(1000.0)
    torch.save({"x": x, "y": x[1:]}, path)
    ours = pc.load(path, mmap=True, verify=True)
    assert same(ours["y"], x[1:])
    pc.save(ours, tmp_path / "b.pt", format="torch")
    theirs = torch.load(tmp_path / "b.pt", mmap=True)
    assert torch.equal(theirs["y"], x[1:])
    data = bytearray(path.read_bytes())
    data[data.index(x[500:502].numpy().tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(pc.CheckpointError, match="damaged: its crc differs"):
        pc.load(path, verify=True)


def test_parameters_and_meta() -> None:
    w = torch.nn.Parameter(torch.ones(2, 3))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    ours = from_torch({"w": w, "frozen": frozen, "meta": torch.zeros(2, device="meta")})
    assert type(ours["w"]) is nn.Parameter and ours["w"].requires_grad
    assert type(ours["frozen"]) is nn.Parameter and not ours["frozen"].requires_grad
    assert ours["meta"].device.type == "meta"
    back = to_torch(ours)
    assert type(back["w"]) is torch.nn.Parameter and not back["frozen"].requires_grad
    assert back["meta"].is_meta


@ZIP
def test_a_loaded_state_dict_trains_in_the_same_way(new: bool, tmp_path: Path) -> None:
    model, optimizer = trained()
    path = tmp_path / "a.pt"
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path, _use_new_zipfile_serialization=new)
    ours = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LayerNorm(4), nn.Linear(4, 2))
    loaded = pc.load(path)
    ours.load_state_dict(loaded["model"])
    ours_optimizer = optim.Adam(ours.parameters(), lr=0.5)
    ours_optimizer.load_state_dict(loaded["optimizer"])
    x = torch.randn(2, 3, 3, 3)
    for net, steps, data in ((model, optimizer, x), (ours, ours_optimizer, pc.from_dlpack(x))):
        steps.zero_grad()
        (net(data) ** 2).sum().backward()
        steps.step()
    pc.save({"model": ours.state_dict()}, path, format="torch")
    back = torch.load(path)["model"]
    for key, value in model.state_dict().items():
        assert torch.allclose(back[key], value, atol=1e-5), key
    model.load_state_dict(back)


@ZIP
def test_whole_modules_are_refused(new: bool) -> None:
    with pytest.raises(pc.CheckpointError, match=r"`torch\.nn\..*save its state_dict"):
        from_torch(trained()[0], new)


@ZIP
def test_other_refusals(new: bool) -> None:
    with pytest.raises(pc.CheckpointError, match=r"torch\.torch_version"):
        from_torch({"version": torch.__version__}, new)


def test_torchscript_is_named() -> None:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), file)
    with pytest.raises(pc.CheckpointError, match="TorchScript"):
        pc.load(io.BytesIO(file.getvalue()))


def test_a_tensor_of_a_gpu_asks_for_map_location() -> None:
    """The location is text in the pickle: the file of a machine with a GPU, made without one."""
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    with zipfile.ZipFile(file) as archive:
        old = archive.read("archive/data.pkl")
    new = old.replace(b"X\x03\x00\x00\x00cpu", b"X\x03\x00\x00\x00gpu")
    data = file.getvalue().replace(old, new)
    data = data.replace(
        struct.pack("<L", zlib.crc32(old)), struct.pack("<L", zlib.crc32(new))
    )  # the sum of the pickle, in the directory and behind the record
    with pytest.raises(pc.CheckpointError, match='map_location="cpu"'):
        pc.load(io.BytesIO(data))
    assert pc.load(io.BytesIO(data), map_location="cpu").tolist() == [1.0, 1.0]
    assert pc.load(io.BytesIO(data), map_location={"gpu": "cpu"}).tolist() == [1.0, 1.0]
    seen: list[str] = []
    pc.load(io.BytesIO(data), map_location=lambda storage, at: (seen.append(at), storage)[1])
    assert seen == ["gpu"]


def test_a_flipped_bit_is_never_silent(tmp_path: Path) -> None:
    """PyTorch's own zips: headers, pickle and elements are checked without being asked for."""
    path = tmp_path / "a.pt"
    theirs = {"w": torch.arange(12.0), "n": (1, "x", 0.5), "z": torch.zeros(5, dtype=torch.int64)}
    torch.save(theirs, path)
    data = path.read_bytes()
    chance = random.Random(0)
    refused = 0
    for place in range(len(data)):
        broken = bytearray(data)
        broken[place] ^= 1 << chance.randrange(8)
        try:
            ours = pc.load(io.BytesIO(bytes(broken)))
        except pc.CheckpointError:
            refused += 1
        else:
            assert same(ours, theirs), place
    assert refused > len(data) // 3  # the rest is padding, dates, and records that are not read


def test_files_without_sums(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.arange(3.0)}, path)
    finally:
        torch.serialization.set_crc32_options(True)
    assert pc.load(path)["w"].tolist() == [0.0, 1.0, 2.0]
    assert pc.load(path, mmap=True)["w"].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(pc.CheckpointError, match=r"saved without checksums.*verify=False loads it"):
        pc.load(path, verify=True)


def kept(values: list[float]) -> Any:
    """Return an object of a class that is no data for either library."""
    return argparse.Namespace(lr=0.1, values=values, more=defaultdict(list, a=[1]))


@pytest.mark.parametrize("whole", [True, False], ids=["weights_only=False", "safe_globals"])
def test_objects_of_other_classes(whole: bool) -> None:
    """What is no data goes both ways, with its tensors, dtypes and sizes."""
    ours, theirs = kept([1.0]), kept([1.0])
    for namespace, library in ((ours, pc), (theirs, torch)):
        namespace.w = library.arange(6.0)
        namespace.view = namespace.w[2:4]
        namespace.dtype, namespace.size = library.int16, namespace.w.shape
        namespace.device, namespace.sparse = namespace.w.device, library.eye(2).to_sparse()
        if not whole:
            del namespace.more  # PyTorch does not fill a defaultdict
    file = io.BytesIO()
    pc.save(ours, file, format="torch", weights_only=False)
    file.seek(0)
    with torch.serialization.safe_globals([argparse.Namespace]):
        at_theirs = torch.load(file, weights_only=not whole)
    file = io.BytesIO()
    torch.save(theirs, file)
    listed = {} if whole else {"safe_globals": [argparse.Namespace]}
    at_ours = pc.load(io.BytesIO(file.getvalue()), weights_only=not whole, **listed)
    for one, other in ((ours, at_theirs), (at_ours, theirs), (at_ours, at_theirs)):
        assert type(one) is type(other) and same(vars(one), vars(other))
    assert at_theirs.view.data_ptr() == at_theirs.w.data_ptr() + 8
    assert at_ours.view.data_ptr() == at_ours.w.data_ptr() + 8


def test_records_of_a_zip(tmp_path: Path) -> None:
    """`PyTorchFileReader` says of a file what PyTorch's says, and each reads the other's writer."""
    torch.save({"w": torch.arange(12.0)}, tmp_path / "a.pt")
    ours = PyTorchFileReader(tmp_path / "a.pt")
    theirs = torch._C.PyTorchFileReader(str(tmp_path / "a.pt"))
    assert ours.get_all_records() == theirs.get_all_records()
    assert ours.serialization_id() == theirs.serialization_id()
    for name in theirs.get_all_records():
        assert ours.get_record(name) == theirs.get_record(name)
        assert ours.get_record_offset(name) == theirs.get_record_offset(name)
        assert ours.get_record_size(name) == theirs.get_record_size(name)
        assert ours.get_record_header_offset(name) == theirs.get_record_header_offset(name)
    files = []
    for kind in (PyTorchFileWriter, torch._C.PyTorchFileWriter):
        file = io.BytesIO()
        writer = kind(file)
        writer.write_record("a", b"abc", 3)
        writer.write_record("b", "text", 4)
        assert writer.get_all_written_records() == {"a", "b"}
        writer.write_end_of_file()
        files.append((writer, PyTorchFileReader(file), file))
    assert files[0][0].archive_name() == files[1][0].archive_name()
    read_by_theirs = torch._C.PyTorchFileReader(io.BytesIO(files[0][2].getvalue()))
    assert read_by_theirs.get_all_records() == files[1][1].get_all_records()
    for name in ("a", "b", "version", "byteorder"):
        assert read_by_theirs.get_record(name) == files[1][1].get_record(name)
    assert read_by_theirs.serialization_id() == files[0][0].serialization_id()


def test_folders_of_ranks(tmp_path: Path) -> None:
    """`torch.distributed.checkpoint` of each reads the folders of the other, by `format_utils`."""
    import torch.distributed.checkpoint as theirs
    from torch.distributed.checkpoint import format_utils

    import plait_distributed.checkpoint as ours
    from plait_distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

    model, optimizer = trained()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    state |= {
        "list": [1, torch.ones(2), {"a": (1, 2)}],
        "eight": torch.ones(3).to(torch.float8_e5m2),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.save(state, checkpoint_id=tmp_path / "folder")
        format_utils.dcp_to_torch_save(tmp_path / "folder", tmp_path / "right.pt")
    dcp_to_torch_save(tmp_path / "folder", tmp_path / "whole.pt")
    right = torch.load(tmp_path / "right.pt")
    assert same(pc.load(tmp_path / "whole.pt"), right)
    torch_save_to_dcp(tmp_path / "whole.pt", tmp_path / "again")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        format_utils.dcp_to_torch_save(tmp_path / "again", tmp_path / "again.pt")
    assert same(pc.load(tmp_path / "again.pt"), right)
    back = {"model": {key: pc.zeros(*v.shape) for key, v in model.state_dict().items()}, "epoch": 0}
    ours.load(back, checkpoint_id=tmp_path / "folder", no_dist=True)
    assert back["epoch"] == 3
    for key, value in model.state_dict().items():
        assert back["model"][key].tolist() == value.tolist()
