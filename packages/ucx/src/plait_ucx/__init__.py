"""Collectives over UCX, for the processes of several hosts: the provider ``ucx`` of the role
`communicator`.

Groups are named ``"tcp://HOST:PORT/NAME"``: rank 0 listens there until all have come, and all prove
that they know the job's secret, PLAIT_JOB_SECRET. The processes of one host and user may call them
``"local:NAME"``, which needs neither a port nor a secret. Groups whose names go on with ``/`` or
``!`` behind an open one's have members among its, and nobody listens for them.

`plait_distributed` takes it as the backend ``"ucx"``. UCX itself (libucp) is opened when it is
first needed: the one of the package libucx-cu13, or the system's.

Example:
    >>> import numpy as np, plait_abi, plait_ucx
    >>> x = np.ones(2, np.float32)
    >>> if plait_ucx.is_available():
    ...     alone = plait_abi.Communicator.open("ucx", "local:alone", 0, 1)
    ...     alone.start("all_reduce", [x], [x])
    ...     alone.close()
    >>> x
    array([1., 1.], dtype=float32)
"""

from plait_ucx._library import is_available, library_version

__all__ = ["is_available", "library_version"]

__version__ = "0.2.0"
