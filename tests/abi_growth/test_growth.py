"""Components run on a runtime of the next minor version: engine, kernels and optimizers of today,
and plug-ins that are compiled for each version whose header is stored.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import check_abi
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSIONS = sorted(folder.name for folder in check_abi.STORED.iterdir())
MAJOR, MINOR = (int(number) for number in check_abi.version().split("."))
PLUGINS = ROOT / "examples" / "plugins"


def run(later: pathlib.Path, *arguments: str) -> str:
    path = os.pathsep.join([str(later), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def compiled(name: str, include: pathlib.Path, out: pathlib.Path, *flags: str) -> pathlib.Path:
    library = out / f"{name}.so"
    compiler = os.environ.get("CC", "cc").split()
    options = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-lpthread"]
    source = str(PLUGINS / f"{name}.c")
    command = [*compiler, source, f"-I{include}", *options, *flags, "-lm", "-o", str(library)]
    subprocess.run(command, check=True)
    return library


VERSION = """
import ctypes, plait_abi
library = ctypes.CDLL(plait_abi.__path__[0] + "/lib/libplait_abi.so")
library.plait_runtime_v0.restype = ctypes.POINTER(ctypes.c_uint16)
size_low, size_high, major, minor = library.plait_runtime_v0()[:4]
print(plait_abi.__path__[0], major, minor)
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_the_runtime_is_later_and_no_layout_broke(
    later_runtime: pathlib.Path, version: str
) -> None:
    words = [f"{later_runtime}/plait_abi", str(MAJOR), str(MINOR + 1)]
    assert run(later_runtime, "-c", VERSION).split() == words
    folders = (check_abi.STORED / version, later_runtime / "plait_abi" / "include")
    old, new = (check_abi.layout(folder) for folder in folders)
    assert not list(check_abi.compare(old, new))
    assert all(new.sizes[name] > old.sizes[name] for name in set(old.sizes) - {*check_abi.FROZEN})


SCRIPT = """
import sys, ctypes, plait_abi, plait_core as pc, plait_autograd
plait_abi.load(sys.argv[1])
x = pc.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
kept = pc.rand(100)  # more than a handle has room for
y = (x @ x).exp().sum() + kept.mean()
y.backward()
assert x.grad.shape == (2, 2)
if "example-operator" in repr(plait_abi.report()):
    cube = plait_abi.operator("example_cube")
    z = pc.tensor([2.0], requires_grad=True)
    cube(z).backward()
    assert z.grad.tolist() == [12.0], z.grad
if "example-device" in repr(plait_abi.report()):
    w = pc.rand(3, 4, device="ext", requires_grad=True)
    ((w.t() @ w) * 2).sum().backward()
    there = w.detach().to("cpu").requires_grad_()
    ((there.t() @ there) * 2).sum().backward()
    assert w.grad.to("cpu").tolist() == there.grad.tolist()
print("ran", pc.memory_stats()["live_bytes"] > 0)
"""


@pytest.mark.parametrize(
    "name", ["allocator", "device", "executor", "matmul", "observer", "operator"]
)
@pytest.mark.parametrize("header", ["stored", "target"])
@pytest.mark.parametrize("version", VERSIONS)
def test_plugins_run(
    later_runtime: pathlib.Path, tmp_path: pathlib.Path, name: str, header: str, version: str
) -> None:
    if header == "stored":
        library = compiled(name, check_abi.STORED / version, tmp_path)
    else:
        include = later_runtime / "plait_abi" / "include"
        target = f"-DPLAIT_TARGET=PLAIT_VERSION({version.replace('.', ',')})"
        library = compiled(name, include, tmp_path, target)
    assert run(later_runtime, "-c", SCRIPT, str(library)).split() == ["ran", "True"]


@pytest.mark.parametrize("name", ["matmul", "operator"])
def test_plugins_for_a_later_runtime_are_refused_by_todays(
    later_runtime: pathlib.Path, tmp_path: pathlib.Path, name: str
) -> None:
    include = later_runtime / "plait_abi" / "include"
    library = compiled(name, include, tmp_path, "-Wno-missing-field-initializers")
    code = f"import plait_core, plait_abi; plait_abi.load({str(library)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"example-{name} was built for plait ABI {MAJOR}.{MINOR + 1}" in done.stderr
    assert "PLAIT_TARGET" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--role", "engine"],
        ["--role", "optimizer"],
        ["--role", "kernels.cpu"],
    ],
    ids=["engine", "optimizer", "kernels"],
)
def test_our_own_components_pass_the_conformance_kit(
    later_runtime: pathlib.Path, arguments: list[str]
) -> None:
    options = ["-q", "-p", "no:cacheprovider", "--pyargs", "plait_conformance"]
    assert " passed" in run(later_runtime, "-m", "pytest", *options, *arguments)


@pytest.mark.parametrize(
    "file",
    [
        "packages/core/tests/test_views.py",
        "packages/autograd/tests/test_backward.py",
        "packages/core/tests/test_exchange.py",
        "packages/core/tests/test_indexing.py",
        "packages/core/tests/test_random.py",
        "packages/multiprocessing/tests/test_groups.py",
        "packages/profiler/tests",
    ],
)
def test_tests_of_components_pass(later_runtime: pathlib.Path, file: str) -> None:
    assert (ROOT / file).exists()
    assert " passed" in run(later_runtime, "-m", "pytest", "-q", "-p", "no:cacheprovider", file)
