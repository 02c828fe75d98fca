"""The group of all processes, and the groups of some of them."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from plait_distributed._backends import device_providers, general_provider, provider_of
from plait_distributed._errors import MismatchError
from plait_distributed._meeting import Meeting, find_meeting
from plait_distributed._process_group import ProcessGroup, open_communicator, tell_interrupt
from plait_distributed._store import Store
from plait_distributed._work import seconds_of

_TIMEOUT = 300.0  # seconds


class _World:
    """The groups of this process: that of all ranks, and those that were made later."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.made = 0  # calls of new_group
        self.made_locally: dict[tuple[int, ...], int] = {}


_world = _World()


class _Names(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 - PyTorch's name
        """The group of all processes; None before `init_process_group`."""
        return _world.default


class GroupMember(metaclass=_Names):
    """Names of groups: `WORLD`, of all processes, and `NON_GROUP_MEMBER`, of others alone.

    Example:
        >>> import plait_distributed as dist
        >>> dist.GroupMember.NON_GROUP_MEMBER, dist.GroupMember.WORLD
        (-100, None)
    """

    NON_GROUP_MEMBER = -100


class group(metaclass=_Names):  # noqa: N801 - PyTorch's name
    """The name of the group of all processes, ``group.WORLD``.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:names", rank=0, world_size=1)
        >>> dist.group.WORLD
        ProcessGroup(rank=0, size=1, backend='shared_memory')
        >>> dist.destroy_process_group()
    """


def open_groups() -> list[ProcessGroup]:
    """Return the groups that this process is a member of."""
    return list(_world.groups)


def is_available() -> bool:
    """Return True: this package is there.

    Example:
        >>> import plait_distributed as dist
        >>> dist.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` was called, and `destroy_process_group` was not.

    Example:
        >>> import plait_distributed as dist
        >>> dist.is_initialized()
        False
    """
    return _world.default is not None


def is_torchelastic_launched() -> bool:
    """Return whether a launcher started this process that sets torchrun's variables.

    Example:
        >>> import plait_distributed as dist
        >>> dist.is_torchelastic_launched()
        False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def default_group(caller: str) -> ProcessGroup:
    """Return the group of all processes."""
    if _world.default is None:
        raise ValueError(
            f"{caller}: there is no process group; call init_process_group first, or ask "
            "is_initialized()"
        )
    return _world.default


def get_default_group() -> ProcessGroup:
    """Return the group of all processes.

    Raises:
        ValueError: if there is none.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:default", rank=0, world_size=1)
        >>> dist.get_default_group().size()
        1
        >>> dist.destroy_process_group()
    """
    return default_group("get_default_group")


def member_of(caller: str, group: Any) -> ProcessGroup | None:
    """Return the group that an argument means; None if this process is no member of it."""
    if group is None:
        return default_group(caller)
    if isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"{caller}: `group` must be a ProcessGroup or None, got {group!r}")
    return group


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the other processes of the job, and wait until all have joined.

    Args:
        backend: the provider of the collectives: ``"shared_memory"``, ``"mpi"``, or the name of
            another provider. ``"gloo"`` and None mean shared memory on one host; on several ``mpi``
            if `mpiexec` started the processes and plait-mpi is installed, else ``ucx``. ``"nccl"``
            serves tensors of GPUs by NCCL, and those of the CPU as ``"gloo"``; where there is no
            GPU it means ``"gloo"``, with a warning.
        init_method: the address where processes meet. ``"env://"``, the default: at MASTER_ADDR
            and MASTER_PORT, or in the job of Slurm or MPI. ``"tcp://HOST:PORT"`` or
            ``"file:///PATH"``: a name that the processes of this job share; no file is written,
            and no process listens at the port unless the provider is ``ucx`` and the host is not
            the loopback. Then rank 0 listens until all have joined; they must know
            PLAIT_JOB_SECRET. ``"shm:NAME"``: the same, for shared memory. MPI brings together the
            processes of its job.
        timeout: seconds, or a `datetime.timedelta`, that a process waits for the others, here and
            in each collective; 300 by default.
        world_size: the number of processes. -1: the launcher's WORLD_SIZE.
        rank: this one's number. -1: the launcher's RANK.
        store: a `Store` over which to agree on a place, in place of `init_method`.
        group_name: unused.
        pg_options: None.
        device_id: None, or a device that the backend serves.

    Raises:
        ValueError: a number is missing or wrong.
        NotImplementedError: the processes are on several hosts, and no provider for that is there.
        CollectiveTimeout: the others did not come.
        RuntimeError: the process is a member already.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> dist.init_process_group("gloo", "shm:example", rank=0, world_size=1)
        >>> x = pc.ones(2)
        >>> dist.all_reduce(x)
        >>> dist.get_rank(), dist.get_world_size(), x
        (0, 1, tensor([1., 1.]))
        >>> dist.destroy_process_group()
    """
    if _world.default is not None:
        raise ValueError("init_process_group: there is a process group already; destroy it first")
    if pg_options is not None:
        raise NotImplementedError("init_process_group: `pg_options` must be None")
    kind = "cpu" if device_id is None else str(device_id).partition(":")[0]
    if kind != "cpu" and kind not in device_providers(backend):
        raise ValueError(
            "init_process_group: `device_id` must be None or a device that the backend "
            f"{backend!r} serves, got {device_id!r}"
        )
    seconds = _TIMEOUT if timeout is None else seconds_of("init_process_group", timeout)
    if store is not None:
        if init_method is not None:
            raise ValueError("init_process_group: give `init_method` or `store`, not both")
        meeting = _meet_by_store(store, rank, world_size)
    else:
        meeting = find_meeting(init_method, rank, world_size)
    general = general_provider(bool(meeting.several), meeting.by_mpi)
    name, provider = provider_of(backend, general)
    where, others = meeting.at(provider), device_providers(backend)
    enter(name, provider, where, meeting.rank, meeting.size, seconds, device_providers=others)


def enter(
    backend: str,
    provider: str,
    where: str,
    rank: int,
    size: int,
    timeout: float,
    opening: float | None = None,
    device_providers: Mapping[str, str] | None = None,
) -> ProcessGroup:
    """Make the group of all processes of those that meet at `where`.

    Args:
        backend, provider: as `provider_of` gives them.
        where: a place of the provider's.
        rank, size: this process's number, and how many there are.
        timeout: seconds that collectives wait.
        opening: seconds to wait for the others now; None: `timeout`.
        device_providers: the providers for tensors of other devices, by the devices' types.
    """
    raw = open_communicator(provider, where, rank, size, timeout if opening is None else opening)
    _world.default = ProcessGroup(
        raw, where, range(size), backend, provider, timeout, device_providers=device_providers
    )
    _world.groups = [_world.default]
    _world.made = 0
    _world.made_locally = {}
    return _world.default


def _meet_by_store(store: Store, rank: int, size: int) -> Meeting:
    if rank < 0 or size < 1:
        raise ValueError("init_process_group: `rank` and `world_size` must be given with a `store`")
    if rank == 0:
        store.set("plait/where", secrets.token_hex(16))
    name = store.get("plait/where").decode()
    return find_meeting(f"shm:{name}", rank, size)


def destroy_process_group(group: Any = None) -> None:
    """Leave a group; without an argument, leave all.

    Other members that wait for this one get `RankLost`. Collectives and sends that were begun are
    finished; receives that are still open end with an error.

    Args:
        group: The ranks that take part; None: all.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:leave", rank=0, world_size=1)
        >>> dist.destroy_process_group()
        >>> dist.is_initialized()
        False
    """
    if group is not None and group is not _world.default:
        member = member_of("destroy_process_group", group)
        if member is not None:
            member.close()
            _world.groups = [each for each in _world.groups if each is not member]
        return
    default_group("destroy_process_group")
    for each in reversed(_world.groups):
        each.close()
    _world.default, _world.groups = None, []


def get_rank(group: Any = None) -> int:
    """Return this process's rank in a group; -1 if it is no member.

    Args:
        group: The ranks that take part; None: all.

    Raises:
        ValueError: without a process group.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:rank", rank=0, world_size=1)
        >>> dist.get_rank()
        0
        >>> dist.destroy_process_group()
    """
    member = member_of("get_rank", group)
    return -1 if member is None else member.rank()


def get_world_size(group: Any = None) -> int:
    """Return the number of processes in a group; -1 if this one is no member.

    Args:
        group: The ranks that take part; None: all.

    Raises:
        ValueError: without a process group.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:size", rank=0, world_size=1)
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    member = member_of("get_world_size", group)
    return -1 if member is None else member.size()


def get_backend(group: Any = None) -> str:
    """Return the name of a group's backend.

    Args:
        group: The ranks that take part; None: all.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group("gloo", "shm:backend", rank=0, world_size=1)
        >>> dist.get_backend()
        'gloo'
        >>> dist.destroy_process_group()
    """
    member = member_of("get_backend", group)
    if member is None:
        raise ValueError("get_backend: this process is not a member of the group")
    return member.backend


def get_process_group_ranks(group: Any) -> list[int]:
    """Return the ranks, among all processes, of a group's members.

    Args:
        group: The ranks that take part; None: all.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:ranks", rank=0, world_size=1)
        >>> dist.get_process_group_ranks(dist.new_group([0]))
        [0]
        >>> dist.destroy_process_group()
    """
    member = member_of("get_process_group_ranks", group)
    return [] if member is None else list(member.ranks)


def get_group_rank(group: Any, global_rank: int) -> int:
    """Return the rank within a group of a rank among all processes.

    Args:
        group: The ranks that take part; None: all.
        global_rank: A rank in the whole job.

    Raises:
        ValueError: if it is no member.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:in", rank=0, world_size=1)
        >>> dist.get_group_rank(dist.group.WORLD, 0)
        0
        >>> dist.destroy_process_group()
    """
    member = member_of("get_group_rank", group)
    if member is None:
        raise ValueError("get_group_rank: this process is not a member of the group")
    return member.group_rank("get_group_rank", global_rank, "global_rank")


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the rank among all processes of a rank within a group.

    Args:
        group: The ranks that take part; None: all.
        group_rank: A rank inside the group.

    Raises:
        ValueError: if the group has no such rank.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:out", rank=0, world_size=1)
        >>> dist.get_global_rank(dist.group.WORLD, 0)
        0
        >>> dist.destroy_process_group()
    """
    member = member_of("get_global_rank", group)
    if member is None:
        raise ValueError("get_global_rank: this process is not a member of the group")
    if not 0 <= group_rank < member.size():
        raise ValueError(
            f"get_global_rank: `group_rank` must be in [0, {member.size() - 1}], got {group_rank}"
        )
    return member.ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the launcher's LOCAL_RANK.

    Args:
        fallback_rank: what to return if the launcher did not set it.

    Raises:
        RuntimeError: it is not set, and there is no fallback.

    Example:
        >>> import plait_distributed as dist
        >>> dist.get_node_local_rank(fallback_rank=0)
        0
    """
    for name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank: LOCAL_RANK is not set, and there is no fallback")
    return int(fallback_rank)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Make a group of some processes. All processes call it, with the same ranks in the same order.

    Args:
        ranks: the members, by their ranks among all processes; None: all.
        timeout: seconds or a `datetime.timedelta`; None: that of the group of all.
        backend: the name of a provider; None: that of the group of all.
        pg_options: None.
        use_local_synchronization: only the members call it.
        group_desc: a name for people.
        device_id: unused.

    Returns:
        The group, or ``GroupMember.NON_GROUP_MEMBER`` in a process that is no member.

    Raises:
        MismatchError: processes gave other ranks.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:new", rank=0, world_size=1)
        >>> dist.new_group([0]).size()
        1
        >>> dist.destroy_process_group()
    """
    world = default_group("new_group")
    if pg_options is not None:
        raise NotImplementedError("new_group: `pg_options` must be None")
    members = tuple(range(world.size()) if ranks is None else sorted(int(r) for r in ranks))
    if not members or len(set(members)) != len(members):
        raise ValueError(f"new_group: `ranks` must be different ranks, got {list(members)}")
    if members[0] < 0 or members[-1] >= world.size():
        raise ValueError(
            f"new_group: `ranks` must be in [0, {world.size() - 1}], got {list(members)}"
        )
    seconds = world.timeout if timeout is None else seconds_of("new_group", timeout)
    name, provider = (
        (world.backend, world.provider) if backend is None else provider_of(backend, world.provider)
    )
    others = world.device_providers if backend is None else device_providers(backend)
    try:
        return _new_group(
            world, members, seconds, name, provider, others, use_local_synchronization, group_desc
        )
    except BaseException as error:
        tell_interrupt("new_group", [world], error)
        raise


def _new_group(
    world: ProcessGroup,
    members: tuple[int, ...],
    seconds: float,
    name: str,
    provider: str,
    others: Mapping[str, str],
    is_local: bool,
    group_desc: str | None,
) -> Any:
    """Make the group together with all processes, or with the members if it is local."""
    if is_local:
        number = _world.made_locally.get(members, 0) + 1
        where = f"{world.where}/{_short(members)}.{number}"
    else:
        _agree(world, f"{name} {list(members)}")
        # a call that did not match others' is not counted: these were no calls of new_group
        _world.made += 1
        where = f"{world.where}/{_world.made}"
    if world.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    rank = members.index(world.rank())
    # the provider sees by the list which processes it waits for (plait/collectives/subgroup.hpp)
    listed = f"{where}{'&' if is_local else '@'}{','.join(map(str, members))}"
    raw = open_communicator(
        provider, listed, rank, len(members), seconds, "new_group", world, members
    )
    if is_local:
        _world.made_locally[members] = number
    peers = [world.peers[each] for each in members]
    result = ProcessGroup(
        raw, where, members, name, provider, seconds, peers, group_desc or "undefined", others
    )
    _world.groups.append(result)
    return result


def _short(members: Sequence[int]) -> str:
    text = "-".join(map(str, members))
    return text if len(text) <= 12 else _digest(text)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _agree(world: ProcessGroup, own: str) -> None:
    """Compare what all processes ask of `new_group`."""
    request = world.gather_texts("new_group", own if len(own) < 400 else _digest(own))
    if len(set(request)) > 1:
        lines = [f"rank {rank} asked for {text}" for rank, text in enumerate(request)]
        raise MismatchError(
            f"new_group: the same ranks in all processes are required; {', '.join(lines)}"
        )


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide the processes into groups of one size, of consecutive ranks.

    Args:
        group_size: the number of members of each; None: all processes of this host.
        group: None, or the group of all.
        timeout, backend, pg_options, group_desc: as for `new_group`.

    Returns:
        This process's group, and the list of all.

    Raises:
        ValueError: the number of processes is no multiple of the size.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:sub", rank=0, world_size=1)
        >>> mine, groups = dist.new_subgroups(1)
        >>> mine.size(), len(groups)
        (1, 1)
        >>> dist.destroy_process_group()
    """
    world = default_group("new_subgroups")
    if group is not None and group is not world:
        raise NotImplementedError("new_subgroups: `group` must be None or the group of all")
    size = world.size() if group_size is None else int(group_size)
    if size < 1 or world.size() % size:
        raise ValueError(
            f"new_subgroups: `group_size` must divide the number of processes, {world.size()}; "
            f"got {size}"
        )
    parts = [range(first, first + size) for first in range(0, world.size(), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide the processes into groups of the given ranks; see `new_subgroups`.

    Args:
        ranks_per_subgroup_list: the ranks of each group; none is in two of them.
        timeout, backend, pg_options, group_desc: as for `new_group`.

    Raises:
        ValueError: a rank is in two groups, or there are none.

    Example:
        >>> import plait_distributed as dist
        >>> dist.init_process_group(init_method="shm:lists", rank=0, world_size=1)
        >>> dist.new_subgroups_by_enumeration([[0]])[0].ranks
        (0,)
        >>> dist.destroy_process_group()
    """
    flat = [int(rank) for ranks in ranks_per_subgroup_list for rank in ranks]
    if not flat or len(set(flat)) != len(flat):
        raise ValueError(
            "new_subgroups_by_enumeration: `ranks_per_subgroup_list` must have each rank in at "
            f"most one group, got {[list(ranks) for ranks in ranks_per_subgroup_list]}"
        )
    own, result = None, []
    for ranks in ranks_per_subgroup_list:
        each = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        result.append(each)
        if isinstance(each, ProcessGroup):
            own = each
    return own, result
