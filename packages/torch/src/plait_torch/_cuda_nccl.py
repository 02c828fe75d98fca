"""`torch.cuda.nccl`: whether NCCL is there. Collectives are those of `torch.distributed`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import plait
from plait_abi import components

__all__ = ["is_available", "version"]


def version() -> tuple[int, ...]:
    """Return the version of NCCL, such as (2, 27, 7).

    Raises:
        RuntimeError: where it is not installed.
    """
    numbers: tuple[int, ...] | None = None
    if components.offers("cuda"):
        package = importlib.import_module(str(components.choose("cuda")))
        numbers = getattr(package, "nccl_version", _no_version)()
    if numbers is None:
        raise RuntimeError(
            "cuda.nccl.version: NCCL was not found; pip install plait-cuda[libraries]"
        )
    return numbers


def _no_version() -> None:
    """Return None: another package that brings CUDA devices has no NCCL."""


def is_available(tensors: Iterable[Any]) -> bool:
    """Return whether NCCL is there, and whether it can compute with these tensors: dense ones, each
    on a CUDA device of its own.
    """
    devices = set()
    for tensor in tensors:
        dense = tensor.layout == plait.strided and tensor.is_contiguous()
        if not dense or not tensor.is_cuda or tensor.device in devices:
            return False
        devices.add(tensor.device)
    try:
        return bool(version())
    except RuntimeError:
        return False
