"""One pass through a dataset: its seed, its order, its progress, and how it is resumed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from plait_data._randomness import RandomSource, library_draws
from plait_data._sampler import BatchSampler

_SEED_LIMIT = 2**63
_VERSION = 1


@dataclass
class Epoch:
    """Attributes:
    number: the number of epochs before it.
    seed: the seed of its samples' random numbers.
    begun: the states of generators and sampler at its beginning.
    yielded: the number of batches that the program got.
    skipped: the number of these before a resumption.
    by_worker: for a stream, the number of batches of each worker.
    turn: for a stream, the worker of the next batch.
    finished: whether all batches were yielded.
    """

    number: int
    seed: int
    begun: dict[str, Any]
    yielded: int = 0
    skipped: int = 0
    by_worker: list[int] = field(default_factory=list)
    turn: int = 0
    finished: bool = False


class Order:
    """Draws the order and the seed of each epoch, and can repeat those of an earlier one.

    Args:
        sampler: of batches or of indices; None for a stream.
        generator: the loader's generator; None: the sampler's generator is used for the seeds too.
    """

    def __init__(self, sampler: Any, generator: Any, shared: bool) -> None:
        self._generator, self._shared = generator, shared
        self._own_seeds: RandomSource | None = None
        self._take(sampler)
        self._epochs = 0
        self._latest_seed: int | None = None
        self._resumed: dict[str, Any] | None = None

    def use(self, sampler: Any, generator: Any) -> None:
        """Go on with the sampler and the generator of now: a program may have replaced them."""
        if generator is not self._generator:
            self._generator, self._own_seeds = generator, None
        self._take(sampler)

    def _take(self, sampler: Any) -> None:
        self._sampler = sampler
        inner = sampler.sampler if type(sampler) is BatchSampler else sampler
        source = getattr(inner, "_random", None)
        self._source: RandomSource | None = source if isinstance(source, RandomSource) else None
        shared = self._source is not None and (self._shared or self._generator is None)
        shared = shared and library_draws() is None  # which draws seeds from the loader's alone
        if not shared and self._own_seeds is None:
            self._own_seeds = RandomSource("DataLoader", self._generator)
        self._seeds = None if shared else self._own_seeds
        self._stateful = next(
            (
                candidate
                for candidate in (sampler, inner)
                if hasattr(candidate, "state_dict") and hasattr(candidate, "load_state_dict")
            ),
            None,
        )

    def begin(self, workers: int, *, kept: bool = False) -> tuple[Epoch, Iterator[Any] | None]:
        """The next epoch and the iterator of its batches of indices (None for a stream).

        Args:
            workers: the number of processes.
            kept: they are those of the epoch before. Another library draws no new seed then.
        """
        state, self._resumed = self._resumed, None
        begun: dict[str, Any] = {}
        if state is not None:
            self._epochs = state["epoch"]
            self._replay(state["begun"])
        if self._stateful is not None:
            begun["sampler"] = copy.deepcopy(self._stateful.state_dict())
        seed = None
        as_library = library_draws() is not None
        if as_library and kept and self._latest_seed is not None:
            seed = (self._latest_seed + 1) % _SEED_LIMIT
        elif self._seeds is not None:
            seed = int(self._seeds.rng().integers(_SEED_LIMIT))
            begun["seeds"] = self._seeds.begun
        is_late = as_library and not workers and self._sampler is not None
        order: Iterator[Any] | None = None
        if self._sampler is not None:
            order = self._when_needed(begun) if is_late else iter(self._sampler)
        if self._source is not None and not is_late:
            begun["order"] = self._source.begun
            if seed is None:
                seed = int(self._source.latest.integers(_SEED_LIMIT))
        assert seed is not None
        self._latest_seed = seed
        epoch = Epoch(self._epochs, seed, begun)
        epoch.by_worker = [0] * max(workers, 1)
        self._epochs += 1
        if state is not None and state["batches"]:
            epoch.seed = state["seed"]
            epoch.yielded = epoch.skipped = state["batches"]
            if order is None:
                epoch.by_worker, epoch.turn = list(state["by_worker"]), state["turn"]
            else:
                next(islice(order, epoch.skipped, epoch.skipped), None)
        return epoch, order

    def _when_needed(self, begun: dict[str, Any]) -> Iterator[Any]:
        """The batches of indices, whose order is drawn when the first one is asked for."""
        order = iter(self._sampler)
        if self._source is not None:
            begun["order"] = self._source.begun
        yield from order

    def _replay(self, begun: dict[str, Any]) -> None:
        for name, source in (("order", self._source), ("seeds", self._seeds)):
            if source is not None and begun.get(name) is not None:
                source.replay(begun[name])
        if self._stateful is not None and "sampler" in begun:
            self._stateful.load_state_dict(copy.deepcopy(begun["sampler"]))

    def state(self, epoch: Epoch | None) -> dict[str, Any]:
        """The state for `resume` after the batches of ``epoch`` so far."""
        state: dict[str, Any] = {"version": _VERSION, "stream": self._sampler is None}
        if epoch is None or epoch.finished:
            if epoch is None and self._resumed is not None:
                return dict(self._resumed)
            begun: dict[str, Any] = {}
            for name, source in (("order", self._source), ("seeds", self._seeds)):
                if source is not None:
                    begun[name] = source.next_state
            if self._stateful is not None:
                begun["sampler"] = copy.deepcopy(self._stateful.state_dict())
            number = 0 if epoch is None else epoch.number + 1
            return {**state, "epoch": number, "batches": 0, "seed": None, "begun": begun}
        state |= {"epoch": epoch.number, "batches": epoch.yielded, "seed": epoch.seed}
        if self._sampler is None:
            state |= {"by_worker": list(epoch.by_worker), "turn": epoch.turn}
        return {**state, "begun": epoch.begun}

    def resume(self, state: Any, workers: int) -> None:
        """Make the next epoch continue from ``state``.

        Raises:
            ValueError: it is not a state of such a loader.
        """
        if not isinstance(state, dict) or state.get("version") != _VERSION:
            raise ValueError(
                "load_state_dict: `state` must be what DataLoader.state_dict() of this version of "
                f"plait_data returned; got {type(state).__name__}"
            )
        stream = self._sampler is None
        if state["stream"] != stream:
            kinds = ("an indexable dataset", "an iterable dataset")
            raise ValueError(
                f"load_state_dict: the state must be of a loader of {kinds[stream]}; it is of one "
                f"of {kinds[not stream]}"
            )
        if stream and state["batches"] and len(state["by_worker"]) != max(workers, 1):
            raise ValueError(
                "load_state_dict: the state of an iterable dataset counts the batches of each "
                f"worker, so num_workers must be what it was ({len(state['by_worker'])}); "
                f"got {workers}"
            )
        self._resumed = state
