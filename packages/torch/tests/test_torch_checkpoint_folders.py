"""Folders of `torch.distributed.checkpoint`, archives of `torch.package` and tars of PyTorch.

The files in `files/` are PyTorch's own: `folder` was written by two ranks, `package.pt` by a
`PackageExporter`.
"""

from __future__ import annotations

import functools
import io
import pickle
import random
import shutil
import struct
import tarfile
from pathlib import Path
from typing import Any

import pytest

import plait
from plait_torch import _checkpoint_folders as of_torch

FILES = Path(__file__).with_name("files")
FOLDER = FILES / "folder"

dcp = pytest.importorskip("plait_distributed.checkpoint")


def state() -> dict[str, Any]:
    return {
        "rows": plait.zeros(7, 5),
        "columns": plait.zeros(7, 5),
        "f8": plait.zeros(3, dtype=plait.float8_e4m3fn),
        "optim": {"state": {0: {"step": 0}}, "param_groups": [{"lr": 0.0, "betas": ()}]},
        "list": [0, plait.zeros(2), {"a": 0.0}],
        "rank": -1,
    }


def is_right(loaded: dict[str, Any]) -> bool:
    right = plait.arange(35.0).reshape(7, 5)
    return (
        plait.equal(loaded["rows"], right)
        and plait.equal(loaded["columns"], right)
        and loaded["f8"].tolist() == [1.0, 0.1015625, 448.0]
        and loaded["optim"]["state"][0]["step"] == 3
        and loaded["optim"]["param_groups"] == [{"lr": 0.5, "betas": (0.9, 0.99)}]
        and loaded["list"][0] == 1
        and loaded["list"][1].tolist() == [2.0, 3.0]
        and loaded["list"][2] == {"a": 2.5}
        and loaded["rank"] == 7
    )


# ---- folders


def test_a_folder_of_two_ranks() -> None:
    loaded = state()
    dcp.load(loaded, checkpoint_id=FOLDER, no_dist=True)
    assert is_right(loaded)
    index = dcp.FileSystemReader(FOLDER).read_metadata()
    assert index["tensors"]["columns"]["shape"] == [7, 5]
    assert {part[2] for part in index["tensors"]["rows"]["parts"]} == {
        "__0_0.distcp",
        "__1_0.distcp",
    }


def test_what_a_folder_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(dcp.CheckpointException, match="more is missing in the checkpoint"):
        dcp.load({"more": plait.zeros(1)}, checkpoint_id=FOLDER, no_dist=True)
    with pytest.raises(dcp.CheckpointException, match=r"rows has shape \(7, 5\)"):
        dcp.load({"rows": plait.zeros(2)}, checkpoint_id=FOLDER, no_dist=True)
    planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
    loaded = {"rank": 0, "more": 5}
    dcp.load(loaded, checkpoint_id=FOLDER, planner=planner, no_dist=True)
    assert loaded == {"rank": 7, "more": 5}
    shutil.copy(FOLDER / ".metadata", tmp_path)
    with pytest.raises(dcp.CheckpointException, match=r"__0_0\.distcp"):
        dcp.load(state(), checkpoint_id=tmp_path, no_dist=True)


def test_a_folder_becomes_a_file_and_a_file_a_folder(tmp_path: Path) -> None:
    from plait_distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

    dcp_to_torch_save(FOLDER, tmp_path / "whole.pt")
    whole = plait.load(tmp_path / "whole.pt")
    whole["optim"]["state"][0] = whole["optim"]["state"]["0"]  # keys became texts
    assert is_right(whole)
    del whole["optim"]["state"][0]
    torch_save_to_dcp(tmp_path / "whole.pt", tmp_path / "again")
    loaded = state()
    dcp.load(loaded, checkpoint_id=tmp_path / "again", no_dist=True)
    assert is_right(loaded)
    # what PyTorch needs: names that Python's own unpickler finds in it
    text = (tmp_path / "again" / ".metadata").read_bytes()
    assert b"torch.distributed.checkpoint.metadata\nMetadata\n" in text


class Evil:
    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('executed')",)


def test_nothing_of_a_folder_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(dcp.CheckpointException, match=r"\.metadata.*nothing was executed"):
        dcp.load(state(), checkpoint_id=tmp_path, no_dist=True)
    whole = {"x": plait.ones(2), "evil": 0}
    save = functools.partial(plait.save, weights_only=False)
    monkeypatch.setattr(of_torch.plait, "save", save)
    of_torch.write_folder(str(tmp_path), [(("x",), whole["x"]), (("evil",), Evil2())])
    with pytest.raises(
        dcp.CheckpointException, match=r"distcp \(from byte \d+ on\).*not one of the names"
    ):
        dcp.load(whole, checkpoint_id=tmp_path, no_dist=True)


class Evil2:
    """A value whose file of torch.save names a function."""

    def __reduce__(self) -> Any:
        return print, ("executed",)


