"""Process groups, collectives and data-parallel training, under PyTorch's names.

One process of a job calls `init_process_group` with its rank, as all others do; then collectives
compute over all of them, and `DistributedDataParallel` trains one model in all. The processes of
one host communicate through shared memory, so nothing else has to be installed.

    >>> import plait_core as pc, plait_distributed as dist
    >>> dist.init_process_group(init_method="shm:package", rank=0, world_size=1)
    >>> x = pc.ones(2)
    >>> dist.all_reduce(x)
    >>> dist.destroy_process_group()
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING, Any

from plait_distributed._all_to_all import all_to_all, all_to_all_single
from plait_distributed._backends import (
    Backend,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from plait_distributed._barriers import barrier, monitored_barrier
from plait_distributed._buckets import GradBucket
from plait_distributed._errors import (
    CollectiveTimeout,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    MismatchError,
    RankLost,
)
from plait_distributed._futures import Future
from plait_distributed._gathers import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    broadcast,
    gather,
    scatter,
)
from plait_distributed._messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from plait_distributed._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from plait_distributed._process_group import ProcessGroup
from plait_distributed._reductions import (
    ReduceOp,
    all_reduce,
    all_reduce_coalesced,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
)
from plait_distributed._store import FileStore, HashStore, PrefixStore, Store
from plait_distributed._tcp_store import TCPStore
from plait_distributed._work import Work
from plait_distributed._world import (
    GroupMember,
    destroy_process_group,
    get_backend,
    get_default_group,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_initialized,
    is_torchelastic_launched,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)

if TYPE_CHECKING:
    from plait_distributed.nn import SyncBatchNorm
    from plait_distributed.parallel import DistributedDataParallel

__all__ = [
    "Backend",
    "CollectiveTimeout",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "DistributedDataParallel",
    "FileStore",
    "Future",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "MismatchError",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "RankLost",
    "ReduceOp",
    "Store",
    "SyncBatchNorm",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_default_group",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]

__version__ = "0.2.0"

# names that need the packages of modules and of the engine, which are imported at their first use
_LATER = {"DistributedDataParallel": "parallel", "SyncBatchNorm": "nn"}
_MODULES = (
    "algorithms",
    "checkpoint",
    "device_mesh",
    "elastic",
    "fsdp",
    "nn",
    "optim",
    "parallel",
    "pipelining",
    "run",
    "tensor",
)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        value = getattr(_importlib.import_module(f"plait_distributed.{_LATER[name]}"), name)
    elif name in _MODULES:
        value = _importlib.import_module(f"plait_distributed.{name}")
    else:
        raise AttributeError(f"module 'plait_distributed' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
