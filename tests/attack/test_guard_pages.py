"""Hostile calls between guard pages: nothing is read or written past a block, or after its end.

The calls are those of tests/hostile, in a process of their own whose tensors come from
guard_allocator.c. Blocks end at an unreachable page, or begin at one.
"""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys
from collections.abc import Iterable

import pytest
from plugins import compiled

GUARD = pathlib.Path(__file__).with_name("guard_allocator.c")
HOSTILE = pathlib.Path(__file__).resolve().parents[1] / "hostile"
CALLS = 3  # of each operator in one round

TRESPASS = """
import ctypes, os, sys
import plait_core as pc, plait_abi
pc.zeros(1)
plait_abi.load(sys.argv[1])
x = pc.zeros(3)
end = x.data_ptr() + 12
border = -(-end // 4096) * 4096
at = ctypes.c_char.from_address
{attack}
del x
print("unnoticed")
"""
ATTACKS = {
    "read of the next page": ("at(border).value", False, -signal.SIGSEGV),
    "write before the page": ("at(border - 4097).value = b'x'", False, -signal.SIGSEGV),
    "write right behind": ("at(end).value = b'x'", False, -signal.SIGABRT),
    "write right before": ("at(end - 13).value = b'x'", False, -signal.SIGABRT),
    "read right before": ("at(end - 13).value", True, -signal.SIGSEGV),
    "use after free": ("del x; at(end - 12).value", False, -signal.SIGSEGV),
    "nothing": ("", False, 0),
}


def environment(begin: bool, **more: str) -> dict[str, str]:
    # OpenBLAS raises SIGINT where it cannot start its threads, which guard pages may leave no
    # mappings for; plait has it use one in any case
    selection = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **more}
    selection.pop("GUARD_AT_BEGIN", None)
    if begin:
        selection["GUARD_AT_BEGIN"] = "1"
    return selection


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_guard_notices(attack: str) -> None:
    code, begin, expected = ATTACKS[attack]
    result = subprocess.run(
        [sys.executable, "-c", TRESPASS.format(attack=code), str(compiled(GUARD))],
        env=environment(begin),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == expected, result.stderr
    assert ("unnoticed" in result.stdout) == (expected == 0)


@pytest.mark.parametrize("begin", [False, True], ids=["end", "begin"])
def test_hostile_calls(
    begin: bool,
    rounds: Iterable[random.Random],
    tmp_path: pathlib.Path,
) -> None:
    log = tmp_path / "call"
    for draw in rounds:
        selection = {
            "PLAIT_HOSTILE_SEED": str(draw.randrange(2**31)),
            "PLAIT_HOSTILE_CALLS": str(CALLS),
            "PLAIT_HOSTILE_GUARD": str(compiled(GUARD)),
            "PLAIT_HOSTILE_LOG": str(log),
        }
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(HOSTILE)],
            env=environment(begin, **selection),
            capture_output=True,
            text=True,
            check=False,
            timeout=1200,
        )
        last = log.read_text(encoding="utf-8") if log.exists() else "none"
        text = f"{selection}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}\nlast call: {last}"
        assert result.returncode == 0, text
