"""Calls of functions in other processes, under the names of `torch.distributed.rpc`, on Ray.

    init_rpc("worker0", rank=0, world_size=2)
    y = rpc_sync("worker1", torch.add, args=(x, 1))  # the result
    future = rpc_async("worker1", f, args=(x,))  # later: future.wait()
    reference = remote("worker1", Model)  # stays there: reference.rpc_sync().forward(x)
    shutdown()

Arguments and results are pickled, and unpickled in the other process, which runs the function:
all processes of a job must be trusted. Tensors travel through Ray's object store, on one host
without a copy where they are read.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

import plait_distributed as dist
from plait_ray import _agent, _contexts, _instance, _references, functions
from plait_ray._agent import Agent, agent
from plait_ray._errors import RemoteError, WorkerLost
from plait_ray._references import RRef
from plait_ray._worker_info import WorkerInfo

__all__ = [
    "BackendType",
    "PyRRef",
    "RRef",
    "RemoteError",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "WorkerLost",
    "functions",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

T = TypeVar("T")
PyRRef = RRef
_TIMEOUT = 60.0  # seconds

# whether this process started Ray, or connected to it, for `shutdown` to end that
_ours = {"started": False, "connected": False}


class BackendType(enum.Enum):
    """Names of PyTorch's backends of calls, all of which mean Ray.

    Example:
        >>> from plait_ray.rpc import BackendType
        >>> BackendType.TENSORPIPE.name
        'TENSORPIPE'
    """

    TENSORPIPE = "TENSORPIPE"


@dataclasses.dataclass
class TensorPipeRpcBackendOptions:
    """Settings of calls, under PyTorch's name.

    Args:
        num_worker_threads: unused: each call runs in a thread of its own.
        rpc_timeout: seconds that a call may take, 0 for any number.
        init_method: ``"env://"``, or ``"tcp://HOST:PORT"``: what the processes of one job share.
        device_maps: must be None or empty, as tensors of the CPU travel alone.
        devices: unused.

    Example:
        >>> from plait_ray.rpc import TensorPipeRpcBackendOptions
        >>> TensorPipeRpcBackendOptions(rpc_timeout=5).rpc_timeout
        5
    """

    num_worker_threads: int = 16
    rpc_timeout: float = _TIMEOUT
    init_method: str = "env://"
    device_maps: Any = None
    devices: Any = None

    def __post_init__(self) -> None:
        if self.device_maps:
            raise NotImplementedError(
                "TensorPipeRpcBackendOptions: `device_maps` must be None: calls carry tensors of "
                "the CPU"
            )


def is_available() -> bool:
    """Return True: this package is there.

    Example:
        >>> import plait_ray.rpc
        >>> plait_ray.rpc.is_available()
        True
    """
    return True


def init_rpc(
    name: str,
    backend: Any = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: TensorPipeRpcBackendOptions | None = None,
) -> None:
    """Let this process call the others of a job and be called by them; wait until all have come.

    The process uses the Ray instance that it is connected to; else that of RAY_ADDRESS; else rank 0
    starts one on this host, which ends with `shutdown`.

    Args:
        name: this process's, unlike all others'.
        backend: unused.
        rank: this one's number; -1: the launcher's RANK.
        world_size: the number of processes; None: the launcher's WORLD_SIZE.
        rpc_backend_options: the timeout, and where processes meet.

    Raises:
        RuntimeError: called twice, a rank is taken, or the others did not come in time.
        ValueError: a number is missing or wrong, or two processes have one name.

    Example:
        >>> from plait_ray import rpc
        >>> rpc.init_rpc("worker", rank=2, world_size=2)
        Traceback (most recent call last):
        ValueError: init_rpc: `rank` must be in [0, 1], got 2
    """
    if _agent._current:
        raise RuntimeError("init_rpc: this process has an RPC agent; call shutdown first")
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    rank = _number("rank", rank, "RANK")
    size = _number("world_size", -1 if world_size is None else world_size, "WORLD_SIZE")
    if not isinstance(name, str) or not name or "\t" in name:
        raise ValueError(f"init_rpc: `name` must be a text, got {name!r}")
    if size < 1:
        raise ValueError(f"init_rpc: `world_size` must be positive, got {size}")
    if not 0 <= rank < size:
        raise ValueError(f"init_rpc: `rank` must be in [0, {size - 1}], got {rank}")
    place = _place(options.init_method, size)
    _connect(place, rank, size)
    _contexts.set_rank(rank)
    job = hashlib.blake2b(
        "\0".join([place, os.environ.get("PLAIT_JOB_SECRET", "")]).encode(), digest_size=16
    ).hexdigest()
    here = Agent(job, name, rank, size, options.rpc_timeout or _TIMEOUT)
    _references.connect(here)
    _agent.install(here)
    try:
        here.meet()
    except BaseException:
        _agent.install(None)
        here.stop()
        raise


def _number(argument: str, value: int, variable: str) -> int:
    if value >= 0:
        return value
    text = os.environ.get(variable, "")
    if not text.isdigit():
        raise ValueError(
            f"init_rpc: `{argument}` is not given, and the environment variable {variable} is "
            f"{text!r}"
        )
    return int(text)


def _place(method: str, size: int) -> str:
    """Return the key of the job, and the place where rank 0 stores Ray's address."""
    scheme, _, rest = method.partition("://")
    if scheme == "tcp" and rest.rpartition(":")[2].isdigit():
        return rest
    if scheme != "env":
        raise ValueError(f"init_rpc: `init_method` must be env:// or tcp://HOST:PORT, got {method}")
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "")
    if host is None or not port.isdigit():
        raise ValueError(
            "init_rpc: the environment variables MASTER_ADDR and MASTER_PORT must be set; start "
            "the program with python -m plait_distributed.run, or give `init_method`"
        )
    return f"{host}:{port}"


