"""Bundles: a library of one graph's operators, for this machine and for another one."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_autograd
import plait_core as pc
import plait_nn as nn
from plait_graph import _bundle_sources, bundle, export, load
from plait_graph._bundle_needs import ALL, Convolution, Needs, Product, joined, needs_of
from plait_graph._bundle_sources import Level, select

HERE = Path(__file__).parent
TOOL = sorted((HERE.parent / "cpp" / "tool").glob("*.cpp"))
COMPILER = os.environ.get("CXX", "c++").split()
ARM = "aarch64-linux-gnu"
EMULATOR = next(filter(shutil.which, ("qemu-aarch64", "qemu-aarch64-static")), "qemu-aarch64")

# Those that compile for minutes; nox -s replay runs them.
long = pytest.mark.skipif("PLAIT_LONG_BUNDLES" not in os.environ, reason="PLAIT_LONG_BUNDLES")

# Runs a bundle in a process that has nothing of plait.
RUN = """
import importlib.util, sys
import numpy as np
spec = importlib.util.spec_from_file_location("c_interface", sys.argv[1])
c = importlib.util.module_from_spec(spec)
spec.loader.exec_module(c)
run = c.Run(c.load(sys.argv[2]), sys.argv[3])
run.set(c.INPUT, 0, np.load(sys.argv[4]).tobytes())
run.execute()
dtype, shape, data = run.read(c.OUTPUT, 0)
np.save(sys.argv[5], np.frombuffer(data, dtype).reshape(shape))
assert not any(name.startswith("plait") for name in sys.modules)
"""


class LeNet(nn.Module):
    """The network of examples/mnist.py."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
        )

    def forward(self, x: Any) -> Any:
        return self.layers(x)


def compiler_for(machine: str) -> None:
    command = [*COMPILER, "-dumpmachine"]
    if not shutil.which(COMPILER[0]):
        pytest.skip(f"{COMPILER[0]} is not installed")
    if not subprocess.run(command, capture_output=True, text=True).stdout.startswith(machine):
        pytest.skip(f"{COMPILER[0]} does not compile for {machine}")


def level() -> Level:
    """Return the level of the kernels that this process runs."""
    names = plait_abi.paths("plait_core")
    has_avx2 = {"avx2", "fma", "f16c"} <= set(Path("/proc/cpuinfo").read_text().split())
    return "avx2" if has_avx2 and "libplait_cpu_avx2.so" in names else "base"


def saved(model: nn.Module, x: Any, folder: Path) -> tuple[Path, np.ndarray[Any, Any]]:
    """Write a model and an input; return the file and the output."""
    path = folder / "model.safetensors"
    export(model.eval(), (x,), path)
    np.save(folder / "x.npy", x.numpy())
    return path, load(path)(x).numpy()


def exported_names(library: Path) -> set[str]:
    text = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    return set(re.findall(r" T (\w+)", text))


@pytest.mark.long
def test_a_bundle_has_the_bits_of_the_runtime_and_the_functions_of_the_header(
    tmp_path: Path,
) -> None:
    """And it says which operator it has not."""
    compiler_for(os.uname().machine)
    pc.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    path, expected = saved(model, pc.randn(3, 8), tmp_path)
    library = tmp_path / "out" / "libmodel.so"
    bundle(path, library, level=level())
    header = (library.parent / "plait" / "run.h").read_text()
    assert exported_names(library) == set(re.findall(r"\b(plait_run_\w+)\(", header))
    assert library.stat().st_size < 600_000
    result = tmp_path / "y.npy"
    command = [sys.executable, "-c", RUN, HERE / "c_interface.py", library]
    subprocess.run([*command, path, tmp_path / "x.npy", result], check=True)
    np.testing.assert_array_equal(np.load(result), expected)
    other = tmp_path / "other.safetensors"
    export(lambda x: pc.cumsum(x, 0), (pc.ones(3, 8),), other)
    done = subprocess.run(
        [*command, other, tmp_path / "x.npy", result], capture_output=True, text=True
    )
    assert 'there is no operator "cumsum"' in done.stderr


# What is selected


