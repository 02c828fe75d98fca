"""Loads the operators, without kernels."""

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
    """Remove the operators that a test specifies after the test."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)
