"""Groups that a parent makes for its processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

import plait_abi
from plait_multiprocessing import _library as _library, _shared
from plait_multiprocessing._communicators import Endpoint, Work
from plait_multiprocessing._reductions import InMessage

TensorType = TypeVar("TensorType")

_CHUNK = 256 << 10
_MOST_RANKS = 1024


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


class Member(Endpoint):
    """One rank of a `Group`. All members call the same collectives in the same order.

    Collectives return their results; `Communicator` has the forms that write into given tensors.
    With ``async_op=True`` they return a `Work` at once, and its `wait` returns the results.

    Tensors have any strides and one dtype; collectives that make no new tensors also accept arrays
    of other libraries (NumPy, torch). Nothing is recorded for gradients. Reductions are computed in
    the order of the ranks, in the tensors' dtype, or in float32 for float16 and bfloat16, so their
    bits don't depend on timing. For bool a sum or maximum is "or", a product or minimum "and".

    Every call raises

    - `GroupError` if a member died, left or called something else; the loss of a member breaks the
        group; after different calls it remains usable and no tensor has changed;
    - `TimeoutError` if the others did not come within the group's timeout.

    Args:
        group: The group.
        rank: The member's number in it.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> with mp.Group(1).join(0) as member:  # alone, for the looks of it
        ...     member.all_gather(pc.ones(2)), member.reduce_scatter([pc.ones(2)], "max")
        ([tensor([1., 1.])], tensor([1., 1.]))
    """

    def __init__(self, group: Group, rank: int) -> None:
        self.group = group
        where = group._block.where
        super().__init__(
            plait_abi.Communicator.open("shared_memory", where, rank, group.size, group.timeout)
        )

    @overload
    def all_reduce(
        self, tensors: TensorType, op: str = ..., async_op: Literal[False] = ...
    ) -> TensorType: ...
    @overload
    def all_reduce(
        self, tensors: TensorType, op: str = ..., *, async_op: Literal[True]
    ) -> Work[TensorType]: ...
    def all_reduce(self, tensors: TensorType, op: str = "sum", async_op: bool = False) -> Any:
        """Replace each element by its sum, mean, ... over all ranks; return the argument.

        Args:
            tensors: a tensor, or a list or tuple of them, reduced together: many small ones
                (gradients) take little more time than one large one.
            op: sum, mean, product, min, max, and for integers and bools and, or, xor.
            async_op: whether to return a `Work` at once.
        """
        return self._in_place("all_reduce", tensors, op, 0, async_op)

    @overload
    def broadcast(
        self, tensors: TensorType, root: int = ..., async_op: Literal[False] = ...
    ) -> TensorType: ...
    @overload
    def broadcast(
        self, tensors: TensorType, root: int = ..., *, async_op: Literal[True]
    ) -> Work[TensorType]: ...
    def broadcast(self, tensors: TensorType, root: int = 0, async_op: bool = False) -> Any:
        """Replace a tensor, or each of a list of them, by that of the rank `root`."""
        peer = self._rank(root, "broadcast", "root")
        return self._in_place("broadcast", tensors, "sum", peer, async_op)

    @overload
    def reduce(
        self, tensors: TensorType, root: int = ..., op: str = ..., async_op: Literal[False] = ...
    ) -> TensorType: ...
    @overload
    def reduce(
        self, tensors: TensorType, root: int = ..., op: str = ..., *, async_op: Literal[True]
    ) -> Work[TensorType]: ...
    def reduce(
        self, tensors: TensorType, root: int = 0, op: str = "sum", async_op: bool = False
    ) -> Any:
        """Reduce on the rank `root` alone; the tensors of the others do not change."""
        return self._in_place("reduce", tensors, op, self._rank(root, "reduce", "root"), async_op)

    @overload
    def all_gather(
        self, tensor: TensorType, async_op: Literal[False] = ...
    ) -> list[TensorType]: ...
    @overload
    def all_gather(
        self, tensor: TensorType, *, async_op: Literal[True]
    ) -> Work[list[TensorType]]: ...
    def all_gather(self, tensor: TensorType, async_op: bool = False) -> Any:
        """Return the tensors of all ranks, by rank; they have one shape."""
        results = [_like(tensor, "all_gather") for _ in range(self.size)]
        return self._run("all_gather", results, (tensor,), results, async_op=async_op)

    @overload
    def gather(
        self, tensor: TensorType, root: int = ..., async_op: Literal[False] = ...
    ) -> list[TensorType] | None: ...
    @overload
    def gather(
        self, tensor: TensorType, root: int = ..., *, async_op: Literal[True]
    ) -> Work[list[TensorType] | None]: ...
    def gather(self, tensor: TensorType, root: int = 0, async_op: bool = False) -> Any:
        """Return the tensors of all ranks on the rank `root`, None on the others."""
        is_root = self._rank(root, "gather", "root") == self.rank
        results = [_like(tensor, "gather") for _ in range(self.size if is_root else 0)]
        return self._run(
            "gather", results if is_root else None, (tensor,), results, peer=root, async_op=async_op
        )

    @overload
    def scatter(
        self,
        tensor: TensorType,
        tensors: Sequence[TensorType] | None = ...,
        root: int = ...,
        async_op: Literal[False] = ...,
    ) -> TensorType: ...
    @overload
    def scatter(
        self,
        tensor: TensorType,
        tensors: Sequence[TensorType] | None = ...,
        root: int = ...,
        *,
        async_op: Literal[True],
    ) -> Work[TensorType]: ...
    def scatter(
        self,
        tensor: TensorType,
        tensors: Sequence[TensorType] | None = None,
        root: int = 0,
        async_op: bool = False,
    ) -> Any:
        """Replace `tensor` by the one for this rank of the rank `root`'s `tensors`; return it."""
        peer = self._rank(root, "scatter", "root")
        if peer == self.rank:
            self._check_list("scatter", tensors or ())
        inputs = tensors if peer == self.rank and tensors is not None else ()
        names = "tensors[{}]", "tensor"
        return self._run(
            "scatter", tensor, inputs, (tensor,), peer=peer, async_op=async_op, names=names
        )

    @overload
    def reduce_scatter(
        self, tensors: Sequence[TensorType], op: str = ..., async_op: Literal[False] = ...
    ) -> TensorType: ...
    @overload
    def reduce_scatter(
        self, tensors: Sequence[TensorType], op: str = ..., *, async_op: Literal[True]
    ) -> Work[TensorType]: ...
    def reduce_scatter(
        self, tensors: Sequence[TensorType], op: str = "sum", async_op: bool = False
    ) -> Any:
        """Return the sum, mean, ... over all ranks of their ``tensors[rank]``, for this member's
        rank.

        Args:
            tensors: one for each rank, of one shape.
            op: as for `all_reduce`.
            async_op: whether to return a `Work` at once.
        """
        self._check_list("reduce_scatter", tensors)
        result = _like(tensors[self.rank], "reduce_scatter")
        return self._run("reduce_scatter", result, tensors, (result,), op, async_op=async_op)

    @overload
    def all_to_all(
        self, tensors: Sequence[TensorType], async_op: Literal[False] = ...
    ) -> list[TensorType]: ...
    @overload
    def all_to_all(
        self, tensors: Sequence[TensorType], *, async_op: Literal[True]
    ) -> Work[list[TensorType]]: ...
    def all_to_all(self, tensors: Sequence[TensorType], async_op: bool = False) -> Any:
        """Send ``tensors[i]`` to rank i; return what all ranks sent to this one, by rank.

        Args:
            tensors: one for each rank, of one shape.
            async_op: whether to return a `Work` at once.
        """
        self._check_list("all_to_all", tensors)
        results = [_like(tensor, "all_to_all") for tensor in tensors]
        return self._run("all_to_all", results, tensors, results, async_op=async_op)

    def _check_list(self, operation: str, tensors: Sequence[Any]) -> None:
        shapes = [tuple(getattr(tensor, "shape", ())) for tensor in tensors]
        if len(tensors) != self.size or len(set(shapes)) != 1:
            raise ValueError(
                f"{operation}: `tensors` must be {self.size} tensors of one shape, one for each "
                f"rank; got {len(tensors)} of the shapes {shapes}"
            )

    def _in_place(self, kind: str, tensors: Any, op: str, root: int, async_op: bool) -> Any:
        several = isinstance(tensors, (list, tuple))
        by_dtype: dict[str, dict[str, Any]] = {}
        for index, tensor in enumerate(tensors if several else (tensors,)):
            name = f"tensors[{index}]" if several else "tensors"
            by_dtype.setdefault(str(getattr(tensor, "dtype", None)), {})[name] = tensor
        works = []
        for named in by_dtype.values():
            names, some = list(named), list(named.values())
            outputs = some if kind != "reduce" or root == self.rank else ()
            work = self._begin(
                kind, some, outputs, op, root, async_op=async_op, names=(names, names)
            )
            works.append(work)
        return Work([work for work in works if work is not None], tensors) if async_op else tensors


def _like(tensor: Any, operation: str) -> Any:
    if _shared.kind(tensor) < 0:
        raise TypeError(f"{operation}: a tensor of plait is required, got {type(tensor).__name__}")
    cls = type(tensor)
    base = next(c for c in reversed(cls.__mro__) if "__plait_tensor__" in vars(c))
    code, bits, _, shape, _ = _shared.layout(tensor)
    return _shared.empty(base, shape, False, code, bits)
