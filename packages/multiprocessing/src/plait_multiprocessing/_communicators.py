"""Collectives between processes, by any provider of the role `communicator`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import plait_abi
from plait_multiprocessing import _library as _library, _shared

Self = TypeVar("Self", bound="Endpoint")
Result = TypeVar("Result")
# the names of tensors as arguments: of the only one, with {} for the index, or of each
Names = str | Sequence[str]
_PLACE = re.compile(r"`(inputs|outputs)\[(\d+)\]`")
REDUCTIONS = ("sum", "mean", "product", "min", "max", "and", "or", "xor")


class GroupError(RuntimeError):
    """A member died, left, aborted the group, or called a different collective; the text names it.

    Args:
        text: The message.

    Attributes:
        ranks: the members that died, left, are stopped or were interrupted.

    Example:
        >>> import plait_multiprocessing as mp
        >>> group = mp.Group(2)
        >>> group.join(1).leave()
        >>> try:
        ...     group.join(0).barrier()
        ... except mp.GroupError as error:
        ...     print("left the group" in str(error), error.ranks)
        True (1,)
    """

    def __init__(self, text: str = "", ranks: Iterable[int] = ()) -> None:
        super().__init__(text)
        self.ranks = tuple(ranks)


class Work(Generic[Result]):
    """A collective that runs: what a call with ``async_op=True`` returns.

    Its tensors may neither be read nor written until it is done. Dropping it does not stop it.
    Works of a communicator may be waited for in any order.

    Args:
        parts: The operations that were begun.
        result: What `wait` returns.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> member = mp.Group(1).join(0)
        >>> work = member.all_reduce(pc.ones(2), async_op=True)
        >>> work.wait()
        tensor([1., 1.])
        >>> work.is_completed()
        True
    """

    def __init__(self, parts: Sequence[plait_abi.Work], result: Result) -> None:
        self._parts = parts
        self._result = result

    def wait(self) -> Result:
        """Wait, and return what the call returns without ``async_op``.

        Raises:
            GroupError, TimeoutError: as the call does without ``async_op``.
        """
        for part in self._parts:
            with _Errors():
                part.wait()
        return self._result

    def is_completed(self) -> bool:
        """Whether it is done; raises its error if it failed."""
        with _Errors():
            return all(part.query() for part in self._parts)


class _Errors:
    """Turns what a provider reports of the group into GroupError, and what it calls ``inputs[1]``
    or ``outputs[1]`` into the caller's argument.
    """

    def __init__(self, names: tuple[Names, Names] | None = None) -> None:
        self._names = names

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if type(error) is plait_abi.PlaitError:
            raise GroupError(str(error), (r for r, _, _ in error.lost if r >= 0)) from None
        refused = (ValueError, plait_abi.ArgumentError)
        if type(error) in refused and self._names is not None:
            text = _PLACE.sub(self._argument, str(error))
            if text != str(error):
                raise plait_abi.ArgumentError(text) from None

    def _argument(self, place: re.Match[str]) -> str:
        assert self._names is not None
        name, index = self._names[place[1] == "outputs"], int(place[2])
        return f"`{name.format(index) if isinstance(name, str) else name[index]}`"


def _integer(value: Any, operation: str, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{operation}: `{name}` must be an int, got {type(value).__name__}")
    return int(value.__index__())


class Endpoint:
    """The common part of all members, for any form of collectives in Python."""

    def __init__(self, raw: plait_abi.Communicator) -> None:
        self._raw = raw
        self.rank = raw.rank
        self.size = raw.size
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank={self.rank}, size={self.size})"

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Leave the group; members that wait for this rank get an error."""
        self._raw.close()

    def barrier(self, async_op: bool = False) -> Work[None] | None:
        """Wait until all members have called it."""
        return self._run("barrier", None, async_op=async_op)

    def send(self, tensor: Any, dst: int, tag: int = 0) -> None:
        """Send a tensor to the member `dst`; returns when that member has it.

        Messages of one tag arrive in order.
        """
        self._run("send", None, (tensor,), peer=self._rank(dst, "send", "dst"), tag=tag)

    def recv(self, tensor: Any, src: int, tag: int = 0) -> int:
        """Receive a tensor of the member `src` into `tensor`, of its size and dtype; return
        `src`.
        """
        peer = self._rank(src, "recv", "src")
        self._run("recv", None, (), (tensor,), peer=peer, tag=tag)
        return src

    def isend(self, tensor: Any, dst: int, tag: int = 0) -> Work[None]:
        """Begin to `send`."""
        peer = self._rank(dst, "send", "dst")
        work = self._run("send", None, (tensor,), peer=peer, tag=tag, async_op=True)
        assert work is not None
        return work

    def irecv(self, tensor: Any, src: int, tag: int = 0) -> Work[int]:
        """Begin to `recv`."""
        peer = self._rank(src, "recv", "src")
        work = self._run("recv", src, (), (tensor,), peer=peer, tag=tag, async_op=True)
        assert isinstance(work, Work)
        return work

    def split(self, color: int, key: int = 0) -> Communicator | None:
        """Return the communicator of the members that give the same `color`.

        All members call it. Ranks there follow `key`, then the rank here; a member with a negative
        color gets None. The communicators work independently of one another.
        """
        color, key = _integer(color, "split", "color"), _integer(key, "split", "key")
        with _Errors():
            part = self._raw.split(color, key)
        return None if part is None else Communicator(part)

    def abort(self, why: str) -> None:
        """End all collectives of the group, running and later ones, in every member, with a
        `GroupError` that has this text.

        Raises:
            TypeError: `why` is no text.
            GroupError: this process is a forked child of the member.
        """
        if os.getpid() != self._pid:
            raise GroupError(
                f"abort: the communicator is that of the process {self._pid}, of which this one is "
                "a forked child; a child opens or joins one itself"
            )
        self._raw.abort(why)

    def _rank(self, rank: int, operation: str, name: str) -> int:
        rank = _integer(rank, operation, name)
        if not 0 <= rank < self.size:
            raise ValueError(f"{operation}: `{name}` must be in [0, {self.size - 1}], got {rank}")
        return rank

    def _begin(
        self,
        kind: str,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        op: str = "sum",
        peer: int = 0,
        tag: int = 0,
        async_op: bool = False,
        names: tuple[Names, Names] = ("tensor", "tensor"),
    ) -> plait_abi.Work | None:
        for tensor in (*inputs, *outputs):
            if not hasattr(tensor, "dtype"):
                raise TypeError(f"{kind}: tensors are required, got {type(tensor).__name__}")
        if any(getattr(x, "requires_grad", False) and not x.is_leaf for x in outputs):
            raise RuntimeError(f"{kind}: a tensor without a history is required; detach() it first")
        if op not in REDUCTIONS:
            raise ValueError(f"{kind}: `op` must be one of {', '.join(REDUCTIONS)}; got {op!r}")
        tag = _integer(tag, kind, "tag")
        with _Errors(names):
            return self._raw.start(
                kind,
                tuple(map(_plain, inputs)),
                tuple(map(_plain, outputs)),
                reduction=op,
                peer=peer,
                tag=tag,
                asynchronous=async_op,
            )

    def _run(
        self,
        kind: str,
        result: Result,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        op: str = "sum",
        peer: int = 0,
        tag: int = 0,
        async_op: bool = False,
        names: tuple[Names, Names] = ("tensor", "tensor"),
    ) -> Result | Work[Result]:
        work = self._begin(kind, inputs, outputs, op, peer, tag, async_op, names)
        return result if work is None else Work([work], result)


