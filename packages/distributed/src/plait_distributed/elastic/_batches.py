"""Batches of one size for any number of ranks, and randomness that belongs to samples."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from plait_distributed._arguments import core
from plait_distributed._world import default_group, is_initialized
from plait_distributed.elastic._session import size_at_first
from plait_distributed.elastic._shards import kept_whole, sharded_states


def sample_seed(seed: int, epoch: int, index: int, stream: str = "") -> int:
    """Return a seed that depends on these numbers alone: the same on every rank.

    Args:
        seed: of the run.
        epoch: which pass over the data set.
        index: of the sample.
        stream: a name, where a sample needs several independent seeds.

    Returns:
        A number in [0, 2**63).

    Example:
        >>> from plait_distributed.elastic import sample_seed
        >>> seed = sample_seed(0, 1, 7)
        >>> seed == sample_seed(0, 1, 7), seed == sample_seed(0, 2, 7)
        (True, False)
    """
    text = f"{int(seed)} {int(epoch)} {int(index)} {stream}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def sample_generator(seed: int, epoch: int, index: int, stream: str = "") -> Any:
    """Return a generator for the randomness of one sample, such as its augmentation.

    Args:
        seed, epoch, index, stream: as for `sample_seed`.

    Example:
        >>> import plait_core as pc
        >>> from plait_distributed.elastic import sample_generator
        >>> one, other = (sample_generator(0, 1, 7) for _ in range(2))
        >>> bool((pc.rand(3, generator=one) == pc.rand(3, generator=other)).all())
        True
    """
    return core().Generator().manual_seed(sample_seed(seed, epoch, index, stream))


class Part:
    """Some samples of a batch, which one rank computes.

    Attributes:
        number: of the part in its batch.
        indices: of the samples in the data set.
        weight: what the part's mean loss is multiplied by, so that the mean over ranks of the sums
            over their parts is the mean over the batch.
        seed: for randomness of the part as a whole, such as dropout.

    Example:
        >>> from plait_distributed.elastic import Batches
        >>> next(iter(Batches(4, 4, parts=2, shuffle=False))).mine[1]
        Part(number=1, indices=[2, 3], weight=0.5)
    """

    def __init__(self, number: int, indices: Sequence[int], weight: float, seed: int) -> None:
        self.number = number
        self.indices = list(indices)
        self.weight = weight
        self.seed = seed

    def __repr__(self) -> str:
        return f"Part(number={self.number}, indices={self.indices}, weight={self.weight})"


class Batch:
    """A batch of all ranks, and the parts of it that this rank computes.

    Args:
        own: The parts of this rank.
        is_even: Whether all ranks have as many parts.

    Attributes:
        epoch: which pass over the data set.
        number: of the batch in the epoch.
        indices: of all its samples.
        mine: the parts of this rank.

    Example:
        >>> from plait_distributed.elastic import Batches
        >>> batch = next(iter(Batches(4, 2, parts=1, shuffle=False)))
        >>> batch.epoch, batch.number, batch.indices
        (0, 0, [0, 1])
    """

    def __init__(
        self,
        epoch: int,
        number: int,
        indices: Sequence[int],
        own: list[Part],
        is_even: bool = True,
    ) -> None:
        self.epoch = epoch
        self.number = number
        self.indices = list(indices)
        self.mine = own
        self._is_even = is_even  # all ranks have as many parts

    def parts(self, model: Any = None) -> Iterator[Part]:
        """Yield the parts of this rank; before each the default generator gets the part's seed.

        Args:
            model: a `DistributedDataParallel`, whose gradients are reduced at the last part alone;
                or one behind `fully_shard`. Its gradients are reduced at each part, unless some
                ranks have more parts than others: then its parameters stay whole from a rank's
                first part to its last one.

        Example:
            >>> from plait_distributed.elastic import Batches
            >>> batch = next(iter(Batches(6, 4, parts=2, shuffle=False, drop_last=True)))
            >>> [part.indices for part in batch.parts()]
            [[0, 1], [2, 3]]
        """
        for part in self.mine:
            core().manual_seed(part.seed)
            with self._passes(model, part is self.mine[-1]):
                yield part

    def _passes(self, model: Any, last: bool) -> Any:
        """Return the context of a part's forward call and backward pass."""
        if sharded_states(model):
            return contextlib.nullcontext() if self._is_even else kept_whole(model, last)
        return (
            model.no_sync() if not last and hasattr(model, "no_sync") else contextlib.nullcontext()
        )


