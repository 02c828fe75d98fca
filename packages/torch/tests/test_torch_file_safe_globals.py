"""Pickled objects of classes that the program lists: `safe_globals` of `load`."""

from __future__ import annotations

import argparse
import collections
import enum
import functools
import gzip
import io
import os
import pickle
import subprocess
import sys
import types
import zipfile
from typing import Any

import pytest

import plait_core as pc

sys.path.insert(0, os.path.dirname(__file__))
from test_torch_file_pickles import (
    ATTACKS,
    TENSOR,
    as_legacy,
    as_zip,
    call,
    name,
    nothing_runs,
    text,
)

__all__ = ["nothing_runs"]  # a fixture

HERE = __name__


class Point:
    def __init__(self, x: Any) -> None:
        self.x = x


class Stateful:
    seen: Any = None

    def __setstate__(self, state: Any) -> None:
        self.seen = state

    def __reduce__(self) -> Any:
        return Stateful, (), {"a": 1}


class Slots:
    __slots__ = ("a", "b")


class Table(dict):  # type: ignore[type-arg]
    pass


class Row(list):  # type: ignore[type-arg]
    pass


class Kind(enum.Enum):
    ONE = 1


Pair = collections.namedtuple("Pair", "a b")


def made(*args: Any) -> Point:
    return Point(args)


def files_of(data: bytes) -> list[io.BytesIO]:
    return [io.BytesIO(as_zip(data)), io.BytesIO(as_legacy(data))]


def loaded(value: Any, allowed: list[Any], protocol: int = 2) -> Any:
    """Return what both formats give for a value; without the list both are refused."""
    data = pickle.dumps(value, protocol)
    for file in files_of(data):
        with pytest.raises(pc.CheckpointError, match=r"safe_globals=\["):
            pc.load(file)
    first, second = (pc.load(file, safe_globals=allowed) for file in files_of(data))
    assert type(first) is type(second)
    return first


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_listed_classes_are_built(protocol: int) -> None:
    point = loaded([Point({"a": (1, 2)})], [Point], protocol)[0]
    assert type(point) is Point and point.x == {"a": (1, 2)}
    assert loaded(Stateful(), [Stateful], protocol).seen == {"a": 1}
    slots = Slots()
    slots.a = 3
    back = loaded(slots, [Slots], protocol)
    assert back.a == 3 and not hasattr(back, "b")
    table = Table(a=1, b=2)
    table.more = [1]  # type: ignore[attr-defined]
    back = loaded(table, [Table], protocol)
    assert back == table and back.more == [1]
    assert loaded(Row([1, 2]), [Row], protocol) == [1, 2]
    # Python 3.11.0 to 3.11.3 ask for a member by getattr, later ones by the class
    by = Kind.ONE.__reduce_ex__(protocol)[0]
    assert loaded(Kind.ONE, [Kind, by], protocol) is Kind.ONE
    assert loaded(Pair(1, [2]), [Pair], protocol) == Pair(1, [2])
    assert loaded(argparse.Namespace(lr=0.1), [argparse.Namespace], protocol).lr == 0.1
    counts = collections.defaultdict(list, a=[1])
    back = loaded(counts, [collections.defaultdict, list], protocol)
    assert back == counts and back["b"] == []
    part = loaded(functools.partial(made, 1), [functools.partial, made], protocol)
    assert part(2).x == (1, 2)


def test_an_object_that_occurs_twice_is_one() -> None:
    point = Point(None)
    point.x = [point]
    back = loaded([point, point], [Point])
    assert back[0] is back[1] is back[0].x[0]


def test_names_of_the_table_reach_listed_functions_as_objects() -> None:
    data = call(HERE, "made", name("collections", "OrderedDict"), name("torch", "float32"))
    result = pc.load(io.BytesIO(as_zip(data)), safe_globals=[made])
    assert result.x == (collections.OrderedDict, pc.float32)
    data = call(HERE, "made", name("torch._utils", "_rebuild_tensor_v2"))
    with pytest.raises(pc.CheckpointError, match="uses the name"):
        pc.load(io.BytesIO(as_zip(data)), safe_globals=[made])


def test_tensors_in_listed_objects_share_storages() -> None:
    x = pc.arange(6.0)
    value = Point({"x": x, "row": x[2:4], "same": x, "dtype": pc.int64, "size": x.shape})
    for protocol in ("torch", "plait"):
        file = io.BytesIO()
        pc.save(value, file, format=protocol, weights_only=False)
        with pytest.raises(pc.CheckpointError, match="safe_globals"):
            pc.load(io.BytesIO(file.getvalue()))
        if protocol == "plait":  # its pickles name dtypes by their own functions
            continue
        back = pc.load(io.BytesIO(file.getvalue()), safe_globals=[Point]).x
        assert back["x"] is back["same"] and back["x"].tolist() == x.tolist()
        assert back["row"].data_ptr() == back["x"].data_ptr() + 8
        assert back["dtype"] is pc.int64 and back["size"] == (6,)
        again = pc.load(io.BytesIO(file.getvalue()), weights_only=False).x
        assert again["row"].data_ptr() == again["x"].data_ptr() + 8
        assert again["dtype"] is pc.int64 and type(again["size"]) is pc.Size
    file = io.BytesIO()
    pc.save(Point([x, x]), file, weights_only=False)
    back = pc.load(io.BytesIO(file.getvalue()), safe_globals=[Point]).x
    assert back[0] is back[1] and back[0].tolist() == x.tolist()


