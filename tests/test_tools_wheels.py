"""A wheel's key changes with the wheel's sources, and with nothing else."""

from __future__ import annotations

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from package_graph import build_order, closure, load_all  # noqa: E402

from wheels import Builder, source_files  # noqa: E402


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """plait-abi, plait-ops that is built with it, and plait-data that is not compiled."""
    _package(tmp_path, "abi", [], compiled=True)
    _package(tmp_path, "ops", ["plait-abi"], compiled=True)
    _package(tmp_path, "core", ["plait-abi", "plait-ops"], compiled=True)
    _package(tmp_path, "data", [], compiled=False)
    _write(tmp_path / "packages/abi/src/plait_abi/include/plait/abi.h", "int abi;\n")
    _write(tmp_path / "packages/abi/cpp/runtime.cpp", "int runtime;\n")
    return tmp_path


def _write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _package(root: pathlib.Path, name: str, needs: list[str], *, compiled: bool) -> None:
    folder = root / "packages" / name
    _write(folder / "src" / f"plait_{name}" / "__init__.py", "")
    _write(folder / "tests" / "test_one.py", "")
    if compiled:
        _write(folder / "setup.py", "")
    _write(
        folder / "pyproject.toml",
        f"[build-system]\nrequires = {['setuptools', *needs]}\n"
        f"[project]\nname = 'plait-{name}'\ndependencies = {needs}\n",
    )


def _changed(tree: pathlib.Path, before: dict[str, str]) -> list[str]:
    return [name for name, key in _keys(tree).items() if key != before[name]]


def _keys(tree: pathlib.Path, flavour: str = "") -> dict[str, str]:
    builder = Builder(sys.executable, flavour, tree)
    return {name: builder.key(name) for name in builder.packages}


def test_equal_trees_have_equal_keys(tree: pathlib.Path) -> None:
    before = _keys(tree)
    (tree / "packages/data/src/plait_data/__init__.py").touch()
    assert _changed(tree, before) == []


@pytest.mark.parametrize(
    ("file", "rebuilt"),
    [
        ("data/src/plait_data/new.py", ["data"]),
        ("abi/cpp/runtime.cpp", ["abi"]),
        ("abi/src/plait_abi/include/plait/abi.h", ["abi", "core", "ops"]),
        ("abi/src/plait_abi/build/_link.py", ["abi", "core", "ops"]),
        ("ops/src/plait_ops/specs/pointwise/activations.py", ["core", "ops"]),
        ("core/cpp/pointwise/activations.h", ["core"]),
        ("core/tests/test_one.py", []),
        ("core/src/plait_core/lib/libplait_core.so", []),
        ("core/src/plait_core/__pycache__/x.cpython-311.pyc", []),
    ],
)
def test_a_change_rebuilds_dependent_files(
    tree: pathlib.Path, file: str, rebuilt: list[str]
) -> None:
    before = _keys(tree)
    _write(tree / "packages" / file, "changed\n")
    assert _changed(tree, before) == rebuilt


def test_flags_change_the_keys_of_compiled_packages(
    tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _keys(tree)
    monkeypatch.setenv("PLAIT_BUILD_FLAGS", "-O0")
    assert _changed(tree, before) == ["abi", "core", "ops"]


def test_sanitized_wheels_lie_apart(tree: pathlib.Path) -> None:
    plain, sanitized = _keys(tree), _keys(tree, "asan")
    assert plain["abi"] != sanitized["abi"]
    assert Builder(sys.executable, "asan", tree).folder.name.endswith("-asan")


def test_tests_and_build_results_are_no_sources(tree: pathlib.Path) -> None:
    folder = tree / "packages/abi"
    _write(folder / "build/plait/objects/a.o", "")
    names = {path.relative_to(folder).as_posix() for path in source_files(folder)}
    assert names == {
        "pyproject.toml",
        "setup.py",
        "cpp/runtime.cpp",
        "src/plait_abi/__init__.py",
        "src/plait_abi/include/plait/abi.h",
    }


def test_packages_are_built_after_their_dependencies() -> None:
    packages = load_all()
    order = build_order(packages)
    assert sorted(order) == sorted(packages)
    for name, package in packages.items():
        for needed in (*package.needs, *package.build_needs):
            assert order.index(needed) < order.index(name)


def test_the_umbrella_reaches_every_default_strand() -> None:
    packages = load_all()
    reached = set(closure(["plait"], packages))
    assert reached == set(packages) - {
        "conformance",
        "torch",
        "mpi",
        "ucx",
        "ray",
        "cuda",
        "graph",
        "onnx",
    }


def test_a_circle_is_an_error(tree: pathlib.Path) -> None:
    _package(tree, "nn", ["plait-optim"], compiled=False)
    _package(tree, "optim", ["plait-nn"], compiled=False)
    with pytest.raises(ValueError, match="nn -> optim -> nn"):
        closure(["nn"], load_all(tree))


def test_extras_count_of_packages_that_others_need_too() -> None:
    packages = load_all()
    for first in packages:
        reached = closure([first, "multiprocessing"], packages, tests=True)
        assert set(packages["multiprocessing"].test_needs) <= set(reached)
        assert all(set(packages[name].needs) <= set(reached[:i]) for i, name in enumerate(reached))


def test_data_needs_no_other_strand() -> None:
    assert closure(["data"], load_all(), tests=True) == ["data"]


def test_native_wheels_are_others_in_the_same_folder(tree: pathlib.Path) -> None:
    every = Builder(sys.executable, "", tree)
    native = Builder(sys.executable, "native", tree)
    assert native.folder == every.folder  # a later build of all levels reuses the objects
    before, after = _keys(tree), _keys(tree, "native")
    compiled = {name for name, package in every.packages.items() if package.compiled}
    assert {name for name in before if before[name] != after[name]} == compiled


def test_native_wheels_of_another_processor_are_built_anew(
    tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, native = _keys(tree), _keys(tree, "native")
    monkeypatch.setattr("wheels._processor", lambda: "flags : fpu sse2")
    assert _keys(tree) == every
    assert {name for name in native if native[name] == _keys(tree, "native")[name]} == {
        name
        for name, package in Builder(sys.executable, "", tree).packages.items()
        if not package.compiled
    }


def test_the_wheel_of_kernels_depends_on_its_architectures(tree: pathlib.Path) -> None:
    _package(tree, "cuda", ["plait-abi"], compiled=True)
    none, one = (Builder(sys.executable, "", tree, architectures=a) for a in ("none", "90"))
    assert [name for name in none.packages if none.key(name) != one.key(name)] == ["cuda"]
