"""Interrupt saves in the background after some of their calls, and save again.

    python interrupted_saves.py FOLDER TIMES SEED

Python looks for signals behind the calls of C functions, so these are the places at which Ctrl-C
ends a program. TIMES places are drawn; 0 stands for all. The program prints each place and saves
again; when that does not end, it prints the stacks of all threads.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
from types import FrameType
from typing import Any

import plait_core as pc
import plait_distributed.checkpoint as dcp


def save(folder: str, version: int) -> None:
    """Save twice: the second one waits for the thread, in one of two ways."""
    dcp.async_save({"x": pc.full((3,), float(version))}, checkpoint_id=folder)
    saved = dcp.async_save({"x": pc.full((3,), float(version))}, checkpoint_id=folder)
    if version % 2:
        dcp.save({"x": pc.full((3,), float(version))}, checkpoint_id=folder)
    saved.done()
    saved.exception()
    saved.result(60.0)


class Interrupt:
    """Sends SIGINT behind a call of the main thread; -1 only counts the calls."""

    def __init__(self, number: int) -> None:
        self.number, self.calls, self.place = number, 0, ""

    def __call__(self, frame: FrameType | None, event: str, function: Any) -> None:
        if event != "c_return" or function is sys.setprofile:
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
        signal.raise_signal(signal.SIGINT)


def interrupted(folder: str, version: int, number: int) -> Interrupt:
    interrupt = Interrupt(number)
    try:
        sys.setprofile(interrupt)
        try:
            save(folder, version)
        finally:
            sys.setprofile(None)
    except KeyboardInterrupt:
        pass
    return interrupt


def main(folder: str, times: int, seed: int) -> None:
    save(folder, 0)
    threads = threading.active_count()
    counts = [interrupted(folder, version, -1).calls for version in range(2)]
    places = [(version, number) for version in range(2) for number in range(counts[version])]
    for version, number in random.Random(seed).sample(places, times) if times else places:
        faulthandler.dump_traceback_later(120.0, exit=True)
        interrupt = interrupted(folder, version, number)
        print(f"{version} {number}: {interrupt.place}", flush=True)
        save(folder, 2 + version)
        faulthandler.cancel_dump_traceback_later()
        state = {"x": pc.zeros(3)}
        dcp.load(state, checkpoint_id=folder)
        assert state["x"].tolist() == [2.0 + version] * 3, interrupt.place
        assert len(os.listdir(folder)) == 2, (interrupt.place, os.listdir(folder))
        assert threading.active_count() == threads, (interrupt.place, threading.enumerate())
    print(f"nothing after {times or len(places)} of {len(places)} calls")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
