"""System calls and allocations that fail, one after the other: a result or an exception, no crash.

failing_actions.py does the work, in a process with failing_calls.c preloaded; what its lines of
JSON mean stands there. One finding again: the action and the function as arguments, as in

    cc -std=c11 -shared -fPIC tests/attack/failing_calls.c -o failing.so -ldl -lpthread
    LD_PRELOAD=$PWD/failing.so python tests/attack/failing_actions.py save_file fsync
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from plugins import compiled

SCRIPT = pathlib.Path(__file__).with_name("failing_actions.py")
FAILING = SCRIPT.with_name("failing_calls.c")
MEMORY = ("tensors", "kernels", "backward", "optimizer", "profile", "exchange")
CHECKPOINTS = ("save_file", "save_shards", "save_torch", "save_folder", "save_folder_later")
CHECKPOINTS += ("load_file", "load_mapped", "load_index", "load_torch", "load_folder")
PROCESSES = ("loader", "pool", "queue", "sharing")
STARTING = 300.0  # seconds for a process to start on a loaded machine, and for its last run


def run(
    action: str, library: pathlib.Path, seconds: float, seed: int, *functions: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the findings, and what the process said at its end."""
    command = [sys.executable, "-X", "faulthandler", str(SCRIPT), action, *functions]
    command += ["--seconds", str(seconds), "--seed", str(seed)]
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONWARNINGS": "ignore"}
    try:
        result = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds + STARTING,
        )
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"{command} hangs:\n{late.stdout!r}\n{late.stderr!r}") from None
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    ended = [line for line in lines if "complete" in line]
    text = f"{command}\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    assert ended and result.returncode in (0, 1), f"status {result.returncode}: {text}"
    return [line for line in lines if "finding" in line], ended[0]


@pytest.mark.parametrize("action", [*MEMORY, *CHECKPOINTS, *PROCESSES])
def test_failing_calls(action: str, rounds: Any) -> None:
    for draw in rounds:
        findings, _ = run(action, compiled(FAILING), rounds.seconds, draw.randrange(2**31))
        assert not findings, json.dumps(findings, indent=1)


def test_all_allocations_of_a_product() -> None:
    findings, end = run("tensors", compiled(FAILING), 300, 0, "allocation")
    assert not findings and end["complete"] == ["allocation"], (findings, end)
    assert end["runs"] > 10  # the library was in force
