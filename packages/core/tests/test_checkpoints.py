"""`load` returns what `save` wrote: containers, tensors that share storage, several files.

Tests of what holds in PyTorch's format as well run in both.
"""

from __future__ import annotations

import collections
import gzip
import io
import json
import os
import pickle
import pickletools
import sys
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_core as pc

DTYPES = [kind.name for kind in plait_abi.binding.dtypes]


def there_and_back(value: Any, style: str = "plait") -> Any:
    file = io.BytesIO()
    pc.save(value, file, format=style)
    return pc.load(io.BytesIO(file.getvalue()))


def same(a: Any, b: Any) -> bool:
    """Return whether types and values are equal, through containers and tensors; nan equals nan."""
    if type(a) is not type(b):
        return False
    if isinstance(a, pc.Tensor):
        facts = all(getattr(a, n) == getattr(b, n) for n in ("shape", "dtype", "requires_grad"))
        return facts and a.stride() == b.stride() and repr(a.tolist()) == repr(b.tolist())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and repr(a.tolist()) == repr(b.tolist())
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items(), strict=False)
        return len(a) == len(b) and all(same(x, y) for x, y in pairs)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b or a != a


class Named(OrderedDict):  # type: ignore[type-arg]
    """A class of its own."""


def versions() -> OrderedDict[str, int]:
    state = OrderedDict(a=1)
    state._metadata = OrderedDict(version=2)  # type: ignore[attr-defined]
    return state


VALUES: dict[str, Any] = {
    "none": None,
    "true": True,
    "int": [0, -1, 255, 2**31, -(2**63), 2**63, 2**80, -(10**40)],
    "float": [0.5, -0.0, 1e308, 5e-324, float("inf"), float("-inf"), float("nan"), 0.1],
    "complex": [1 + 2j, complex("nan")],
    "text": ["", "ä", "\0", "\U0001f600", "\ud800", '"\\'],
    "bytes": [b"", b"\0\xff", bytes(5000), bytearray(b"ab"), bytearray(5000)],
    "list": [[], [[1], []]],
    "tuple": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    "dict": {"a": {}, 1: 2, None: 3, (1, "x"): 4, 2.5: 5, False: 6, b"k": 7},
    "ordered": OrderedDict(b=1, a=2),
    "versions": versions(),
    "counter": Counter("aab"),
    "set": [set(), {1, "a"}, frozenset({2})],
    "slice": [slice(1, None, -1), range(2, 9, 3)],
    "size": pc.zeros(2, 3).shape,
    "dtype": [pc.dtype(name) for name in DTYPES],
    "numpy dtype": [np.dtype("f4"), np.dtype(">i2")],
    "device": [pc.device("cpu"), pc.device("meta")],
    "layout": [pc.strided, pc.sparse_coo, pc.channels_last],
    "scalar": [np.float32(0.1), np.int64(-7), np.bool_(True), np.complex64(1j)],
    "date": [np.datetime64("2020-01-02"), np.str_("ab")],
    "array": [np.arange(6.0).reshape(2, 3), np.arange(3)[::-1], np.zeros((0, 2)), np.array(5)],
    "other arrays": [np.array(["2020-01-02"], "M8[D]"), np.array(["ab", "c"]), np.ones(2, ">f4")],
    "tensor": pc.tensor([1.0, float("nan")]),
    "0-d": pc.tensor(3),
    "empty": [pc.zeros(0), pc.zeros(3, 0, 2)],
    "grad": pc.ones(2),
}


@pytest.mark.parametrize("name", VALUES)
def test_containers_are_data(name: str, style: str) -> None:
    back = there_and_back(VALUES[name], style)
    assert same(back, VALUES[name])
    if name == "versions":
        assert back._metadata == {"version": 2}


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, style: str) -> None:
    x = pc.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype=dtype)
    for value in (x, x.t(), x[:, 1], x[1:], x[0, 0], x.expand(2, 2, 3)):
        back = there_and_back(value, style)
        assert (back.dtype, back.shape) == (value.dtype, value.shape)
        assert back.tolist() == value.tolist()


def test_names_in_the_pickle_of_pytorchs_format() -> None:
    pytest.importorskip("plait_torch")
    file = io.BytesIO()
    pc.save({**VALUES, "sparse": pc.eye(2).to_sparse()}, file, format="torch")
    with zipfile.ZipFile(file) as archive:
        text = archive.read("archive/data.pkl")
    # torch.load of PyTorch allows these and names of torch
    allowed = {
        "collections OrderedDict",
        "collections Counter",
        "_codecs encode",
        *(f"builtins {name}" for name in ("bytearray", "set", "frozenset", "complex")),
        *(f"builtins {name}" for name in ("slice", "range")),
        "numpy ndarray",
        "numpy dtype",
        "numpy.core.multiarray scalar",
        "numpy.core.multiarray _reconstruct",
    }
    names = {argument for code, argument, _ in pickletools.genops(text) if code.name == "GLOBAL"}
    assert {name for name in names if not str(name).startswith("torch")} == allowed


