"""Errors about arguments of the wrong kind, from a function's annotations."""

from __future__ import annotations

import importlib
import pathlib
import zipfile
from collections.abc import Sequence
from typing import Any

import pytest

from plait_abi.arguments import name_arguments, passes_on


def half(size: int, factor: float | None = None) -> float:
    return size // 2 + (factor or 0)


def total(sizes: int | Sequence[int], names: Sequence[str] = ()) -> int:
    return sum(sizes if isinstance(sizes, (list, tuple)) else [sizes - 0]) + len("".join(names))


def refuses(size: int) -> None:
    if size != 3:
        raise TypeError("my own words")


@passes_on
def hands_on(value: int) -> Any:
    return pytest.approx(value)


def unknown(value: Missing) -> Any:  # type: ignore[name-defined]  # noqa: F821
    return value.size


MODULE: dict[str, Any] = {
    "__name__": "mine",
    "__all__": ["half", "hands_on", "refuses", "total", "unknown"],
    **{each.__name__: each for each in (half, hands_on, refuses, total, unknown)},
}
name_arguments(MODULE)


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("half", ("a",), "half: `size` must be an int, got str"),
        ("half", (None,), "half: `size` must be an int, got None"),
        ("half", (4, "a"), "half: `factor` must be a number or None, got str"),
        ("total", ("a",), "total: `sizes` must be an int or a sequence of ints, got str"),
        ("total", ([""],), "total: `sizes` must be an int or a sequence of ints, got str in it"),
        ("total", (1, [3]), "total: `names` must be a sequence of strings, got int in it"),
        ("refuses", ("a",), "my own words"),
    ],
)  # fmt: skip
def test_the_argument_is_named(name: str, args: tuple[Any, ...], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        MODULE[name](*args)
    assert str(caught.value) == text


def test_correct_files_are_unchanged() -> None:
    assert MODULE["half"](4, 0.5) == 2.5 and MODULE["total"]([1, 2], ["a"]) == 4
    assert MODULE["hands_on"] is hands_on and MODULE["half"] is not half
    with pytest.raises(TypeError, match="missing 1 required positional"):
        MODULE["half"]()
    with pytest.raises(AttributeError, match="'int' object has no attribute 'size'"):
        MODULE["unknown"](3)


def test_own_words_stay_in_a_module_of_an_archive(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
from plait_abi.arguments import name_arguments

__all__ = ["refuses"]

def refuses(size: int) -> None:
    if size != 3:
        raise TypeError("my own words")

name_arguments(globals())
"""
    archive, name = tmp_path / "archive.zip", "module_of_an_archive"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"{name}.py", source)
    monkeypatch.syspath_prepend(str(archive))
    module = importlib.import_module(name)
    with pytest.raises(TypeError, match="my own words"):
        module.refuses("a")
