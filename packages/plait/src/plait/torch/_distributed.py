"""`torch.distributed` in one process: it is not available, and says so."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "barrier",
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
]


def is_available() -> bool:
    """Return False: plait trains in one process.

    Example:
        >>> from plait.torch._distributed import is_available
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


def _refuse_group(name: str) -> NoReturn:
    # PyTorch's ValueError, with the same condition
    raise ValueError(
        f"torch.distributed.{name}: there is no process group; ask "
        "`torch.distributed.is_available() and torch.distributed.is_initialized()` first"
    )


def get_rank(group: Any = None) -> int:
    """Raise ValueError, as PyTorch does without a process group."""
    _refuse_group("get_rank")


def get_world_size(group: Any = None) -> int:
    """Raise ValueError, as PyTorch does without a process group."""
    _refuse_group("get_world_size")


def get_backend(group: Any = None) -> str:
    """Raise ValueError, as PyTorch does without a process group."""
    _refuse_group("get_backend")


def barrier(*args: Any, **kwargs: Any) -> None:
    """Raise ValueError, as PyTorch does without a process group."""
    _refuse_group("barrier")


def destroy_process_group(group: Any = None) -> None:
    """Raise ValueError, as PyTorch does without a process group."""
    _refuse_group("destroy_process_group")


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: plait trains in one process."""
    raise NotImplementedError(
        "torch.distributed.init_process_group: plait trains in one process; leave the launcher "
        "out and use the program's single-process path"
    )
