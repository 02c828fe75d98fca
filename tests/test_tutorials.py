"""The Python of the documentation runs, each page from top to bottom, as a reader would type it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plait_abi

ROOT = Path(__file__).resolve().parents[1]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# the cells of a page that the site shows with their outputs are Python too
BLOCK = re.compile(r"^```(?:python|\{code-cell\} python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FENCE = re.compile(r"^(```+|~~~+|:::+)(.*)$", re.MULTILINE)
NOT_RUN = {"", "console", "text", "pycon", "c", "cpp", "rust", "javascript"}


def pages() -> list[Path]:
    folders = [ROOT / "docs" / name for name in ("guides", "tutorial")]
    results = [path for folder in folders for path in sorted(folder.glob("*.md"))]
    return [ROOT / "README.md", ROOT / "docs" / "index.md", *results]


def program(page: Path) -> str:
    """Return the page's Python, each line at its number in the page, so that errors point there."""
    text = page.read_text()
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines) + "\n"


def compile_plugin(folder: Path, name: str = "matmul") -> None:
    """Do what docs/guides/replacing.md has a reader do in the shell: make matmul.so."""
    cc = os.environ.get("CC", "cc").split()
    source, library = ROOT / "examples" / "plugins" / f"{name}.c", folder / f"{name}.so"
    packages = ("plait_abi", "plait_graph") if name == "compiler" else ("plait_abi",)
    flags = ["-std=c11", "-O2", "-shared", "-fPIC"]
    flags += [f"-I{plait_abi.paths(package)['include']}" for package in packages]
    subprocess.run([*cc, *flags, str(source), "-o", str(library), "-lpthread"], check=True)


def compile_tvm_functions(folder: Path) -> None:
    """Do what docs/guides/native.md has a reader do in the shell: make tvm_functions.so."""
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="needs apache-tvm-ffi")
    source, library = ROOT / "examples/native/tvm_functions.cpp", folder / "tvm_functions.so"
    headers = [f"-I{each}" for each in tvm_ffi.libinfo.include_paths()]
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", *headers]
    cxx = os.environ.get("CXX", "c++").split()
    subprocess.run([*cxx, *flags, str(source), "-o", str(library)], check=True)


def build_engine(folder: Path) -> Path:
    """Do what docs/tutorial/second-engine.md has a reader do: build plait_tape."""
    package = folder / "tape"
    ignored = shutil.ignore_patterns("build", "*.so")
    shutil.copytree(ROOT / "examples" / "tape", package, ignore=ignored)
    subprocess.run([sys.executable, "setup.py", "build_inplace"], cwd=package, check=True)
    return package / "src"


def name_of(page: Path) -> str:
    return "/".join(page.relative_to(ROOT).with_suffix("").parts[-2:])


WITH_CODE = [page for page in pages() if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    if page.stem == "replacing":
        compile_plugin(tmp_path)
    if page.stem == "onnx":
        pytest.importorskip("onnx")
    if page.stem == "first-network":
        pytest.importorskip("matplotlib")
    if page.stem == "native":
        compile_tvm_functions(tmp_path)
    path = [os.environ.get("PYTHONPATH", "")]
    if page.stem == "profiling":
        path.insert(0, str(ROOT / "examples"))
    if page.stem == "languages":
        path.insert(0, str(ROOT / "tools" / "bindings"))
    if page.stem == "second-engine":
        path.insert(0, str(build_engine(tmp_path)))
    script = tmp_path / f"page_{page.stem}.py"  # no name of a module
    script.write_text(program(page))
    # A process of its own: pages set seeds and threads, and load plug-ins.
    run = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, (
        f"{page.relative_to(ROOT)} (line numbers are the page's)\n{run.stderr}"
    )


def test_pages_with_code_are_found() -> None:
    names = {page.stem for page in WITH_CODE}
    assert {"first-network", "custom-layer", "custom-function"} <= names
    assert {"pytorch", "autograd", "memory", "performance", "replacing", "index"} <= names
    assert "README" in names


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_no_code_hides_under_another_name(page: Path) -> None:
    opened, names = "", set()
    for fence, name in FENCE.findall(page.read_text()):
        if not opened:
            opened = fence
            names.add(name.strip())
        elif fence == opened and not name.strip():
            opened = ""
    assert not opened, f"{page.relative_to(ROOT)}: a block is not closed"
    others = {name for name in names if name not in NOT_RUN | {"python"} and name[0] != "{"}
    assert not others, f"{page.relative_to(ROOT)}: tag Python code `python`, not {sorted(others)}"


def commands(page: Path) -> str:
    """Return what a reader types in the shell, installations apart."""
    lines = [line for block in CONSOLE.findall(page.read_text()) for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines)
    return "\n".join(line[2:] for line in lines if not line.startswith("$ pip install"))


@pytest.mark.parametrize("name", ["replacing", "conformance", "native", "second-engine"])
def test_the_commands_of_a_page_run(name: str, tmp_path: Path) -> None:
    page = next(page for page in pages() if page.stem == name)
    if "pkg-config" in commands(page) and not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not installed")
    if "tvm-ffi-config" in commands(page) and not shutil.which("tvm-ffi-config"):
        pytest.importorskip("tvm_ffi", reason="needs apache-tvm-ffi")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "mypackage.py").write_text(
        "from plait_optim import SGD\n\n\nclass Lion(SGD):\n    pass\n\n\nShampoo = Lion\n"
    )
    path = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    if name == "conformance":
        for each in ("matmul", "device", "allocator", "executor", "compiler"):
            compile_plugin(tmp_path, each)
    if "plait_tape" in commands(page):
        path.insert(0, str(build_engine(tmp_path)))
    bin_folder = Path(sys.executable).parent
    (tmp_path / "bin").mkdir()
    for command, prefix in (("python", ""), ("pytest", "-m pytest")):
        tool = tmp_path / "bin" / command
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {prefix} "$@"\n')
        tool.chmod(0o755)
    run = subprocess.run(
        ["bash", "-e", "-c", commands(page)],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": os.pathsep.join([str(tmp_path / "bin"), str(bin_folder), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(path),
            # the kit finds, loads and collects what it is told; its tests run elsewhere
            "PYTEST_ADDOPTS": "--collect-only -q -p no:cacheprovider",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, f"{name}: {run.stdout[-3000:]}{run.stderr}"
    if name == "native":
        assert "step 2000" in run.stdout
    else:
        assert "test_" in run.stdout
