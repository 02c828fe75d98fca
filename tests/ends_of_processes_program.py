"""A program with a foreign library's threads, whose children get a signal at their start.

ENDS_OF_PROCESSES in the environment: the library of waiting_library.c, a kind of child, a start
method, and what each child gets, with commas.
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

# not sys.argv, which the server of the start method forkserver does not have
LIBRARY, KIND, METHOD, EVENT = os.environ["ENDS_OF_PROCESSES"].split(",")
PROGRAM = os.getpid()
forks: list[None] = []  # not empty in a child, after the hooks of the fork
libc = ctypes.CDLL(None)

# The server of the start method forkserver imports this module, too.
multiprocessing.set_forkserver_preload(["ends_of_processes_program"])
ctypes.CDLL(LIBRARY)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
# what happens in each child of a fork; C functions, as Python handles no signals in them
HOOKS: dict[str, Callable[[], Any]] = {
    "nothing": functools.partial(forks.append, None),
    "exit": functools.partial(forks.append, None),
    "signal": functools.partial(libc["raise"], signal.SIGTERM),
    "flag": functools.partial(_thread.interrupt_main, signal.SIGTERM),
}


def work(*_: object) -> None:
    if EVENT == "exit":
        ctypes.CDLL(None).exit(7)


class Dataset:
    """Eight numbers."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        work()
        return index


def start_process() -> None:
    process = mp.get_context(METHOD).Process(target=work)
    process.start()
    stay_in_the_program()
    process.join()
    print("exit code", process.exitcode)


def start_default_process() -> None:
    mp.set_start_method(METHOD, force=True)
    process = mp.Process(target=work)
    process.start()
    stay_in_the_program()
    process.join()
    print("exit code", process.exitcode)


def start_pool() -> None:
    with mp.get_context(METHOD).Pool(2) as pool:
        stay_in_the_program()
        print(pool.map(work, range(4)))


def start_manager() -> None:
    with mp.get_context(METHOD).Manager() as manager:
        stay_in_the_program()
        print(manager.list([1, 2]))


def spawn_functions() -> None:
    mp.spawn(work, nprocs=2, start_method=METHOD)
    print("ended")
    stay_in_the_program()


def load_data() -> None:
    context = None if METHOD == "default" else METHOD
    loader = plait_data.DataLoader(Dataset(), num_workers=2, multiprocessing_context=context)
    print(len(list(loader)), "samples")
    stay_in_the_program()


def new_process() -> Any:
    return mp.get_context("fork").Process(target=work)


def new_worker() -> Any:
    process = multiprocessing.get_context("fork").Process(target=work)
    plait_data._workers._fork.end_by_exit(process)
    return process


def start_at_each_instruction(new: Callable[[], Any]) -> None:
    """Start children; one after the other gets an exception one instruction later."""
    number, most, step = 0, 4000, 1

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal number
        frame.f_trace_opcodes = True
        if event == "opcode" and forks:
            number -= 1
            if number == 0:
                raise SystemExit(3)
        return trace

    at = 1
    while at < most:
        number = at
        process = new()
        sys.settrace(trace)
        try:
            process.start()
        finally:
            sys.settrace(None)
        stay_in_the_program()
        process.join()
        if number == 0 and process.exitcode == 0:
            raise SystemExit("the exception had no effect")
        at += step
        step = 1 if at < 60 else 97
    print("done")


def stay_in_the_program() -> None:
    if os.getpid() != PROGRAM:
        print("a child runs the program of its parent", flush=True)


KINDS = {
    "process": start_process,
    "default process": start_default_process,
    "pool": start_pool,
    "manager": start_manager,
    "spawn": spawn_functions,
    "data": load_data,
    "instructions of a process": functools.partial(start_at_each_instruction, new_process),
    "instructions of a worker": functools.partial(start_at_each_instruction, new_worker),
}


def main() -> None:
    try:
        KINDS[KIND]()
    except Exception as error:
        print(type(error).__name__)
    stay_in_the_program()


import plait_data  # noqa: E402
import plait_multiprocessing as mp  # noqa: E402

if METHOD == "fork" or __name__ != "__main__":  # the last hook, so that no other one is between
    import plait_data._workers._fork
    import plait_data._workers._processes

    os.register_at_fork(after_in_child=HOOKS[EVENT])

if __name__ == "__main__":
    # Pools start workers on a thread. There a child would end with the thread, on the main thread
    # it would be a second copy of the program.
    main()
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
    stay_in_the_program()
    print("end", flush=True)
