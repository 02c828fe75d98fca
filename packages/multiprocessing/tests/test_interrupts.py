"""Blocks that no signal handler interrupts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from plait_multiprocessing.interrupts import uninterrupted

NUMBERS = (signal.SIGUSR1, signal.SIGINT, signal.SIGUSR2)


@pytest.fixture(autouse=True)
def seen() -> Iterator[list[int]]:
    """The signals whose handlers were called; that of SIGINT raises KeyboardInterrupt."""
    calls: list[int] = []

    def handle(number: int, frame: Any) -> None:
        assert frame is not None
        calls.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in NUMBERS}
    yield calls
    for number, handler in before.items():
        signal.signal(number, handler)


def send(*numbers: int) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)
        for _ in range(1000):  # the interpreter looks for signals at each turn
            pass


def test_the_handlers_of_all_signals_are_called_after_the_block(seen: list[int]) -> None:
    handlers = [signal.getsignal(number) for number in NUMBERS]

    def run() -> None:
        with uninterrupted():
            send(*NUMBERS)
            raise ValueError(f"seen in the block: {seen}")

    with pytest.raises(KeyboardInterrupt) as caught:
        run()
    assert seen == list(NUMBERS)
    assert str(caught.value.__context__) == "seen in the block: []"
    assert [signal.getsignal(number) for number in NUMBERS] == handlers


def test_a_block_says_that_a_signal_waits(seen: list[int]) -> None:
    with uninterrupted() as waiting:
        assert not waiting
        send(signal.SIGUSR1)
        assert waiting
        with uninterrupted():
            pass
        assert seen == []  # the outermost block counts
    assert seen == [signal.SIGUSR1] and not waiting


def test_a_handler_that_is_set_in_a_block_stays() -> None:
    def handle(*_: object) -> None:
        pass

    with uninterrupted():
        signal.signal(signal.SIGUSR1, handle)
    assert signal.getsignal(signal.SIGUSR1) is handle


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_a_fork_in_a_block_has_its_handlers() -> None:
    """The main thread, which is in the block, is not in the child of another thread."""
    handler, statuses = signal.getsignal(signal.SIGUSR1), []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os._exit(signal.getsignal(signal.SIGUSR1) is not handler)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with uninterrupted():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert statuses == [0]
