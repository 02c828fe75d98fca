"""docs/tutorial/writing-an-operator.md: its steps in a copy of the repository.

What needs no build runs always: skeletons, formulas, the tests of specs, and the compiler's opinion
of the C++. Building takes minutes, so the rest runs where PLAIT_BUILD_TUTORIAL is set, as
`nox -s tutorial` does.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plait_abi

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import new_op  # noqa: E402

PAGE = (ROOT / "docs" / "tutorial" / "writing-an-operator.md").read_text()
BLOCK = re.compile(
    r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
BLOCKS = dict(BLOCK.findall(PAGE))
NAMES = ("log1mexp", "exponential_average", "geometric_mean")
CHOSEN = " or ".join(NAMES)


def commands() -> list[list[str]]:
    """Return the arguments of the page's calls of new-op."""
    result = re.findall(r"^\$ nox -s new-op -- (.*)$", PAGE, re.MULTILINE)
    return [shlex.split(line) for line in result]


def write_operators(root: Path) -> None:
    """Do what the page says up to its first check: skeletons, then its blocks in their place."""
    for name, *options in commands():
        arguments = dict(zip(options[::2], options[1::2], strict=True))
        kind = arguments.get("--kind", "pointwise")
        definition, data, *kernel = new_op.write(name, kind, root, arguments["--family"])
        skeleton = new_op.KINDS[kind]
        for path, text in ((definition, skeleton.definition), (data, skeleton.data)):
            first = text.partition("\n")[0].replace("NAME", name)
            before = path.read_text().partition(first)[0]
            path.write_text(before + BLOCKS[path.relative_to(root).as_posix()])
        for path in kernel:
            block = BLOCKS[path.relative_to(root).as_posix()]
            if path.suffix == ".h":
                written = new_op.SCALAR.replace("NAME", name)
                assert written in path.read_text()
                block = path.read_text().replace(written, block)
            path.write_text(block)


def environment(root: Path) -> dict[str, str]:
    paths = [str(path) for path in sorted(root.glob("packages/*/src"))]
    paths += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run(command: list[str], root: Path, timeout: int = 120) -> str:
    done = subprocess.run(
        command, cwd=root, env=environment(root), capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what defines operators, with those of the page."""
    root = tmp_path_factory.mktemp("repository")
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "include", "lib", "build")
    for folder in ("packages/ops/src/plait_ops", "packages/core/cpp"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    tests = root / "packages/ops/tests"
    tests.mkdir()
    shutil.copy(ROOT / "packages/ops/tests/test_specs.py", tests)
    write_operators(root)
    return root


def test_every_block_has_its_place(tree: Path) -> None:
    programs = {"try_formulas.py", "use_operators.py", "measure_operators.py"}
    assert {name for name in BLOCKS if not (tree / name).exists()} == programs
    assert tuple(name for name, *_ in commands()) == NAMES
    assert len(BLOCKS) == PAGE.count("{code-block}")


def test_formulas_in_numpy(tree: Path) -> None:
    (tree / "try_formulas.py").write_text(BLOCKS["try_formulas.py"])
    run([sys.executable, "-W", "error", "try_formulas.py"], tree)


def test_the_tests_of_specs_pass(tree: Path) -> None:
    tests = ["packages/ops/tests/test_specs.py", "-q", "-k", CHOSEN, "-p", "no:cacheprovider"]
    counted = run([sys.executable, "-m", "pytest", "--confcutdir", str(tree), *tests], tree)
    assert re.search(r"\d+ passed", counted) and "failed" not in counted


def test_the_kernels_compile(tree: Path) -> None:
    run([sys.executable, "-m", "plait_ops.emit", "--kernels", "generated"], tree)
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    flags += ["-Ipackages/core/cpp", "-Igenerated", f"-I{plait_abi.paths()['include']}"]
    units = (tree / "generated").glob("*.cpp")
    (unit,) = [unit for unit in units if "PLAIT_POINTWISE(log1mexp," in unit.read_text()]
    for file in (unit, tree / "packages/core/cpp/reduction/exponential_average.cpp"):
        run([*compiler, *flags, str(file)], tree)


@pytest.mark.skipif(
    "PLAIT_BUILD_TUTORIAL" not in os.environ, reason="building takes minutes: nox -s tutorial"
)
def test_the_operators_build_and_pass_their_tests(tmp_path: Path) -> None:
    root = tmp_path / "plait"
    ignored = shutil.ignore_patterns(".git", ".venv", ".nox*", "__pycache__")
    shutil.copytree(ROOT, root, ignore=ignored)
    write_operators(root)
    build = ["tools/dev.py", "--no-install", "abi", "ops", "core", "autograd"]
    run([sys.executable, *build], root, timeout=3600)
    tests = [f"packages/{name}/tests" for name in ("ops", "core", "autograd")]
    for folder in tests:
        command = [sys.executable, "-m", "pytest", folder, "-q", "-k", CHOSEN]
        run([*command, "-p", "no:cacheprovider"], root, timeout=1800)
    for name in ("use_operators.py", "measure_operators.py"):
        (root / name).write_text(BLOCKS[name])
        run([sys.executable, "-W", "error", name], root)
