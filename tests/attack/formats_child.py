"""Read changed files of a format in a process that is watched.

    python formats_child.py FORMATS SEED FIRST COUNT FOLDER [LOOK]

Reads COUNT files of each format ("all", or names with commas), with the numbers FIRST, FIRST + 1,
...; name, seed and number give a file. A line says which one is read. The process ends with an
error if reading one

- raises another error than the format's own,
- takes more memory than some times the file's size, or more than ten seconds of the processor,
- executes, imports, removes or opens anything that a sound file does not.

It prints how many of a format were read and how many refused. The file that is read is FOLDER/file;
with a sixth argument the process stops before it reads, so that the file can be looked at.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import traceback
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mutations
import numpy as np

import plait
import plait_core as pc

HERE = Path(__file__).resolve().parent
FILES = HERE.parents[1] / "packages" / "torch" / "tests" / "files"
SECONDS = 10  # of the processor that one file may take
MEMORY = 96 << 20  # bytes that reading may take, beside those that the file's size allows
TIMES = 40  # the file's size
MOST = 3 << 30  # bytes of addresses that the process may have


class TooLong(BaseException):
    """What was read runs on; that it can be interrupted is enough."""


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        samples: Return the bytes of sound files.
        change: Change one of them; the third argument are all.
        read: Read a file at a path; return what `use` gets.
        errors: What `read` may raise.
        use: Use what was read; it may raise the errors of programs.
        executes: Whether reading builds code, as for a program.
    """

    samples: Callable[[], list[bytes]]
    change: Callable[[random.Random, bytes], bytes]
    read: Callable[[Path], Any]
    errors: tuple[type[BaseException], ...]
    use: Callable[[Any], Any] | None = None
    executes: bool = False


# errors of a program that runs: what a call of an operator raises for arguments that do not fit
OF_PROGRAMS = (
    *(RuntimeError, ValueError, TypeError, IndexError, KeyError, ArithmeticError, TooLong),
    *(NotImplementedError, AssertionError, MemoryError, UnboundLocalError),
)


# ---- ONNX


