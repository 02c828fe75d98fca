"""A group of processes: its communicator, and the errors of its collectives."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import plait_abi
from plait_abi.components import require
from plait_distributed._calls import Call
from plait_distributed._errors import CollectiveTimeout, DistBackendError, MismatchError, RankLost
from plait_distributed._mailbox import Mailbox
from plait_distributed._notes import note_cause
from plait_distributed._peers import Peer, describe_self
from plait_distributed._work import Part, Work

# of `PlaitError.lost`: (rank, process, pid)
Lost = Sequence[tuple[int, int, int]]
# of `PlaitError.failure`: a member that has ended since may be the reason
_MAY_BE_LOSSES = ("", "lost", "broken")
# the ranks may have called different things, which they then tell each other
_MAY_BE_MISMATCHES = ("", "mismatch")
_TEXT_BYTES = 512  # of the description of a call for the other ranks
_PATIENCE = 5.0  # seconds that a rank waits for the others' descriptions of their calls
_RANK = re.compile(r"\brank (\d+)(?: \(pid (\d+)\))?")  # in a provider's text
_ABORTED = " aborted the group: "  # a provider's text, behind the rank and before the reason


def open_communicator(
    provider: str,
    where: str,
    rank: int,
    size: int,
    timeout: float,
    caller: str = "init_process_group",
    parent: ProcessGroup | None = None,
    members: Sequence[int] = (),
    device: str = "cpu",
) -> plait_abi.Communicator:
    """Join the processes that meet at `where`, on a provider of the role `communicator`.

    Args:
        provider, where, rank, size, timeout: as of `Communicator.open`.
        who: the function that the program called, for errors.
        parent: a group that the processes are in, of which errors name the ranks.
        members: the ranks of the processes there.
        device: the type of devices on which the tensors are.

    Raises:
        RankLost: a process of the group was lost meanwhile.
        CollectiveTimeout: not all came.
    """
    if provider == "shared_memory":
        require("multiprocessing")
    try:
        return plait_abi.Communicator.open(provider, where, rank, size, timeout, device)
    except TimeoutError as error:
        raise CollectiveTimeout(f"{caller}: {error}") from None
    except plait_abi.PlaitError as error:
        failed = _opening_failed(caller, error, rank, parent, members)
        note_cause(failed)
        raise failed from None


def _opening_failed(
    caller: str,
    error: BaseException,
    own: int,
    parent: ProcessGroup | None = None,
    members: Sequence[int] = (),
) -> DistBackendError:
    """Return the error that a program gets where a group is not made."""
    lost, kind, text = _lost_of(error), _kind_of(error), str(error)
    if parent is None:
        numbers = dict.fromkeys(rank if rank >= 0 else process for rank, process, _ in lost)
        ranks = [rank for rank in numbers if rank not in (own, -1)]
        names = [f"rank {rank}" for rank in ranks]
    else:
        everybody = [r for r in range(parent.size()) if r != parent.rank()]
        here = [r for r in dict.fromkeys(_ranks_in(parent, lost, members)) if r in everybody]
        if not here and kind in _MAY_BE_LOSSES:
            here = [r for r in everybody if parent.peers[r].is_gone()]
        names, ranks = [parent.name_of(r) for r in here], [parent.ranks[r] for r in here]
        text = parent.with_global_ranks(text, kind, members)
    if not ranks:
        return _failed(f"{caller}: {text}", kind)
    return _loss(names, f"during {caller}; {text}", ranks)


def _kind_of(error: BaseException) -> str:
    """Return `PlaitError.failure`; '' for an error of a provider that does not state it."""
    return getattr(error, "failure", "")


def _lost_of(error: BaseException) -> Lost:
    return getattr(error, "lost", ())


def _ranks_in(parent: ProcessGroup, lost: Lost, members: Sequence[int]) -> Iterator[int]:
    """Yield the ranks that lost processes have in the group of which another one is made."""
    for rank, process, pid in lost:
        if 0 <= rank < len(members):
            yield members[rank]
        else:  # it is none of the new group's, or its rank is not known
            results = [r for r, peer in enumerate(parent.peers) if peer.pid == pid]
            # processes of several hosts, or containers, may have the same pid
            yield from results if len(results) == 1 else {process}.intersection(results)


class ProcessGroup:
    """Processes that compute together, and this one's rank among them.

    `init_process_group` and `new_group` make groups; the collectives take one as `group`.

    Args:
        raw: The communicator of the C ABI.
        where: The place of the group's meeting.
        ranks: The members' ranks in the whole job.
        backend: The name that programs gave.
        provider: The provider of the communicator.
        timeout: Seconds that a collective may wait.
        peers: The members' hosts and processes; or None.
        description: A name for messages.
        device_providers: The provider for each type of device; or None.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:group", rank=0, world_size=1)
        >>> dist.new_group([0])
        ProcessGroup(rank=0, size=1, backend='shared_memory')
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        raw: plait_abi.Communicator,
        where: str,
        ranks: Sequence[int],
        backend: str,
        provider: str,
        timeout: float,
        peers: Sequence[Peer] | None = None,
        description: str = "default_pg",
        device_providers: Mapping[str, str] | None = None,
    ) -> None:
        self._raw: plait_abi.Communicator | None = raw
        self._of_devices: dict[str, plait_abi.Communicator] = {}
        self._where = where
        self._rank = raw.rank
        self._ranks = tuple(ranks)
        self._group_rank = {rank: i for i, rank in enumerate(self._ranks)}
        self._backend = backend
        self._provider = provider
        self._timeout = timeout
        self._lock = threading.Lock()
        self._calls = 0
        self._has_aborted = False
        self._pid = os.getpid()
        self.mailbox = Mailbox(self)
        self.group_desc = description
        self.group_name = where
        self._peers: Sequence[Peer] = ()
        self._peers = self._meet() if peers is None else peers
        self.device_providers = dict(device_providers or {})
        for kind, name in self.device_providers.items():
            place = f"{provider} {where}/{name}"
            self._of_devices[kind] = open_communicator(
                name, place, self._rank, len(self._ranks), timeout, parent=self, device=kind
            )

    def __repr__(self) -> str:
        return (
            f"ProcessGroup(rank={self._rank}, size={len(self._ranks)}, backend={self._backend!r})"
        )

    def rank(self) -> int:
        """Return this process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """Return the number of ranks."""
        return len(self._ranks)

    def name(self) -> str:
        """Return the name of the backend."""
        return self._backend

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of the members in the group of all processes."""
        return self._ranks

    @property
    def timeout(self) -> float:
        """Seconds that a collective waits for the other ranks."""
        return self._timeout

    @property
    def where(self) -> str:
        """The name under which the members opened the group."""
        return self._where

    @property
    def provider(self) -> str:
        """The name of the provider of the role `communicator`."""
        return self._provider

    @property
    def backend(self) -> str:
        """The requested name of the backend."""
        return self._backend

    @property
    def peers(self) -> Sequence[Peer]:
        """Host and process of each member, by its rank in the group."""
        return self._peers

    def group_rank(self, caller: str, rank: int, name: str = "rank") -> int:
        """Return the rank in this group of a rank of the group of all processes."""
        if isinstance(rank, bool) or not hasattr(rank, "__index__"):
            raise TypeError(f"{caller}: `{name}` must be an int, got {rank!r}")
        result = self._group_rank.get(int(rank))
        if result is None:
            raise ValueError(
                f"{caller}: `{name}` must be a member of the group, one of {list(self._ranks)}; "
                f"got {rank}"
            )
        return result

    def begin_call(self, name: str, detail: str, tensors: Sequence[Any]) -> Call:
        """Return the description of a collective that is about to be started."""
        return Call(self._calls + 1, name, detail, tensors)

    def _count(self, call: Call, step: int = 1) -> None:
        """Count a collective that is started, and not one whose arguments are refused: the numbers
        must be the same on all ranks, as ranks meet under them.
        """
        with self._lock:
            self._calls += step
            call.number = self._calls

    def begin_message(self, name: str, detail: str, tensor: Any) -> Call:
        """Return the description of a message; messages are not numbered, as others send none."""
        return Call(self._calls, name, detail, (tensor,))

    def start(
        self,
        call: Call,
        kind: str,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        *,
        reduction: str = "sum",
        peer: int = 0,
        tag: int | None = None,
        timeout: float = 0.0,
        asynchronous: bool = False,
    ) -> Part | None:
        """Run a collective of the provider, or begin it; errors name ranks and lines.

        Of tensors on a device it is in the current stream when the function returns.
        """
        raw = self._member(call.name)
        of_device = self._device_of(call.name, inputs or outputs)
        if of_device:
            raw = self._of_devices[of_device]
        is_message = kind in ("send", "recv")
        try:
            if not is_message:
                self._count(call)
            work = raw.start(
                kind,
                inputs,
                outputs,
                reduction=reduction,
                peer=peer,
                tag=call.signature() if tag is None else tag,
                timeout=timeout or self._timeout,
                asynchronous=asynchronous,
            )
        except (plait_abi.PlaitError, TimeoutError) as error:
            explained = self._explained(call, error, bool(of_device))
            note_cause(explained)
            raise explained from None
        except (ValueError, TypeError, NotImplementedError):
            if not is_message:
                self._count(call, -1)
            raise
        if work is None:
            return None
        return Part(work, lambda error: self._explained(call, error, bool(of_device)))

    @property
    def device_type(self) -> str:
        """The type of the devices that the backend is for."""
        return next(iter(self._of_devices), "cpu")

    def serves(self, device: Any) -> bool:
        """Return whether collectives take tensors of this device."""
        kind = str(device).partition(":")[0]
        return kind == "cpu" or kind in self._of_devices

    def _device_of(self, caller: str, tensors: Sequence[Any]) -> str:
        """Return the type of the device that serves a call; '' for the CPU.

        Members of a group with devices meet there if they have no tensors.
        """
        if not tensors:
            return next(iter(self._of_devices), "")
        kind = str(getattr(tensors[0], "device", "cpu")).partition(":")[0]
        if kind == "cpu":
            return ""
        if kind not in self._of_devices:
            raise ValueError(
                f"{caller}: tensors of the CPU are required by the backend {self._backend!r}, got "
                f"one on {tensors[0].device}; the backend 'nccl' serves devices of the type cuda"
            )
        return kind

    def run(
        self,
        call: Call,
        kind: str,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        *,
        reduction: str = "sum",
        peer: int = 0,
        asynchronous: bool = False,
        finish: Callable[[], Any] | None = None,
        result: Any = None,
    ) -> Work | None:
        """Do the same as `start`; return the work if it is asynchronous, else finish it."""
        part = self.start(
            call, kind, inputs, outputs, reduction=reduction, peer=peer, asynchronous=asynchronous
        )
        if part is not None:
            return Work([part], result if result is not None else list(outputs), finish)
        if finish is not None:
            finish()
        return None

    def zeros(self, count: int, dtype: Any, device: Any) -> Any:
        """Return a flat tensor of zeros in memory from which the provider reduces without copies.

        Where there is none left, it is ordinary memory.
        """
        tensor = require("core").zeros(count, dtype=dtype, device=device)
        if self._provider != "shared_memory" or str(device).partition(":")[0] != "cpu":
            return tensor
        try:
            return tensor.share_memory_()
        except MemoryError:
            return tensor

    def gather_texts(self, name: str, text: str) -> list[str]:
        """Return a short text of each rank; all ranks call it."""
        call = self.begin_call(name, "", ())
        self._count(call)
        return _gather_texts(self._member(name), text, lambda e: self._explained(call, e))

    def abort(self, why: str = "abort was called") -> None:
        """End all collectives of the group, in every process, with an error of this text."""
        if self._raw is not None:
            self._has_aborted = True
            # of an error that says so itself only the reason: texts do not grow from group to group
            for raw in (*self._of_devices.values(), self._raw):
                raw.abort(why.rpartition(_ABORTED)[2])

    def interrupt(self, where: str) -> None:
        """Abort because the user interrupts this rank: it is lost for the others."""
        if self._raw is not None:
            for raw in (*self._of_devices.values(), self._raw):
                raw.interrupt(where)

    def close(self) -> None:
        """Leave the group."""
        raw, self._raw = self._raw, None
        if raw is not None:
            for each in (*self._of_devices.values(), raw):
                each.close()
            self._of_devices.clear()

    @property
    def is_closed(self) -> bool:
        """Whether this process has left the group."""
        return self._raw is None

    def _member(self, caller: str) -> plait_abi.Communicator:
        if self._raw is None:
            raise ValueError(f"{caller}: the process group is destroyed")
        if self._pid != os.getpid():
            raise DistBackendError(
                f"{caller}: the process group is that of the process {self._pid}, of which this "
                "one is a forked child; a child calls init_process_group itself"
            )
        return self._raw

    # ---- errors ------------------------------------------------------------------------------

    def _meet(self) -> Sequence[Peer]:
        texts = _gather_texts(self._member("init"), describe_self(), self._plainly)
        return [Peer.of(text) for text in texts]

    def _plainly(self, error: BaseException) -> BaseException:
        caller = "init_process_group"
        if isinstance(error, TimeoutError):
            return CollectiveTimeout(f"{caller}: {error}")
        return _opening_failed(caller, error, self._rank)

    def _explained(
        self, call: Call, error: BaseException, of_device: bool = False
    ) -> BaseException:
        """Return the error that a program gets for an error of the provider.

        Those of devices do not compare calls: ranks that call different things time out.
        """
        text, kind = str(error), _kind_of(error)
        if isinstance(error, TimeoutError):
            told = self._told_by_all(call) if of_device else None
            if told is not None:
                return MismatchError(told)
            return CollectiveTimeout(f"{call}: {self.with_global_ranks(text, kind)}")
        if not isinstance(error, plait_abi.PlaitError):
            return error
        text = self.with_global_ranks(text, kind)
        # the first one first
        left = [r for r in dict.fromkeys(r for r, _, _ in _lost_of(error)) if r >= 0]
        left = [r for r in left if r != self._rank]
        # one that has ended since, because of the loss, is not named beside it
        if not left and kind in _MAY_BE_LOSSES:
            everybody = enumerate(self._peers)
            left = [r for r, peer in everybody if r != self._rank and peer.is_gone()]
        if left:
            names = [self.name_of(r) for r in left]
            ranks = [self._ranks[r] for r in left if r < len(self._ranks)]
            return _loss(names, f"last collective {call}; {text}", ranks)
        told = self._told_by_all(call) if kind in _MAY_BE_MISMATCHES else None
        if told is not None:
            return MismatchError(told)
        if kind == "mismatch":
            return MismatchError(f"{call}: {text}", kind)
        return _failed(f"{call}: {text}", kind, by_this_rank=self._has_aborted)

    def explain_wait(self, error: BaseException) -> BaseException:
        """Return the error of a collective that a wait for a device raised; else `error` itself."""
        if isinstance(error, DistBackendError) or not _kind_of(error):
            return error
        return self._explained(Call(self._calls, "wait for a device", "", ()), error)

    def name_of(self, rank: int) -> str:
        """Return a rank of this group with its host and pid, for errors."""
        if rank >= len(self._ranks):
            return f"rank {rank}"
        here = f"rank {self._ranks[rank]}"
        return f"{here} {self._peers[rank]}" if rank < len(self._peers) else here

    def with_global_ranks(self, text: str, kind: str, members: Sequence[int] | None = None) -> str:
        """Replace ranks in a provider's text by those among all processes.

        Args:
            text: of an error.
            kind: `PlaitError.failure`. Behind the first rank of one that is aborted, the text is
                the program's, which has global ranks.
            members: the text is about a group that is made of these ranks of this one. What it says
                of this one has the ranks here, so processes are found by their pids.
        """
        in_order = members is None or tuple(members) == tuple(range(len(members)))
        if in_order and self._ranks == tuple(range(len(self._ranks))):
            return text
        numbers = range(len(self._ranks)) if members is None else members

        def swap(match: re.Match[str]) -> str:
            rank, pid = int(match[1]), match[2] and int(match[2])
            here = [r for r, peer in enumerate(self._peers) if peer.pid == pid]
            if len(here) != 1:  # the text has no pid, or several hosts have it
                here = [numbers[rank]] if rank < len(numbers) else []
            is_known = bool(here) and here[0] < len(self._ranks)
            name = f"rank {self._ranks[here[0]]}" if is_known else f"rank {rank}"
            return f"{name} (pid {pid})" if pid else name

        return _RANK.sub(swap, text, count=1 if kind == "aborted" else 0)

    def _told_by_all(self, call: Call) -> str | None:
        """Meet the others under a name of this call, and say which rank called what; None if all
        called the same, or not all come.
        """
        where = f"{self._where}!{call.number}"
        patience = min(_PATIENCE, self._timeout)
        try:
            raw = plait_abi.Communicator.open(
                self._provider, where, self._rank, len(self._ranks), patience
            )
            try:
                texts = _gather_texts(raw, str(call), lambda error: error)
            finally:
                raw.close()
        except Exception:  # others do not look at their result, or have ended
            return None
        if len({message.partition(" #")[0] for message in texts}) == 1:
            return None
        lines = [
            f"rank {rank} called {message}"
            for rank, message in zip(self._ranks, texts, strict=True)
        ]
        return "the same call on all ranks is required; " + ", ".join(lines)


