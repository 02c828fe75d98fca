"""Which rank writes what: states as flat tables of parts of tensors and of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from plait_distributed.checkpoint._boxes import first_hole, text_of
from plait_distributed.tensor._dtensor import DTensor, local_shape
from plait_distributed.tensor.placement_types import Partial


class DefaultSavePlanner:
    """The way in which `save` divides a state; there is only one.

    Args:
        flatten_state_dict, flatten_sharded_tensors: unused: dicts are taken apart.
        dedup_replicated_tensors, dedup_save_to_lowest_rank: unused: what several ranks have is
            written by the lowest one.
        enable_plan_caching: unused.

    Example:
        >>> from plait_distributed.checkpoint import DefaultSavePlanner
        >>> planner = DefaultSavePlanner()
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = True,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict


class DefaultLoadPlanner:
    """The way in which `load` fills a state.

    Args:
        flatten_state_dict, flatten_sharded_tensors: unused.
        allow_partial_load: whether values that the checkpoint does not have are left unchanged;
            otherwise a missing value is an error.

    Example:
        >>> from plait_distributed.checkpoint import DefaultLoadPlanner
        >>> DefaultLoadPlanner(allow_partial_load=True).allow_partial_load
        True
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.allow_partial_load = allow_partial_load


@dataclass
class Entry:
    """One leaf of a state, and the container that holds it."""

    key: str
    value: Any
    holder: Any
    place: Any
    path: tuple[str | int, ...] = ()  # with PyTorch's paths: keys as texts, positions as ints


@dataclass(frozen=True)
class Piece:
    """A part of a tensor, or a value, of one rank."""

    key: str
    shape: tuple[int, ...] | None  # of the whole tensor; None: a value
    dtype: str = ""
    first: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    name: str = field(default="")  # of the tensor in a file

    @property
    def where(self) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """The key by which equal pieces of several ranks are recognised."""
        return self.key, self.first, self.sizes


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor."""
    return hasattr(value, "requires_grad") and hasattr(value, "is_contiguous")


def _holds_tensors(value: Any, seen: set[int]) -> bool:
    """Return whether a tensor is in a value, beside containers that were seen already."""
    if not isinstance(value, (dict, list, tuple)):
        return is_tensor(value)
    if id(value) in seen:
        return False
    seen.add(id(value))
    inner = value.values() if isinstance(value, dict) else value
    return any(_holds_tensors(each, seen) for each in inner)


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[Entry]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in pairs:
        inner = (*path, str(name))
        plain = isinstance(each, dict) and all(isinstance(key, (str, int)) for key in each)
        if (plain and each) or (isinstance(each, list) and _holds_tensors(each, set())):
            yield from _leaves(each, inner)
        else:
            yield Entry(".".join(inner), each, value, name)


def _is_leaf_of_torch(value: Any) -> bool:
    """Return whether PyTorch writes a list as one value: no tensor and no dict is in it."""
    if isinstance(value, dict):
        return False
    return not isinstance(value, list) or all(
        not is_tensor(each) and (not isinstance(each, (dict, list)) or _is_leaf_of_torch(each))
        for each in value
    )


def leaves_of_torch(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[Entry]:
    """Yield the leaves of a state under the paths that PyTorch gives them."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in pairs:
        inner = (*path, str(name) if isinstance(value, dict) else name)
        if _is_leaf_of_torch(each):
            yield Entry(".".join(map(str, inner)), each, value, name, inner)
        else:
            yield from leaves_of_torch(each, inner)


def flattened(
    caller: str,
    state: dict[str, Any],
    leaves: Callable[[Any, tuple[Any, ...]], Iterator[Entry]] = _leaves,
) -> dict[str, Entry]:
    """Return the leaves of a state, by their dotted paths."""
    if not isinstance(state, dict):
        raise TypeError(f"{caller}: `state_dict` must be a dict, got {type(state).__name__}")
    results: dict[str, Entry] = {}
    for entry in leaves(state, ()):
        if entry.key in results:
            raise ValueError(f"{caller}: two entries of `state_dict` have the path {entry.key!r}")
        results[entry.key] = entry
    return results


def _name(key: str, first: tuple[int, ...], is_whole: bool) -> str:
    """Return the name of a tensor in a file, which no other piece of the rank has."""
    return key if is_whole and "@" not in key else f"{key}@{'.'.join(map(str, first))}"


def piece_of(caller: str, key: str, value: Any) -> Piece:
    """Return which part of a tensor this rank has."""
    if not is_tensor(value):
        return Piece(key, None)
    if not isinstance(value, DTensor):
        shape = tuple(value.shape)
        first = (0,) * len(shape)
        return Piece(key, shape, str(value.dtype), first, shape, _name(key, first, True))
    if any(isinstance(place, Partial) for place in value.placements):
        raise NotImplementedError(
            f"{caller}: {key} is a DTensor with {value.placements}; redistribute() it"
        )
    shape = tuple(value.shape)
    sizes, first = local_shape(shape, value.device_mesh, value.placements)
    name = "" if 0 in sizes and 0 not in shape else _name(key, first, False)
    return Piece(key, shape, str(value.dtype), first, sizes, name)


def owned(caller: str, plans: list[list[Piece]], ranks: Sequence[int]) -> list[list[Piece]]:
    """Return the pieces that each rank writes: the lowest rank of those that have a piece. Errors
    name `ranks`.

    Raises:
        ValueError: ranks have tensors of other shapes under one path, or no rank has some elements
            of a tensor.
    """
    seen: set[Any] = set()
    kinds: dict[str, tuple[int, Any]] = {}
    boxes: dict[str, list[Any]] = {}
    result: list[list[Piece]] = []
    for rank, plan in zip(ranks, plans, strict=True):
        own = []
        for piece in plan:
            kind = (piece.shape, piece.dtype)
            first, other = kinds.setdefault(piece.key, (rank, kind))
            if other != kind:
                raise ValueError(
                    f"{caller}: {piece.key} is {_text(kind)} on rank {rank}, and {_text(other)} on "
                    f"rank {first}"
                )
            if piece.where in seen or (piece.shape is not None and not piece.name):
                continue
            seen.add(piece.where)
            boxes.setdefault(piece.key, []).append((piece.first, piece.sizes))
            own.append(piece)
        result.append(own)
    for key, (_, (shape, _)) in kinds.items():
        if shape is not None:
            _check_cover(caller, key, shape, boxes.get(key, []), len(plans))
    return result


def _check_cover(caller: str, key: str, shape: Any, boxes: list[Any], count: int) -> None:
    hole = first_hole(((0,) * len(shape), shape), boxes, key)
    if hole is not None:
        ranks = "the rank that saves" if count == 1 else f"the {count} ranks that save"
        raise ValueError(
            f"{caller}: {key} has shape {shape}, and {ranks} do{'es' if count == 1 else ''} not "
            f"have its elements {text_of(*hole)}: all ranks that hold a part must save together"
        )


def _text(kind: tuple[Any, str]) -> str:
    shape, dtype = kind
    return "no tensor" if shape is None else f"of shape {shape} and {dtype}"