def onnx_format() -> Format:
    import onnx
    import onnx.parser

    import plait_autograd
    import plait_onnx

    texts = [
        """net (float[N, 3, 8, 8] x) => (float[N, 10] y)
        <float[4, 3, 3, 3] w, float[4] s = {1, 1, 1, 1}, float[4] b = {0, 0, 0, 0},
         float[4] m = {0, 0, 0, 0}, float[4] v = {1, 1, 1, 1}, float[10, 16] g, float[10] c>
        { a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w) n = BatchNormalization
          (a, s, b, m, v) r = Relu(n) p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
          f = Flatten(p) y = Gemm <transB = 1> (f, g, c) }""",
        """net (float[N] x) => (float[N] y) <int64 n = {3}, bool c = {1}>
        { y = Loop (n, c, x) <body = step (int64 i, bool k, float[N] a) => (bool l, float[N] b)
          { l = Identity(k) b = Add(a, a) }> }""",
        """net (float[N, 4] x) => (float[M] y)
        { s = Shape(x) o = Constant <value_ints = [-1]> () t = ReduceSum(x) z = Constant
          <value_float = 0.0> () q = Greater(t, z)
          f = If (q) <then_branch = a () => (float[M] u) { u = Reshape(x, o) },
          else_branch = b () => (float[M] w) { n = Neg(x) w = Reshape(n, o) }>
          e = Expand(f, s) g = ReduceMean <keepdims = 0> (e) h = Unsqueeze(g, o)
          y = Add(f, h) }""",
        """net (float[4, N, 3] x) => (float[4, 1, N, 5] y, float[1, N, 5] h)
        <float[1, 20, 3] w, float[1, 20, 5] r>
        { y, h, c = LSTM <hidden_size = 5> (x, w, r) }""",
        """net (float[N, 6] x) => (float[K] y)
        <float s = {0.1}, uint8 z = {128}, int64[2] d = {2, 4}>
        { q = QuantizeLinear(x, s, z) r = DequantizeLinear(q, s, z)
          a = SplitToSequence <axis = 1> (r, d) i = Constant <value_int = 0> ()
          p = SequenceAt(a, i) k = Constant <value_ints = [2]> ()
          t, j = TopK <axis = 1> (p, k) y = Flatten(t) }""",
    ]
    head = '<ir_version: 9, opset_import: ["" : 18]>\n'
    rng = np.random.default_rng(0)
    models = []
    for text in texts:
        model = onnx.parser.parse_model(head + text)
        for value in model.graph.initializer:
            kind = onnx.helper.tensor_dtype_to_np_dtype(value.data_type)
            if not (value.float_data or value.int32_data or value.int64_data or value.raw_data):
                array = rng.standard_normal(list(value.dims)).astype(kind)
                value.CopyFrom(onnx.numpy_helper.from_array(array, value.name))
        models.append(model)
    shapes = [(2, 3, 8, 8), (5,), (2, 4), (4, 2, 3), (2, 6)]
    own = {model.SerializeToString(): shape for model, shape in zip(models, shapes, strict=True)}
    operators = sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""})

    def change(random: random.Random, data: bytes) -> bytes:
        if random.random() < 0.2:
            return mutations.bytes_changed(random, data)
        model = onnx.ModelProto()
        model.ParseFromString(data)
        if random.random() < 0.3:
            graph = random.choice([model.graph, model.graph])
            node = random.choice(graph.node)
            names = [n for each in graph.node for n in (*each.input, *each.output)]
            if random.random() < 0.5:
                node.op_type = random.choice(operators)
            elif node.input:
                node.input[random.randrange(len(node.input))] = random.choice(names)
            return model.SerializeToString()
        return bytes(mutations.message_changed(random, model).SerializeToString())

    def read(path: Path) -> Any:
        return plait_onnx.load(path, limit=1 << 22)

    def use(module: Any) -> None:
        with plait_autograd.no_grad():
            for shape in shapes:
                if len(module.input_names) and shape == CURRENT.get("shape", shape):
                    module(*[pc.ones(*shape) for _ in module._required])

    def changed(random: random.Random, data: bytes) -> bytes:
        CURRENT["shape"] = own[data]
        return change(random, data)

    return Format(
        lambda: list(own), changed, read, (plait_onnx.ModelError,), use,
    )  # fmt: skip


CURRENT: dict[str, Any] = {}


# ---- TorchScript


CODE = """op_version_set = 1
class M(Module):
  __parameters__ = ["w", ]
  __buffers__ = []
  w : Tensor
  training : bool
  names : List[str]
  table : Dict[str, int]
  def forward(self: __torch__.M, x: Tensor, n: int=2, y: Optional[Tensor]=None) -> Tensor:
    total = 0
    parts = annotate(List[Tensor], [])
    for i in range(n):
      if torch.eq(i, 1):
        _0 = torch.append(parts, torch.mul(x, i))
      else:
        total = torch.add(total, i)
    w = self.w
    a, b, = (torch.floordiv(7, 2), torch.remainder(-7, 3))
    m = 0
    while torch.lt(m, 3):
      m = torch.add(m, 1)
    z = torch.zeros([2, torch.size(x, 0)], dtype=6, layout=None, device=torch.device("cpu"))
    pair = __torch__.Pair(torch.add(x, w), torch.div(1, 4))
    text = torch.format("{}-{}", total, a)
    if isinstance(pair, __torch__.Pair):
      flag = not (a == 3 and b in [2, 4])
    else:
      flag = True
    worker = __torch__.Counter.__new__(__torch__.Counter)
    _1 = (worker).__init__(torch.len(self.names), )
    k = annotate(Dict[str, int], {"n": n, "t": total})
    if torch.__isnot__(y, None):
      u = unchecked_cast(Tensor, y)
    else:
      u = torch.matmul(x, torch.t(x))
    v = torch.softmax(torch.slice(u, 0, 0, 9223372036854775807, 1), -1)
    if flag:
      ops.prim.RaiseException(torch.add("no ", text), "builtins.ValueError")
    return torch.cat([torch.sum(v, [0], True), torch.mul((worker).more(k["n"], ), z)], 1)
class Pair(NamedTuple):
  x : Tensor
  scale : float
class Counter:
  count : int
  def __init__(self: __torch__.Counter, n: int) -> NoneType:
    self.count = n
    return None
  def more(self: __torch__.Counter, by: int=1) -> int:
    self.count = torch.add(self.count, by)
    return self.count
"""