def test_files_name_listed_objects_in_other_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    data = call("elsewhere.models", "Outer.Other", b"K\x05")
    with pytest.raises(pc.CheckpointError, match=r"`elsewhere\.models\.Outer\.Other`"):
        pc.load(io.BytesIO(as_zip(data)), safe_globals=[Point])
    pairs = [(Point, "elsewhere.models.Outer.Other")]
    assert pc.load(io.BytesIO(as_zip(data)), safe_globals=pairs).x == 5
    module = types.ModuleType("elsewhere.models")
    module.Outer = type("Outer", (), {"Other": Point})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "elsewhere.models", module)
    assert pc.load(io.BytesIO(as_zip(data)), safe_globals=[Point]).x == 5
    with pytest.raises(pc.CheckpointError, match="is not one of the names"):
        pc.load(io.BytesIO(as_zip(data)), safe_globals=[made])


def test_modules_are_neither_imported_nor_called(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("lazy")
    module.__getattr__ = lambda name: pytest.fail("asked")  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy", module)
    with pytest.raises(pc.CheckpointError):
        pc.load(io.BytesIO(as_zip(call("lazy", "Point", b"K\x05"))), safe_globals=[Point])
    before = set(sys.modules)
    with pytest.raises(pc.CheckpointError):
        pc.load(io.BytesIO(as_zip(call("antigravity", "Point", b"K\x05"))), safe_globals=[Point])
    assert set(sys.modules) == before


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused_beside_listed_objects(attack: str) -> None:
    data = ATTACKS[attack]
    for file in (*files_of(data), io.BytesIO(as_zip(data, (bytes(4),)))):
        if attack == "a storage that is not there" and b"archive/data/0" in file.getvalue():
            continue
        with pytest.raises(pc.CheckpointError, match=r"^load: "):
            pc.load(file, safe_globals=[Point, Stateful, Table, made])


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    "data",
    {
        "a listed system function": call("posix", "system", text("touch executed")),
        "the result of a call": b"\x80\x02" + name(HERE, "made") + b")R)R.",
        "state of an object whose class is not listed": b"\x80\x02"
        + name(HERE, "made")
        + b")R}"
        + text("x")
        + b"K\x01sb.",
        "state of the class itself": b"\x80\x02"
        + name(HERE, "Stateful")
        + b"}"
        + text("x")
        + b"K\x01sb.",
        "a dotted way out of a listed object": call(HERE, "made.__globals__"),
        "a method of a listed class": call(HERE, "Stateful.__setstate__", b"NN"),
        "a tensor with a listed hook": b"\x80\x02" + TENSOR + b"](" + name(HERE, "made") + b"etR.",
        "NEWOBJ of what is not a class's": b"\x80\x02" + name(HERE, "made") + b"K\x01\x81.",
        "NEWOBJ_EX": b"\x80\x04" + name(HERE, "Stateful") + b")}\x92.",
    }.values(),
)
def test_what_a_listed_name_does_not_allow(data: bytes) -> None:
    with pytest.raises(pc.CheckpointError, match=r"^load: "):
        pc.load(io.BytesIO(as_zip(data)), safe_globals=[Stateful, made, os.system])


def test_errors_of_listed_functions() -> None:
    def failing(value: int) -> None:
        raise KeyError(value)

    failing.__qualname__ = "failing"
    data = call(HERE, "failing", b"K\x07")
    with pytest.raises(pc.CheckpointError, match=r"failing of `safe_globals`.*KeyError: 7"):
        pc.load(io.BytesIO(as_zip(data)), safe_globals=[failing])
    refused = pytest.raises(pickle.UnpicklingError, match="failing")
    with refused as caught:
        pc.load(io.BytesIO(as_zip(data)))
    assert isinstance(caught.value, pc.CheckpointError)


def test_wrong_lists() -> None:
    for wrong, error in (([3], TypeError), ([(Point,)], ValueError), ([(Point, 3)], TypeError)):
        with pytest.raises(error, match="safe_globals"):
            pc.load(io.BytesIO(as_zip(b"N.")), safe_globals=wrong)


class Forward(io.RawIOBase):
    """A file that can only be written."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)


@pytest.mark.parametrize("whole", [False, True])
def test_files_that_cannot_seek(whole: bool, tmp_path: Any) -> None:
    x = pc.arange(1000.0)
    value = Point(x) if whole else {"x": x}

    def check(data: bytes) -> None:
        back = pc.load(io.BytesIO(data), safe_globals=[Point])
        assert (back.x if whole else back["x"]).tolist() == x.tolist()

    for format in ("torch", "plait"):
        options = {"format": format, "weights_only": not whole}
        file = Forward()
        pc.save(value, file, **options)  # type: ignore[arg-type]
        check(bytes(file.data))
        whole_zip = io.BytesIO()
        with zipfile.ZipFile(whole_zip, "w") as archive, archive.open("model.pt", "w") as member:
            member.write(b"")
            pc.save(value, member, **options)  # type: ignore[arg-type]
        with zipfile.ZipFile(whole_zip) as archive:
            check(archive.read("model.pt"))
            with archive.open("model.pt") as member:
                check(member.read())
        with gzip.open(tmp_path / "a.gz", "wb") as packed:
            pc.save(value, packed, **options)  # type: ignore[arg-type]
        with gzip.open(tmp_path / "a.gz") as packed:
            check(packed.read())
        with (tmp_path / "out").open("wb") as out:
            pipe = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=out)
            assert pipe.stdin is not None
            pc.save(value, pipe.stdin, **options)  # type: ignore[arg-type]
            pipe.stdin.close()
            assert pipe.wait() == 0
        check((tmp_path / "out").read_bytes())
