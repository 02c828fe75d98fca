"""Interrupt epochs of a loader after some of their calls, and print what was left behind.

    python interrupted_epochs.py CONTEXT TIMES SEED

Python looks for signals behind the calls of C functions, so these are the places at which Ctrl-C
ends a program. TIMES places are drawn; 0 stands for all. The program prints one line for each place
that leaves a process, a thread or a descriptor while the traceback is kept, as notebooks keep it.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any

import numpy as np

from plait_data import DataLoader, Dataset


class Points(Dataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return np.full(4, index)

    def __len__(self) -> int:
        return 12


class Interrupt:
    """Sends SIGINT behind a call; -1 only counts the calls."""

    def __init__(self, number: int) -> None:
        self.number, self.calls, self.place = number, 0, ""
        self._process = os.getpid()

    def __call__(self, frame: FrameType | None, event: str, function: Any) -> None:
        if event != "c_return" or os.getpid() != self._process or function is sys.setprofile:
            return
        self.calls += 1
        if self.calls != self.number + 1:
            return
        sys.setprofile(None)
        names = [function.__name__]
        while frame is not None and len(names) < 5:
            file = os.path.basename(frame.f_code.co_filename)
            names.append(f"{file}:{frame.f_lineno}:{frame.f_code.co_name}")
            frame = frame.f_back
        self.place = " < ".join(names)
        function = None  # the traceback keeps this frame
        signal.raise_signal(signal.SIGINT)


def children() -> list[str]:
    found: list[str] = []
    for thread in os.listdir("/proc/self/task"):
        with suppress(FileNotFoundError), open(f"/proc/self/task/{thread}/children") as file:
            found += file.read().split()  # not of a thread that has ended meanwhile
    return found


def epoch(context: str | None) -> None:
    for _ in DataLoader(Points(), 4, num_workers=2, multiprocessing_context=context):
        pass


def interrupted(context: str | None, number: int) -> tuple[Interrupt, BaseException | None]:
    interrupt = Interrupt(number)
    try:
        sys.setprofile(interrupt)
        try:
            epoch(context)
        finally:
            sys.setprofile(None)
    except KeyboardInterrupt as error:
        return interrupt, error
    return interrupt, None


def main(context: str | None, times: int, seed: int) -> None:
    epoch(context)
    processes, descriptors = children(), len(os.listdir("/proc/self/fd"))
    calls = interrupted(context, -1)[0].calls
    places = range(calls) if times == 0 else random.Random(seed).sample(range(calls), times)
    for number in places:
        interrupt, error = interrupted(context, number)
        end = time.monotonic() + 20
        while children() != processes or threading.active_count() > 1:
            if time.monotonic() > end:
                print(f"{number}: {interrupt.place}: {children()}, {threading.enumerate()}")
                return
            time.sleep(0.002)
        del error
        gc.collect()
        if len(os.listdir("/proc/self/fd")) != descriptors:
            print(f"{number}: {interrupt.place}: a descriptor")
            return
    print(f"nothing after {len(places)} of {calls} calls")


if __name__ == "__main__":
    main(None if sys.argv[1] == "spawn" else sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
