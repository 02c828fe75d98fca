"""Pages of the reference: a table first, and the names that programs use."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from public_names import public, rewritten
from reference_pages import MODULES, pages_of


@pytest.mark.parametrize("name", ["plait_nn", "plait_nn.init", "plait_optim.lr_scheduler"])
def test_a_page_has_a_table_of_its_names(name: str) -> None:
    pages = pages_of(importlib.import_module(name))
    home = public(name)
    for file, text in pages.items():
        names = re.findall(rf"^\.\. auto(?:class|function):: {re.escape(home)}\.(\w+)$", text, re.M)
        rows = re.findall(rf"^\| \{{py:obj\}}`\w+ <{re.escape(home)}\.(\w+)>` \| \S", text, re.M)
        assert not any(each.startswith("_") for each in names + rows), file
        if len(names) > 1:
            assert rows == names, file
    assert f"`{home}`" in pages["index"] and "plait_" not in pages["index"]


@pytest.mark.parametrize("name", [each for each in MODULES if each != "plait_onnx"])
def test_public_names_of_modules_are_right(name: str) -> None:
    shown = importlib.import_module(public(name))
    module = importlib.import_module(name)
    for each in module.__all__:
        if hasattr(shown, each):  # a lazy module gives it at its first use
            assert getattr(shown, each) is getattr(module, each), each
        else:
            assert each.startswith("_"), each


def test_examples_import_plait() -> None:
    lines = [
        "See `plait_nn.functional.conv2d` and `plait_core.overrides.ask`.",
        ">>> import plait_core as pc, plait_nn as nn",
        ">>> nn.Linear(2, 1)(pc.ones(1, 2)).shape",
        ">>> import plait_nn.functional as F",
    ]
    assert rewritten(lines) == [
        "See `plait.nn.functional.conv2d` and `plait_core.overrides.ask`.",
        ">>> import plait",
        ">>> from plait import nn",
        ">>> nn.Linear(2, 1)(plait.ones(1, 2)).shape",
        ">>> import plait.nn.functional as F",
    ]