def word(text: str) -> bytes:
    return mutations._word(text)


def script_archive() -> bytes:
    storage = (
        b"(" + word("storage") + b"ctorch\nFloatStorage\n" + word("0") + word("cpu") + b"K\x03tQ"
    )
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage
    tensor += b"K\x00(K\x03t(K\x01t\x89ccollections\nOrderedDict\n)RtR"
    pickled = b"\x80\x02c__torch__\nM\n)\x81}(" + word("training") + b"\x88" + word("w") + tensor
    pickled += word("names") + b"](" + word("a") + word("b") + b"e"
    pickled += word("table") + b"}" + word("k") + b"K\x01sub."
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("m/data.pkl", pickled)
        out.writestr("m/constants.pkl", b"\x80\x02).")
        out.writestr("m/version", b"3\n")
        out.writestr("m/data/0", np.ones(3, "<f4").tobytes())
        out.writestr("m/code/__torch__.py", CODE)
    return file.getvalue()


def record_changed(rng: random.Random, name: str, data: bytes) -> bytes:
    if name.endswith((".pkl", ".metadata")):
        return mutations.pickle_changed(rng, data)
    if name.endswith(".py"):
        return mutations.code_changed(rng, data)
    if name.endswith(".json"):
        return mutations.json_changed(rng, data)
    if name.endswith("version"):
        return rng.choice((b"", b"x", b"99999999999", b"-1", b"3" * 5000, b"1", b"\xff"))
    return mutations.bytes_changed(rng, data)