def test_what_a_graph_needs(tmp_path: Path) -> None:
    path, _ = saved(LeNet(), pc.randn(1, 1, 28, 28), tmp_path)
    needs = needs_of(load(path).graph)
    assert needs.operators is not None
    assert {"max_pool2d", "linear", "view"} <= needs.operators
    assert needs.dtypes == {"float32", "bool", "int64"}
    assert needs.convolutions == {
        Convolution(5, (1, 1, 6, 28, 28, 1)),
        Convolution(5, (1, 6, 16, 10, 10, 1)),
    }
    assert not needs.has_sizes
    layers = {Product((1, n, k), turned=True) for n, k in ((120, 400), (84, 120), (10, 84))}
    patches = {Product((6, 28 * 28, 25)), Product((16, 10 * 10, 150))}
    assert needs.products == layers | patches
    assert needs.of_floats == needs.operators
    selection = select(needs, "base", "x86_64")
    files = {job.source.stem for job in selection.sources}
    assert "convolution" in files and "svd" not in files
    assert '"linear"' in selection.generated["selection.h"]
    for name in ("cumsum", "addmm", "leaky_relu"):  # the two are in decompositions
        assert f'"{name}"' not in selection.generated["selection.h"]
    sizes = selection.generated["product_sizes_of_program.h"]
    assert "ProductSizes{1, 120, 400, true, true}" in sizes
    assert ", false})" not in sizes
    assert "vjp_linear" not in "".join(selection.generated.values())


def test_groups_of_channels_and_halves_are_needed_where_a_graph_has_them(tmp_path: Path) -> None:
    model = nn.Conv2d(4, 4, 3, groups=4).bfloat16()
    x = pc.randn(1, 4, 8, 8).to(pc.bfloat16)
    export(model, (x,), tmp_path / "model")
    needs = needs_of(load(tmp_path / "model").graph)
    assert needs.convolutions == {Convolution(3, (1, 1, 1, 6, 6, 4))}
    assert {"bfloat16", "float32"} <= needs.dtypes


@long
def test_the_build_of_everything_has_every_kernel() -> None:
    selection = select(ALL, "base", "x86_64")
    kernels = {job.source for job in selection.sources} | set(selection.on_demand)
    assert set(selection.kernels.sources) <= kernels
    assert '"cumsum"' in selection.generated["selection.h"]


def test_what_several_graphs_need() -> None:
    one, other = Convolution(3, None), Convolution(5, (1, 1, 6, 28, 28, 1))
    a = Needs(frozenset({"relu"}), frozenset({"float32"}), frozenset({one}), False)
    b = Needs(frozenset({"conv2d"}), frozenset({"float64"}), frozenset({other}), True)
    both = joined([a, b])
    assert both.operators == {"relu", "conv2d"} and both.dtypes == {"float32", "float64"}
    assert both.convolutions == {one, other} and both.has_sizes
    assert both.products == {Product(None)} and not both.of_floats
    c = Needs(frozenset({"relu"}), frozenset(), frozenset(), False, of_floats=frozenset({"relu"}))
    assert joined([b, c]).of_floats == {"relu"} and not joined([a, c]).of_floats


def test_decompositions_are_kept_where_kernels_decline_dtypes(tmp_path: Path) -> None:
    model = nn.Linear(4, 4).bfloat16()
    export(model, (pc.ones(2, 4, dtype=pc.bfloat16),), tmp_path / "model")
    needs = needs_of(load(tmp_path / "model").graph)
    assert not needs.of_floats
    assert '"addmm"' in select(needs, "base", "x86_64").generated["selection.h"]


def test_products_of_other_operators_have_any_size(tmp_path: Path) -> None:
    export(lambda x, y: pc.bmm(x, y), (pc.ones(2, 3, 4), pc.ones(2, 4, 5)), tmp_path / "bmm")
    selection = select(needs_of(load(tmp_path / "bmm").graph), "base", "x86_64")
    assert ", false})" in selection.generated["product_sizes_of_program.h"]


def test_sizes_of_convolutions_that_are_free_or_of_a_derivative_are_not_known(
    tmp_path: Path,
) -> None:
    model = nn.Conv2d(4, 4, 3).eval()
    export(model, (pc.randn(2, 4, 8, 8),), tmp_path / "free", dynamic={"input": {0: "n"}})
    needs = needs_of(load(tmp_path / "free").graph)
    assert needs.has_sizes and needs.convolutions is not None
    assert Convolution(3, None) in needs.convolutions
    assert all(each.sizes is None for each in needs.convolutions)

    def step(x: Any) -> Any:
        (gradient,) = plait_autograd.grad([model(x).sum()], [model.weight])
        return gradient

    export(step, (pc.randn(2, 4, 8, 8),), tmp_path / "step", training=True)
    needs = needs_of(load(tmp_path / "step").graph)
    assert needs.convolutions is not None and Convolution(3, None) in needs.convolutions


