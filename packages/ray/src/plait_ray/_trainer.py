"""Jobs: a function in one process for each rank, placed by Ray."""

from __future__ import annotations

import dataclasses
import os
import secrets
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import plait_distributed as dist
from plait_ray import _checkpoints, _instance
from plait_ray._errors import TrainingError, reason
from plait_ray._instance import library
from plait_ray._placement import Places, has_room, reserve
from plait_ray._rank import Rank
from plait_ray._session import Resized, Session

_TICK = 0.2  # seconds between looks at the ranks
_SECOND_LOOK = 2.0  # seconds for another rank to show that it failed first
_GROWTH = 5.0  # seconds between looks for room for more ranks
_TIMEOUT = 300.0


@dataclasses.dataclass(frozen=True)
class Result:
    """What a job of `Trainer` gives.

    Attributes:
        values: what the function returned, by rank.
        history: the metrics that rank 0 reported, in order, over all restarts.
        failures: a text for each failure that the job went on from.

    Example:
        >>> from plait_ray import Result
        >>> done = Result([3, 4], [{"loss": 1.0}, {"loss": 0.5}], [])
        >>> done.value, done.metrics
        (3, {'loss': 0.5})
    """

    values: list[Any]
    history: list[dict[str, Any]]
    failures: list[str]

    @property
    def value(self) -> Any:
        """What the function returned in rank 0."""
        return self.values[0]

    @property
    def metrics(self) -> dict[str, Any]:
        """The last metrics that rank 0 reported; empty if there are none."""
        return self.history[-1] if self.history else {}


class Trainer:
    """Runs a function in several processes of a Ray cluster, as the ranks of one process group.

    Each process is an actor. It gets torchrun's variables and the job's secret, joins the process
    group and calls the function, which trains as under any launcher; what it prints appears at the
    driver with the rank in front. If a process dies or raises, all are ended, and the job begins
    again from the last state that was given to `report`.

    Args:
        train: the function.
        workers: the number of ranks.
        resources: what each rank takes, by Ray's names; ``{"CPU": 1}`` by default. A rank has as
            many threads as CPUs.
        backend: as `init_process_group` takes it.
        checkpoint: a folder that all hosts see, for states.
        max_failures: how often the job may fail and begin again.
        min_workers: if given, the job begins with as many ranks as there is room for, at least so
            many, and grows at its checkpoints when there is room for more.
        max_workers: the most ranks; `workers` by default.
        timeout: seconds that ranks wait for each other, and the job for places.

    Raises:
        ValueError: a number is wrong.

    Example:
        >>> import plait_ray
        >>> plait_ray.Trainer(print, workers=0)
        Traceback (most recent call last):
        ValueError: Trainer: `workers` must be positive, got 0
    """

    def __init__(
        self,
        train: Callable[..., Any],
        workers: int = 1,
        *,
        resources: Mapping[str, float] | None = None,
        backend: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        max_failures: int = 0,
        min_workers: int | None = None,
        max_workers: int | None = None,
        timeout: float = _TIMEOUT,
    ) -> None:
        self.most = workers if max_workers is None else max_workers
        self.fewest = self.most if min_workers is None else min_workers
        for name, value in (
            ("workers", workers),
            ("max_workers", self.most),
            ("min_workers", self.fewest),
        ):
            if value < 1:
                raise ValueError(f"Trainer: `{name}` must be positive, got {value}")
        if self.fewest > self.most:
            raise ValueError(
                f"Trainer: `min_workers` must be at most {self.most}, got {self.fewest}"
            )
        if max_failures < 0:
            raise ValueError(f"Trainer: `max_failures` must be at least 0, got {max_failures}")
        self.train = train
        self.resources = dict(resources or {"CPU": 1})
        self.backend = backend
        self.checkpoint = None if checkpoint is None else os.path.abspath(checkpoint)
        self.max_failures = max_failures
        self.timeout = timeout

    def fit(self, *args: Any, **kwargs: Any) -> Result:
        """Run the function with these arguments in each rank; return what it returned.

        Uses the Ray instance that this process is connected to, else that of RAY_ADDRESS, else one
        that is started on this host and ends with the call.

        Raises:
            TrainingError: it failed more than `max_failures` times; the cause is the last error.
            TimeoutError: the cluster has no room.
        """
        ours = _instance.connect()
        try:
            return self._fit(args, kwargs)
        finally:
            if ours:
                library().shutdown()

    def _fit(self, args: Any, kwargs: Any) -> Result:
        history: list[dict[str, Any]] = []
        failures: list[str] = []
        while True:
            places = reserve(self.fewest, self.most, self.resources, self.timeout)
            attempt = _Attempt(self, places, history, len(failures))
            try:
                values = attempt.run(args, kwargs)
            except _Failure as failure:
                failures.append(failure.text)
                if len(failures) > self.max_failures:
                    raise TrainingError(
                        f"Trainer: the job failed {len(failures)} times; max_failures is "
                        f"{self.max_failures}\n" + "\n".join(failures)
                    ) from failure.error
                print(f"plait_ray: {failure.text}\nplait_ray: the job begins again", flush=True)
                continue
            finally:
                attempt.end()
            if not isinstance(values[0], Resized):
                return Result(values, history, failures)


class _Failure(Exception):
    def __init__(self, text: str, error: BaseException) -> None:
        super().__init__(text)
        self.text, self.error = text, error


