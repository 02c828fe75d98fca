"""The executor under test."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from plait_conformance._tables import ExecutorTable, Piece, table_in_force


class Executor:
    """The executor in force, whose pieces are Python functions here."""

    def __init__(self) -> None:
        table = table_in_force(ExecutorTable, "executor")
        assert table is not None, "the role `executor` is not filled"
        self.table = table

    def __str__(self) -> str:
        return str(self.table.name.decode())

    @property
    def width(self) -> int:
        """The number of threads that may run at the same time, as the executor reports it."""
        return int(self.table.width(self.table.ctx))

    @contextmanager
    def of_width(self, threads: int) -> Iterator[None]:
        """Set the width, if it can be set."""
        if not self.table.set_width:
            pytest.skip(f"the width of {self} is fixed")
        before = self.width
        self.table.set_width(self.table.ctx, threads)
        try:
            yield
        finally:
            self.table.set_width(self.table.ctx, before)

    def parallel(self, n: int, piece: Callable[[int], object]) -> None:
        """Run ``piece(i)`` for every `i` below `n`; what a piece raises is raised here."""
        raised: list[BaseException] = []
        wrong_args: list[int | None] = []
        mark = 0x5EED

        def run(arg: int | None, i: int) -> None:
            if arg != mark:
                wrong_args.append(arg)
            try:
                piece(i)
            except BaseException as error:
                raised.append(error)

        self.table.parallel(self.table.ctx, n, Piece(run), mark)
        assert not wrong_args, f"{self}: pieces were called with another `arg`"
        if raised:
            raise raised[0]

    def parallel_in_c(self, n: int) -> None:
        """Run `n` pieces of C code, each of which sleeps for some microseconds.

        CPython up to 3.11 may hang in the child of a fork that comes while a thread of the
        executor enters Python (gh-112275), so pieces in Python do not run beside forks.
        """
        sleep = ctypes.cast(ctypes.CDLL(None).usleep, Piece)
        self.table.parallel(self.table.ctx, n, sleep, 20)
