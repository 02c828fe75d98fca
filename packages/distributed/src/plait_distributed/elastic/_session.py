"""The job of which this process is a rank, and how it meets the others."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import secrets
import socket
import time
from collections.abc import Mapping
from typing import Any

from plait_distributed import _world
from plait_distributed._backends import device_providers, general_provider, provider_of
from plait_distributed._errors import DistBackendError, DistError, RankLost
from plait_distributed._meeting import Meeting, find_meeting
from plait_distributed._peers import Peer, describe_self, process_state
from plait_distributed._process_group import ProcessGroup
from plait_distributed._work import seconds_of
from plait_distributed.elastic._coordinator import Coordinator, Terms
from plait_distributed.elastic._gathering import gather
from plait_distributed.elastic._members import Member
from plait_distributed.elastic._place import Place
from plait_distributed.elastic._record import Record
from plait_multiprocessing.authentication import job_secret

_TIMEOUT = 300.0  # seconds
_PATIENCE = 30.0  # seconds for a rank that the launcher starts again
_FOLLOWING = 0.3  # seconds
_ATTEMPTS = 3  # of the same processes to open their group
_OPENING = 10.0  # seconds in which ranks open their group after a decision


class Session:
    """The state of the job in this process.

    Args:
        meeting: the job's name and address, and this process's rank at first.
        backend, provider: as `provider_of` gives them.
        device_providers: as the function of that name gives them.
        terms: how many ranks are to come, and how long to wait for them.
        place: where ranks meet again.
    """

    def __init__(
        self,
        meeting: Meeting,
        backend: str,
        provider: str,
        terms: Terms,
        place: Place,
        device_providers: Mapping[str, str],
    ) -> None:
        self.terms = terms
        self.generation = -1
        self.members: list[Member] = []
        self._meeting = meeting
        self._place = place
        self._backend = backend
        self._provider = provider
        self._device_providers = dict(device_providers)
        self._door: Coordinator | None = None
        self._record = Record(place.job, meeting.rank)
        generation, group = self._record.read()
        self._me = Member(meeting.rank, describe_self(), generation=generation, group=group)

    def note_loss(self, error: BaseException) -> None:
        """Remember which processes an error names, and which are lost with them on other hosts."""
        if not isinstance(error, RankLost):
            return
        ranks = set(error.ranks)
        if any(host for _, _, host in self._me.group):
            # a group breaks when the first is lost; the others of a host follow at once
            time.sleep(_FOLLOWING)
            with contextlib.suppress(DistError):
                group = _world.default_group("run")
                try:
                    group.start(group.begin_call("elastic loss", "", ()), "barrier")
                except RankLost as later:
                    ranks.update(later.ranks)
        self._me.lost += [self.members[r].process for r in ranks if r < len(self.members)]

    def is_someone_waiting(self) -> bool:
        """Return whether ranks wait at the door, if this rank has it."""
        return self._door is not None and self._door.is_someone_waiting()

    def end(self) -> None:
        """Remember nothing: all have come to the end of the training."""
        self.close_door()
        self._record.remove()

    def close_door(self) -> None:
        """Accept no new connections."""
        if self._door is not None:
            self._door.close()
        self._door = None

    def meet(
        self,
        snapshots: list[tuple[int, int]],
        shards: list[tuple[int, int, int, int]],
        finished: bool,
    ) -> ProcessGroup:
        """Leave all groups, and return the new group of all, of the ranks that are left or came."""
        me = self._me
        me.snapshots, me.shards, me.finished = snapshots, shards, finished
        failed: list[list[str]] = []  # the processes of groups that could not be opened
        while True:
            if _world.is_initialized():
                _world.destroy_process_group()
            me.address = self._place.own_address()
            me.lost += [text for _, text, _ in me.group if _stands_still(Peer.of(text))]
            door, self._door = self._door, None
            decision, self._door = gather(self._place, me, self.terms, door)
            # from now on others may go on in this group, whether this process can open it or not
            me.generation, me.is_new = decision.generation, False
            me.group = [
                (each.place, each.process, each.address[0] if each.address else "")
                for each in decision.members
            ]
            self._record.write(me.generation, me.group)
            processes = [each.process for each in decision.members]
            rank = processes.index(me.process)
            here = dataclasses.replace(
                self._meeting,
                name=f"{self._meeting.name}~{decision.generation}",
                address=decision.members[0].address,
            )
            try:
                group = _world.enter(
                    self._backend,
                    self._provider,
                    here.at(self._provider),
                    rank,
                    len(decision.members),
                    self.terms.timeout,
                    _OPENING,
                    self._device_providers,
                )
            except DistBackendError:
                # one of them was lost in the meantime, unless it is the same again and again
                failed.append(processes)
                if failed.count(processes) >= _ATTEMPTS:
                    raise
                continue
            self.generation = decision.generation
            self.members = decision.members
            me.lost = []
            return group


def _stands_still(process: Peer) -> bool:
    """Whether it is a process of this host that has ended, or is stopped."""
    if process.host != socket.gethostname():
        return False
    return process.is_gone() or process_state(process.pid)[0] == "T"


_session: Session | None = None


def current_session(caller: str) -> Session:
    """Return the job of which this process is a rank."""
    if _session is None:
        raise ValueError(f"{caller}: call elastic.init_process_group first")
    return _session


def size_at_first() -> int:
    """Return the number of ranks that the launcher started; 1 without a job."""
    return 1 if _session is None else _session.terms.size


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    min_size: int = 1,
    patience: Any = None,
) -> None:
    """Become a rank of a job that continues when ranks are lost or come back.

    Until the function of `run` is called, the group of all has this process alone, so that a rank
    that is started again can make its model as the others did at first.

    Args:
        backend, init_method, timeout, world_size, rank: as for `init_process_group`; `world_size`
            is the number of ranks at first, and the most that there are later.
        min_size: the smallest number of ranks with which training continues.
        patience: seconds to wait for a rank that the launcher starts again before going on without
            it; None: 30 under a launcher that does so, else 0.

    Raises:
        ValueError: a number is missing or wrong, or there is a process group.

    Example:
        >>> import plait_distributed as dist
        >>> from plait_distributed import elastic
        >>> elastic.init_process_group(init_method="shm:elastic", rank=0, world_size=1)
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    global _session
    if _world.is_initialized():
        raise ValueError("init_process_group: there is a process group already; destroy it first")
    # a rank that is started again comes to the job that it left
    environment = {k: v for k, v in os.environ.items() if k != "TORCHELASTIC_RESTART_COUNT"}
    restarts = int(os.environ.get("PLAIT_ELASTIC_RESTARTS", "0"))
    seconds = _TIMEOUT if timeout is None else seconds_of("init_process_group", timeout)
    waits = (_PATIENCE if restarts else 0.0) if patience is None else float(patience)
    meeting = find_meeting(init_method, rank, world_size, environment)
    general = general_provider(bool(meeting.several), meeting.by_mpi)
    name, provider = provider_of(backend, general)
    where = meeting.at(provider)
    if not 1 <= min_size <= meeting.size:
        raise ValueError(
            f"init_process_group: `min_size` must be in [1, {meeting.size}], got {min_size}"
        )
    terms = Terms(meeting.size, min_size, waits, seconds)
    text = f"{where} {name} {meeting.size}"
    job = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    place = Place(job, job_secret(), _address_of(meeting))
    others = device_providers(backend)
    _session = Session(meeting, name, provider, terms, place, others)
    alone = f"shm:{secrets.token_hex(16)}"
    _world.enter(name, "shared_memory", alone, 0, 1, seconds, device_providers=others)


def _address_of(meeting: Meeting) -> tuple[str, int] | None:
    """Return where ranks of several hosts meet again; None on one host."""
    port = os.environ.get("PLAIT_ELASTIC_PORT")
    if not meeting.several and port is None:
        return None
    if meeting.address is None:
        raise NotImplementedError(
            f"init_process_group: {meeting.several or 'PLAIT_ELASTIC_PORT is set'}, and there is "
            "no address at which ranks can meet again: set MASTER_ADDR and MASTER_PORT, or give "
            "init_method='tcp://HOST:PORT'"
        )
    if not job_secret():
        raise ValueError(
            "init_process_group: ranks of several hosts prove that they are of one job: set "
            "PLAIT_JOB_SECRET or PLAIT_JOB_SECRET_FILE in all processes"
        )
    host, number = meeting.address
    return host, int(port) if port is not None else number + 1