def tell_interrupt(
    caller: str, groups: Iterable[ProcessGroup], error: BaseException | None
) -> None:
    """Break groups if steps that their ranks take together ended by an interrupt in this one, as an
    interrupt in a collective does: no other rank waits for this one.

    Args:
        who: the function that the program called.
        groups: of the ranks that may wait.
        error: how the steps ended; None: well.
    """
    if error is None or isinstance(error, Exception):
        return
    for group in groups:
        with contextlib.suppress(Exception):
            group.interrupt(caller)


def _failed(text: str, kind: str, *, by_this_rank: bool = False) -> DistBackendError:
    error = DistBackendError(text, kind)
    error.is_of_another_rank = kind == "aborted" and not by_this_rank
    return error


def _loss(names: Sequence[str], text: str, ranks: Sequence[int]) -> RankLost:
    """Return the error for ranks that are lost."""
    verb = "was lost" if len(names) == 1 else "were lost"
    return RankLost(f"{', '.join(names)} {verb}; {text}", ranks)


def _gather_texts(
    raw: plait_abi.Communicator, text: str, explain: Callable[[BaseException], BaseException]
) -> list[str]:
    core = require("core")
    data = text.encode(errors="backslashreplace")[:_TEXT_BYTES]  # a path may have any bytes
    own = core.frombuffer(bytearray(data.ljust(_TEXT_BYTES, b"\0")), dtype=core.uint8)
    all_of_them = [core.empty(_TEXT_BYTES, dtype=core.uint8) for _ in range(raw.size)]
    try:
        raw.start("all_gather", [own], all_of_them)
    except (plait_abi.PlaitError, TimeoutError) as error:
        explained = explain(error)
        note_cause(explained)
        raise explained from None
    return [x.numpy().tobytes().rstrip(b"\0").decode(errors="replace") for x in all_of_them]
