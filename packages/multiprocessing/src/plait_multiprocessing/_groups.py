"""Collectives between processes of one machine, over shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from plait_multiprocessing import _library as _library
from plait_multiprocessing import _shared
from plait_multiprocessing._reductions import InMessage

__all__ = ["Group", "GroupError", "Member"]

TensorType = TypeVar("TensorType")

# enum plait_collective_kind, plait_reduction (plait/abi.h) and plait_outcome (shared.h)
ALL_REDUCE, BROADCAST, ALL_GATHER, GATHER, REDUCE_SCATTER, BARRIER = 1, 2, 4, 5, 7, 11
_REDUCTIONS = {"sum": 0, "mean": 1, "product": 2, "min": 3, "max": 4}
_DONE, _BROKEN, _MISMATCH, _TIMED_OUT, _INTERRUPTED = range(5)
_CHUNK = 512 << 10
_MOST_RANKS = 1024


class GroupError(RuntimeError):
    """A member died, left, or called a different collective; the text names it.

    Example:
        >>> import plait_multiprocessing as mp
        >>> group = mp.Group(2)
        >>> group.join(1).leave()
        >>> try:
        ...     group.join(0).barrier()
        ... except mp.GroupError as error:
        ...     print("left the group" in str(error))
        True
    """


class Group:
    """A group of processes: made in one of them, passed to the others, and joined by each.

    Args:
        size: the number of members.
        timeout: seconds that a member waits for the others in one step of a collective.
        chunk: bytes of a tensor that are exchanged at once; a multiple of 64.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> def add(rank, group, results):
        ...     member = group.join(rank)
        ...     x = pc.full((2,), float(rank + 1))
        ...     results[rank] = member.all_reduce(x)
        >>> results = pc.zeros(2, 2).share_memory_()
        >>> mp.spawn(add, (mp.Group(2), results), nprocs=2, start_method="fork")
        >>> results.tolist()
        [[3.0, 3.0], [3.0, 3.0]]
    """

    def __init__(self, size: int, *, timeout: float = 300.0, chunk: int = _CHUNK) -> None:
        if not 1 <= size <= _MOST_RANKS:
            raise ValueError(f"Group: `size` must be in [1, {_MOST_RANKS}], got {size}")
        if not timeout > 0:
            raise ValueError(f"Group: `timeout` must be positive, got {timeout}")
        if chunk <= 0 or chunk % 64:
            raise ValueError(f"Group: `chunk` must be a positive multiple of 64, got {chunk}")
        self.size = size
        self.timeout = timeout
        self._block = _shared.make_group(size, chunk, timeout)

    def join(self, rank: int) -> Member:
        """Become the member of this rank; each rank is joined once.

        Raises:
            TypeError: the rank is no int.
            ValueError: the rank is outside of the group, or another process has it.
        """
        if isinstance(rank, bool) or not hasattr(rank, "__index__"):
            raise TypeError(f"join: `rank` must be an int, got {rank!r}")
        rank = int(rank)
        if not 0 <= rank < self.size:
            raise ValueError(f"join: `rank` must be in [0, {self.size - 1}], got {rank}")
        return Member(self, rank)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_group, (self.size, self.timeout, InMessage(self._block))

    def __repr__(self) -> str:
        return f"Group(size={self.size}, timeout={self.timeout:g})"


def _rebuild_group(size: int, timeout: float, storage: tuple[_shared.Block, int]) -> Group:
    group: Group = Group.__new__(Group)
    group.size, group.timeout, group._block = size, timeout, storage[0]
    return group


class Member:
    """One rank of a `Group`. All members call the same collectives in the same order.

    Tensors have any strides and one dtype; collectives that make no new tensors also accept arrays
    of other libraries (NumPy, torch). Nothing is recorded for gradients. Reductions are computed in
    the order of the ranks, in the tensors' dtype, or in float32 for float16 and bfloat16, so their
    bits don't depend on timing. For bool a sum or maximum is "or", a product or minimum "and".

    Every call raises

    - `GroupError` if a member died, left or called something else; the loss of a member breaks the
        group; after different calls it remains usable and no tensor has changed;
    - `TimeoutError` if the others did not come within the group's timeout.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> with mp.Group(1).join(0) as member:  # alone, for the looks of it
        ...     member.all_gather(pc.ones(2)), member.reduce_scatter([pc.ones(2)], "max")
        ([tensor([1., 1.])], tensor([1., 1.]))
    """

    def __init__(self, group: Group, rank: int) -> None:
        self.group = group
        self.rank = rank
        self.size = group.size
        self._member = _shared.join(group._block, rank)

    def __repr__(self) -> str:
        return f"Member(rank={self.rank}, size={self.size})"

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Leave the group; members that wait for this rank get an error."""
        self._member.leave()

    def barrier(self) -> None:
        """Wait until all members have called it."""
        self._run(BARRIER, "barrier")

    def all_reduce(self, tensors: TensorType, op: str = "sum") -> TensorType:
        """Replace each element by its sum, mean, ... over all ranks; return the argument.

        Args:
            tensors: a tensor, or a list or tuple of them, reduced together: many small ones
                (gradients) take little more time than one large one.
            op: sum, mean, product, min or max.
        """
        self._in_place(ALL_REDUCE, "all_reduce", tensors, op, 0)
        return tensors

    def broadcast(self, tensors: TensorType, root: int = 0) -> TensorType:
        """Replace a tensor, or each of a list of them, by that of the rank `root`."""
        self._in_place(BROADCAST, "broadcast", tensors, None, self._root(root, "broadcast"))
        return tensors

    def all_gather(self, tensor: TensorType) -> list[TensorType]:
        """Return the tensors of all ranks, by rank; they have one shape."""
        results = [_like(tensor, "all_gather") for _ in range(self.size)]
        self._run(ALL_GATHER, "all_gather", (tensor,), tuple(results))
        return results

    def gather(self, tensor: TensorType, root: int = 0) -> list[TensorType] | None:
        """Return the tensors of all ranks on the rank `root`, None on the others."""
        mine = self._root(root, "gather") == self.rank
        results = [_like(tensor, "gather") for _ in range(self.size if mine else 0)]
        self._run(GATHER, "gather", (tensor,), tuple(results), root=root)
        return results if mine else None

    def reduce_scatter(self, tensors: Sequence[TensorType], op: str = "sum") -> TensorType:
        """Return the sum, mean, ... over all ranks of their ``tensors[rank]``, for this member's
        rank.

        Args:
            tensors: one for each rank, of one shape.
            op: sum, mean, product, min or max.
        """
        shapes = [tuple(getattr(tensor, "shape", ())) for tensor in tensors]
        if len(tensors) != self.size or len(set(shapes)) != 1:
            raise ValueError(
                f"reduce_scatter: `tensors` must be {self.size} tensors of one shape, one for each "
                f"rank; got {len(tensors)} of the shapes {shapes}"
            )
        result: TensorType = _like(tensors[self.rank], "reduce_scatter")
        reduction = _reduction("reduce_scatter", op, tensors[0])
        self._run(REDUCE_SCATTER, "reduce_scatter", tuple(tensors), (result,), reduction)
        return result

    def _in_place(self, kind: int, who: str, given: Any, op: str | None, root: int) -> None:
        tensors = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        by_dtype: dict[str, list[Any]] = {}
        for tensor in tensors:
            if not hasattr(tensor, "dtype"):
                raise TypeError(f"{who}: tensors are required, got {type(tensor).__name__}")
            by_dtype.setdefault(str(tensor.dtype), []).append(tensor)
        for some in by_dtype.values():
            reduction = 0 if op is None else _reduction(who, op, some[0])
            self._run(kind, who, tuple(some), tuple(some), reduction, root)

    def _root(self, root: int, who: str) -> int:
        if not 0 <= root < self.size:
            raise ValueError(f"{who}: `root` must be in [0, {self.size - 1}], got {root}")
        return root

    def _run(
        self,
        kind: int,
        who: str,
        inputs: tuple[Any, ...] = (),
        outputs: tuple[Any, ...] = (),
        reduction: int = 0,
        root: int = 0,
    ) -> None:
        if any(getattr(x, "requires_grad", False) and not x.is_leaf for x in outputs):
            raise RuntimeError(f"{who}: a tensor without a history is required; detach() it first")
        outcome, text = self._member.run(
            kind, reduction, root, tuple(map(_plain, inputs)), tuple(map(_plain, outputs))
        )
        if outcome == _TIMED_OUT:
            raise TimeoutError(text)
        if outcome != _DONE:
            raise GroupError(text)


