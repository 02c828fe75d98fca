"""Finding and checking the library of UCX."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import plait_abi
import plait_ucx

PROGRAM = """
import plait_abi, plait_ucx
print(plait_ucx.is_available())
try:
    plait_ucx.library_version()
except RuntimeError as error:
    print(error)
try:
    plait_abi.Communicator.open("ucx", "local:x", 0, 1)
except plait_abi.PlaitError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/nowhere/libucp.so.0", "UCX is not available: /nowhere/libucp.so.0"),
        ("libm.so.6", "libm.so.6 is not a UCX library that plait can use"),
    ],
)
def test_a_library_that_is_none(path: str, text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PLAIT_UCX_LIBRARY": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("False\n") and done.stdout.count(text) == 2


@pytest.mark.usefixtures("ucx")
def test_signal_handlers_stay() -> None:
    code = (
        "import faulthandler, plait_ucx, signal, os\n"
        "plait_ucx.library_version()\n"
        "masks = open('/proc/self/status').read()\n"
        "print(int(masks.split('SigCgt:')[1].split()[0], 16) >> (signal.SIGSEGV - 1) & 1)\n"
    )
    command = [sys.executable, "-c", code]
    # Python's own handler, which the tests' conftest asks for
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONFAULTHANDLER"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


@pytest.mark.usefixtures("ucx")
def test_a_fork_of_a_user_of_ucx() -> None:
    alone = plait_abi.Communicator.open("ucx", "local:fork", 0, 1)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            plait_abi.Communicator.open("ucx", "local:forked", 0, 1)
        except plait_abi.PlaitError as error:
            code = 0 if 'with the method "spawn"' in str(error) else 2
        os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    alone.close()


def test_the_module() -> None:
    assert plait_ucx.is_available() in (True, False)
