"""Rank 1 is killed or stopped; the others learn it, and go on without it. Each prints a line."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

import plait_abi
import plait_mpi

Communicator = plait_abi.Communicator


def main(how: str) -> None:
    rank, size = plait_mpi.rank(), plait_mpi.size()
    group = Communicator.open("mpi", "mpi:all", rank, size, 200.0)
    pids = [np.zeros(1, np.int64) for _ in range(size)]
    group.start("all_gather", [np.array([os.getpid()])], pids)
    large = np.full(3_000_000, rank + 1.0)
    try:
        while True:
            group.start("all_reduce", [large], [large])
            if rank == 1:  # the others may still be in it
                os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)
    except plait_abi.PlaitError as error:
        text = str(error)
    group.close()
    rest = Communicator.open("mpi", "mpi:living:again", 0, 1, 100.0)
    x = np.full(3, rank + 1.0)
    rest.start("all_reduce", [x], [x])
    print(
        f"rank {rank}, now {rest.rank} of {rest.size}: sum {x[0]:g}, lost {plait_mpi.lost()}: "
        f"{text}",
        flush=True,
    )
    rest.start("barrier")
    if how == "stop" and rest.rank == 0:
        os.kill(int(pids[1][0]), signal.SIGKILL)
    rest.close()
    plait_mpi.disconnect()
    os._exit(0)  # MPI_Finalize would wait for the one that is lost


main(sys.argv[1])