def zipped(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.1:
        return mutations.bytes_changed(rng, data)
    if rng.random() < 0.6:  # most of what matters is in pickles and code
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [n for n in archive.namelist() if n.endswith((".pkl", ".py", ".json"))]
        if names:
            only = rng.choice(names)
            return mutations.zip_changed(
                rng, data, lambda r, n, d: record_changed(r, n, d) if n == only else d
            )
    return mutations.zip_changed(rng, data, record_changed)


def torchscript_format() -> Format:
    from plait_torch import _torchscript

    names = ("scripted.pt", "traced.pt", "sequential.pt")

    def use(module: Any) -> None:
        for name in list(module.script_class.methods)[:4]:
            for x in (pc.ones(3, 3), pc.ones(1, 4), pc.ones(2, 3, 8, 8)):
                with contextlib.suppress(*OF_PROGRAMS):
                    module.script_class.methods[name].call(module, x)
        with contextlib.suppress(*OF_PROGRAMS):
            module.state_dict()
            repr(module)
            module.save(io.BytesIO())

    return Format(
        lambda: [(FILES / name).read_bytes() for name in names] + [script_archive()] * 3,
        zipped,
        lambda path: _torchscript.load(path),
        (plait.CheckpointError, _torchscript.ScriptError),
        use,
        executes=True,
    )


# ---- checkpoints


def torch_format() -> Format:
    import test_damaged_files as old

    def samples() -> list[bytes]:
        return [old.saved("torch"), old.saved("torch"), old.legacy(), old.tar()]

    def change(rng: random.Random, data: bytes) -> bytes:
        if data[:2] == b"PK":
            return zipped(rng, data)
        if data[:2] == b"\x80\x02" and rng.random() < 0.7:  # five pickles, then bytes
            stop = -1
            for _ in range(rng.randrange(3, 6)):
                stop = data.index(b".", data.index(b".", stop + 1))
            begin = data.rindex(b"\x80\x02", 0, stop)
            return (
                data[:begin]
                + mutations.pickle_changed(rng, data[begin : stop + 1])
                + data[stop + 1 :]
            )
        return mutations.bytes_changed(rng, data)

    def read(path: Path) -> Any:
        return pc.load(path)

    return Format(samples, change, read, (pc.CheckpointError,))


def safetensors_format() -> Format:
    import test_damaged_files as old

    def change(rng: random.Random, data: bytes) -> bytes:
        if rng.random() < 0.2:
            return mutations.bytes_changed(rng, data)
        length = int.from_bytes(data[:8], "little")
        text = mutations.json_changed(rng, data[8 : 8 + length])
        return len(text).to_bytes(8, "little") + text + data[8 + length :]

    return Format(
        lambda: [old.of_others(), old.unaligned(), old.saved("plait")],
        change,
        lambda path: pc.load(path, mmap=path.stat().st_size % 2 == 0, verify=False),
        (pc.CheckpointError,),
    )


def plait_graph_format() -> Format:
    import plait_graph
    import plait_nn as nn

    def samples() -> list[bytes]:
        pc.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        results = []
        for layer, x in (
            (model.eval(), pc.randn(2, 3, 8, 8)),
            (nn.TransformerEncoderLayer(8, 2, 16).eval(), pc.randn(2, 3, 8)),
            (nn.GRU(8, 4).eval(), pc.randn(2, 3, 8)),
        ):
            path = Path("sample.safetensors")
            plait_graph.export(layer, (x,), path)
            results.append(path.read_bytes())
            path.unlink()
        return results

    def change(rng: random.Random, data: bytes) -> bytes:
        if rng.random() < 0.15:
            return mutations.bytes_changed(rng, data)
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        if rng.random() < 0.2:
            header = mutations.json_value_changed(rng, header)
        else:
            graph = json.loads(header["__metadata__"]["plait_graph"])
            graph = mutations.json_value_changed(rng, graph)
            header["__metadata__"]["plait_graph"] = json.dumps(graph)
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + data[8 + length :]

    def use(graph: Any) -> None:
        for x in (pc.ones(2, 3, 8, 8), pc.ones(2, 3, 8)):
            with contextlib.suppress(*OF_PROGRAMS):
                graph(x)

    return Format(samples, change, plait_graph.load, (ValueError,), use)


def folder_format(kind: str) -> Format:
    """A folder of `torch.distributed.checkpoint`: PyTorch's, or our own."""
    import test_damaged_files as old

    import plait_distributed.checkpoint as dcp

    folder = Path("folder")
    flat = {"x": pc.arange(60.0), "b": pc.ones(5, dtype=pc.int64)}

    def samples() -> list[bytes]:
        if kind == "torch":
            shutil.copytree(FILES / "folder", folder)
        else:
            dcp.save({**flat, "more": ["a", 5]}, checkpoint_id=folder, no_dist=True)
        names = sorted(os.listdir(folder))
        return [(folder / name).read_bytes() for name in names if name != ".metadata"] + [
            (folder / ".metadata").read_bytes()
        ] * 6

    def change(rng: random.Random, data: bytes) -> bytes:
        for name in os.listdir(folder):
            if (folder / name).read_bytes() == data:
                CURRENT["name"] = name
                break
        if data[:2] == b"PK":
            return zipped(rng, data)
        if data[:1] == b"{":  # the index of plait, whose digest must fit
            return old.forged(rng, data.decode())
        if data[:1] == b"\x80":
            return mutations.pickle_changed(rng, data)
        return mutations.bytes_changed(rng, data)

    def read(path: Path) -> Any:
        part = folder / CURRENT["name"]
        whole = part.read_bytes()
        part.write_bytes(path.read_bytes())
        try:
            state: dict[str, Any]
            if kind == "torch":
                state = {"rows": pc.zeros(7, 5), "columns": pc.zeros(7, 5), "rank": -1}
                state["f8"] = pc.zeros(3, dtype=pc.float8_e4m3fn)
                state["optim"] = {"state": {0: {"step": 0}}}
                state["list"] = [0, pc.zeros(2), {"a": 0.0}]
            else:
                state = {name: pc.zeros_like(x) for name, x in flat.items()} | {"more": None}
            dcp.load(state, checkpoint_id=folder, no_dist=True)
        finally:
            part.write_bytes(whole)

    return Format(samples, change, read, (dcp.CheckpointException, pc.CheckpointError))


def package_format() -> Format:
    from plait_torch._package import PackageImporter

    def read(path: Path) -> Any:
        package = PackageImporter(path)
        for name in package.file_structure():
            folder, _, last = name.rpartition("/")
            if last.endswith(".pkl"):
                package.load_pickle(folder, last)
            elif last and not folder.startswith("."):
                package.load_binary(folder, last)

    return Format(
        lambda: [(FILES / "package.pt").read_bytes()], zipped, read, (pc.CheckpointError,)
    )


# ---- NumPy


def numpy_format() -> Format:
    from plait_data.datasets import NumPyArrays

    def samples() -> list[bytes]:
        one, many, packed = io.BytesIO(), io.BytesIO(), io.BytesIO()
        x = np.arange(60.0, dtype=np.float32).reshape(5, 12)
        np.save(one, x)
        np.savez(many, x=x, y=np.arange(5))
        np.savez_compressed(packed, x=x, y=np.arange(5))
        objects = io.BytesIO()
        np.save(objects, np.array([{}, 1], dtype=object), allow_pickle=True)
        return [one.getvalue(), many.getvalue(), packed.getvalue(), objects.getvalue()]

    def npy(rng: random.Random, name: str, data: bytes) -> bytes:
        if rng.random() < 0.3 or data[:6] != b"\x93NUMPY":
            return mutations.bytes_changed(rng, data)
        start = 10
        length = int.from_bytes(data[8:10], "little")
        text = data[start : start + length].decode("latin-1")
        words = ["(9223372036854775807,)", "(-1,)", "(1 << 40, 1 << 40)", "'|O'", "'<f4'", "'<U9'"]
        words += ["'|V0'", "()", "(5, 12, 2)", "[('a', '<f4')]", "True", "__import__('os')", "{}"]
        words += ["(" * 300, "'" + "x" * 500 + "'", "((5),)", "(5.0,)", "'<M8[s]'", "(0, 1 << 62)"]
        pieces = re.findall(r"'[^']*'|\([^)]*\)|True|False|[{},:]", text) or [text]
        text = text.replace(rng.choice(pieces), rng.choice(words), 1)
        new = text.encode("latin-1")
        return data[:8] + (len(new) % 65536).to_bytes(2, "little") + new + data[start + length :]

    def change(rng: random.Random, data: bytes) -> bytes:
        return mutations.zip_changed(rng, data, npy) if data[:2] == b"PK" else npy(rng, "", data)

    def read(path: Path) -> Any:
        return NumPyArrays(path, mmap=path.stat().st_size % 2 == 0)

    def use(arrays: Any) -> None:
        for i in range(min(len(arrays), 3)):
            arrays[i]

    return Format(samples, change, read, (ValueError,), use)


FORMATS: dict[str, Callable[[], Format]] = {
    "onnx": onnx_format,
    "torchscript": torchscript_format,
    "torch": torch_format,
    "safetensors": safetensors_format,
    "plait_graph": plait_graph_format,
    "folder_of_torch": lambda: folder_format("torch"),
    "folder_of_plait": lambda: folder_format("plait"),
    "package": package_format,
    "numpy": numpy_format,
}


# ---- watching


FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen",
             "pty.spawn", "socket.connect", "socket.bind", "os.remove", "os.rename", "os.rmdir",
             "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate",
             "shutil.rmtree", "shutil.move", "shutil.copyfile", "pickle.find_class", "os.putenv",
             "ctypes.dlsym/handle", "builtins.input", "webbrowser.open", "os.kill",
             "signal.pthread_kill", "sys.settrace", "sys.addaudithook")  # fmt: skip


