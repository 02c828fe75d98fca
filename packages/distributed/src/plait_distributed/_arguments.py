"""Tensors as collectives take them: dense, without a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_abi.components import require
from plait_abi.frames import warn
from plait_distributed._process_group import ProcessGroup
from plait_distributed._world import member_of


def core() -> Any:
    """Return the package of tensors."""
    return require("core")


def member_for(caller: str, group: Any) -> ProcessGroup | None:
    """Return the group; None, with a warning, if this process is no member of it."""
    member = member_of(caller, group)
    if member is None:
        warn(f"{caller}: this process is not a member of the group; nothing happens")
    return member


def root_rank(
    caller: str, own: ProcessGroup, rank: int | None, group_rank: int | None, name: str
) -> int:
    """Return the rank in the group of a root, which is given as one among all or in the group."""
    if group_rank is not None:
        if rank is not None:
            raise ValueError(f"{caller}: give `{name}` or `group_{name}`, not both")
        if isinstance(group_rank, bool) or not 0 <= int(group_rank) < own.size():
            raise ValueError(
                f"{caller}: `group_{name}` must be in [0, {own.size() - 1}], got {group_rank}"
            )
        return int(group_rank)
    return own.group_rank(caller, 0 if rank is None else rank, name)


def check_tensor(caller: str, name: str, tensor: Any) -> Any:
    """Return a tensor without a history that shares its memory."""
    if not hasattr(tensor, "is_contiguous") or not hasattr(tensor, "requires_grad"):
        raise TypeError(f"{caller}: `{name}` must be a tensor, got {type(tensor).__name__}")
    return tensor.detach() if tensor.requires_grad else tensor


def readable(caller: str, name: str, tensor: Any) -> Any:
    """Return a dense tensor with these elements."""
    return check_tensor(caller, name, tensor).contiguous()


def tensor_list(
    caller: str, name: str, tensors: Any, size: int | None, like: Any = None
) -> Sequence[Any]:
    """Check a list of tensors, one for each rank, of the number of elements of `like`."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"{caller}: `{name}` must be a list of tensors, got {type(tensors).__name__}"
        )
    if size is not None and len(tensors) != size:
        raise ValueError(
            f"{caller}: `{name}` must have a tensor for each of the {size} ranks, "
            f"got {len(tensors)}"
        )
    for i, each in enumerate(tensors):
        result = check_tensor(caller, f"{name}[{i}]", each)
        if like is not None and (result.numel(), result.dtype) != (like.numel(), like.dtype):
            raise ValueError(
                f"{caller}: `{name}[{i}]` must have {like.numel()} elements of {like.dtype}, got "
                f"shape {tuple(result.shape)} of {result.dtype}"
            )
    return tensors


def slices_of(caller: str, name: str, whole: Any, size: int, part: Any, other: str) -> list[Any]:
    """Return the part of each rank in a tensor."""
    plain = check_tensor(caller, name, whole)
    n = part.numel()
    if plain.numel() != size * n or plain.dtype != part.dtype:
        raise ValueError(
            f"{caller}: `{name}` must have {size} times the elements of `{other}` and its dtype, "
            f"{size} * {n} of {part.dtype}; got shape {tuple(plain.shape)} of {plain.dtype}"
        )
    if not plain.is_contiguous():
        raise ValueError(f"{caller}: `{name}` must be contiguous, got strides {plain.stride()}")
    flat = plain.view(-1)
    return [flat[i * n : (i + 1) * n] for i in range(size)]


class Written:
    """Tensors that a collective writes: dense ones, and the way back into those that are not."""

    def __init__(self, caller: str, name: str, tensors: Sequence[Any]) -> None:
        self.given = list(tensors)
        plain = [check_tensor(caller, name, tensor) for tensor in tensors]
        self.dense = [tensor.contiguous() for tensor in plain]
        self._back = [
            (to, dense)
            for to, dense in zip(plain, self.dense, strict=True)
            if dense is not to and not to.is_contiguous()
        ]

    @property
    def finish(self) -> Callable[[], None] | None:
        """The function to call when the collective is done, or None."""
        return self._copy if self._back else None

    def _copy(self) -> None:
        for to, dense in self._back:
            to.copy_(dense)
