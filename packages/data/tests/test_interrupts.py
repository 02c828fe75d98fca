"""Ctrl-C while workers start, work and end: nothing is left behind."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plait_data._workers._held import held

NUMBERS = (signal.SIGUSR1, signal.SIGINT, signal.SIGUSR2)


@pytest.mark.parametrize(("context", "times"), [("spawn", 24), ("fork", 40), ("thread", 40)])
def test_an_interrupted_epoch_leaves_no_process_thread_or_descriptor(
    context: str, times: int
) -> None:
    """Places are drawn by the seed of the test; ``interrupted_epochs.py`` takes all for 0."""
    program = str(Path(__file__).parent / "interrupted_epochs.py")
    command = [sys.executable, program, context, str(times), str(random.randrange(1 << 30))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    assert re.search(rf"^nothing after {times} of \d+ calls$", text, re.M), text


@pytest.fixture(name="seen")
def handlers_that_note() -> Iterator[list[int]]:
    """The signals whose handlers were called; that of SIGINT raises KeyboardInterrupt."""
    calls: list[int] = []

    def handle(number: int, frame: Any) -> None:
        calls.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in NUMBERS}
    yield calls
    for number, handler in before.items():
        signal.signal(number, handler)


def test_handlers_are_called_after_a_held_block(seen: list[int]) -> None:
    handlers = [signal.getsignal(number) for number in NUMBERS]
    seen_within: list[list[int]] = []

    def run() -> None:
        with held():
            for number in NUMBERS:
                signal.raise_signal(number)
            with held():
                pass
            seen_within.append(list(seen))

    with pytest.raises(KeyboardInterrupt):
        run()
    assert seen_within == [[]]
    assert seen == list(NUMBERS)
    assert [signal.getsignal(number) for number in NUMBERS] == handlers


def test_a_child_forked_within_a_held_block_has_its_handlers(seen: list[int]) -> None:
    with held():
        child = os.fork()
        if child == 0:
            signal.raise_signal(signal.SIGUSR1)
            os._exit(len(seen))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert seen == []
