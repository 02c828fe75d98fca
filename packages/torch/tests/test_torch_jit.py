"""`torch.jit`: archives that PyTorch wrote, archives of our own, and code that is refused.

``files/scripted.pt`` and ``files/traced.pt`` are PyTorch's, without its records for debugging; the
numbers in the tests are what PyTorch computes with them.
"""

from __future__ import annotations

import copy
import io
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

import plait
from plait_torch import _torchscript
from plait_torch._torchscript import ScriptError

FILES = Path(__file__).parent / "files"


def archive(code: str, *, constants: Any = None, extra: dict[str, bytes] | None = None) -> Any:
    """Return a file with one module, whose class is written in the code as ``__torch__.M``."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        # GLOBAL __torch__ M, NEWOBJ of (), {"training": True}, BUILD
        pickled = b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x88ub."
        out.writestr("m/data.pkl", pickled)
        out.writestr("m/constants.pkl", b"\x80\x02).")
        out.writestr("m/version", b"3\n")
        out.writestr(zipfile.ZipInfo("m/code/__torch__.py"), code, zipfile.ZIP_DEFLATED)
        for name, data in (extra or {}).items():
            out.writestr(f"m/{name}", data)
    file.seek(0)
    return file


def module(body: str, arguments: str = "x: Tensor", more: str = "") -> Any:
    """Return the module of an archive whose forward has this body."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    head = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
    return _torchscript.load(
        archive(f"{head}  def forward(self: __torch__.M, {arguments}) -> Tensor:\n{lines}\n{more}")
    )


def test_a_scripted_module_of_pytorch(torch: Any) -> None:
    model = torch.jit.load(FILES / "scripted.pt")
    assert isinstance(model, torch.jit.ScriptModule) and isinstance(model, torch.nn.Module)
    assert isinstance(model, torch.jit.RecursiveScriptModule) and model.original_name == "Sub"
    assert list(model.state_dict()) == ["lin.weight", "lin.bias"] and not model.training
    assert model.scale == 0.5 and model.names == ["a", "b"] and "torch.tanh" in model.code
    x, parts, mean, sizes, numbers, said = model(torch.eye(4), torch.ones(4, 4), n=2)
    assert torch.allclose(x[0], torch.tensor([-5.5624, 0.0, 0.0, -4.8323]), atol=1e-4)
    assert torch.allclose(parts["k"][1, 3], torch.tensor([-0.3206, -0.0394]), atol=1e-4)
    assert mean.dtype == torch.float32 and mean[3, 0].item() == pytest.approx(-5.1705, abs=1e-4)
    assert sizes == (2, 1, -4, 1.0, 8.0, 2.0, float("inf")) and numbers == [0.0, 1.0, 2.0]
    assert said == {"s0eval": 16} and model.train().helper(x, "a") == {"a": 16}
    with pytest.raises(RuntimeError, match="AssertionError: bad 3"):
        model.eval()(torch.ones(1, 4, 4))


def test_a_traced_module_of_pytorch_trains(torch: Any) -> None:
    model = torch.jit.load(FILES / "traced.pt", map_location="cpu")
    x = torch.linspace(-2, 2, 32).reshape(2, 1, 4, 4)
    first, named = model(x)
    assert torch.allclose(first[7, 0], torch.tensor([0.3514, 0.3292, 0.3194]), atol=1e-4)
    assert torch.allclose(
        named["n"], torch.tensor([2.5512, 3.5512], dtype=torch.float64), atol=1e-4
    )
    first.square().sum().backward()
    assert all(each.grad is not None for each in model.lstm.parameters())
    before = model.conv[0].weight.detach().clone()
    torch.optim.SGD(model.parameters(), 0.1).step()
    assert not torch.equal(before, getattr(model.conv, "0").weight)


@pytest.mark.parametrize("name", ["scripted.pt", "traced.pt"])
def test_what_was_loaded_is_written_again(torch: Any, tmp_path: Path, name: str) -> None:
    model = torch.jit.load(FILES / name)
    with plait.no_grad():
        next(model.parameters()).add_(0.25)
    model.save(tmp_path / "again.pt", _extra_files={"labels.txt": "a b"})
    with zipfile.ZipFile(FILES / name) as one, zipfile.ZipFile(tmp_path / "again.pt") as other:
        # which form of an operator the code means
        versions = [file.read(next(n for n in file.namelist() if n.endswith("/version")))
                    for file in (one, other)]  # fmt: skip
        assert versions[0] == versions[1]
    said = {"labels.txt": ""}
    again = torch.jit.load(tmp_path / "again.pt", _extra_files=said)
    copies = [again, pickle.loads(pickle.dumps(again)), copy.deepcopy(again)]
    x = torch.eye(4) if name == "scripted.pt" else torch.ones(2, 1, 4, 4)
    for each in copies:
        assert list(each.state_dict()) == list(model.state_dict())
        one, other = each(x)[0], model(x)[0]
        assert torch.equal(one, other)
    assert said == {"labels.txt": b"a b"}


