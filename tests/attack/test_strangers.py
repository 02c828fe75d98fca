"""Hundreds of strangers at every socket at which processes of a job connect; they get through."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "packages" / "distributed" / "tests"))
import strangers

TESTS = pathlib.Path(strangers.__file__).parent
SOON = 100.0  # seconds in which a process of the job is served


@pytest.mark.parametrize("kind", strangers.KINDS)
def test_unknown_connections_do_not_block_members(rounds: Any, kind: str) -> None:
    for source in rounds:
        descriptors = source.choice([0, 0, source.randrange(8, 80)])
        count = source.choice([130, 400, 800])
        with (
            strangers.server(kind, descriptors) as port,
            strangers.Strangers(strangers.address_of(kind, port), count),
        ):
            began = time.monotonic()
            strangers.ask(kind, port)
            assert time.monotonic() - began < SOON


def test_more_strangers_than_descriptors(rounds: Any) -> None:
    """A store with 1,024 descriptors, at which 1,100 connect from processes of their own."""
    program = (
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
        "import strangers\n"
        "with strangers.Strangers(('127.0.0.1', int(sys.argv[1])), 550):\n"
        "    print('there', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    for _ in rounds:
        with strangers.server("store") as port:
            others = [
                subprocess.Popen(
                    [sys.executable, "-c", program, str(port)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
                for _ in range(2)
            ]
            try:
                for other in others:
                    assert other.stdout is not None and other.stdout.readline() == b"there\n"
                strangers.ask("store", port)
            finally:
                for other in others:
                    other.communicate()
