"""Ends of processes that use a device, and forks: its driver has a thread and its own end
(driver_device.c).
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import plait_abi

HERE = Path(__file__).resolve().parent
STOPPED = "the plug-in stopped\nthe driver ended\n"


def compiled(source: Path, target: Path, *flags: str) -> str:
    command = [*os.environ.get("CC", "cc").split(), "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    include = f"-I{plait_abi.paths()['include']}"
    subprocess.run([*command, str(source), include, "-o", str(target), *flags], check=True)
    return str(target)


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the plug-ins whose driver starts at its first use, in `init`, and says so."""
    folder = tmp_path_factory.mktemp("drivers")
    kinds = {
        "used": [],
        "started": ["-DSTARTS_IN_INIT", "-DFLAGS=PLAIT_DEVICE_STARTED"],
    }
    source, common = HERE / "driver_device.c", ["-shared", "-fPIC", "-pthread"]
    return {
        kind: compiled(source, folder / f"{kind}.so", *common, *flags)
        for kind, flags in kinds.items()
    }


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert not done.stderr, done.stderr
    return done.stdout


def run_python(code: str, library: str) -> str:
    load = "import sys, os, atexit, plait, plait_abi\nplait_abi.load(sys.argv[1])\n"
    return run(sys.executable, "-u", "-c", load + textwrap.dedent(code), library)


@pytest.mark.parametrize("kind", ["used", "started"])
def test_a_plugin_stops_before_its_driver_ends(drivers: dict[str, str], kind: str) -> None:
    assert run_python("x = plait.ones(3).to('driver')", drivers[kind]) == STOPPED


def test_a_stopped_device_refuses_what_comes_later(drivers: dict[str, str]) -> None:
    code = """
    import atexit, sys
    def late():
        for call in (x.cpu, lambda: y.to("driver"), lambda: plait.empty(3, device="driver")):
            try:
                call()
            except RuntimeError as error:
                assert "the process ends" in str(error) and "driver:0" in str(error), error
            else:
                raise AssertionError
        assert (y + 1).tolist() == [2.0] * 3
        print("refused")
    atexit.register(late)  # before the import, so it runs after the end of plait
    import plait, plait_abi
    plait_abi.load(sys.argv[1])
    y = plait.ones(3)
    x = y.to("driver")
    """
    text = run(sys.executable, "-u", "-c", textwrap.dedent(code), drivers["used"])
    assert text == "the plug-in stopped\nrefused\nthe driver ended\n"


def test_a_child_of_a_fork_does_not_stop_what_its_parent_uses(drivers: dict[str, str]) -> None:
    code = """
    import warnings
    warnings.simplefilter("ignore")
    x = plait.ones(3).to("driver")
    child = os.fork()
    if child == 0:
        sys.exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, status
    print("the child ended")
    """
    # the handlers of `exit` of the driver itself run in the child, too
    text = "the driver ended\nthe child ended\n" + STOPPED
    assert run_python(code, drivers["used"]) == text


def test_the_kit_finds_a_driver_that_init_starts(drivers: dict[str, str], tmp_path: Path) -> None:
    flags = ["-shared", "-fPIC", "-pthread", "-DSTARTS_IN_INIT"]
    silent = compiled(HERE / "driver_device.c", tmp_path / "silent.so", *flags)
    kit = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--role", "device"]
    kit += ["--device", "driver", "-k", "before_the_first_use or in_flight"]
    module = ["--pyargs", "plait_conformance.test_device_memory"]
    for library, outcome in (
        (silent, "1 failed, 1 passed"),
        (drivers["started"], "2 passed"),
        (drivers["used"], "2 passed"),
    ):
        done = subprocess.run(
            [*kit, "--load", library, *module], capture_output=True, text=True, timeout=200
        )
        text = done.stdout + done.stderr
        assert outcome in text, text
        assert ("must set PLAIT_DEVICE_STARTED" in text) == (library == silent), text


HOST = """
#include <plait/abi.h>
#include <string.h>
int main(int n, char **arguments) {
  const plait_runtime *runtime = plait_runtime_v0();
  plait_thread *thread = runtime->thread();
  if (runtime->load(thread, arguments[1]) < 0) return 1;
  const plait_device *device = PLAIT_ROLE(plait_device, runtime->role("device", kDLHexagon));
  const DLDevice here = {kDLCPU, 0}, there = {kDLHexagon, 0};
  char from[4] = "abc", to[4];
  if (device->copy(device->ctx, thread, to, there, from, here, 4, NULL, 0) < 0) return 2;
  if (n > 2) runtime->quiesce();
  return strcmp(to, "abc");
}
"""


@pytest.mark.parametrize("arguments", [("used", "quiesce"), ("started",), ("started", "quiesce")])
def test_a_host_in_c(drivers: dict[str, str], tmp_path: Path, arguments: tuple[str, ...]) -> None:
    source, library = tmp_path / "host.c", Path(plait_abi.paths()["libplait_abi.so"])
    source.write_text(HOST)
    link = [str(library), f"-Wl,-rpath,{library.parent}"]
    host = compiled(source, tmp_path / "host", *link)
    assert run(host, drivers[arguments[0]], *arguments[1:]) == STOPPED


@pytest.mark.parametrize("kind", ["used", "started"])
def test_a_child_of_a_fork_before_the_first_use(drivers: dict[str, str], kind: str) -> None:
    code = """
    import warnings
    warnings.simplefilter("ignore")
    child = os.fork()
    if child == 0:
        try:
            print(plait.ones(3).to("driver").cpu().tolist())
        except RuntimeError as error:
            assert "driver:0 was in use when the process forked" in str(error), error
            print("refused")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    parent = "the plug-in stopped\n" + ("the driver ended\n" if kind == "started" else "")
    first = "[1.0, 1.0, 1.0]\n" if kind == "used" else "refused\n"
    assert run_python(code, drivers[kind]) == first + parent