def test_tensors_on_one_storage_share_it_again(style: str) -> None:
    x = pc.arange(12.0).reshape(3, 4)
    back = there_and_back({"x": x, "t": x.t(), "row": x[1], "same": x, "step": x[:, ::2]}, style)
    assert back["same"] is back["x"]
    back["x"][1, 2] = -1.0
    assert (back["t"][2, 1], back["row"][2], back["step"][1, 1]) == (-1, -1, -1)
    assert same(back["t"].stride(), x.t().stride())


def test_parts_of_one_storage_share_it_without_the_whole(style: str) -> None:
    x = pc.zeros(100_000)
    file = io.BytesIO()
    pc.save([x[10:20], x[15:30]], file, format=style)
    assert len(file.getvalue()) < 4000
    a, b = pc.load(io.BytesIO(file.getvalue()))
    a[5] = 1.0
    assert b[0] == 1 and b.shape == (15,)


def test_two_dtypes_on_one_storage(style: str) -> None:
    x = pc.zeros(8)
    a, b = there_and_back([x[1:], x[3:].view(pc.int32)], style)
    a[2] = 1.0
    assert b[0] == 0x3F800000
    c, d = there_and_back([x.view(pc.float64)[1:], x[3:6]], style)  # at 8 and at 12 bytes
    c[1] = 1.0
    assert d.tolist() == [0.0, 0.0, 1.875]


def test_dense_strides_are_kept(style: str) -> None:
    x = pc.randn(2, 3, 4, 5).contiguous(memory_format=pc.channels_last)
    back = there_and_back(x, style)
    assert back.stride() == x.stride() and pc.equal(back, x)
    wide = there_and_back(pc.ones(1).expand(1000, 1000), style)
    assert wide.stride() == (0, 0) and wide.untyped_storage().nbytes() == 4
    assert there_and_back(pc.arange(10)[::3], style).tolist() == [0, 3, 6, 9]


def test_negative_strides(style: str) -> None:
    x = pc.from_numpy(np.arange(6.0)[::-1])
    assert there_and_back(x, style).tolist() == x.tolist()
    if style == "torch":
        with pytest.raises(pc.CheckpointError, match="negative strides, which PyTorch does not"):
            there_and_back([x, x[2:]], style)
        return
    a, b = there_and_back([x, x[2:]], style)
    a[2] = 9.0
    assert b[0] == 9


def test_meta_and_sparse(style: str) -> None:
    meta, sparse = there_and_back([pc.zeros(2, 3, device="meta").t(), pc.eye(3).to_sparse()], style)
    assert meta.device.type == "meta" and meta.shape == (3, 2) and meta.stride() == (1, 3)
    assert pc.equal(sparse.to_dense(), pc.eye(3)) and sparse.is_coalesced()


