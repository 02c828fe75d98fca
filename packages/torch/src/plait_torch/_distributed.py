"""`torch.distributed` without the package for several processes."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, NoReturn

from plait_torch._refusal import refusing

__all__ = [
    "ProcessGroup",
    "ReduceOp",
    "ZeroRedundancyOptimizer",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "batch_isend_irecv",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "Backend",
    "GroupMember",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "new_group",
    "recv",
    "reduce",
    "send",
]


def is_available() -> bool:
    """Return False: the package plait-distributed is not installed.

    Example:
        >>> from plait_torch._distributed import is_available
        >>> is_available()
        False
    """
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_available


def is_initialized() -> bool:
    """Return False: no process group was made."""
    return False


def is_torchelastic_launched() -> bool:
    """Return False: no launcher of PyTorch's started this process."""
    return False


def _no_group(name: str) -> ValueError:
    # PyTorch's error for the same condition
    return ValueError(
        f"torch.distributed.{name}: there is no process group; ask "
        "`torch.distributed.is_available() and torch.distributed.is_initialized()` first"
    )


def get_rank(group: Any = None) -> int:
    """Raise ValueError, as PyTorch does without a process group."""
    raise _no_group("get_rank")


def get_world_size(group: Any = None) -> int:
    """Raise ValueError, as PyTorch does without a process group."""
    raise _no_group("get_world_size")


def get_backend(group: Any = None) -> str:
    """Raise ValueError, as PyTorch does without a process group."""
    raise _no_group("get_backend")


def barrier(*args: Any, **kwargs: Any) -> None:
    """Raise ValueError, as PyTorch does without a process group."""
    raise _no_group("barrier")


def destroy_process_group(group: Any = None) -> None:
    """Raise ValueError, as PyTorch does without a process group."""
    raise _no_group("destroy_process_group")


def _collective(name: str) -> Any:
    doc = "Raise ValueError, as PyTorch does without a process group."
    return refusing(name, lambda: _no_group(name), doc)


all_gather = _collective("all_gather")
all_gather_object = _collective("all_gather_object")
all_gather_into_tensor = _collective("all_gather_into_tensor")
all_to_all = _collective("all_to_all")
all_to_all_single = _collective("all_to_all_single")
batch_isend_irecv = _collective("batch_isend_irecv")
gather = _collective("gather")
gather_object = _collective("gather_object")
irecv = _collective("irecv")
isend = _collective("isend")
monitored_barrier = _collective("monitored_barrier")
reduce_scatter = _collective("reduce_scatter")
reduce_scatter_tensor = _collective("reduce_scatter_tensor")
_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor
scatter = _collective("scatter")
scatter_object_list = _collective("scatter_object_list")
all_reduce = _collective("all_reduce")
broadcast = _collective("broadcast")
broadcast_object_list = _collective("broadcast_object_list")
new_group = _collective("new_group")
recv = _collective("recv")
reduce = _collective("reduce")
send = _collective("send")


class ReduceOp(Enum):
    """How PyTorch's collectives reduce."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class ProcessGroup:
    """A class without instances: no process group can be made."""


class ZeroRedundancyOptimizer:
    """A class whose constructor raises: processes cannot share an optimizer's state yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "torch.distributed.optim.ZeroRedundancyOptimizer: it is not available; use the "
            "optimizer itself"
        )


class group:  # noqa: N801 - PyTorch's name
    """The name of the group of all processes, which does not exist."""

    WORLD = None


class GroupMember:
    """Names of groups, which do not exist."""

    WORLD = None
    NON_GROUP_MEMBER = -100


class Backend(str):
    """The name of a backend in small letters; none of them is there."""

    UNDEFINED, GLOO, NCCL, MPI, UCC, XCCL = "undefined", "gloo", "nccl", "mpi", "ucc", "xccl"
    default_device_backend_map: ClassVar[dict[str, str]] = {
        "cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO,
    }  # fmt: skip

    def __new__(cls, name: str) -> Backend:
        return super().__new__(cls, name.lower())


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise: the package plait-distributed is not installed."""
    raise NotImplementedError(
        "torch.distributed.init_process_group: the package plait-distributed is not "
        "installed (pip install plait-distributed); or use the program's single-process path"
    )


# the groups of processes, of which there are none
_pg_map: dict[Any, Any] = {}