class _Attempt:
    """The processes of a job from one start to its end or failure."""

    def __init__(
        self, trainer: Trainer, places: Places, history: list[dict[str, Any]], restarts: int
    ) -> None:
        self._trainer, self._places, self._history = trainer, places, history
        self._restarts = restarts
        self._before = len(history)
        self._grows = time.monotonic() + _GROWTH
        self._actors = [self._actor(rank) for rank in range(len(places))]
        self._where: list[str] = ["(not started)"] * len(places)

    def _actor(self, rank: int) -> Any:
        ray, resources = library(), dict(self._trainer.resources)
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            self._places.group, placement_group_bundle_index=self._places.bundles[rank]
        )
        cpus, gpus = resources.pop("CPU", 0), resources.pop("GPU", 0)
        kind = ray.remote(
            num_cpus=cpus, num_gpus=gpus, resources=resources, max_concurrency=2, max_restarts=0
        )(Rank)
        return kind.options(scheduling_strategy=strategy).remote(rank)

    def run(self, args: Any, kwargs: Any) -> list[Any]:
        """Return what the ranks return."""
        trainer = self._trainer
        self._prepare()
        running = [
            actor.run.remote(trainer.train, args, kwargs, trainer.backend, trainer.timeout)
            for actor in self._actors
        ]
        self._watch(running)
        self._collect()
        return list(library().get(running))

    def _prepare(self) -> None:
        trainer, places = self._trainer, self._places
        result = self._all([actor.place.remote() for actor in self._actors])
        self._where = [f"(host {host}, pid {pid})" for host, pid, _ in result]
        address = "127.0.0.1" if len(set(places.hosts)) == 1 else self._address()
        start = _checkpoints.newest(trainer.checkpoint)
        common = {
            "WORLD_SIZE": len(places),
            "GROUP_WORLD_SIZE": max(places.hosts) + 1,
            "MASTER_ADDR": address,
            "MASTER_PORT": result[0][2],
            "TORCHELASTIC_RUN_ID": secrets.token_hex(8),
            "TORCHELASTIC_RESTART_COUNT": self._restarts,
            "TORCHELASTIC_MAX_RESTARTS": trainer.max_failures,
            "PLAIT_JOB_SECRET": secrets.token_hex(16),
        }
        threads = max(1, int(trainer.resources.get("CPU", 1)))
        calls = []
        for rank, actor in enumerate(self._actors):
            local, here = places.local(rank)
            own = {"RANK": rank, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": here}
            own["GROUP_RANK"] = places.hosts[rank]
            environment = {name: str(value) for name, value in {**common, **own}.items()}
            session = Session(trainer.checkpoint, start, trainer.fewest < trainer.most)
            calls.append(actor.prepare.remote(environment, session, threads))
        self._all(calls)

    def _address(self) -> str:
        """Return the address of rank 0's host."""
        table = library().util.placement_group_table(self._places.group)["bundles_to_node_id"]
        node = table[self._places.bundles[0]]
        return str(next(n["NodeManagerAddress"] for n in library().nodes() if n["NodeID"] == node))

    def _all(self, calls: Sequence[Any]) -> list[Any]:
        self._watch(calls)
        return list(library().get(list(calls)))

    def _watch(self, calls: Sequence[Any]) -> None:
        """Return when all are done; raise the failure that was first if any fails."""
        ray, left = library(), list(calls)
        while left:
            done, left = ray.wait(left, num_returns=len(left), timeout=_TICK)
            errors = {calls.index(each): _error_of(each) for each in done}
            if any(errors.values()):
                raise self._first_of(calls)
            self._collect()
            self._grow()

    def _first_of(self, calls: Sequence[Any]) -> _Failure:
        """Return the failure that is no consequence of another."""
        self._collect()
        deadline, result = time.monotonic() + _SECOND_LOOK, dict[int, BaseException]()
        while True:
            done, _ = library().wait(list(calls), num_returns=len(calls), timeout=_TICK)
            for each in done:
                error = _error_of(each)
                if error is not None:
                    result[calls.index(each)] = error
            rank = min(result, key=lambda r: (_is_consequence(result[r]), r))
            if not _is_consequence(result[rank]) or time.monotonic() > deadline:
                break
        error, name = result[rank], f"rank {rank} {self._where[rank]}"
        if isinstance(error, library().exceptions.RayActorError):
            return _Failure(f"{name} died: {reason(error)}", error)
        text = "".join(traceback.format_exception_only(error)).strip()
        return _Failure(f"{name} raised {text}", error)

    def _collect(self) -> None:
        """Take what rank 0 has reported."""
        ray, count = library(), len(self._history) - self._before
        try:
            self._history += ray.get(self._actors[0].reports.remote(count), timeout=_SECOND_LOOK)
        except ray.exceptions.RayError:
            return  # rank 0 is busy, or has died, which `_watch` finds

    def _grow(self) -> None:
        """Let the job begin anew at its next checkpoint if there is room for more ranks."""
        if len(self._places) >= self._trainer.most or time.monotonic() < self._grows:
            return
        self._grows = time.monotonic() + _GROWTH
        if has_room(self._trainer.resources):
            self._actors[0].stop_at_checkpoint.remote()

    def end(self) -> None:
        """End the processes, and free their places."""
        for actor in self._actors:
            library().kill(actor)
        self._places.give_back()


def _error_of(call: Any) -> BaseException | None:
    ray = library()
    try:
        ray.get(call)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)  # of an error that the function raised
        return cause if isinstance(cause, BaseException) else error
    return None


def _is_consequence(error: BaseException) -> bool:
    return isinstance(error, (dist.RankLost, dist.CollectiveTimeout))