def test_a_training_step_is_loaded_where_no_optimizer_was_used(tmp_path: Path) -> None:
    optim = pytest.importorskip("plait_optim")
    weight = nn.Parameter(pc.ones(2))
    optimizer = optim.SGD([weight], lr=0.5)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    path = tmp_path / "step.safetensors"
    export(step, (pc.ones(2),), path, training=True)
    program = "import sys; from plait_graph import load; print(len(load(sys.argv[1]).graph.nodes))"
    subprocess.run([sys.executable, "-c", program, path], check=True)


# Errors


@pytest.fixture
def double(tmp_path: Path) -> Path:
    path = tmp_path / "double.safetensors"
    export(lambda x: x * 2, (pc.ones(3),), path)
    return path


def fake_compiler(folder: Path, machine: str) -> str:
    """Return a program that says its machine and compiles nothing."""
    path = folder / "fake-c++"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = -dumpmachine ] && echo {machine} && exit\n'
        "echo no room on the device >&2\nexit 3\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_missing_compiler(double: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="a C\\+\\+ compiler is required; there is no 'nothing'"):
        bundle(double, tmp_path / "lib.so", compiler="nothing -O2")
    with pytest.raises(RuntimeError, match="there is no 'riscv64-none-g\\+\\+'"):
        bundle(double, tmp_path / "lib.so", target="riscv64-none")
    with pytest.raises(ValueError, match="an empty list"):
        bundle([], tmp_path / "lib.so", compiler=fake_compiler(tmp_path, "x86_64-linux-gnu"))


def test_a_compiler_that_fails(double: Path, tmp_path: Path) -> None:
    compiler = fake_compiler(tmp_path, "x86_64-linux-gnu")
    with pytest.raises(RuntimeError, match="failed:\nno room on the device"):
        bundle(double, tmp_path / "lib.so", compiler=compiler)
    assert not (tmp_path / "lib.so").exists()


def test_a_compiler_or_a_level_of_another_machine(double: Path, tmp_path: Path) -> None:
    compiler = fake_compiler(tmp_path, "aarch64-linux-gnu")
    with pytest.raises(ValueError, match="`target` is x86_64-linux-gnu"):
        bundle(double, tmp_path / "lib.so", compiler=compiler, target="x86_64-linux-gnu")
    with pytest.raises(ValueError, match="`level` of aarch64 is 'base'; got 'avx2'"):
        bundle(double, tmp_path / "lib.so", compiler=compiler, level="avx2")
    compiler = fake_compiler(tmp_path, "wasm32-unknown-emscripten")
    with pytest.raises(ValueError, match="`level` of wasm32 is 'simd128' or 'base'; got 'avx2'"):
        bundle(double, tmp_path / "x.wasm", compiler=compiler, target="wasm32", level="avx2")


def test_an_operator_without_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = _bundle_sources._texts
    monkeypatch.setattr(
        _bundle_sources, "_texts", lambda sources: texts(s for s in sources if s.name != "fft.cpp")
    )
    export(lambda x: pc.fft.fft(x), (pc.ones(4, dtype=pc.complex64),), tmp_path / "fft")
    compiler = fake_compiler(tmp_path, "x86_64-linux-gnu")
    with pytest.raises(NotImplementedError, match="`fft_c2c` has no kernel for the CPU"):
        bundle(tmp_path / "fft", tmp_path / "lib.so", compiler=compiler)


# Another machine, and the sizes that docs/guides/bundles.md tells


@long
def test_mnist_has_its_size(tmp_path: Path) -> None:
    compiler_for("x86_64")
    path, _ = saved(LeNet(), pc.randn(1, 1, 28, 28), tmp_path)
    bundle(path, tmp_path / "libmnist.so")
    assert (tmp_path / "libmnist.so").stat().st_size < 600_000


@long
def test_mnist_on_aarch64(tmp_path: Path) -> None:
    for program in (f"{ARM}-g++", EMULATOR):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    pc.manual_seed(0)
    path, expected = saved(LeNet(), pc.randn(1, 1, 28, 28), tmp_path)
    bundle(path, tmp_path / "libmnist.so", target=ARM)
    assert (tmp_path / "libmnist.so").stat().st_size < 614_400
    tool = tmp_path / "plait-run"
    command = [f"{ARM}-g++", "-std=c++17", f"-I{tmp_path}", f"-I{HERE.parent / 'cpp'}"]
    link = [tmp_path / "libmnist.so", "-Wl,-rpath,$ORIGIN", "-o", tool]
    subprocess.run([*command, *TOOL, *link], check=True)
    emulated = [EMULATOR, "-L", f"/usr/{ARM}", tool, path, tmp_path / "x.npy"]
    subprocess.run([*emulated, "-o", tmp_path / "y.npy"], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5, atol=1e-6)