def test_names_are_the_paths(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    x = pc.arange(6, dtype=pc.int32).reshape(2, 3)
    pc.save({"model": {"w": x, "b": pc.ones(2)}, "model.w": pc.zeros(1)}, path)
    text = path.read_bytes()
    header = json.loads(text[8 : 8 + int.from_bytes(text[:8], "little")])
    assert set(header) == {"__metadata__", "model.w", "model.b", "model.w#2"}
    assert (header["model.w"]["dtype"], header["model.w"]["shape"]) == ("I32", [2, 3])
    begin, end = header["model.w"]["data_offsets"]
    data = text[8 + int.from_bytes(text[:8], "little") :]
    assert data[begin:end] == np.arange(6, dtype="<i4").tobytes()


def foreign(entries: dict[str, Any], data: bytes, **metadata: str) -> io.BytesIO:
    header = json.dumps({"__metadata__": metadata, **entries} if metadata else entries).encode()
    return io.BytesIO(len(header).to_bytes(8, "little") + header + data)


def test_safetensors_of_others() -> None:
    entries = {
        "b": {"dtype": "BF16", "shape": [2], "data_offsets": [8, 12]},
        "a": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
        "c": {"dtype": "C64", "shape": [], "data_offsets": [12, 20]},
    }
    data = np.array([1, 2], "<f4").tobytes() + bytes([0x80, 0x3F] * 2) + bytes(8)
    state = pc.load(foreign(entries, data, format="pt"))
    assert list(state) == ["b", "a", "c"]
    assert state["a"].tolist() == [[1.0, 2.0]] and state["b"].tolist() == [1.0, 1.0]
    assert state["c"].dtype is pc.complex64
    entries["a"]["dtype"] = "F4"
    with pytest.raises(pc.CheckpointError, match=r"no dtype 'F4', which 'a' has"):
        pc.load(foreign(entries, data))


@pytest.mark.parametrize(
    ("entries", "data"),
    [
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, bytes(4)),
        ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(8)),
        ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, bytes(8)),
        ({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, -4]}}, b""),
        ({"a": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 0]}}, b""),
        ({"a": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}}, bytes(4)),
        ({"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, bytes(4)),
        ({"a": {"dtype": [], "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
        ({"a": [1]}, b""),
        ({"a": {"dtype": "F32", "shape": [1]}}, b""),
        ({"__metadata__": {"a": 1}}, b""),
        ({"__metadata__": {"format": "plait"}}, b""),
        (
            {
                "a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]},
            },
            bytes(3),
        ),
    ],
)
def test_headers_that_lie(entries: dict[str, Any], data: bytes) -> None:
    with pytest.raises(pc.CheckpointError):
        pc.load(foreign(entries, data))


def test_deep_and_double_json() -> None:
    for header in (b'{"a":' + b"[" * 100_000, b'{"a":1,"a":1}', b'{"a":' + b"9" * 5000 + b"}"):
        with pytest.raises(pc.CheckpointError):
            pc.load(io.BytesIO(len(header).to_bytes(8, "little") + header))


def test_mapped(tmp_path: Path, style: str) -> None:
    path = tmp_path / "a"
    x = pc.arange(1000.0)
    pc.save(
        {"x": x, "y": x[10:], "z": pc.zeros(0), "b": pc.ones(3, dtype=pc.bool)}, path, format=style
    )
    before = path.read_bytes()
    state = pc.load(path, mmap=True)
    assert pc.equal(state["x"], x) and state["z"].shape == (0,)
    state["x"][10] = -1.0
    assert state["y"][0] == -1 and path.read_bytes() == before
    pc.save({"x": pc.zeros(1)}, path, format=style)  # the mapped one lives on
    assert state["x"][999] == 999
    with path.open("rb") as file, pytest.raises(pc.CheckpointError, match="requires a path"):
        pc.load(file, mmap=True)


def test_map_location(tmp_path: Path) -> None:
    path = tmp_path / "a"
    x = pc.arange(3.0)
    pc.save({"x": x, "t": x[1:]}, path)
    for meta in ("meta", pc.device("meta"), {"cpu": "meta"}):
        state = pc.load(path, meta)
        assert state["x"].device.type == "meta" and state["t"].shape == (2,)
    seen: list[Any] = []

    def keep(storage: pc.UntypedStorage, location: str) -> pc.UntypedStorage:
        seen.append((storage.nbytes(), location))
        return storage

    assert pc.equal(pc.load(path, keep)["x"], x) and seen == [(12, "cpu")]
    assert pc.equal(pc.load(path, lambda storage, location: None)["x"], x)
    assert pc.equal(pc.load(path, {"cuda:0": "cpu"})["x"], x)
    with pytest.raises(pc.CheckpointError, match=r'map_location="cpu"'):
        pc.load(path, "cuda:0")
    with pytest.raises(TypeError, match="map_location"):
        pc.load(path, 3)
    with pytest.raises(TypeError, match="must return the storage"):
        pc.load(path, lambda storage, location: 3)
    with pytest.raises(ZeroDivisionError):
        pc.load(path, lambda storage, location: 1 / 0)


def test_shards(tmp_path: Path) -> None:
    index = tmp_path / "model.index.json"
    x = pc.arange(1000.0)
    value = {"x": [x, x[5:]], "y": pc.ones(300, dtype=pc.float64), "n": 3, "z": pc.zeros(7)}
    pc.save(value, index, max_shard_size=2000)
    first = sorted(os.listdir(tmp_path))
    assert len(first) == 4 and first[0].startswith("model-") and "-00001-of-00003." in first[0]
    back = pc.load(index)
    assert back["n"] == 3 and pc.equal(back["x"][0], x)
    back["x"][0][5] = -1.0
    assert back["x"][1][0] == -1
    assert pc.equal(pc.load(index, mmap=True)["y"], value["y"])
    assert "y" in {k for part in first[:-1] for k in pc.load(tmp_path / part)}
    pc.save({"y": pc.ones(2)}, index, max_shard_size="5GB")
    assert len(os.listdir(tmp_path)) == 2 and not set(first[:-1]) & set(os.listdir(tmp_path))
    pc.save({"n": 1}, index, max_shard_size=1)
    assert os.listdir(tmp_path) == ["model.index.json"] and pc.load(index) == {"n": 1}


def test_shards_that_are_damaged_or_missing(tmp_path: Path) -> None:
    index = tmp_path / "model.index.json"
    pc.save({"x": pc.arange(1000.0), "y": pc.ones(300)}, index, max_shard_size=2000)
    text = index.read_bytes()
    part = next(p for p in sorted(tmp_path.iterdir()) if "x" in str(pc.load(p).keys()))
    data = bytearray(part.read_bytes())
    data[-1] ^= 1
    part.write_bytes(bytes(data))
    with pytest.raises(pc.CheckpointError, match=r"tensor 'x' of .* is damaged"):
        pc.load(index)
    part.unlink()
    with pytest.raises(FileNotFoundError):
        pc.load(index)
    index.write_bytes(text.replace(b"safetensors", b"safetensorz", 1))
    with pytest.raises(pc.CheckpointError, match="its digest does not match"):
        pc.load(index)
    index.write_text('{"weight_map": {"x": "../secret"}}')
    with pytest.raises(pc.CheckpointError, match="file in the same folder"):
        pc.load(index)


def test_an_index_of_others(tmp_path: Path) -> None:
    pc.save({"a": pc.ones(2)}, tmp_path / "1.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": {"a": "1.safetensors"}}))
    assert pc.load(index)["a"].tolist() == [1.0, 1.0]
    index.write_text(json.dumps({"weight_map": {"b": "1.safetensors"}}))
    with pytest.raises(pc.CheckpointError, match="has no tensor 'b'"):
        pc.load(index)


@pytest.mark.parametrize("size", [0, -1, "5 lightyears", "0GB", True, 1.5])
def test_sizes_of_shards(size: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_shard_size"):
        pc.save({}, tmp_path / "a", max_shard_size=size)


class Opaque:
    """No data."""


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("value", [Opaque(), Point(1, 2), len, Opaque, Named(a=1), object()])
def test_what_is_no_data_is_named_by_its_path(value: Any, style: str) -> None:
    with pytest.raises(pc.CheckpointError, match=r"save: a\.1 is a .*weights_only=False"):
        pc.save({"a": [1, value]}, io.BytesIO(), format=style)


def test_cycles_and_depth(style: str) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(pc.CheckpointError, match="contains itself"):
        pc.save(loop, io.BytesIO(), format=style)
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    assert there_and_back(deep, style) == deep


def doubled(value: Any, times: int) -> Any:
    """Return a list that holds another one twice, and so on."""
    for _ in range(times):
        value = [value, value]
    return value


def test_containers_that_occur_often_are_visited_once() -> None:
    value = doubled([1.5, (2, "x"), {"w": pc.ones(2)}], 10)
    back = there_and_back(value)
    assert same(back, value) and back[0] is not back[1]  # as two lists
    while isinstance(back[0], list):
        back = back[1]
    assert back[2]["w"].tolist() == [1, 1]
    with pytest.raises(pc.CheckpointError, match=r'occurs several times.*format="torch"'):
        pc.save(doubled([1.5], 60), io.BytesIO())
    for inner in (doubled({"a": 1}, 60), doubled((1,), 60), doubled({1}, 60)):
        with pytest.raises(pc.CheckpointError, match="at most 100000000 bytes"):
            pc.save({"inner": inner}, io.BytesIO())


def test_the_depth_counts_where_a_container_occurs_again() -> None:
    inner: Any = 1
    for _ in range(100):
        inner = [inner]
    outer = inner
    for _ in range(99):
        outer = [outer]
    assert there_and_back([inner, outer]) == [inner, outer]
    for value in ([inner, [[outer]]], [outer, [[outer]]]):
        with pytest.raises(pc.CheckpointError, match="nested more than 200 deep"):
            pc.save(value, io.BytesIO())


def test_object_arrays_and_records() -> None:
    for array in (np.array([{}], object), np.zeros(2, "i4,f8")):
        with pytest.raises(pc.CheckpointError, match="save: a is a"):
            pc.save({"a": array}, io.BytesIO())


class Module:
    """An object with a tensor, pickled as a whole."""

    def __init__(self) -> None:
        self.w = pc.arange(5.0)
        self.v = self.w[1:]


def test_whole_objects_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a"
    pc.save(Module(), path, weights_only=False)
    with pytest.raises(pc.CheckpointError, match="weights_only=False"):
        pc.load(path)
    back = pc.load(path, weights_only=False)
    back.w[1] = 9.0
    assert type(back) is Module and back.v[0] == 9
    with pytest.raises(pc.CheckpointError, match="cannot be pickled"):
        pc.save(lambda: 1, path, weights_only=False)
    assert type(pc.load(path, weights_only=False)) is Module


def test_file_objects(tmp_path: Path, style: str) -> None:
    value = {"x": pc.arange(10.0)}
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write(b"before")
        pc.save(value, file, format=style)
    with path.open("rb") as file:
        file.seek(6)
        assert same(pc.load(file), value)
    with gzip.open(path, "wb") as packed:
        pc.save(value, packed, format=style)
    with gzip.open(path) as packed:
        assert same(pc.load(packed), value)


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="`f` must be a path"):
        pc.save({}, 3)
    with pytest.raises(TypeError, match="`f` must be a path"):
        pc.load(3)
    with pytest.raises(TypeError, match="binary mode"):
        pc.load(io.StringIO("x"))
    with pytest.raises(ValueError, match="`format`"):
        pc.save({}, tmp_path / "a", format="pickle")
    with pytest.raises(ValueError, match='format="plait"'):
        pc.save({}, tmp_path / "a", format="torch", max_shard_size=1)
    with pytest.raises(IsADirectoryError):
        pc.save({}, tmp_path)
    with pytest.raises(IsADirectoryError):
        pc.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        pc.save({}, tmp_path / "no" / "a")
    with pytest.raises(FileNotFoundError):
        pc.load(tmp_path / "a")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is empty"),
        (b"abc", "begins with b'abc'"),
        (b"\x80\x04K\x01.", "pickle of another program"),
        (bytes(257) + b"ustar", "tar"),
    ],
)
def test_files_of_others(data: bytes, text: str) -> None:
    with pytest.raises(pc.CheckpointError, match=text):
        pc.load(io.BytesIO(data))


