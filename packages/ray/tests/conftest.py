"""One Ray instance for all tests, and one job of processes that call each other."""

from __future__ import annotations

import builtins
import contextlib
import os
import pathlib
import secrets
import sys
import time
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
    with pytest.MonkeyPatch.context() as patch:
        _give_time_to_start(library, patch)
        _instance.start(3)
    _ending.callback(library.shutdown)
    return library


def _give_time_to_start(library: Any, patch: pytest.MonkeyPatch) -> None:
    """Let Ray's start look for its node for five minutes, not for 30 seconds as always."""
    get_node = library._private.services.get_node

    def look(*arguments: Any, **options: Any) -> Any:
        deadline = time.monotonic() + 300
        while True:
            try:
                return get_node(*arguments, **options)
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    patch.setattr(library._private.services, "get_node", look)


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
