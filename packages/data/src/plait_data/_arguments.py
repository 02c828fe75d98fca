"""Checks of arguments of a `DataLoader` that exclude each other."""

from __future__ import annotations

from typing import Any

__all__ = ["check_order", "check_workers", "refuse"]

_CONTEXTS = ("fork", "spawn", "forkserver", "thread")


def refuse(text: str) -> None:
    """Raise the ValueError for a wrong argument."""
    raise ValueError(f"DataLoader: {text}")


def check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool, context: Any
) -> None:
    """Raise for arguments about workers that exclude each other, as PyTorch does."""
    if not isinstance(num_workers, int) or isinstance(num_workers, bool):
        refuse(f"`num_workers` must be an int >= 0; got {num_workers!r}")
    if num_workers < 0:
        refuse(f"`num_workers` must be >= 0; got {num_workers}")
    if not hasattr(timeout, "__float__") or timeout < 0:
        refuse(f"`timeout` must be >= 0; got {timeout!r}")
    if num_workers > 0:
        if prefetch_factor is not None and (
            not isinstance(prefetch_factor, int) or prefetch_factor < 1
        ):
            refuse(f"`prefetch_factor` must be a positive int or None; got {prefetch_factor!r}")
        if isinstance(context, str) and context not in _CONTEXTS:
            names = ", ".join(map(repr, _CONTEXTS))
            refuse(
                f"`multiprocessing_context` must be None, a context or one of {names}; "
                f"got {context!r}"
            )
        return
    if prefetch_factor is not None:
        refuse(f"`prefetch_factor` requires num_workers > 0; got {prefetch_factor}")
    if persistent:
        refuse("`persistent_workers` requires num_workers > 0")
    if context is not None:
        refuse(f"`multiprocessing_context` requires num_workers > 0; got {context!r}")


def check_order(
    iterable: bool,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> None:
    """Raise for arguments about the order that exclude each other, as PyTorch does."""
    if iterable:
        arguments = {"shuffle": bool(shuffle), "sampler": sampler is not None}
        arguments["batch_sampler"] = batch_sampler is not None
        for name, is_given in arguments.items():
            if is_given:
                refuse(f"`{name}` must not be given for an IterableDataset, which has no indices")
    if sampler is not None and shuffle:
        refuse("`sampler` and `shuffle` exclude each other; got both")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            refuse(
                "`batch_sampler` excludes `batch_size`, `shuffle`, `sampler` and `drop_last`; "
                f"got batch_size={batch_size}, shuffle={shuffle}, drop_last={drop_last}"
                + (", a sampler" if sampler is not None else "")
            )
    elif batch_size is None:
        if drop_last:
            refuse("`drop_last` requires a batch_size; got batch_size=None")
    elif not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
        refuse(f"`batch_size` must be a positive int or None; got {batch_size!r}")
