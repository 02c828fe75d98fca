"""Examples see Python's builtins: plait_core has a `float`, a `round` and a `max` of its own."""

from __future__ import annotations

import builtins
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _examples_see_builtins(doctest_namespace: dict[str, Any]) -> None:
    names = {name: value for name, value in vars(builtins).items() if not name.startswith("_")}
    doctest_namespace.update(names)