def test_a_traced_module_is_written_with_free_sizes(torch: Any, tmp_path: Path) -> None:
    pytest.importorskip("plait_graph")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
            self.gru = torch.nn.GRU(4, 3, bidirectional=True, batch_first=True)
            self.lstm = torch.nn.LSTM(6, 3, batch_first=True)
            self.unused = torch.nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.body(x)).reshape(x.size(0), -1, 4)
            y[:, 0] += 1
            z, _ = self.lstm(self.gru(y)[0])
            return z.softmax(-1), {"mean": z.mean(), "parts": torch.cat(z.chunk(3, -1), 1)}

    model = Net().eval()
    traced = torch.jit.trace(model, torch.rand(2, 1, 6, 6))
    assert isinstance(traced, torch.jit.ScriptModule) and isinstance(traced, Net)
    assert traced.body[0].weight is model.body[0].weight and traced.original_name == "Net"
    traced.save(tmp_path / "net.pt")
    again = torch.jit.load(tmp_path / "net.pt")
    assert list(again.state_dict()) == list(model.state_dict())
    for count in (2, 5):
        x = torch.rand(count, 1, 6, 6)
        (a, b), (c, d) = model(x), again(x)
        assert torch.allclose(a, c, atol=1e-6) and torch.allclose(b["parts"], d["parts"], atol=1e-6)
        assert torch.allclose(b["mean"], d["mean"], atol=1e-6)


def test_traced_functions_and_scripted_modules(torch: Any, tmp_path: Path) -> None:
    pytest.importorskip("plait_graph")

    @torch.jit.script  # type: ignore[misc]
    def double(x: Any) -> Any:
        return x * 2

    assert isinstance(double, torch.jit.ScriptFunction) and double(3) == 6
    traced = torch.jit.trace(lambda x, y: (x @ y + 1).relu(), (torch.ones(2, 3), torch.ones(3, 2)))
    torch.jit.save(traced, tmp_path / "function.pt")
    again = torch.jit.load(tmp_path / "function.pt")
    assert torch.equal(again(torch.ones(4, 3), torch.ones(3, 5)), torch.full((4, 5), 4.0))

    layer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout())
    scripted = torch.jit.script(layer)
    assert isinstance(scripted, torch.jit.ScriptModule) and scripted is torch.jit.script(scripted)
    assert isinstance(scripted[0], torch.jit.ScriptModule) and scripted[0].weight is layer[0].weight
    assert "original_name=Linear, in_features=2" in repr(scripted)
    assert not scripted.eval()[1].training and layer[1].training
    assert torch.equal(pickle.loads(pickle.dumps(scripted))(torch.ones(2)), scripted(torch.ones(2)))
    with pytest.raises(ScriptError, match="trace the module"):
        scripted.save(tmp_path / "no.pt")
    again = torch.jit.script(layer.eval(), example_inputs=[(torch.ones(3, 2),)])
    again.save(tmp_path / "scripted.pt")
    loaded = torch.jit.load(tmp_path / "scripted.pt")
    assert torch.allclose(loaded(torch.eye(2)), layer(torch.eye(2)))
    chooses = torch.jit.script(
        lambda x: x if x.sum() > 0 else -x, example_inputs=[(torch.ones(2),)]
    )
    with pytest.raises(ScriptError, match="reads the elements"):
        chooses.save(tmp_path / "no.pt")
    with pytest.raises(TypeError, match="a tuple of arguments for each call, got Tensor"):
        torch.jit.script(layer, example_inputs=[torch.ones(3, 2)])
    with pytest.raises(ScriptError, match=r"a module of torch\.jit\.trace"):
        torch.jit.save(torch.nn.Linear(1, 1), tmp_path / "no.pt")
    assert not (tmp_path / "no.pt").exists()


