"""Children of forks in the kit's tests: what fails or hangs there fails the test."""

from __future__ import annotations

import os
import time

import pytest

from plait_conformance import _memory

hangs = False


def hang() -> None:
    """Hang in the fork itself, before the child comes to its work, if a test requests it."""
    while hangs:
        time.sleep(0.05)


os.register_at_fork(after_in_child=hang)


def test_a_child_that_ends_passes() -> None:
    _memory.in_child(lambda: None)


def test_a_child_that_raises_fails() -> None:
    with pytest.raises(AssertionError, match="in the child of a fork: ZeroDivisionError"):
        _memory.in_child(lambda: 1 // 0)


def test_a_child_that_hangs_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "CHILD_SECONDS", 0.2)
    with pytest.raises(AssertionError, match=r"did not end in 0\.2 s"):
        _memory.in_child(lambda: time.sleep(60))
    monkeypatch.setattr(f"{__name__}.hangs", True)
    with pytest.raises(AssertionError, match=r"did not end in 0\.2 s"):
        _memory.in_child(lambda: None)
