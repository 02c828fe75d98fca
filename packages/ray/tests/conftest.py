"""One Ray instance for all tests, and one job of processes that call each other."""

from __future__ import annotations

import builtins
import contextlib
import gc
import os
import pathlib
import secrets
import signal
import subprocess
import sys
from typing import Any

import pytest

# Ray, which reads this when it is imported, starts processes with a low priority: beside the tests
# of other packages they would hardly get on
os.environ.setdefault("RAY_worker_niceness", "0")
# no wheel of ray for this version of Python: nothing here can be imported
pytest.importorskip("ray", reason="the package ray is not installed")

from plait_ray import _instance, rpc

# also Ray's workers, which have this process's environment, import the functions that tests call
_FOLDER = str(pathlib.Path(__file__).parent)
sys.path.insert(0, _FOLDER)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_FOLDER, os.environ.get("PYTHONPATH")]))

import remote_functions  # noqa: E402

# What ends behind the last test of this folder: tests of other folders need no Ray beside them, and
# no secret in their environment.
_ending = contextlib.ExitStack()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End what the tests of this folder share, behind the last of them."""
    if nextitem is None or pathlib.Path(_FOLDER) not in nextitem.path.parents:
        _ending.close()


@pytest.fixture(scope="session", name="instance")
def running_instance() -> Any:
    """The module ray, connected to an instance with room for three workers."""
    _ending.callback(setattr, builtins, "print", builtins.print)  # Ray replaces it
    library = _instance.library()
    _start(library)
    _ending.callback(library.shutdown)
    return library


def _start(library: Any) -> None:
    """Start an instance, and again if Ray gives up: its parts wait for each other for some seconds
    only, in which a busy machine may not have run them.
    """
    before = _children()
    for attempt in range(6):
        try:
            _instance.start(3)
            return
        except Exception as error:
            if attempt == 5 or "timed out during startup" not in str(error):
                raise
            left = _children() - before
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            for each in gc.get_objects():  # one that nobody has waited for warns when it is deleted
                if isinstance(each, subprocess.Popen) and each.pid in left:
                    each.wait()
        library.shutdown()


def _children() -> set[int]:
    """Return the processes that this one has started."""
    found: set[int] = set()
    for path in pathlib.Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found.update(map(int, path.read_text().split()))
    return found


@pytest.fixture(scope="session", name="world")
def processes_that_call(instance: Any) -> None:
    """This process is "test", rank 0; the others serve until it calls `shutdown`."""
    secret = os.environ["PLAIT_JOB_SECRET"] = secrets.token_hex(8)
    serve = instance.remote(num_cpus=0, max_retries=0)(remote_functions.serve)
    served = [serve.remote(rank, secret) for rank in (1, 2, 3)]
    options = rpc.TensorPipeRpcBackendOptions(init_method="tcp://127.0.0.1:1", rpc_timeout=300)
    rpc.init_rpc("test", rank=0, world_size=4, rpc_backend_options=options)
    _ending.callback(_end_world, instance, served)


def _end_world(instance: Any, served: list[Any]) -> None:
    with contextlib.suppress(rpc.WorkerLost):  # the victim is lost in a test
        rpc.shutdown()
    for each in served[:2]:
        with contextlib.suppress(instance.exceptions.RayError, rpc.WorkerLost):
            instance.get(each, timeout=30)
    del os.environ["PLAIT_JOB_SECRET"]
