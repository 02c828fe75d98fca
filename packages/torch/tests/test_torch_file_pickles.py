"""Pickles that would run code: every one gives an error with its reason, and none runs.

Each writes a file when it is executed, in one way or another; the files must not appear. The same
pickles are tried as a zip of torch.save, as its older format, and where a table of names is read.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import pickle
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_core._checkpoints import _machine
from plait_core._checkpoints._table import build
from plait_torch._file_names import NAMES, Stored

LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # the number of PyTorch's older files
MARK = "executed"  # the file that code in a pickle would write, in the working folder
FLIPS = int(os.environ.get("PLAIT_CHECKPOINT_FLIPS", "3000"))


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def call(module: str, attribute: str, *args: bytes) -> bytes:
    """Return a pickle that calls a global; its arguments are given as opcodes."""
    return b"\x80\x02" + name(module, attribute) + b"(" + b"".join(args) + b"tR."


COMMAND = text(f"touch {MARK}")
CODE = text(f"open({MARK!r}, 'w').close()")


class Reduced:
    """An object whose pickle calls the given function."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.what = (function, args)

    def __reduce__(self) -> Any:
        return self.what


def nested(inner: bytes, depth: int) -> bytes:
    return b"\x80\x02" + b"]" * depth + inner + b"a" * depth + b"."


