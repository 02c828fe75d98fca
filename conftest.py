"""Ctrl-C reaches the tests, and processes that they spawn find their modules. Examples see Python's
builtins, as core has a `float` of its own, and write files into folders of their own.
"""

from __future__ import annotations

import builtins
import pathlib
import signal
import sys
from typing import Any

import pytest

# A shell lets its background jobs ignore Ctrl-C, and what they start; some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Spawned processes get the path, and find `packages.ucx.tests.test_meeting` below it.
sys.path.append(str(pathlib.Path(__file__).parent))


@pytest.fixture(autouse=True)
def _examples_see_builtins(doctest_namespace: dict[str, Any]) -> None:
    names = {name: value for name, value in vars(builtins).items() if not name.startswith("_")}
    doctest_namespace.update(names)


@pytest.fixture(autouse=True)
def _examples_write_elsewhere(request: pytest.FixtureRequest) -> None:
    if type(request.node).__name__ == "DoctestItem":
        folder = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").chdir(folder)
