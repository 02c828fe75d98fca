"""The check of imports between packages finds every kind of error."""

from __future__ import annotations

import pathlib
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

import check_imports  # noqa: E402


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """Three packages that keep the layering."""
    _package(tmp_path, "abi", [], "import ctypes\n")
    _package(tmp_path, "data", ["numpy"], "import numpy as np\n")
    _package(tmp_path, "optim", ["plait-abi~=0.1.0"], "import plait_abi\n", test=["numpy"])
    return tmp_path


def _package(
    root: pathlib.Path, name: str, needs: list[str], code: str, test: list[str] | None = None
) -> None:
    source = root / "packages" / name / "src" / f"plait_{name}"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text(code)
    (root / "packages" / name / "tests").mkdir()
    (root / "packages" / name / "pyproject.toml").write_text(
        f"[project]\nname = 'plait-{name}'\ndependencies = {needs}\n"
        f"[project.optional-dependencies]\ntest = {test or []}\n"
    )


def test_a_tree_that_keeps_the_layering_passes(tree: pathlib.Path) -> None:
    assert check_imports.check(tree) == []


def test_this_repository_keeps_the_layering() -> None:
    assert check_imports.check() == []


@pytest.mark.parametrize(
    "code",
    [
        "import plait_abi._record",
        "from plait_abi import _record",
        "from plait_abi._record import name",
        "from plait_abi.build._objects import compile_all",
    ],
)
def test_a_private_module_of_another_package_is_found(tree: pathlib.Path, code: str) -> None:
    (tree / "packages/abi/src/plait_abi/own.py").write_text(code)
    assert check_imports.check(tree) == []
    (tree / "packages/optim/src/plait_optim/extra.py").write_text(f"import importlib\n{code}\n")
    (result,) = check_imports.check(tree)
    assert "which is private to another package" in result


def test_an_entry_for_a_private_module_in_vain_is_found(
    tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(check_imports.PRIVATE, "optim", {"plait_abi._record"})
    (result,) = check_imports.check(tree)
    assert "optim no longer imports plait_abi._record" in result


@pytest.mark.parametrize(
    "code",
    [
        "import plait_abi",
        "from plait_abi import paths",
        "def later():\n    import plait_abi.build\n",
        "if False:\n    from plait_abi import *",
    ],
)
def test_a_forbidden_import_is_found(tree: pathlib.Path, code: str) -> None:
    (tree / "packages/data/src/plait_data/extra.py").write_text(code)
    (result,) = check_imports.check(tree)
    assert result.startswith("packages/data/src/plait_data/extra.py:")
    assert "imports plait_abi" in result
    assert "numpy" in result  # what it may import


def test_a_foreign_package_is_found(tree: pathlib.Path) -> None:
    (tree / "packages/optim/src/plait_optim/__init__.py").write_text("import numpy\n")
    (result,) = check_imports.check(tree)
    assert "plait_optim/__init__.py:1: imports numpy" in result


def test_a_forbidden_dependency_is_found(tree: pathlib.Path) -> None:
    path = tree / "packages/data/pyproject.toml"
    path.write_text(path.read_text().replace("'numpy'", "'numpy', 'plait-abi', 'scipy>=1'"))
    first, second = check_imports.check(tree)
    assert "depends on plait-abi" in first
    assert "depends on scipy>=1" in second


def test_tests_may_import_packages_of_their_extra(tree: pathlib.Path) -> None:
    path = tree / "packages/optim/tests/test_one.py"
    path.write_text("import numpy\nimport pytest\n")
    assert check_imports.check(tree) == []
    path.write_text("import plait_data\n")
    (result,) = check_imports.check(tree)
    assert "tests/test_one.py:1: imports plait_data" in result


def test_tests_may_import_optional_packages_with_importorskip(tree: pathlib.Path) -> None:
    path = tree / "packages/optim/tests/test_one.py"
    path.write_text("try:\n    import torch\nexcept ImportError:\n    torch = None\n")
    assert check_imports.check(tree) == []
    path.write_text("try:\n    import torch\nexcept ValueError:\n    torch = None\n")
    (result,) = check_imports.check(tree)
    assert "imports torch" in result


def test_the_build_helper_alone_may_import_setuptools(tree: pathlib.Path) -> None:
    folder = tree / "packages/abi/src/plait_abi"
    (folder / "build").mkdir()
    (folder / "build/_setuptools.py").write_text("import setuptools\n")
    assert check_imports.check(tree) == []
    (folder / "other.py").write_text("import setuptools\n")
    (result,) = check_imports.check(tree)
    assert "plait_abi/other.py:1" in result


def test_an_unknown_package_must_be_entered_in_the_table(tree: pathlib.Path) -> None:
    _package(tree, "quantum", [], "")
    with pytest.raises(SystemExit, match="add 'quantum' to RUN_TIME"):
        check_imports.check(tree)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("import importlib\nimportlib.import_module('json')\n", 1),
        ("from importlib import import_module as _import_module\n_import_module('json')\n", 1),
        ("import importlib\ndef f(n):\n    return importlib.import_module(n)\n", 0),
        ("def f():\n    import json\n    return json\n", 0),
    ],
)
def test_a_constant_name_is_imported_by_a_statement(
    tree: pathlib.Path, code: str, count: int
) -> None:
    (tree / "packages/abi/src/plait_abi/first.py").write_text(code)
    result = check_imports.check(tree)
    assert len(result) == count
    assert all("first.py:2: imports json by a function" in line for line in result)


CIRCLES = {
    "in functions": {
        "a.py": "def f():\n    from plait_data import b\n",
        "b.py": "from .a import f\n",
    },
    "of types": {
        "a.py": "if TYPE_CHECKING:\n    from plait_data.b import B\n",
        "b.py": "import plait_data.a\n",
    },
    "of a stub": {"a.pyi": "from plait_data.b import B\n", "b.py": "from plait_data.a import f\n"},
    "of three": {
        "a.py": "from plait_data import b\n",
        "b.py": "from plait_data.c import x\n",
        "c.py": "from . import a\n",
    },
    "of folders": {
        "one/__init__.py": "",
        "one/a.py": "from plait_data.two import c\n",
        "one/b.py": "",
        "two/__init__.py": "",
        "two/c.py": "",
        "two/d.py": "from ..one.b import x\n",
    },
}


def _write(tree: pathlib.Path, files: dict[str, str]) -> None:
    for name, code in files.items():
        path = tree / "packages/data/src/plait_data" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)


@pytest.mark.parametrize("kind", CIRCLES)
def test_a_circle_within_a_package_is_found(tree: pathlib.Path, kind: str) -> None:
    _write(tree, CIRCLES[kind])
    result = check_imports.check(tree)
    assert len(result) == (3 if kind == "of three" else 2)
    assert all("in a circle" in line for line in result)


def test_imports_downward_are_no_circle(tree: pathlib.Path) -> None:
    _write(tree, {"__init__.py": "from plait_data.a import f\nfrom plait_data import b\n"})
    _write(tree, {"a.py": "from plait_data import _compiled, b\n", "b.py": "import numpy\n"})
    assert check_imports.check(tree) == []


@pytest.mark.parametrize(
    "code", ["from plait_data import f", "from . import f", "import plait_data"]
)
def test_an_import_upward_is_found(tree: pathlib.Path, code: str) -> None:
    _write(tree, {"__init__.py": "def f(): pass\n", "b.py": code})
    (result,) = check_imports.check(tree)
    assert "packages/data/src/plait_data/b.py:1: imports a name from plait_data" in result