class Batches:
    """Deals the samples of a data set in batches of one size to however many ranks there are.

    An epoch is a permutation that depends on the seed and the epoch alone. It is cut into batches,
    each batch into parts; a rank takes one part, or several if there are fewer ranks. The position
    is the same on all ranks and belongs to the state of the training, so after a loss the batches
    that were not committed are dealt again to the ranks that are there: each sample of an epoch is
    dealt once.

    Args:
        length: the number of samples, or the data set.
        batch_size: samples of a batch over all ranks.
        parts: of a batch; None: as many as there are ranks at first. More ranks than parts cannot
            take part.
        shuffle: whether epochs are permutations.
        seed: of the permutations and of the parts' seeds.
        drop_last: whether to leave out the last batch of an epoch if it is not full.

    Raises:
        ValueError: a number is wrong, or the last batch of an epoch has fewer samples than parts.

    Example:
        >>> from plait_distributed.elastic import Batches
        >>> batches = Batches(6, 4, parts=2, shuffle=False)
        >>> [batch.indices for batch in batches], batches.epoch
        ([[0, 1, 2, 3], [4, 5]], 1)
    """

    def __init__(
        self,
        length: Any,
        batch_size: int,
        parts: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.length = int(length) if hasattr(length, "__index__") else len(length)
        self.batch_size = int(batch_size)
        self.parts = size_at_first() if parts is None else int(parts)
        if not 1 <= self.parts <= self.batch_size <= self.length:
            raise ValueError(
                "Batches: 1 <= `parts` <= `batch_size` <= `length` is required, got "
                f"{self.parts}, {self.batch_size} and {self.length}"
            )
        rest = self.length % self.batch_size
        if 0 < rest < self.parts and not drop_last:
            raise ValueError(
                f"Batches: the last batch of an epoch has {rest} samples, fewer than `parts`, "
                f"{self.parts}; choose another `batch_size`, or give drop_last=True"
            )
        self.shuffle = shuffle
        self.seed = int(seed)
        self.drop_last = drop_last
        self.epoch = 0
        self.position = 0  # batches of the epoch that were dealt
        self._order: tuple[int, list[int]] = (-1, [])

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        whole, rest = divmod(self.length, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def state_dict(self) -> dict[str, int]:
        """Return the position."""
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go to a position."""
        self.epoch, self.position = int(state["epoch"]), int(state["position"])

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the numbers of the epochs that are not complete; each is to be iterated over.

        Example:
            >>> from plait_distributed.elastic import Batches
            >>> batches = Batches(4, 2)
            >>> [len(list(batches)) for _ in batches.epochs(2)]
            [2, 2]
        """
        while self.epoch < count:
            yield self.epoch

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches that are left of the epoch; then the next epoch begins."""
        while self.position < len(self):
            number = self.position
            self.position += 1
            yield self._batch(number)
        self.epoch += 1
        self.position = 0

    def part_indices(self) -> list[list[int]]:
        """Return the samples of this rank's parts for the rest of the epoch, in order.

        It serves as the `batch_sampler` of a `DataLoader`, which is iterated over beside the parts.

        Example:
            >>> from plait_distributed.elastic import Batches
            >>> Batches(4, 2, parts=1, shuffle=False).part_indices()
            [[0, 1], [2, 3]]
        """
        left = range(self.position, len(self))
        return [part.indices for number in left for part in self._batch(number).mine]

    def _batch(self, number: int) -> Batch:
        order = self._permutation()
        indices = order[number * self.batch_size : (number + 1) * self.batch_size]
        rank, size = 0, 1
        if is_initialized():
            group = default_group("Batches")
            rank, size = group.rank(), group.size()
        if size > self.parts:
            raise ValueError(
                f"Batches: `parts` must be at least the number of ranks, {size}; got {self.parts}"
            )
        n, parts = len(indices), self.parts
        own = []
        for i in range(rank * parts // size, (rank + 1) * parts // size):
            some = indices[i * n // parts : (i + 1) * n // parts]
            seed = sample_seed(self.seed, self.epoch, number, f"part {i}")
            own.append(Part(i, some, len(some) * size / n, seed))
        return Batch(self.epoch, number, indices, own, parts % size == 0)

    def _permutation(self) -> list[int]:
        if self._order[0] != self.epoch:
            order = list(range(self.length))
            if self.shuffle:
                generator = sample_generator(self.seed, self.epoch, 0, "order")
                order = core().randperm(self.length, generator=generator).tolist()
            self._order = (self.epoch, order)
        return self._order[1]