def test_the_language() -> None:
    body = """
total = 0
names = annotate(List[str], [])
for i in range(5):
  if torch.eq(i, 1):
    continue
  if torch.gt(i, 3):
    break
  total = torch.add(total, i)
  names = torch.add(names, [torch.format("{}-{}", i, total)])
n = 0
while torch.lt(n, 3):
  n = torch.add(n, 1)
table = {"n": n, "total": total}
text = torch.percentFormat("%d/%s", total, torch.__getitem__(names, 0))
a, b, = (torch.floordiv(7, 2), torch.remainder(-7, 3))
pair = __torch__.Pair(x, torch.div(1, 4))
if isinstance(pair, __torch__.Pair):
  flag = not (a == 3 and b in [2, 4])
else:
  flag = True
worker = __torch__.Counter.__new__(__torch__.Counter)
_0 = (worker).__init__(torch.len(names), )
return (torch.mul(pair.x, pair.scale), table, text, flag, (worker).more(2, ), None if flag else -1)
"""
    more = """
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
    result = module(body, more=more)(plait.ones(1))
    assert result[0].tolist() == [0.25]
    assert result[1:] == ({"n": 3, "total": 5}, "5/0-0", False, 5, -1)


def test_functions_within_and_methods_of_operators() -> None:
    body = """
y = torch.mul(x, 2)
def __forked_function():
  z = torch.add(x, y)
  return torch.neg(z)
future = fork(__forked_function)
one = __torch__.Point.__new__(__torch__.Point)
_0 = (one).__init__(3, )
kind = 0
if torch.ne(ops.prim.dtype(x), 11):
  kind = ops.prim.dtype(x)
return (torch.wait(future), (one).__eq__(one, ), torch.zeros([2], dtype=kind))
"""
    more = """
class Point:
  at : int
  def __init__(self: __torch__.Point, at: int) -> NoneType:
    self.at = at
    return None
  def __eq__(self: __torch__.Point, other: __torch__.Point) -> bool:
    return torch.eq(self.at, other.at)
"""
    total, same, zeros = module(body, more=more)(plait.ones(1))
    assert total.tolist() == [-3.0] and same is True and zeros.dtype == plait.float32


def test_packed_sequences() -> None:
    body = """
data, sizes, = torch._pack_padded_sequence(x, lengths, False)
out, counts, = torch._pad_packed_sequence(torch.mul(data, 2), sizes, False, 0., 0)
return (out, sizes, counts)
"""
    x = plait.arange(6.0).reshape(3, 2, 1)
    out, sizes, counts = module(body, "x: Tensor, lengths: Tensor")(x, plait.tensor([3, 1]))
    assert sizes.tolist() == [2, 1, 1] and counts.tolist() == [3, 1]
    assert out[:, :, 0].tolist() == [[0.0, 2.0], [4.0, 0.0], [8.0, 0.0]]


def test_memory_is_released_after_the_last_use() -> None:
    body = """
a = torch.mul(x, 2)
b = torch.mul(a, 2)
c = torch.mul(b, 2)
for i in range(2):
  if y is not None:
    c = torch.add(c, y)
