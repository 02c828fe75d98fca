"""Collectives over MPI: the provider ``mpi`` of the role `communicator`.

Importing it initialises MPI, as importing ``mpi4py.MPI`` does, and starts the thread that makes
this package's calls of MPI. All processes of the job import it. Groups are named ``"mpi:NAME"``;
the members of one are any processes of the job. ``"mpi:living:NAME"`` is the group of all processes
that have not been lost, in the order of their ranks: it is how a job goes on without the others.

`plait_distributed` takes it as the backend ``"mpi"``.

Example:
    >>> import numpy as np, plait_abi, plait_mpi
    >>> alone = plait_abi.Communicator.open("mpi", "mpi:alone", 0, 1)
    >>> x = np.ones(2, np.float32)
    >>> alone.start("all_reduce", [x], [x])
    >>> x
    array([1., 1.], dtype=float32)
    >>> alone.close()
"""

from plait_mpi._library import disconnect, library_version, lost, rank, size

__all__ = ["disconnect", "library_version", "lost", "rank", "size"]
