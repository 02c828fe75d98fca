"""PyTorch's files: `load` returns what `save` wrote."""

from __future__ import annotations

import collections
import gzip
import io
import pickletools
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_core as pc

DTYPES = [kind.name for kind in plait_abi.binding.dtypes]


def there_and_back(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    pc.save(value, file, format="torch")
    return pc.load(io.BytesIO(file.getvalue()), **options)


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
    "device": pc.device("cpu"),
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
def test_containers_are_data(name: str) -> None:
    back = there_and_back(VALUES[name])
    assert same(back, VALUES[name])
    if name == "versions":
        assert back._metadata == {"version": 2}


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    x = pc.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype=dtype)
    for value in (x, x.t(), x[:, 1], x[1:], x[0, 0], x.expand(2, 2, 3)):
        back = there_and_back(value)
        assert (back.dtype, back.shape) == (value.dtype, value.shape)
        assert back.tolist() == value.tolist()


def test_tensors_on_one_storage_share_it_again() -> None:
    x = pc.arange(12.0).reshape(3, 4)
    back = there_and_back({"x": x, "t": x.t(), "row": x[1], "same": x, "step": x[:, ::2]})
    assert back["same"] is back["x"]
    back["x"][1, 2] = -1.0
    assert (back["t"][2, 1], back["row"][2], back["step"][1, 1]) == (-1, -1, -1)
    assert same(back["t"].stride(), x.t().stride())


def test_parts_of_one_storage_share_it_without_the_whole() -> None:
    x = pc.zeros(100_000)
    file = io.BytesIO()
    pc.save([x[10:20], x[15:30]], file, format="torch")
    assert len(file.getvalue()) < 4000
    a, b = pc.load(io.BytesIO(file.getvalue()))
    a[5] = 1.0
    assert b[0] == 1 and b.shape == (15,)


def test_two_dtypes_on_one_storage() -> None:
    x = pc.zeros(8)
    a, b = there_and_back([x[1:], x[3:].view(pc.int32)])
    a[2] = 1.0
    assert b[0] == 0x3F800000
    c, d = there_and_back([x.view(pc.float64)[1:], x[3:6]])  # at 8 and at 12 bytes
    c[1] = 1.0
    assert d.tolist() == [0.0, 0.0, 1.875]


def test_dense_strides_are_kept() -> None:
    x = pc.randn(2, 3, 4, 5).contiguous(memory_format=pc.channels_last)
    back = there_and_back(x)
    assert back.stride() == x.stride() and pc.equal(back, x)
    wide = there_and_back(pc.ones(1).expand(1000, 1000))
    assert wide.stride() == (0, 0) and wide.untyped_storage().nbytes() == 4
    assert there_and_back(pc.arange(10)[::3]).tolist() == [0, 3, 6, 9]


def test_negative_strides() -> None:
    x = pc.from_numpy(np.arange(6.0)[::-1])
    assert there_and_back(x).tolist() == x.tolist()
    with pytest.raises(pc.CheckpointError, match="negative strides, which PyTorch does not have"):
        there_and_back([x, x[2:]])


def test_meta_and_sparse() -> None:
    meta, sparse = there_and_back([pc.zeros(2, 3, device="meta").t(), pc.eye(3).to_sparse()])
    assert meta.device.type == "meta" and meta.shape == (3, 2) and meta.stride() == (1, 3)
    assert pc.equal(sparse.to_dense(), pc.eye(3)) and sparse.is_coalesced()


def test_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a"
    x = pc.arange(1000.0)
    pc.save(
        {"x": x, "y": x[10:], "z": pc.zeros(0), "b": pc.ones(3, dtype=pc.bool)},
        path,
        format="torch",
    )
    before = path.read_bytes()
    state = pc.load(path, mmap=True)
    assert pc.equal(state["x"], x) and state["z"].shape == (0,)
    state["x"][10] = -1.0
    assert state["y"][0] == -1 and path.read_bytes() == before
    pc.save({"x": pc.zeros(1)}, path, format="torch")  # the mapped one lives on
    assert state["x"][999] == 999
    with path.open("rb") as file, pytest.raises(pc.CheckpointError, match="requires a path"):
        pc.load(file, mmap=True)


class Opaque:
    """No data."""


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("value", [Opaque(), Point(1, 2), len, Opaque, Named(a=1), object()])
def test_what_is_no_data_is_named_by_its_path(value: Any) -> None:
    with pytest.raises(pc.CheckpointError, match=r"save: a\.1 is a .*weights_only=False"):
        pc.save({"a": [1, value]}, io.BytesIO(), format="torch")


def test_cycles_and_depth() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(pc.CheckpointError, match="contains itself"):
        pc.save(loop, io.BytesIO(), format="torch")
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    assert there_and_back(deep) == deep


def test_file_objects(tmp_path: Path) -> None:
    value = {"x": pc.arange(10.0)}
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write(b"before")
        pc.save(value, file, format="torch")
    with path.open("rb") as file:
        file.seek(6)
        assert same(pc.load(file), value)
    with gzip.open(path, "wb") as packed:
        pc.save(value, packed, format="torch")
    with gzip.open(path) as packed:
        assert same(pc.load(packed), value)


def test_an_npz_is_named() -> None:
    file = io.BytesIO()
    np.savez(file, a=np.ones(2))
    with pytest.raises(pc.CheckpointError, match=r"numpy\.load"):
        pc.load(io.BytesIO(file.getvalue()))


def test_the_same_object_gives_the_same_bytes() -> None:
    one, two = io.BytesIO(), io.BytesIO()
    for file in (one, two):
        pc.save({"x": pc.arange(3.0), "n": [1, "a"]}, file, format="torch")
    assert one.getvalue() == two.getvalue()


def test_meta_tensors_in_pytorchs_form() -> None:
    file = io.BytesIO()
    pc.save({"a": pc.empty(2, 3, device="meta"), "b": pc.ones(2)}, file, format="torch")
    file.seek(0)
    back = pc.load(file)
    assert back["a"].is_meta and back["a"].shape == (2, 3) and back["b"].tolist() == [1.0, 1.0]


def test_what_occurs_twice_is_one_object() -> None:
    part, text = [1], "name"
    back = there_and_back({"a": part, "b": [part, part], text: text})
    assert back["a"] is back["b"][0] is back["b"][1]


def test_names_in_the_pickle() -> None:
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


def test_attributes_of_an_ordered_dict_are_no_data() -> None:
    state = versions()
    state.more = 1  # type: ignore[attr-defined]
    back = there_and_back(state)
    assert back == state and vars(back) == {"_metadata": {"version": 2}}


def test_a_list_that_occurs_often_is_one_list() -> None:
    value: Any = [1.5]
    for _ in range(60):
        value = [value, (value, {"x": value})]
    back = there_and_back(value)
    for _ in range(60):
        assert back[0] is back[1][0] is back[1][1]["x"]
        back = back[0]
    assert back == [1.5]


ARRAYS = {
    "objects": np.array([1, "a", None, (2, 3)], dtype=object),
    "records": np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "<i4"), ("b", "<f8")]),
    "texts": np.array(["a", "bcd"]),
    "bytes": np.array([b"a", b"bcd"]),
    "days": np.array(["2026-01-02"], dtype="datetime64[D]"),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "steps": np.arange(10)[::-3],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_every_dtype_are_objects(name: str) -> None:
    file = io.BytesIO()
    pc.save({"x": ARRAYS[name], "y": ARRAYS[name][0]}, file, format="torch", weights_only=False)
    back = pc.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert same(back["x"], ARRAYS[name]) and repr(back["y"]) == repr(ARRAYS[name][0])
