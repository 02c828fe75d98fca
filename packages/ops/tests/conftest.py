"""The operators, defined; no kernels are needed here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import plait_ops
from plait_ops.spec import REGISTRY


@pytest.fixture(scope="session", autouse=True)
def _defined() -> None:
    plait_ops.load()


@pytest.fixture
def scratch() -> Iterator[None]:
    """Operators that a test specifies are forgotten after it."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)