def _plain(tensor: Any) -> Any:
    """Return the tensor detached, as DLPack does not export tensors that require grad."""
    if not getattr(tensor, "requires_grad", False) or _shared.kind(tensor) >= 0:
        return tensor
    return tensor.detach()


class Communicator(Endpoint):
    """One member of a group of processes that find each other by a name, on any provider.

    The collectives have the names and the order of arguments of `torch.distributed`: they write
    into tensors that are given. With ``async_op=True`` they return a `Work` at once, else None.
    Members call the same collectives in the same order; tensors have one dtype, those of a list one
    size. Arrays of other libraries (NumPy, torch) are accepted. Nothing is recorded for gradients.
    Reductions are computed in the order of the ranks: every member gets the same bits in each run.

    Reductions (`op`) are sum, mean, product, min, max, and for integers and bools and, or, xor.

    Every call raises

    - `GroupError` if a member died, left, aborted the group or called something else; after
        different calls the group remains usable and no tensor has changed;
    - `TimeoutError` if the others did not come within the communicator's timeout;
    - ValueError or TypeError for wrong arguments.

    In a forked child it is no member: its methods raise `GroupError` there.

    Args:
        raw: The communicator of the C ABI.

    Example:
        >>> import plait_core as pc, plait_multiprocessing as mp
        >>> def add(rank, results):
        ...     with mp.Communicator.open("shm:documentation", rank, 2) as group:
        ...         x = pc.full((2,), float(rank + 1))
        ...         group.all_reduce(x)
        ...         results[rank] = x
        >>> results = pc.zeros(2, 2).share_memory_()
        >>> mp.spawn(add, (results,), nprocs=2, start_method="fork")
        >>> results.tolist()
        [[3.0, 3.0], [3.0, 3.0]]
    """

    @classmethod
    def open(
        cls,
        where: str,
        rank: int,
        size: int,
        *,
        timeout: float = 300.0,
        provider: str = "shared_memory",
        device: Any = "cpu",
    ) -> Communicator:
        """Join the group that all members call `where`, and wait until all have come.

        Args:
            where: names the group; its form is the provider's. For `shared_memory` it is
                ``"shm:NAME"``, with any text of at most 80 bytes: the processes of one user, in one
                network namespace, that know it can join. No file has this name, and it is free
                again when all have come.
            rank: this member's number, below `size`; each is given once.
            size: how many members there are.
            timeout: seconds to wait for the others here, and in each step of a collective.
            provider: the name under which a plug-in provides the role `communicator`.
            device: where the tensors are.

        Raises:
            ValueError: an argument is wrong, or no provider has it.
            TimeoutError: the others did not come.
            GroupError: another member has the rank, gave another size, or ended meanwhile.
        """
        with _Errors():
            raw = plait_abi.Communicator.open(provider, where, rank, size, timeout, device)
        return cls(raw)

    def all_reduce(self, tensor: Any, op: str = "sum", async_op: bool = False) -> Work[None] | None:
        """Replace each element by its sum, mean, ... over all ranks."""
        return self._run("all_reduce", None, (tensor,), (tensor,), op, async_op=async_op)

    def broadcast(self, tensor: Any, src: int = 0, async_op: bool = False) -> Work[None] | None:
        """Replace the tensor by that of the rank `src`."""
        peer = self._rank(src, "broadcast", "src")
        return self._run("broadcast", None, (tensor,), (tensor,), peer=peer, async_op=async_op)

    def reduce(
        self, tensor: Any, dst: int = 0, op: str = "sum", async_op: bool = False
    ) -> Work[None] | None:
        """Replace each element on the rank `dst` by its sum, mean, ... over all ranks; the
        tensors of the others stay as they are.
        """
        peer = self._rank(dst, "reduce", "dst")
        outputs = (tensor,) if peer == self.rank else ()
        return self._run("reduce", None, (tensor,), outputs, op, peer, async_op=async_op)

    def all_gather(
        self, tensor_list: Sequence[Any], tensor: Any, async_op: bool = False
    ) -> Work[None] | None:
        """Write the tensors of all ranks into the list, by rank."""
        names = "tensor", "tensor_list[{}]"
        return self._run("all_gather", None, (tensor,), tensor_list, async_op=async_op, names=names)

    def gather(
        self,
        tensor: Any,
        gather_list: Sequence[Any] | None = None,
        dst: int = 0,
        async_op: bool = False,
    ) -> Work[None] | None:
        """Write the tensors of all ranks into the list of the rank `dst`, which alone has one."""
        peer = self._rank(dst, "gather", "dst")
        names, outputs = ("tensor", "gather_list[{}]"), gather_list or ()
        return self._run(
            "gather", None, (tensor,), outputs, peer=peer, async_op=async_op, names=names
        )

    def scatter(
        self,
        tensor: Any,
        scatter_list: Sequence[Any] | None = None,
        src: int = 0,
        async_op: bool = False,
    ) -> Work[None] | None:
        """Write into `tensor` the one for this rank from the list of the rank `src`."""
        peer = self._rank(src, "scatter", "src")
        names, inputs = ("scatter_list[{}]", "tensor"), scatter_list or ()
        return self._run(
            "scatter", None, inputs, (tensor,), peer=peer, async_op=async_op, names=names
        )

    def reduce_scatter(
        self, output: Any, input_list: Sequence[Any], op: str = "sum", async_op: bool = False
    ) -> Work[None] | None:
        """Write into `output` the sum, mean, ... over all ranks of their ``input_list[rank]``."""
        names = "input_list[{}]", "output"
        return self._run(
            "reduce_scatter", None, input_list, (output,), op, async_op=async_op, names=names
        )

    def all_to_all(
        self,
        output_tensor_list: Sequence[Any],
        input_tensor_list: Sequence[Any],
        async_op: bool = False,
    ) -> Work[None] | None:
        """Send ``input_tensor_list[i]`` to rank i, and get the i-th output from it."""
        inputs, outputs = input_tensor_list, output_tensor_list
        names = "input_tensor_list[{}]", "output_tensor_list[{}]"
        return self._run("all_to_all", None, inputs, outputs, async_op=async_op, names=names)
