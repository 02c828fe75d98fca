"""The examples in the docstrings run, and public names have docstrings."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import os
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import plait_optim as optim

SHOWN = [
    info.name
    for info in pkgutil.walk_packages(optim.__path__, "plait_optim.")
    if ">>>" in (importlib.util.find_spec(info.name).loader.get_source(info.name) or "")  # type: ignore[union-attr]
]


@pytest.mark.parametrize("name", SHOWN)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("module", [optim, optim.lr_scheduler])
def test_every_name_shows_an_example(module: ModuleType) -> None:
    things = [getattr(module, name) for name in module.__all__]
    visible = [thing for thing in things if not inspect.ismodule(thing)]
    assert visible
    assert not [thing for thing in visible if ">>>" not in (inspect.getdoc(thing) or "")]


def test_names() -> None:
    assert set(optim.__all__) <= set(dir(optim))
    assert optim.lr_scheduler.__all__ == sorted(optim.lr_scheduler.__all__)


def test_importing_loads_neither_core_nor_numpy() -> None:
    code = (
        "import sys, plait_optim; "
        "print([m for m in sys.modules if m in ('numpy', 'plait_core', 'plait_autograd', 'torch')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
