"""Ctrl-C reaches the tests, and processes that they spawn find their modules. Examples see Python's
builtins, as core has a `float` of its own, and write files into folders of their own. Each test has
a time limit.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Generator
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


# ---- the time limit: see tools/time_limit.py -----------------------------------------------------
# Seconds, for a test with its fixtures, on a busy machine; 0: no limit, for a debugger.
_LIMIT = float(os.environ.get("PLAIT_TEST_SECONDS", "900"))
_LATE = f"the test has not ended in {_LIMIT:g} s; the stacks are on standard error"
_FILE = pathlib.Path(__file__).parent / "tools" / "time_limit.py"


class _TimeLimit:
    """Tells the process that watches the time which test runs."""

    def __init__(self) -> None:
        specification = importlib.util.spec_from_file_location("_time_limit", _FILE)
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        self._is_late = False
        self._errors = os.dup(2)  # pytest captures the descriptor 2 in tests
        faulthandler.register(module.DUMP, self._errors, all_threads=True)
        signal.signal(module.FAIL, self._fail)
        os.environ.setdefault("PYTHONFAULTHANDLER", "1")  # processes of tests print stacks too
        reader, self._writer = os.pipe()
        command = [sys.executable, "-S", "-E", str(_FILE), str(os.getpid()), str(_LIMIT)]
        subprocess.run(
            command, stdin=reader, stdout=subprocess.DEVNULL, stderr=self._errors, check=True
        )
        os.close(reader)

    def _fail(self, *_: object) -> None:
        self._is_late = True
        pytest.fail(_LATE)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._is_late = False
        self._tell(item.nodeid)
        try:
            return (yield)
        finally:
            self._tell("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        if self._is_late and report.passed:  # the exception was lost, as in a destructor
            report.outcome, report.longrepr = "failed", _LATE
        self._is_late = self._is_late and not report.failed
        return report

    def _tell(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._writer, name.replace("\n", " ").encode()[:2000] + b"\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--first-of-each",
        action="store_true",
        help="run each test function once, with its first parameters",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("first_of_each"):
        return
    first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
    kept = set(first.values())
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_configure(config: pytest.Config) -> None:
    if _LIMIT > 0 and sys.platform == "linux" and _FILE.exists():
        config.pluginmanager.register(_TimeLimit())
