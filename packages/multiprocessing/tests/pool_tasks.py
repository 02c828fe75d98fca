"""Tasks of the tests of pools: spawned workers import it."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import plait_core as pc

__all__: list[str] = []


class TwoArgumentsError(Exception):
    """Pickles as one argument."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(f"{name} number {number}")


class Unreadable:
    def __reduce__(self) -> Any:
        return int, ("no number",)


class Exiting:
    def __reduce__(self) -> Any:
        return sys.exit, ("on arrival",)


class Unsendable:
    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")


class Nameless(Unsendable):
    def __repr__(self) -> str:
        raise ValueError("no repr either")


def add_one(x: Any) -> Any:
    return x + 1


def size(x: Any) -> int:
    return len(x)


def raise_two_arguments() -> None:
    raise TwoArgumentsError("sheep", 7)


def raise_with_lambda() -> None:
    error = ValueError("carries a lambda")
    error.reason = lambda: None  # type: ignore[attr-defined]
    raise error


def kill_self(which: signal.Signals = signal.SIGKILL) -> None:
    os.kill(os.getpid(), which)


def kill_if_two(x: int) -> int:
    if x == 2:
        kill_self()
    return x


def end_with(status: int) -> None:
    sys.exit(status)


def stop_self() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def fail() -> None:
    raise RuntimeError("the initializer failed")


def work(x: int) -> int:
    time.sleep(0.001)
    return x


def shared_sum(x: Any) -> Any:
    x.add_(1)
    return pc.full((2,), float(x.sum()))
