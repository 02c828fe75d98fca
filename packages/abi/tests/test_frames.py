"""The frame of a program's own code, for warnings and call sites."""

from __future__ import annotations

import pathlib
import sys
import warnings
from typing import Any

import pytest

from plait_abi.binding import is_own_file
from plait_abi.frames import user_frame, warn


def _function(file: str, text: str) -> Any:
    """Return the function `f` of a source that is said to be in a file."""
    space: dict[str, Any] = {"user_frame": user_frame, "warn": warn, "__name__": "somewhere"}
    exec(compile(text, file, "exec"), space)
    return space["f"]


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/site-packages/plait_nn/_module.py", True),
        ("/site-packages/plait_torch/_amp.py", True),
        ("/site-packages/plait_distributed/_calls.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("/home/me/plait_experiments/train.py", False),
        ("/home/me/plait/train.py", False),
        ("<stdin>", False),
    ],
)
def test_own_files(path: str, own: bool) -> None:
    assert is_own_file(path) is own


def test_files_of_all_packages_are_own() -> None:
    folders = pathlib.Path(__file__).parents[2].glob("*/src/plait_*")
    names = [folder.name for folder in folders if folder.name.isidentifier()]
    assert "plait_abi" in names
    assert [name for name in names if not is_own_file(f"/site-packages/{name}/a.py")] == []


def test_a_path_is_a_string() -> None:
    with pytest.raises(TypeError, match="is_own_file: a str is required, got int"):
        is_own_file(3)  # type: ignore[arg-type]


def test_the_user_frame_is_around_own_frames() -> None:
    inner = _function("/x/plait_nn/a.py", "def f():\n    return user_frame()")
    assert inner() is sys._getframe()
    theirs = _function("/x/their.py", "def f(call):\n    return call()")
    assert theirs(inner).f_code.co_filename == "/x/their.py"


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_a_warning_names_the_line_of_the_program(depth: int) -> None:
    text = "def f(n):\n    return f(n - 1) if n else warn('careful', FutureWarning)"
    function = _function("/x/plait_core/b.py", text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = sys._getframe().f_lineno + 1
        function(depth)
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (__file__, line)
    assert warning.category is FutureWarning