SYSTEM = name("os", "system") + b"(" + COMMAND + b"tR"
TENSOR = (
    name("torch._utils", "_rebuild_tensor_v2")
    + b"(("
    + text("storage")
    + name("torch", "FloatStorage")
    + text("0")
    + text("cpu")
    + b"K\x01tQK\x00))\x89"
)
ATTACKS: dict[str, bytes] = {
    **{
        f"os.system, protocol {protocol}": pickle.dumps(
            Reduced(os.system, f"touch {MARK}"), protocol
        )
        for protocol in range(6)
    },
    "posix.system": call("posix", "system", COMMAND),
    "nt.system": call("nt", "system", COMMAND),
    "subprocess.Popen": call(
        "subprocess", "Popen", COMMAND, b"J\xff\xff\xff\xff", b"NNNNN\x88\x88"
    ),
    "subprocess.call": call("subprocess", "call", b"](" + text("touch") + text(MARK) + b"e"),
    "pty.spawn": call("pty", "spawn", b"](" + text("touch") + text(MARK) + b"e"),
    "builtins.exec": call("builtins", "exec", CODE),
    "builtins.eval": call("builtins", "eval", CODE),
    "python 2's eval": call("__builtin__", "eval", CODE),
    "builtins.open": call("builtins", "open", text(MARK), text("w")),
    "io.open": call("io", "open", text(MARK), text("w")),
    "builtins.compile": call("builtins", "compile", CODE, text("x"), text("exec")),
    "builtins.__import__": call("builtins", "__import__", text("os")),
    "builtins.getattr": call("builtins", "getattr", text("x"), text("upper")),
    "builtins.map": call("builtins", "map", name("os", "system"), b"](" + COMMAND + b"e"),
    "builtins.type": call("builtins", "type", text("A"), b")", b"}"),
    "operator.attrgetter": call("operator", "attrgetter", text("system")),
    "operator.methodcaller": call("operator", "methodcaller", text("system"), COMMAND),
    "functools.partial": call("functools", "partial", name("os", "system"), COMMAND),
    "importlib.import_module": call("importlib", "import_module", text("antigravity")),
    "runpy.run_path": call("runpy", "run_path", text("/tmp/x.py")),
    "code.interact": call("code", "InteractiveInterpreter"),
    "timeit": call("timeit", "timeit", CODE),
    "pickle.loads": call("pickle", "loads", b"C" + bytes([5]) + b"K\x01.ab"),
    "_pickle.loads": call("_pickle", "loads", b"C" + bytes([5]) + b"K\x01.ab"),
    "marshal.loads": call("marshal", "loads", b"C\x01N"),
    "types.FunctionType": call("types", "FunctionType"),
    "ctypes.CDLL": call("ctypes", "CDLL", text("libc.so.6")),
    "shutil.rmtree": call("shutil", "rmtree", text("/nowhere")),
    "os.remove": call("os", "remove", text("/nowhere")),
    "socket": call("socket", "create_connection", text("localhost")),
    "webbrowser.open": call("webbrowser", "open", text("http://localhost")),
    "copyreg": call("copyreg", "_reconstructor", name("os", "system")),
    "torch.load": call("torch", "load", text("x")),
    "torch.hub": call("torch.hub", "load", text("x"), text("y")),
    "torch's unpickling of bytes": call("torch.storage", "_load_from_bytes", b"C\x00"),
    "torch.jit": call("torch.jit", "load", text("x")),
    "a pickled module": call("torch.nn.modules.linear", "Linear", b"K\x02K\x02"),
    "a quantized tensor": call("torch._utils", "_rebuild_qtensor"),
    "numpy's loader": call("numpy", "load", text("x")),
    "numpy.testing": call("numpy.testing._private.utils", "runstring", CODE, b"}"),
    "numpy's f2py": call("numpy.f2py.crackfortran", "myeval", CODE),
    "a dotted name": call("builtins", "eval.__call__", CODE),
    "a dotted name of the table": call("collections", "OrderedDict.__init__.__globals__"),
    "plait itself": call("plait_core._checkpoints._own", "pickle.loads", b"C\x00"),
    "STACK_GLOBAL": b"\x80\x04" + text("os") + text("system") + b"\x93(" + COMMAND + b"tR.",
    "names that are no text": b"\x80\x04K\x01K\x02\x93.",
    "INST": b"(S'touch " + MARK.encode() + b"'\nios\nsystem\n.",
    "OBJ": b"(" + name("os", "system") + COMMAND + b"o.",
    "EXT1": b"\x80\x02\x82\x01.",
    "EXT2": b"\x80\x02\x83\x01\x00.",
    "EXT4": b"\x80\x02\x84\x01\x00\x00\x00.",
    "NEWOBJ": b"\x80\x02" + name("subprocess", "Popen") + COMMAND + b"\x85\x81.",
    "NEWOBJ_EX": b"\x80\x04" + name("collections", "OrderedDict") + b")}\x92.",
    "PERSID": b"Pos.system\n.",
    "out-of-band buffer": b"\x80\x05\x97.",
    "a list that is called": b"\x80\x02](" + COMMAND + b"tR.",
    "a text that is called": b"\x80\x02" + text("os.system") + b"(" + COMMAND + b"tR.",
    "a dtype that is called": b"\x80\x02" + name("torch", "float32") + b")R.",
    "a storage class that is called": call("torch", "FloatStorage", b"K\x01"),
    "Tensor called": call("torch", "Tensor", b"K\x01"),
    "OrderedDict with a callable": call("collections", "OrderedDict", text("abc")),
    "arguments that are no tuple": b"\x80\x02" + name("collections", "OrderedDict") + b"]R.",
    "BUILD on a list": b"\x80\x02]}" + text("__class__") + b"Nsb.",
    "BUILD with __setstate__": b"\x80\x02}"
    + text("a")
    + b"}"
    + text("__setstate__")
    + SYSTEM
    + b"sb.",
    "BUILD of an OrderedDict's methods": b"\x80\x02"
    + name("collections", "OrderedDict")
    + b")R}"
    + text("items")
    + b"K\x01sb.",
    "deep inside": nested(SYSTEM, 1000),
    "after data": b"\x80\x02](K\x01K\x02" + SYSTEM + b"e.",
    "thrown away": b"\x80\x02" + SYSTEM + b"0N.",
    "as a key": b"\x80\x02}" + SYSTEM + b"K\x01s.",
    "in a tuple of arguments": call("collections", "OrderedDict", SYSTEM),
    "through the memo": b"\x80\x02" + name("os", "system") + b"q\x000h\x00(" + COMMAND + b"tR.",
    "a name alone": b"\x80\x02" + name("os", "system") + b".",
    "a name of the table alone": b"\x80\x02" + name("collections", "OrderedDict") + b".",
    "hooks of a tensor": b"\x80\x02" + TENSOR + b"](" + SYSTEM + b"etR.",
    "hooks that are there": b"\x80\x02" + TENSOR + b"](K\x01etR.",
    "a tensor built by another function": call(
        "torch._tensor",
        "_rebuild_from_type_v2",
        name("os", "system"),
        b"N",
        b"(" + COMMAND + b"t",
        b"N",
    ),
    "an array of objects": call("numpy", "dtype", text("O")),
    "a record dtype": call("numpy", "dtype", text("i4,O")),
    "an object scalar": call("numpy.core.multiarray", "scalar", b"N", b"C\x00"),
    "a codec": call("_codecs", "encode", text("x"), text("zip")),
    "a decoder": call("_codecs", "decode", b"C\x00", text("zip")),
    "a huge memo index": b"\x80\x02K\x01r\xff\xff\xff\x7f.",
    "a huge text": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fab.",
    "a huge frame of bytes": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xffab.",
    "a huge bytearray": b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7fab.",
    "a negative length": b"\x80\x02T\xff\xff\xff\xffab.",
    "a number of a million digits": b"L" + b"9" * 1_000_000 + b"L\n.",
    "a range that is filled": call("builtins", "list", name("builtins", "range")),
    "a bytearray of a size": call("builtins", "bytearray", b"J\xff\xff\xff\x7f"),
    "a list to hash": b"\x80\x02}]K\x01s.",
    # keys that take 2**60 steps to hash, or more stack than there is
    "a key of the same tuples": b"\x80\x02}K\x01" + b"2\x86" * 60 + b"K\x01s.",
    "a set of the same tuples": b"\x80\x04\x8f(K\x01" + b"2\x86" * 60 + b"\x90.",
    "a frozenset of the same tuples": b"\x80\x04(K\x01" + b"2\x86" * 60 + b"\x91.",
    "pairs of the same tuples": call(
        "collections", "OrderedDict", b"]K\x01" + b"2\x86" * 60 + b"K\x01\x86a"
    ),
    "a list of the same tuples": call("builtins", "set", b"]K\x01" + b"2\x86" * 60 + b"a"),
    "a deep key": b"\x80\x02}K\x01" + b"\x85" * 1_000_000 + b"K\x01s.",
    "a persistent id of the same tuples": b"\x80\x02(K\x01" + b"2\x86" * 60 + b"tQ.",
    "no stack": b"\x80\x02.",
    "no mark": b"\x80\x02K\x01t.",
    "a mark that is returned": b"\x80\x02(.",
    "items into None": b"\x80\x02NK\x01a.",
    "an unknown opcode": b"\x80\x02\xff.",
    "no end": b"\x80\x02K\x01",
    "a storage that is not there": b"\x80\x02" + TENSOR + b")tR.",
    "another persistent id": b"\x80\x02(" + text("module") + SYSTEM + b"tQ.",
    "a persistent id with a negative size": b"\x80\x02("
    + text("storage")
    + name("torch", "FloatStorage")
    + text("0")
    + text("cpu")
    + b"J\xff\xff\xff\xfftQ.",
}
assert len(ATTACKS) >= 50


