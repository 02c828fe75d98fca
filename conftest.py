"""The common set-up of all tests: Ctrl-C, modules for spawned processes, seeds, examples, and a
limit of time.

Examples see Python's builtins, as core has a `float` of its own, and write files into folders of
their own. A test that is over its limit (pytest-timeout; pyproject.toml has the number) ends the
run with the stacks of its threads and of its child processes.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import pathlib
import random
import signal
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable
from typing import Any

import pytest

# A shell lets its background jobs ignore Ctrl-C, and what they start; some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Python processes that tests start print their stacks when a time limit ends them.
os.environ.setdefault("PYTHONFAULTHANDLER", "1")

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


@pytest.fixture
def left_in_shared_memory() -> Callable[[], set[str]]:
    """A function that returns plait's new names in /dev/shm that no other process uses.

    Tests of other groups run at the same time, and their files come and go. It looks again for five
    seconds, as a process maps its file a moment after it has made it.
    """
    # of locks, MPI, UCX and browsers, which also leave some when they are killed
    others = ("sem.", "sm_segment.", "mpich_shm_", "ucx_shm_", ".org.chromium.")
    before = set(os.listdir("/dev/shm"))

    def left() -> set[str]:
        deadline = time.monotonic() + 5
        while True:
            new = set(os.listdir("/dev/shm")) - before
            names = {name for name in new if not name.startswith(others) and not _is_used(name)}
            if not names or time.monotonic() > deadline:
                return names
            time.sleep(0.1)

    return left


def _is_used(name: str) -> bool:
    path = f"/dev/shm/{name}".encode()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        if folder.name != str(os.getpid()):
            with contextlib.suppress(OSError):
                if path in (folder / "maps").read_bytes():
                    return True
    return False


def _seed(config: pytest.Config, text: str) -> None:
    """Let the default generators begin at numbers of a text and of the option --seed.

    plait's begins at random ones otherwise, and what a test draws would depend on the tests before.
    """
    number = zlib.crc32(f"{text} {config.getoption('seed', 0)}".encode())
    random.seed(number)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(number)
    core = sys.modules.get("plait_core")
    if (generator := getattr(core, "default_generator", None)) is not None:
        generator.manual_seed(number)


@pytest.hookimpl(tryfirst=True)
def pytest_collectstart(collector: pytest.Collector) -> None:
    if isinstance(collector, pytest.Module):
        _seed(collector.config, collector.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if "tests/attack/" not in item.nodeid:  # whose seeds vary, and are printed
        _seed(item.config, item.nodeid)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--first-of-each",
        action="store_true",
        help="run each test function once, with its first parameters, and none that is marked "
        "repeats or long",
    )
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="run one in N cases of each test function",
    )
    parser.addoption(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="what tests draw without a seed of their own is the same in each run; N: other draws",
    )
    parser.addoption("--slow", action="store_true", help="run the tests that are marked slow, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("slow", False):
        _select(config, items, {item for item in items if not item.get_closest_marker("slow")})
    if config.getoption("first_of_each", False):
        once = [item for item in items if not _is_left_out(item)]
        first = {item.nodeid.partition("[")[0]: item for item in reversed(once)}
        _select(config, items, set(first.values()))

    if (step := config.getoption("one_in", 1)) > 1:
        cases: dict[str, list[pytest.Item]] = {}
        for item in items:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        _select(config, items, {item for each in cases.values() for item in each[::step]})


def _is_left_out(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("repeats", "long"))


def _select(config: pytest.Config, items: list[pytest.Item], selection: set[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item not in selection])
    items[:] = [item for item in items if item in selection]


class _Watch:
    """One thread that ends the run when a test is over its limit.

    pytest-timeout would start a thread for each test. Its other way, SIGALRM, does not reach a main
    thread that waits in C, and some tests use this signal themselves.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[float, Any, Any] | None = None
        self._thread: threading.Thread | None = None

    def begin(self, item: Any, settings: Any) -> None:
        with self._lock:
            self._running = (time.monotonic() + settings.timeout, item, settings)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="time limit", daemon=True)
            self._thread.start()

    def end(self) -> None:
        with self._lock:
            self._running = None

    def _run(self) -> None:
        import pytest_timeout

        while True:
            time.sleep(1)
            # the lock is kept to the end: a test that goes on without its children cannot pass
            with self._lock:
                if self._running is None or self._running[0] > time.monotonic():
                    continue
                _, item, settings = self._running
                if not settings.disable_debugger_detection and pytest_timeout.is_debugging():
                    self._running = None
                    continue
                try:
                    self._end_run(item, settings)
                except BaseException:
                    traceback.print_exc(file=sys.__stderr__)
                finally:
                    os._exit(1)

    def _end_run(self, item: Any, settings: Any) -> None:
        import pytest_timeout

        terminal = item.config.get_terminal_writer()
        capture = item.config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(item)
        terminal.sep("+", title=f"{item.nodeid} is over its limit of {settings.timeout:g} s")
        for text in capture.read_global_capture() if capture is not None else ():
            terminal.write(text)
        pytest_timeout.dump_stacks(terminal)
        terminal.flush()
        terminal.write(_end_children())
        terminal.flush()


_watch = _Watch()


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: Any, settings: Any) -> bool:
    _watch.begin(item, settings)
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_cancel_timer(item: Any) -> bool:
    _watch.end()
    return True


def _end_children() -> str:
    """End all processes below this one, and return what they were.

    SIGABRT lets those that have faulthandler, as all that are forked, print their stacks first.
    """
    lines = []
    for pid in _descendants(os.getpid()):
        with contextlib.suppress(OSError):
            folder = pathlib.Path(f"/proc/{pid}")
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            threads = [
                f"{(thread / 'comm').read_text().strip()} in {(thread / 'wchan').read_text()}"
                for thread in (folder / "task").iterdir()
            ]
            lines.append(f"child {pid}: {words[:300]}\n  threads: {'; '.join(threads)}\n")
            os.kill(pid, signal.SIGABRT)
    if lines:
        time.sleep(3)  # they print
    return "".join(lines)


def _descendants(pid: int) -> list[int]:
    results = []
    for file in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                results += [child, *_descendants(child)]
    return results
