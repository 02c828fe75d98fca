"""Public names are PyTorch's, and those that the page of our own names gives a reason for."""

from __future__ import annotations

import importlib
import json
import pathlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import plait
from plait_ops import specs
from plait_ops.spec import NAMESPACES

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTORCH: dict[str, list[str]] = json.loads((ROOT / "tests/torch_names.json").read_text())["names"]
PAGE = (ROOT / "docs/reference/own_names.md").read_text(encoding="utf-8")


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield what the page says: (module, name, reason)."""
    for section in PAGE.split("\n## ")[1:]:
        heading = re.match(r"`plait\.?([\w.]*)`\n", section)
        assert heading, section
        for cell, reason in re.findall(r"^\| (`.*?) \| (.+) \|$", section, re.MULTILINE):
            for name in re.findall(r"`(\w+)`", cell):
                yield heading[1], name, reason


ROWS = list(rows())
PLACES: dict[str, Any] = {
    name: importlib.import_module(f"plait.{name}") for name in PYTORCH if name not in ("", "Tensor")
} | {"": plait, "Tensor": plait.Tensor}


def public(place: Any) -> set[str]:
    """Return the public names of a class; of a package, with its modules; of a file, its
    ``__all__``.
    """
    is_file = hasattr(place, "__all__") and not hasattr(place, "__path__")
    results = {each.name for each in pkgutil.iter_modules(getattr(place, "__path__", ()))}
    results.update(place.__all__ if is_file else dir(place))
    return {name for name in results if not name.startswith("_")}


@pytest.mark.parametrize("place", PYTORCH)
def test_names_are_pytorchs_or_have_a_reason(place: str) -> None:
    ours = public(PLACES[place]) - set(PYTORCH[place])
    assert ours == {name for where, name, _ in ROWS if where == place}


def test_the_page_is_in_order() -> None:
    assert {where for where, _, _ in ROWS} <= set(PYTORCH)
    assert len({(where, name) for where, name, _ in ROWS}) == len(ROWS)
    assert all(reason.strip().endswith(".") for _, _, reason in ROWS)


def test_the_walk_finds_the_names() -> None:
    assert {"exp", "exp_", "nn", "no_grad", "float32"} <= public(plait)
    assert {"exp", "exp_", "view", "shape"} <= public(plait.Tensor)
    assert "relu" in public(plait.nn.functional) and "solve" in public(plait.linalg)


def test_operators_are_where_pytorch_has_them() -> None:
    """Also those that a name in Python hides, which `dir` does not tell apart."""
    wrong = []
    for spec in specs.all():
        name = spec.schema.base
        space, _, short = name.partition("_")
        if space in NAMESPACES and short:
            continue
        for variant, result, place in (
            ("function", name, ""),
            ("function_", name + "_", ""),
            ("method", name, "Tensor"),
            ("method", name + "_" * spec.inplace, "Tensor"),
        ):
            if variant in spec.variants and result not in PYTORCH[place]:
                wrong.append((spec.name, variant))
    assert not wrong