class Watch:
    """Ends the process where reading a file does what no file may have done."""

    def __init__(self) -> None:
        self.active = self.counts = self.executes = False
        self.roots = {name.split(".")[0] for name in sys.modules}
        folders = {os.getcwd(), str(HERE.parents[1]), sys.prefix, sys.base_prefix, str(FILES)}
        self.folders = tuple(os.path.realpath(each) for each in folders) + tuple(folders)
        self.own = os.path.realpath(os.getcwd())
        sys.addaudithook(self)

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active or not self._is_forbidden(event, args):
            return
        self.active = False
        print(f"forbidden: {event} {args!r:.300}", file=sys.stderr)
        traceback.print_stack()
        os._exit(3)

    def _is_forbidden(self, event: str, args: tuple[Any, ...]) -> bool:
        if event in FORBIDDEN:
            return True
        if event == "import":
            root = str(args[0]).split(".")[0]
            return root not in self.roots and root not in sys.stdlib_module_names
        if event == "exec" and not self.executes:
            name = args[0].co_filename
            return not (name.startswith("<") or os.path.exists(name))
        if event == "open" and isinstance(args[0], (str, bytes)):
            path = os.path.realpath(os.fsdecode(args[0]))
            writes = isinstance(args[1], str) and set(args[1]) & set("wax+")
            if writes:
                return not path.startswith(self.own)
            return not path.startswith((*self.folders, "/proc/self", "/sys/", "/dev/"))
        return False