return c
"""
    call = module(body, "x: Tensor, y: Optional[Tensor]=None")
    assert call(plait.ones(1), plait.ones(1)).tolist() == [10.0]
    code = call.script_class.methods["forward"].call.__code__
    assert {"a", "b", "c", "x", "y"} <= set(code.co_varnames)


@pytest.mark.parametrize(
    "body",
    [
        "return eval(x)",
        "return __import__('os')",
        "return x.__class__",
        "return (x).__reduce__()",
        "return self._modules",
        "return (self).register_buffer(x, )",
        "return (self).save('file', )",
        "return (lambda: 1)()",
        "return [y for y in x]",
        "return f'{x}'",
        "import os\nreturn x",
        "global x\nreturn x",
        "return print.__self__",
        "return torch.storage",
        "return CONSTANTS.c0",
        "return CONSTANTS.__len__",
        "return x(*x)",
        "return __torch__.nothing(x)",
        "return ops.prim.exec(x)",
        "_ts_0 = x\nreturn _ts_0",
        "return getattr(self, '__dict__')",
        "torch = x\nreturn torch",
        "return y",
        "return torch.save(x, 'file')",
        "return torch.load('file')",
        "return torch.from_file('file')",
        "return ops.aten.from_file('file')",
        "return (x).numpy()",
    ],
)
def test_other_code_is_refused(body: str) -> None:
    call = module(body)
    with pytest.raises(ScriptError, match="TorchScript: "):
        call(plait.ones(1))


def test_damaged_archives_are_errors() -> None:
    numbers = random.Random(7)
    files = [(FILES / name).read_bytes() for name in ("scripted.pt", "traced.pt")]
    words = [b"eval", b"__class__", b"while True", b"(", b":", b"\n", b"  ", b"lambda: 1"]
    for _ in range(300):
        data = bytearray(numbers.choice(files))
        for _ in range(numbers.randint(1, 4)):
            place = numbers.randrange(len(data))
            if numbers.random() < 0.5:
                data[place] = numbers.randrange(256)
            else:
                data[place:place] = numbers.choice(words)
        try:
            _torchscript.load(io.BytesIO(bytes(data)))
        except (plait.CheckpointError, ScriptError):
            continue


def test_statements_out_of_place_are_refused() -> None:
    for body in ("continue", "if True:\n  break"):
        with pytest.raises(ScriptError, match=r"__torch__.py, line \d+: .* cannot be translated"):
            module(body)(plait.ones(1))


def test_arguments_of_other_kinds_are_type_errors() -> None:
    with pytest.raises(TypeError, match="size: dict, int do not fit"):
        module('return torch.size({"a": x}, 0)')(plait.ones(1))
    body = "return torch._convolution(x, w, None, [1], [0], [1], False, [0], 1)"
    call = module(body, "x: Tensor, w: Tensor")
    with pytest.raises(RuntimeError, match=r"`weight` must have 3 to 5 dimensions.*\(1, 1\)"):
        call(plait.ones(1, 1, 1), plait.ones(1, 1))


def test_little_packed_code_is_refused_before_it_is_read() -> None:
    file = io.BytesIO(archive("class M(Module):\n  training : bool\n").getvalue())
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as out:
        out.writestr("m/code/__torch__/long.py", "a = 1\n" * (1 << 19))
    with pytest.raises(plait.CheckpointError, match="bytes of code, which is too much"):
        _torchscript.load(io.BytesIO(file.getvalue()))


def test_large_and_deep_archives_are_refused() -> None:
    deep = "class M(Module):\n  training : bool\n  x = " + "(" * 150 + "1" + ",)" * 150 + "\n"
    with pytest.raises(ScriptError, match=r"parsed|nests more than"):
        _torchscript.load(archive(deep))
    zeros = b"\0" * (65 << 20)
    file = io.BytesIO(archive("class M(Module):\n  training : bool\n").getvalue())
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as out:
        out.writestr("m/code/__torch__/zeros.py", zeros)
    with pytest.raises(plait.CheckpointError, match="bytes of code, which is too much"):
        _torchscript.load(io.BytesIO(file.getvalue()))
    with pytest.raises(plait.CheckpointError, match="not a TorchScript archive"):
        _torchscript.load(io.BytesIO(b"nothing"))


def test_a_unit_of_functions(torch: Any) -> None:
    unit = torch.jit.CompilationUnit("""
        def above(x, low: float = 0.0):
            y = x * 2 - 1
            return y if bool((y > low).all()) else -y
    """)
    assert unit.above(torch.ones(2)).tolist() == [1.0, 1.0]
    assert unit.above(torch.ones(2), low=2.0).tolist() == [-1.0, -1.0]
    with pytest.raises(AttributeError, match="no function 'below'"):
        unit.below(1)


def test_torch_load_of_an_archive(torch: Any) -> None:
    """As PyTorch: a warning, then what `torch.jit.load` returns, if code is trusted."""
    data = archive("class M(Module):\n  training : bool\n").getvalue()
    with pytest.warns(UserWarning, match="looks like a TorchScript archive dispatching"):
        module = torch.load(io.BytesIO(data), weights_only=False)
    assert isinstance(module, torch.jit.ScriptModule)
    for only in ({}, {"weights_only": True}):
        with (
            pytest.warns(UserWarning, match="TorchScript archive"),
            pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with TorchScript"),
        ):
            torch.load(io.BytesIO(data), **only)


def test_exceptions_of_a_script_are_errors_of_torch_jit_too(torch: Any) -> None:
    class Own(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(f"{a} and {b}")

    def fail(x: int) -> int:
        if x == 0:
            raise ValueError("no rows")
        if x == 1:
            raise Own(1, 2)
        torch._assert(x == 2, "other size")
        return [x][x]

    class Layer(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: int) -> int:
            return fail(x)

    assert torch.jit.Error.__mro__[1] is Exception and torch.jit.Error.__name__ == "Error"
    layer = torch.jit.script(torch.nn.Sequential(torch.jit.script(Layer())))
    for call in (torch.jit.script(fail), layer):
        for x, kind, text in (
            (0, ValueError, "no rows"),
            (1, Own, "1 and 2"),
            (2, IndexError, "list index out of range"),
            (3, AssertionError, "other size"),
        ):
            with pytest.raises(torch.jit.Error, match=text) as caught:
                call(x)
            assert isinstance(caught.value, kind)
    with pytest.raises(ValueError, match="no rows") as caught:
        torch.jit.script(fail)(0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, torch.jit.Error) and isinstance(again, ValueError)
    with pytest.raises(torch.jit.Error, match="AssertionError: bad 3"):
        torch.jit.load(FILES / "scripted.pt")(torch.ones(1, 4, 4))