def _connect(place: str, rank: int, size: int) -> None:
    """Connect to Ray, unless that is done."""
    if _instance.is_connected():
        return
    if "RAY_ADDRESS" in os.environ:
        _instance.attach()
        _ours["connected"] = True
        return
    host, _, port = place.rpartition(":")
    store = dist.TCPStore(host, int(port), size, rank == 0, wait_for_workers=False)
    if rank == 0:
        address, token = _instance.start()
        store.set("plait_ray", f"{address} {token}".encode())
        _ours["started"] = True
        _ours["store"] = store  # type: ignore[assignment]  # it serves as long as it lives
    else:
        address, token = store.get("plait_ray").decode().split(" ")
        _instance.attach(address, token)
        _ours["connected"] = True


def shutdown(graceful: bool = True, timeout: float = 0) -> None:
    """Leave the other processes.

    Args:
        graceful: wait until all call this, so that no call is lost.
        timeout: seconds to wait for them; 0: as long as it takes.

    Raises:
        RuntimeError: they did not come in time. This process has left nevertheless.
        WorkerLost: another process died meanwhile. This one has left nevertheless.

    Example:
        >>> from plait_ray import rpc
        >>> rpc.shutdown()
        Traceback (most recent call last):
        RuntimeError: shutdown: there is no RPC agent; call init_rpc first
    """
    here, complete = agent("shutdown"), False
    try:
        if graceful:
            here.arrive("calls are done", timeout)
            here.flush()
            here.arrive("nothing is released any more", timeout)
            complete = True
    finally:
        _agent.install(None)
        if here.rank == 0 and complete:
            here.wait_until_alone()  # they have the answer of its mailbox, and need its Ray
        here.stop()
        _references.forget_all()
        if _ours["started"] or _ours["connected"]:
            _instance.library().shutdown()
        _ours.clear()
        _ours.update(started=False, connected=False)


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """Return the name and rank of a process; None: of this one.

    Args:
        worker_name: The worker's name; None: this one.

    Example:
        >>> from plait_ray import rpc
        >>> rpc.get_worker_info()
        Traceback (most recent call last):
        RuntimeError: get_worker_info: there is no RPC agent; call init_rpc first
    """
    here = agent("get_worker_info")
    result = here.me if worker_name is None else here.peer("get_worker_info", worker_name)
    return WorkerInfo(result.name, result.id)


def rpc_async(
    to: Any, func: Callable[..., T], args: Any = None, kwargs: Any = None, timeout: float = -1.0
) -> Any:
    """Begin a call of a function in another process; return the future of its result.

    Args:
        to: a process's name, rank or `WorkerInfo`.
        func: a function or class. Those of modules are called by their names there; those of a main
            program that the other process does not run are sent with their code.
        args: a tuple of arguments.
        kwargs: a dict of arguments.
        timeout: seconds; 0: without a limit; -1: the timeout of `init_rpc`.

    Raises:
        ValueError: there is no such process.

    The future's `wait` raises what the function raised, with its traceback; `WorkerLost` if the
    process died; RuntimeError when the time is over.

    Example:
        >>> from plait_ray import rpc
        >>> rpc.rpc_async("worker1", min, args=(1, 2))
        Traceback (most recent call last):
        RuntimeError: rpc_async: there is no RPC agent; call init_rpc first
    """
    return _begin("rpc_async", to, func, args, kwargs, timeout)


def _begin(caller: str, to: Any, func: Any, args: Any, kwargs: Any, timeout: float) -> Any:
    here = agent(caller)
    peer = here.peer(caller, to)
    _check(caller, func, args, kwargs)
    return here.call(peer, func, tuple(args or ()), kwargs or {}, None if timeout < 0 else timeout)


def _check(caller: str, func: Any, args: Any, kwargs: Any) -> None:
    if not callable(func):
        raise TypeError(f"{caller}: `func` must be a function, got {func!r}")
    if args is not None and not isinstance(args, (tuple, list)):
        raise TypeError(f"{caller}: `args` must be a tuple, got {type(args).__name__}")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError(f"{caller}: `kwargs` must be a dict, got {type(kwargs).__name__}")


def rpc_sync(
    to: Any, func: Callable[..., T], args: Any = None, kwargs: Any = None, timeout: float = -1.0
) -> T:
    """Call a function in another process and return its result: `rpc_async` and `wait`.

    Args:
        to: The worker, by name, number or `WorkerInfo`.
        func: The function to call.
        args: Its arguments; or None.
        kwargs: Its keyword arguments; or None.
        timeout: Seconds to wait.

    Example:
        >>> from plait_ray import rpc
        >>> rpc.rpc_sync("worker1", min, args=(1, 2))
        Traceback (most recent call last):
        RuntimeError: rpc_sync: there is no RPC agent; call init_rpc first
    """
    result: T = _begin("rpc_sync", to, func, args, kwargs, timeout).wait()
    return result


def remote(
    to: Any, func: Callable[..., T], args: Any = None, kwargs: Any = None, timeout: float = -1.0
) -> RRef[T]:
    """Begin a call of a function in another process; return a reference to its result there.

    Args:
        to: a process's name, rank or `WorkerInfo`.
        func: a function or class.
        args: a tuple of arguments.
        kwargs: a dict of arguments.
        timeout: unused: `RRef.to_here` has its own.

    Example:
        >>> from plait_ray import rpc
        >>> rpc.remote("worker1", list)
        Traceback (most recent call last):
        RuntimeError: remote: there is no RPC agent; call init_rpc first
    """
    here = agent("remote")
    peer = here.peer("remote", to)
    _check("remote", func, args, kwargs)
    return _references.create(here, peer.id, func, tuple(args or ()), kwargs or {})
