"""A new interpreter for tests that need one; tests beside another library run where it is."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

collect_ignore = [] if importlib.util.find_spec("torch") else ["test_torch.py"]


@pytest.fixture
def in_new_process() -> Callable[..., str]:
    """Return a function that runs code in a new interpreter, with variables of the environment by
    keyword, and returns what it printed.
    """

    def run(code: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
            timeout=240,
        )
        return done.stdout.strip()

    return run


@pytest.fixture(params=["plait", "torch"])
def style(request: pytest.FixtureRequest) -> str:
    """Return the format of checkpoints: the tests run in both."""
    if request.param == "torch":
        pytest.importorskip("plait_torch")
    return str(request.param)


@pytest.fixture
def by_threads() -> Callable[..., list[Any]]:
    """Return a function that calls another one with each of some numbers of threads, and returns
    the results.
    """
    import plait_core as pc

    def run(compute: Callable[[], Any], counts: tuple[int, ...] = (1, 2, 5)) -> list[Any]:
        before, results = pc.get_num_threads(), []
        try:
            for count in counts:
                pc.set_num_threads(count)
                results.append(compute())
        finally:
            pc.set_num_threads(before)
        return results

    return run


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let plait compute with one thread during a test: peaks of memory depend on their number."""
    import plait_core as pc

    before = pc.get_num_threads()
    pc.set_num_threads(1)
    yield
    pc.set_num_threads(before)