def test_damaged_folders(tmp_path: Path) -> None:
    """Each damage is an error that names the file, or changes nothing that is loaded."""
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    chance = random.Random(0)
    for name in (".metadata", "__0_0.distcp"):
        data = (FOLDER / name).read_bytes()
        for number in range(60):
            broken = bytearray(data)
            if number % 3:
                broken[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            else:
                del broken[chance.randrange(len(data)) :]
            (tmp_path / name).write_bytes(broken)
            loaded = state()
            try:
                dcp.load(loaded, checkpoint_id=tmp_path, no_dist=True)
            except dcp.CheckpointException as error:
                assert str(tmp_path) in str(error), error
        (tmp_path / name).write_bytes(data)


def test_a_forged_index_takes_no_memory(tmp_path: Path) -> None:
    from plait_distributed.checkpoint.format_utils import dcp_to_torch_save

    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    text = (FOLDER / ".metadata").read_bytes()
    sizes = b"K\x07K\x05\x86"
    assert sizes in text
    (tmp_path / ".metadata").write_bytes(
        text.replace(sizes, b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86")
    )
    with pytest.raises(
        (ValueError, plait.CheckpointError), match=r"larger than the files|do not hold"
    ):
        dcp_to_torch_save(tmp_path, tmp_path / "whole.pt")


# ---- archives of torch.package


def test_the_data_of_a_package(torch: Any) -> None:
    from torch.package import PackageImporter

    package = PackageImporter(FILES / "package.pt")
    value = package.load_pickle("res", "data.pkl")
    assert value["w"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and value["n"] == 3
    assert value["again"].data_ptr() == value["w"].data_ptr()
    assert package.load_text("res", "note.txt") == "hello"
    assert "mymod.py" in package.file_structure()
    name = "mymod"
    with pytest.raises(plait.CheckpointError, match="mymod is a program"):
        package.import_module(name)
    with pytest.raises(plait.CheckpointError, match=r"no record '.*res/nothing'"):
        package.load_binary("res", "nothing")
    with pytest.raises(plait.CheckpointError, match="PackageImporter"):
        torch.load(FILES / "package.pt")


# patterns, patterns that are excluded, and those of PATHS that fit on PyTorch
PATHS = ["a", "a.b", "a.b.c", "b", "b.c", "b.c.d", "ax.b?c", "", "a.[x]", "x.y.b", "a.x.y.c", "a."]
GROUPS: list[tuple[Any, Any, str]] = [
    ("a.b", (), "a.b"),
    ("a.*", (), "a.b a.[x] a."),
    ("a.**", (), "a a.b a.b.c a.[x] a.x.y.c"),
    ("**.b", (), "a.b b x.y.b"),
    ("*", (), "a b -"),
    ("a.**.c", (), "a.b.c a.x.y.c"),
    (["a.*", "b.**"], ["b.c.*"], "a.b b b.c a.[x] a."),
    ("a*.b?c", (), "ax.b?c"),
    ("a.[x]", (), "a.[x]"),
    ([], (), ""),
]


@pytest.mark.parametrize(("include", "exclude", "fitting"), GROUPS)
def test_patterns_of_packages(torch: Any, include: Any, exclude: Any, fitting: str) -> None:
    group = torch.package.GlobGroup(include, exclude=exclude)
    assert [path or "-" for path in PATHS if group.matches(path)] == fitting.split()
    assert repr(group) == f"GlobGroup(include={include}, exclude={exclude})"


def test_patterns_with_another_separator(torch: Any) -> None:
    group = torch.package.GlobGroup("a/**", separator="/")
    assert group.matches("a/b/c") and not group.matches("a.b")
    with pytest.raises(ValueError, match="entire path segment"):
        torch.package.GlobGroup("a.**b")


def test_damaged_packages(tmp_path: Path, torch: Any) -> None:
    from torch.package import PackageImporter

    data = (FILES / "package.pt").read_bytes()
    chance = random.Random(1)
    for number in range(100):
        broken = bytearray(data)
        if number % 3:
            broken[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            del broken[chance.randrange(len(data)) :]
        try:
            PackageImporter(io.BytesIO(bytes(broken))).load_pickle("res", "data.pkl")
        except plait.CheckpointError:
            continue


# ---- tars of PyTorch 0.1


def row(key: int, second: Any, kind: str) -> bytes:
    inner = pickle.dumps(key, 2)[2:-1] + pickle.dumps(second, 2)[2:-1].replace(b"q\0", b"")
    return b"\x80\x02(" + inner + f"ctorch\n{kind}\n".encode() + b"t."


def tar_of(records: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:") as tar:
        for name, data in records.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def old_records() -> dict[str, bytes]:
    """Two tensors on one storage, of which one is a part, and integers."""
    numbers = struct.pack("<q12f", 12, *range(12))
    storages = pickle.dumps(2, 2) + row(1, "cpu", "FloatStorage") + numbers
    storages += row(2, "cpu", "LongStorage") + struct.pack("<3q", 2, 7, 8)
    storages += pickle.dumps([(3, 1, 4, 8)], 2)
    tensors = pickle.dumps(3, 2)
    tensors += row(10, 1, "FloatTensor") + struct.pack("<6q", 2, 3, 4, 4, 1, 0)
    tensors += row(11, 2, "LongTensor") + struct.pack("<4q", 1, 2, 1, 0)
    tensors += row(12, 3, "FloatTensor") + struct.pack("<6q", 2, 2, 2, 4, 1, 1)
    key = {name: b"\x80\x02" + pickle.dumps(name, 2)[2:-1].replace(b"q\0", b"") + b"Q."
           for name in ("10", "11", "12")}  # fmt: skip
    parts = b"".join(
        pickle.dumps(name, 2)[2:-1].replace(b"q\0", b"") + key[number][2:-1]
        for name, number in (("a", "10"), ("b", "11"), ("c", "12"))
    )
    return {
        "sys_info": pickle.dumps({"protocol_version": 1000}, 2),
        "pickle": b"\x80\x02}(" + parts + b"u.",
        "tensors": tensors,
        "storages": storages,
    }


def test_a_tar(torch: Any) -> None:
    data = tar_of(old_records())
    for only in (True, False):
        value = torch.load(io.BytesIO(data), weights_only=only)
        assert value["a"].tolist() == plait.arange(12.0).reshape(3, 4).tolist()
        assert value["b"].tolist() == [7, 8] and value["b"].dtype is plait.int64
        assert value["c"].tolist() == [[5.0, 6.0], [9.0, 10.0]]
        value["a"][1, 1] = -1
        assert value["c"][0, 0].item() == -1  # they share the storage


def test_damaged_tars() -> None:
    records = old_records()
    data = tar_of(records)
    with pytest.raises(plait.CheckpointError, match=r"none of torch\.save"):
        plait.load(io.BytesIO(tar_of({"a": b"b"})))
    with pytest.raises(plait.CheckpointError, match="no checksums"):
        plait.load(io.BytesIO(data), verify=True)
    evil = tar_of({**records, "pickle": pickle.dumps(Evil(), 2)})
    with pytest.raises(plait.CheckpointError, match="nothing was executed"):
        plait.load(io.BytesIO(evil))
    large = records["storages"].replace(struct.pack("<q", 12), struct.pack("<q", 2**40))
    with pytest.raises(plait.CheckpointError, match="cut off"):
        plait.load(io.BytesIO(tar_of({**records, "storages": large})))
    far = records["tensors"].replace(
        struct.pack("<6q", 2, 3, 4, 4, 1, 0), struct.pack("<6q", 2, 3, 4, 4, 1, 9)
    )
    with pytest.raises(plait.CheckpointError, match=r"\(3, 4\)"):
        plait.load(io.BytesIO(tar_of({**records, "tensors": far})))
    chance = random.Random(2)
    for name in records:
        for number in range(100):
            broken = bytearray(records[name])
            if number % 3:
                broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
            else:
                del broken[chance.randrange(len(broken)) :]
            try:
                plait.load(io.BytesIO(tar_of({**records, name: bytes(broken)})))
            except plait.CheckpointError:
                continue


# ---- kinds that plait does not have, and states of generators


def record(kind: str) -> bytes:
    """A zip of torch.save that refers to a storage class or a function of PyTorch."""
    import zipfile

    file = io.BytesIO()
    module, _, name = kind.rpartition(".")
    text = f"\x80\x02c{module}\n{name}\n)R.".encode("latin-1")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", text)
        archive.writestr("archive/version", "3\n")
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("torch._utils._rebuild_qtensor", r"quantized.*dequantize\(\)"),
        ("torch._utils._rebuild_nested_tensor", r"nested.*unbind\(\)"),
        ("torch.QInt8Storage", r"quantized.*dequantize\(\)"),
        ("torch.complex32", "complex32.*complex64"),
        ("torch.bits8", "bits8.*uint8"),
        ("torch.int4", "int4.*int8"),
    ],
)
def test_a_kind_that_plait_does_not_have_names_the_remedy(kind: str, remedy: str) -> None:
    for only in (True, False):
        with pytest.raises(plait.CheckpointError, match=remedy):
            plait.load(io.BytesIO(record(kind)), weights_only=only)


def test_other_files_are_named() -> None:
    for start, text in (
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x93NUMPY\x01\x00", "numpy.load"),
        (b"GGUF", "gguf"),
        (b"\x89HDF\r\n\x1a\n", "h5py"),
    ):
        with pytest.raises(plait.CheckpointError, match=text):
            plait.load(io.BytesIO(start + bytes(600)))


def test_a_generator_in_a_file(torch: Any) -> None:
    generator = torch.Generator().manual_seed(5)
    torch.rand(3, generator=generator)
    kept = generator.get_state()
    again = torch.Generator()
    again.__setstate__((5, None, kept))  # as a pickle of PyTorch says it
    assert torch.equal(torch.rand(4, generator=again), torch.rand(4, generator=generator))


def test_storages_in_a_file(torch: Any) -> None:
    whole = FILES / "storages.pt"
    value = torch.load(whole)
    assert value["typed"].size() == 6 and value["typed"].dtype is plait.float32
    assert value["untyped"].nbytes() == 24
    assert value["x"].data_ptr() == value["typed"].data_ptr()