def peak() -> int:
    """Return the most resident bytes since `reset_peak`."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text[text.index("VmHWM:") + 6 :].split()[0]) << 10


def reset_peak() -> int:
    """Forget the most resident bytes so far, and return those of now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak()


def stop(*_: Any) -> None:
    raise TooLong


def read_one(form: Format, path: Path, watch: Watch) -> bool:
    """Read one file and use it; return whether it was read."""
    before = reset_peak()
    watch.active = watch.counts
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        value = form.read(path)
    except form.errors as error:
        value = error
        assert len(str(error)) < 20_000, f"an error of {len(str(error))} characters"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        watch.active = False
    grown = peak() - before
    assert grown < MEMORY + TIMES * path.stat().st_size, f"{grown >> 20} MB to read"
    if isinstance(value, BaseException):
        return False
    if form.use is not None:
        watch.active = watch.counts
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.5, 0.5)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            form.use(value)
        except (*form.errors, *OF_PROGRAMS):
            pass
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.setitimer(signal.ITIMER_PROF, 0)
            watch.active = False
    return True


def warm_up(form: Format, samples: list[bytes], path: Path, watch: Watch) -> None:
    """Read the sound files, so that what they import is there, and most are read."""
    watch.counts, sound = False, 0
    for data in {*samples}:
        form.change(random.Random(0), data)
        path.write_bytes(data)
        sound += read_one(form, path, watch)
    watch.roots |= {each.split(".")[0] for each in sys.modules}
    watch.counts, watch.executes = True, form.executes
    assert sound > len({*samples}) / 2, f"{sound} of {len({*samples})} sound files are read"


def main() -> None:
    """Read the files that the command line asks for."""
    names, seed, first, count, folder = sys.argv[1:6]
    os.chdir(folder)
    pc.set_num_threads(1)
    path = Path("file")
    watch = Watch()
    signal.signal(signal.SIGVTALRM, stop)
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, all_threads=False, chain=True)
    findings: dict[Any, str] = {}
    for name in FORMATS if names == "all" else names.split(","):
        form = FORMATS[name]()
        samples = form.samples()
        warm_up(form, samples, path, watch)
        limit = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST, limit[1]))
        read = 0
        for number in range(int(first), int(first) + int(count)):
            rng = random.Random(f"{name} {seed} {number}")
            data = form.change(rng, rng.choice(samples))
            path.write_bytes(data)
            if len(sys.argv) > 6:
                return
            print(f"{name} {number}", file=sys.stderr, flush=True)
            try:
                read += read_one(form, path, watch)
                assert not Path(mutations.CANARY).exists(), "the file was executed"
                assert path.read_bytes() == data, "the file was written"
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                text = "".join(traceback.format_exception(error))
                findings.setdefault(
                    (type(error), last.filename, last.lineno), f"\n{name} {number}: {text}"
                )
        resource.setrlimit(resource.RLIMIT_AS, limit)
        print(json.dumps([name, read, int(count) - read]))
    print(*findings.values(), sep="", file=sys.stderr)
    sys.exit(bool(findings))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # names that are in a zip twice
    main()