def test_the_same_object_gives_the_same_bytes(style: str) -> None:
    one, two = io.BytesIO(), io.BytesIO()
    for file in (one, two):
        pc.save({"x": pc.arange(3.0), "n": [1, "a"]}, file, format=style)
    assert one.getvalue() == two.getvalue()


def test_the_error_is_one_of_plait() -> None:
    assert issubclass(pc.CheckpointError, pc.PlaitError)
    assert issubclass(pc.CheckpointError, RuntimeError)


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."])
def test_the_package_for_files_of_pytorch_is_named(
    start: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plait_torch", None)
    needs = r"needs the package plait-torch, which is not installed"
    with pytest.raises(pc.CheckpointError, match=rf"load: <BytesIO> is a file of torch.*{needs}"):
        pc.load(io.BytesIO(start + bytes(100)))
    for path, options in ((tmp_path / "a.pt", {}), (tmp_path / "a", {"format": "torch"})):
        with pytest.raises(pc.CheckpointError, match=rf'save: format="torch": .*{needs}'):
            pc.save({}, path, **options)
    assert not os.listdir(tmp_path)


class Pair:
    """A class that a program lists in `safe_globals`."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


def test_whole_objects_of_listed_classes() -> None:
    file, x = io.BytesIO(), pc.arange(3.0)
    pc.save([Pair(x, {"n": (1, 2)}), x], file, weights_only=False)
    data = file.getvalue()
    with pytest.raises(pc.CheckpointError, match="safe_globals"):
        pc.load(io.BytesIO(data))
    with pytest.raises(pickle.UnpicklingError, match=r"`.*\.Pair`.*nothing that is not listed was"):
        pc.load(io.BytesIO(data), safe_globals=[Module])
    pair, same_x = pc.load(io.BytesIO(data), safe_globals=[Pair])
    assert type(pair) is Pair and pair.second == {"n": (1, 2)}
    assert pair.first is same_x and same_x.tolist() == [0.0, 1.0, 2.0]


class Command:
    """An object whose pickle calls a function."""

    def __reduce__(self) -> Any:
        return os.system, ("touch executed",)


def test_a_whole_object_that_calls_an_unlisted_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = io.BytesIO()
    pc.save([Command(), Pair(1, 2)], file, weights_only=False)
    for allowed in ([Pair], [Pair, os.system]):  # names of `posix` are refused although listed
        with pytest.raises(pc.CheckpointError, match=r"`posix\.system`.*not listed was executed"):
            pc.load(io.BytesIO(file.getvalue()), safe_globals=allowed)
    assert not os.listdir(tmp_path)
