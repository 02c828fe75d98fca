"""All packages state one version, and one command writes another into all of them."""

from __future__ import annotations

import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import versions  # noqa: E402


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the files of the repository in which versions stand."""
    for _, file, _ in versions.places():
        target = tmp_path / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    return tmp_path


def test_the_repository_agrees() -> None:
    assert versions.check() == []


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("packages/nn/pyproject.toml", 'version = "{}"', 'version = "9.9.9"'),
        ("packages/nn/pyproject.toml", '"plait-abi~={}"', '"plait-abi~=9.9.9"'),
        ("packages/torch/pyproject.toml", '"plait~={}"', '"plait~=9.9.9"'),
        ("packages/core/src/plait_core/__init__.py", '"{}"', '"9.9.9"'),
        ("packages/core/cpp/kernel/plugin.cpp", '"{}"', '"9.9.9"'),
        ("packages/abi/src/plait_abi/pkgconfig/plait-abi.pc", "Version: {}", "Version: 9.9.9"),
        ("examples/tape/pyproject.toml", '"plait-ops~={}"', '"plait-ops~=9.9.9"'),
    ],
)
def test_every_place_is_compared(tree: pathlib.Path, file: str, old: str, new: str) -> None:
    text = (tree / file).read_text()
    old = old.format(versions.version())
    assert old in text
    (tree / file).write_text(text.replace(old, new, 1))
    (line,) = versions.check(tree)
    assert line.startswith(f"{file}:")
    assert line.endswith(f"version {versions.version()} is required, got 9.9.9")


def test_a_version_is_written_everywhere(tree: pathlib.Path) -> None:
    front, _, last = versions.version("torch").rpartition(".")
    versions.write("9.9.9", tree)
    assert versions.check(tree) == []
    assert {versions.version(name, tree) for name in ("plait", "abi", "ray")} == {"9.9.9"}
    # PyTorch's version with a number of our own
    assert versions.version("torch", tree) == f"{front}.{int(last) + 1}"
    versions.write("9.9.9", tree)
    assert versions.version("torch", tree) == f"{front}.{int(last) + 1}"


def test_three_numbers_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        versions.main(["9.9"])
    assert "three numbers" in capsys.readouterr().err