def as_zip(data: bytes, storages: tuple[bytes, ...] = ()) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        for number, storage in enumerate(storages):
            archive.writestr(f"archive/data/{number}", storage)
        archive.writestr("archive/version", b"3\n")
    return file.getvalue()


def as_legacy(data: bytes, keys: bytes = b"].", storages: bytes = b"") -> bytes:
    head = b"\x80\x02M\xe9\x03." + b"\x80\x02}" + text("little_endian") + b"\x88s."
    return LEGACY + head + data + keys + storages


@pytest.fixture
def nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run in an empty folder; fail if something was executed, imported or written."""
    monkeypatch.chdir(tmp_path)
    calls: list[Any] = []
    real = builtins.__import__
    refused = ("pty", "runpy", "antigravity", "torch", "webbrowser")

    def importing(target: str, *args: Any, **kwargs: Any) -> Any:
        if target.split(".")[0] in refused:
            calls.append(target)
        return real(target, *args, **kwargs)

    monkeypatch.setattr(os, "system", lambda command: calls.append(command))
    monkeypatch.setattr(builtins, "__import__", importing)
    monkeypatch.setattr(pickle, "loads", lambda *args: calls.append("pickle.loads"))
    yield
    assert not calls and not os.listdir(tmp_path)


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused(attack: str) -> None:
    data = ATTACKS[attack]
    for file in (as_zip(data), as_legacy(data), as_zip(data, (bytes(4),))):
        if attack == "a storage that is not there" and b"archive/data/0" in file:
            continue
        with pytest.raises(pc.CheckpointError, match=r"^load: "):
            pc.load(io.BytesIO(file))
    with pytest.raises(pc.CheckpointError):  # as a file of its own, which is no checkpoint
        pc.load(io.BytesIO(data))


@pytest.mark.usefixtures("nothing_runs")
def test_the_error_names_the_requested_object() -> None:
    file = as_zip(ATTACKS["os.system, protocol 2"])
    text = r"`posix\.system`.*nothing was executed.*weights_only=False"
    with pytest.raises(pc.CheckpointError, match=text):
        pc.load(io.BytesIO(file))
    with pytest.raises(pc.CheckpointError, match="save its state_dict"):
        pc.load(io.BytesIO(as_zip(ATTACKS["a pickled module"])))
    with pytest.raises(pc.CheckpointError, match="quantized tensor, which plait does not have"):
        pc.load(io.BytesIO(as_zip(ATTACKS["a quantized tensor"])))


def test_weights_only_false_calls_the_functions_of_the_file() -> None:
    data = pickle.dumps(Reduced(len, "abc"), 2)
    for file in (as_zip(data), as_legacy(data)):
        with pytest.raises(pc.CheckpointError, match=r"`(builtins|__builtin__)\.len`"):
            pc.load(io.BytesIO(file))
        assert pc.load(io.BytesIO(file), weights_only=False) == 3


@pytest.mark.parametrize("protocol", range(6))
def test_data_of_every_protocol(protocol: int) -> None:
    """The interpreter reads pickles of data as Python does."""
    import collections

    value = {
        "numbers": [0, 1, -1, 255, 256, 65536, 2**31, -(2**31), 2**70, -(2**2100), 0.5, -1e300],
        "others": (None, True, False, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "texts": ["", "a", "ä" * 300, "\u20ac\n\\", "x" * 70_000],
        "sets": [{1, 2}, frozenset(["a"])],
        "ordered": collections.OrderedDict(b=1, a=[2]),
        "complex": 1 + 2j,
        "bytes": [b"", b"ab", bytes(range(256)), bytes(70_000), bytearray(b"xy")],
        "arrays": [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3))), np.float32(2)],
        "slice": slice(1, 2, None),
        "counter": collections.Counter("aab"),
    }
    if protocol < 2:  # as calls of copyreg, and bytes as calls of codecs
        value = {k: v for k, v in value.items() if k in ("numbers", "others", "texts")}
    if protocol < 4:
        value.pop("slice", None)
    shared = [1]
    value["shared"] = [shared, shared]
    data = pickle.dumps(value, protocol)
    for file in (as_zip(data), as_legacy(data)):
        back = pc.load(io.BytesIO(file))
        assert repr(back) == repr(value)
        assert back["shared"][0] is back["shared"][1]


def test_an_array_that_occurs_twice_is_one() -> None:
    x = np.arange(3)
    back = pc.load(io.BytesIO(as_zip(pickle.dumps([x, x, {"x": x}], 2))))
    assert back[0] is back[1] is back[2]["x"] and back[0].tolist() == [0, 1, 2]


def test_records_that_do_not_fit() -> None:
    tensor = b"\x80\x02" + TENSOR + b")tR."
    assert pc.load(io.BytesIO(as_zip(tensor, (bytes(4),)))).tolist() == 0.0
    for size in (0, 3, 5, 8):
        with pytest.raises(pc.CheckpointError, match="must have 4 bytes"):
            pc.load(io.BytesIO(as_zip(tensor, (bytes(size),))))
    reach = tensor.replace(b"QK\x00)", b"QK\x01)")
    with pytest.raises(pc.CheckpointError, match="outside"):
        pc.load(io.BytesIO(as_zip(reach, (bytes(4),))))
    keys = b"\x80\x02](" + text("0") + b"e."
    good = as_legacy(tensor, keys, struct.pack("<qf", 1, 7.0))
    assert pc.load(io.BytesIO(good)) == 7
    for count in (0, 2, -1, 2**62):
        with pytest.raises(pc.CheckpointError):
            pc.load(io.BytesIO(as_legacy(tensor, keys, struct.pack("<qf", count, 7.0))))
    for length in range(len(good)):
        with pytest.raises(pc.CheckpointError):
            pc.load(io.BytesIO(good[:length]))


def test_zips_that_torch_did_not_write() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"N" * 1000 + b".")
    with pytest.raises(pc.CheckpointError, match="compressed"):
        pc.load(io.BytesIO(packed.getvalue()))
    script = io.BytesIO()
    with zipfile.ZipFile(script, "w") as archive:
        archive.writestr("m/data.pkl", b"N.")
        archive.writestr("m/constants.pkl", b"N.")
    with pytest.raises(pc.CheckpointError, match="TorchScript"):
        pc.load(io.BytesIO(script.getvalue()))
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", b"hello")
    with pytest.raises(pc.CheckpointError, match=r"none of torch\.save"):
        pc.load(io.BytesIO(other.getvalue()))


def test_byteorder_of_the_file() -> None:
    tensor = b"\x80\x02" + TENSOR + b")tR."
    file = io.BytesIO(as_zip(tensor, (struct.pack(">f", 2.5),)))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("archive/byteorder", b"big")
    assert pc.load(io.BytesIO(file.getvalue())) == 2.5


@pytest.mark.usefixtures("nothing_runs")
def test_pickles_changed_at_random() -> None:
    """Mutations of good and of hostile pickles give data or the typed error."""
    file = io.BytesIO()
    value = {"w": pc.ones(3), "n": [1, 2.5, "x"], "a": np.arange(2), "s": {1}, "l": 2**70}
    pc.save(value, file, format="torch")
    with zipfile.ZipFile(io.BytesIO(file.getvalue())) as archive:
        good = archive.read("archive/data.pkl")
    chance = random.Random(0)
    seeds = [good, *(data for data in ATTACKS.values() if len(data) < 1000)]
    storage = bytes(12)

    def persistent(reference: Any) -> Any:
        return Stored(pc.frombuffer(bytearray(storage), dtype=pc.uint8), "float32")

    for attempt in range(FLIPS):
        data = bytearray(seeds[0] if attempt % 2 else chance.choice(seeds))
        for _ in range(chance.randrange(1, 4)):
            offset = chance.randrange(len(data))
            if chance.random() < 0.5:
                data[offset] = chance.randrange(256)
            else:
                other = chance.choice(seeds)
                begin = chance.randrange(len(other))
                data[offset : offset + chance.randrange(4)] = other[begin : begin + 12]
        with contextlib.suppress(pc.CheckpointError):
            _machine.run(bytes(data), 0, NAMES.find, persistent, build)


def test_deep_data_is_no_crash() -> None:
    back = pc.load(io.BytesIO(as_zip(nested(b"K\x01", 100_000))))
    depth = 0
    while type(back) is list:
        back, depth = back[0], depth + 1
    assert depth == 100_000


def test_slices_of_slices_are_refused() -> None:
    """Python frees slices by recursion: millions of them, one in the other, end the process."""
    for inner in (name("builtins", "slice") + b"(K\x01tR", b"(K\x01t"):
        with pytest.raises(pc.CheckpointError, match="slice"):
            pc.load(io.BytesIO(as_zip(call("builtins", "slice", b"N", inner))))
    back = pc.load(io.BytesIO(as_zip(call("builtins", "slice", b"K\x01", b"K\x05", b"N"))))
    assert back == slice(1, 5)


PLAIN = [
    b"N", b"K\x03", b"J\xff\xff\xff\xff", b"\x8a\x09" + b"\xff" * 8 + b"\x00", b"\x88", b")", b"]",
    b"}", b"B\x08\0\0\0" + b"\xff" * 8, b"B\x10\0\0\0" + b"\x01" * 16, b"(K\x02K\x02t", b"(K\x08t",
    *map(text, ("f4", "M8[s]", "O", "U1", "(2,)i4", "|", "i4,O", "V3", "C")),
    name("torch", "complex64"), name("numpy", "ndarray"),
    TENSOR[TENSOR.index(b"((") + 1 :].partition(b"Q")[0] + b"Q",  # a storage
]  # fmt: skip


def _drawn(draw: random.Random, depth: int) -> bytes:
    """Return the opcodes of a random value, often a call of a name that files may use."""
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(PLAIN)
    parts = b"".join(_drawn(draw, depth - 1) for _ in range(draw.choice([0, 1, 2, 2, 3, 4, 5, 6])))
    if draw.random() < 0.15:
        return draw.choice([b"(" + parts + b"t", b"(" + parts + b"l"])
    called = name(*draw.choice(CALLED).rpartition(".")[::2]) + b"(" + parts + b"tR"
    return called + (_drawn(draw, depth - 1) + b"b" if draw.random() < 0.2 else b"")


CALLED = [
    each for each, value in NAMES._table.items()
    if type(value) is _machine.Named and not each.startswith("torch.storage")
]  # fmt: skip


def test_calls_with_random_arguments_give_a_value_or_an_error() -> None:
    draw, values = random.Random(0), 0
    for _ in range(3000):
        try:
            back = pc.load(io.BytesIO(as_zip(b"\x80\x02" + _drawn(draw, 3) + b".", (bytes(4),))))
        except (pc.CheckpointError, MemoryError):
            continue
        values += 1
        for use in (repr, hash, np.asarray, pc.tensor, pc.from_numpy):
            with contextlib.suppress(Exception):
                if not pc.is_tensor(back) or back.numel() < 1000:
                    use(back)
    assert values > 100