def _plain(tensor: Any) -> Any:
    """Return the tensor detached, as DLPack does not export tensors that require grad."""
    if _shared.kind(tensor) >= 0 or not getattr(tensor, "requires_grad", False):
        return tensor
    return tensor.detach()


def _like(tensor: Any, who: str) -> Any:
    if _shared.kind(tensor) < 0:
        raise TypeError(f"{who}: a tensor of plait is required, got {type(tensor).__name__}")
    cls = type(tensor)
    base = next(c for c in reversed(cls.__mro__) if "__plait_tensor__" in vars(c))
    code, bits, _, shape, _ = _shared.layout(tensor)
    return _shared.empty(base, shape, False, code, bits)


def _reduction(who: str, op: str, tensor: Any) -> int:
    if op not in _REDUCTIONS:
        raise ValueError(f"{who}: `op` must be one of {', '.join(_REDUCTIONS)}; got {op!r}")
    name = str(tensor.dtype)  # dtypes of plait, NumPy and torch have a name
    if op == "mean" and "float" not in name and "complex" not in name:
        raise TypeError(f"{who}: a floating-point dtype is required for mean, got {name}")
    if op in ("min", "max") and "complex" in name:
        raise TypeError(f"{who}: complex numbers have no {op}")
    return _REDUCTIONS[op]
