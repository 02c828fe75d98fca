"""The engine of examples/tape: chosen by name, conforming; the kit finds its faulty variants."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plait_abi

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "tape"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of plait_tape, built as its author would build it."""
    folder = tmp_path_factory.mktemp("tape") / "tape"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "*.so"))
    subprocess.run([sys.executable, "setup.py", "build_inplace"], cwd=folder, check=True)
    return folder / "src"


def run(code: str, package: Path, **environment: str) -> str:
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


TRAIN = """
import sys, plait
{choice}
from plait import nn, optim
plait.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Dropout(0.2), nn.Linear(36, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 5))
optimizer = optim.Adam(model.parameters(), lr=1e-2)
images, labels = plait.randn(32, 1, 8, 8), plait.randint(0, 5, (32,))
for step in range(30):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(loss.item())
with plait.no_grad():
    assert not model(images).requires_grad
import plait_abi
print([r.provider for r in plait_abi.records() if (r.kind, r.name) == ("role", "engine")])
print(plait.autograd.__name__, "plait_autograd" in sys.modules)
"""


def test_a_network_learns_the_same_with_either_engine(package: Path) -> None:
    first = run(TRAIN.format(choice=""), package).splitlines()
    second = run(TRAIN.format(choice='plait.use(autograd="plait_tape")'), package).splitlines()
    assert first[-2:] == ["['plait_autograd']", "plait_autograd True"]
    assert second[-2:] == ["['plait_tape']", "plait_tape False"]
    losses = [[float(line) for line in lines[:-2]] for lines in (first, second)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[1][-1] < 0.5 * losses[1][0]


STEPS = """
import sys, plait
{choice}
from plait_optim._component import operator

def doubles(*values):
    return plait.tensor(values, dtype=plait.float64, requires_grad=True)

for name, lists in (("sgd_step", 1), ("adam_step", 3), ("rmsprop_step", 3), ("adadelta_step", 2)):
    p, g, s = doubles(0.5, 1.0, -1.0), doubles(1.0, -2.0, 3.0), doubles(2.0, 3.0, 2.5)
    stepped, kept = p * 1, [[s * 0.5**i] for i in range(lists)]
    operator(name)([stepped], [g], *kept, [2])
    ((stepped * stepped).sum() + sum((k * k).sum() for [k] in kept)).backward()
    print(name, p.grad.tolist(), g.grad.tolist(), s.grad.tolist())
"""


def test_composites_are_differentiated(package: Path) -> None:
    first = run(STEPS.format(choice=""), package)
    second = run(STEPS.format(choice='plait.use(autograd="plait_tape")'), package)
    assert first == second and first.count("_step") == 4


def test_the_environment_chooses_it(package: Path) -> None:
    out = run(
        """
import sys, plait_core as pc, plait_abi
x = pc.ones(2, requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist(), "plait_tape" in sys.modules, "plait_autograd" in sys.modules)
print(plait_abi.report())
""",
        package,
        PLAIT_COMPONENTS="autograd=plait_tape",
    )
    assert out.startswith("[2.0, 2.0] True False")
    assert re.search(r"component +autograd +plait_tape +0\.1\.0\n", out)
    assert re.search(r"role +engine +plait_tape +0\.1\.0", out)


def test_it_takes_over_and_gives_back(package: Path) -> None:
    out = run(
        """
import plait_core as pc, plait_autograd, plait_tape, plait_abi

def engines():
    return [(r.name, r.provider) for r in plait_abi.records()
            if r.kind == "role" and r.name == "engine"]

def active():
    return [r.provider for r in plait_abi.records()
            if (r.kind, r.name, r.active) == ("role", "engine", True)]

print(active())
x = pc.tensor([1.0, 2.0], requires_grad=True)
y = (x * x).sum()
y.backward()
plait_tape.release()
print(active())
z = pc.tensor([1.0, 2.0], requires_grad=True)
(z * z).sum().backward()
print(x.requires_grad, (x * 2).requires_grad, z.grad.tolist())  # x was the other one's
plait_abi.load(plait_abi.paths("plait_tape")["libplait_tape.so"])
print(active(), x.requires_grad, x.grad.tolist())
(x * x).sum().backward()
print(x.grad.tolist())
for use in (z.requires_grad_, (z * 2).sum().backward):
    try:
        use()
    except RuntimeError as error:
        print(error)
""",
        package,
    ).splitlines()
    assert out[:3] == ["['plait_tape']", "['plait_autograd']", "False False [2.0, 4.0]"]
    assert out[3:5] == ["['plait_tape'] True [2.0, 4.0]", "[4.0, 8.0]"]
    assert "history of another engine" in out[5] and "detach()" in out[5]
    assert "does not require grad" in out[6]


def test_functions_of_users_work_with_it(package: Path) -> None:
    out = run(
        """
import plait_core as pc, plait_autograd as pa, plait_tape
from plait_autograd import forward_ad

class Cube(pa.Function):
    @staticmethod
    def forward(ctx, x):
        y = x ** 3
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * 3 * y / x

x = pc.tensor([2.0], requires_grad=True)
Cube.apply(x).sum().backward()
print(x.grad.tolist())
try:
    pa.grad(Cube.apply(x).sum(), x, create_graph=True)
except NotImplementedError as error:
    print(error)
for use in (
    lambda: x.register_hook(print),
    lambda: pa.checkpoint(pc.exp, x, use_reentrant=False),
    lambda: pa.set_detect_anomaly(True),
    lambda: (x * 2).grad_fn.next_functions,
    lambda: forward_ad.dual_level().__enter__(),
):
    try:
        use()
        print("nothing was said")
    except NotImplementedError as error:
        print(error)
""",
        package,
    ).splitlines()
    assert out[0] == "[12.0]" and len(out) == 7
    assert "create_graph" in out[1]
    assert all("plait_autograd's" in line for line in out[1:])


def test_an_output_in_an_input_s_memory_is_void_once_that_is_written(package: Path) -> None:
    out = run(
        """
import plait_core as pc, plait_autograd as pa, plait_tape
from plait_autograd import forward_ad

class Same(pa.Function):
    @staticmethod
    def forward(ctx, x):
        return x.detach()

    @staticmethod
    def backward(ctx, g):
        return g * 10

for write in (lambda y, z: z.mul_(2), lambda y, z: z[1:].zero_(), lambda y, z: y.mul_(2)):
    y = pc.ones(3, requires_grad=True) * 1
    z = Same.apply(y)
    try:
        write(y, z)
        (z * 2).sum()
        print("nothing was said")
    except NotImplementedError as error:
        print(error)
""",
        package,
    ).splitlines()
    assert len(out) == 3 and all("clone()" in line for line in out)


def test_random_programs_that_write_are_right_or_refused(package: Path) -> None:
    tests = EXAMPLE.parents[1] / "packages" / "autograd" / "tests" / "test_random_programs.py"
    out = run(
        f"""
import importlib.util, plait_abi, plait_autograd, plait_tape
spec = importlib.util.spec_from_file_location("programs", {str(tests)!r})
programs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(programs)
programs.REASONS = ["clone()", "out-of-place form"] * 2  # what its refusals advise
print([sum(programs.compare(seed, functions) for seed in range(300)) for functions in (0, 1)])
print([r.provider for r in plait_abi.records() if (r.name, r.active) == ("engine", True)])
""",
        package,
    ).splitlines()
    right = [int(word) for word in re.findall(r"\d+", out[0])]
    assert min(right) > 100 and max(right) < 290
    assert out[1] == "['plait_tape']"


def test_a_program_without_python_trains_with_it(package: Path, tmp_path: Path) -> None:
    program = tmp_path / "train"
    paths = plait_abi.paths()
    link = [paths["libplait_abi.so"], f"-Wl,-rpath,{paths['lib']}"]
    source = str(EXAMPLE.parent / "native" / "train.cpp")
    command = [*os.environ.get("CXX", "c++").split(), "-std=c++17", f"-I{paths['include']}"]
    subprocess.run([*command, source, *link, "-o", str(program)], check=True)
    core = plait_abi.paths("plait_core")
    parts = [
        plait_abi.paths("plait_ops")["libplait_ops.so"],
        core["libplait_core.so"],
        core["libplait_cpu_base.so"],
        str(package / "plait_tape" / "lib" / "libplait_tape.so"),
    ]
    done = subprocess.run([str(program), *parts], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "step 2000" in done.stdout


# ---- the kit -------------------------------------------------------------------------------------
def run_kit(*options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line"]
    done = subprocess.run(
        [*command, "--pyargs", "plait_conformance", "--role", "engine", *options],
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_first_engine_conforms() -> None:
    code, text = run_kit("--provider", "plait_autograd")
    assert code == 0, text
    assert "failed" not in text and int(re.findall(r"(\d+) passed", text)[-1]) > 500


def test_the_second_engine_conforms(package: Path) -> None:
    library = str(package / "plait_tape" / "lib" / "libplait_tape.so")
    code, text = run_kit("--provider", "plait_tape", "--load", library)
    assert code == 0, text
    assert "failed" not in text and int(re.findall(r"(\d+) passed", text)[-1]) > 500


def test_an_engine_that_is_not_there_is_named() -> None:
    code, text = run_kit("--provider", "nobody", "-k", "leaf")
    assert code != 0 and "'nobody'" in text and "--load" in text


# Each change, with a test that must fail.
MUTANTS = {
    "accumulation": (
        "graph.cpp",
        "add(thread, old, gradient)",
        "clone(thread, gradient)",
        "test_gradients_accumulate",
    ),
    "shared results": (
        "backward.cpp",
        "sum ? add(thread_, sum, g) : std::move(g)",
        "std::move(g)",
        "test_a_result_that_is_used_often_gathers_all_gradients",
    ),
    "versions": (
        "backward.cpp",
        "if (version(t) != s.version)",
        "if (false)",
        "test_an_overwritten_value_is_an_error",
    ),
    "views": (
        "views.cpp",
        "base_sequence(t) == (h ? h->base : 0)",
        "h",
        "test_writes_into_views_are_right_or_refused",
    ),
    "modes": (
        "role.cpp",
        "thread->excluded |= engine.bit;",
        "return;",
        "test_nothing_is_recorded_within_no_grad",
    ),
}


def compile_object(source: Path) -> Path:
    compiler = os.environ.get("CXX", "c++").split()
    flags = ["-std=c++17", "-O0", "-fPIC", f"-I{plait_abi.paths()['include']}"]
    result = source.with_suffix(".o")
    subprocess.run([*compiler, *flags, "-c", str(source), "-o", str(result)], check=True)
    return result


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The unchanged object files of the engine, by the names of their sources."""
    folder = tmp_path_factory.mktemp("objects")
    shutil.copytree(EXAMPLE / "cpp", folder, dirs_exist_ok=True)
    return {path.name: compile_object(path) for path in sorted(folder.glob("*.cpp"))}


@pytest.mark.parametrize("forgotten", MUTANTS)
def test_the_kit_notices_an_engine_that_forgets(
    forgotten: str, objects: dict[str, Path], tmp_path: Path
) -> None:
    name, old, new, test = MUTANTS[forgotten]
    text = (EXAMPLE / "cpp" / name).read_text()
    assert text.count(old) == 1, f"{name} has changed: where does it say {old!r} now?"
    shutil.copy(EXAMPLE / "cpp" / "tape.hpp", tmp_path)
    (tmp_path / name).write_text(text.replace(old, new))
    parts = {**objects, name: compile_object(tmp_path / name)}
    library = tmp_path / "wrong.so"
    compiler = os.environ.get("CXX", "c++").split()
    link = [*compiler, "-shared", *map(str, parts.values()), "-o", str(library)]
    subprocess.run(link, check=True)
    code, text = run_kit("--load", str(library), "-k", "not test_derivative")
    assert code == 1, text
    assert test in text
