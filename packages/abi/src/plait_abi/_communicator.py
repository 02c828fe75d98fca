"""Groups of processes, from whoever fills the role `communicator`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from plait_abi import binding

# enum plait_collective_kind and plait_reduction (plait/abi.h)
KINDS = {
    "all_reduce": 1,
    "broadcast": 2,
    "reduce": 3,
    "all_gather": 4,
    "gather": 5,
    "scatter": 6,
    "reduce_scatter": 7,
    "all_to_all": 8,
    "send": 9,
    "recv": 10,
    "barrier": 11,
}
Preparation = Callable[[str, int, int, float], contextlib.AbstractContextManager[object]]
REDUCTIONS = {"sum": 0, "mean": 1, "product": 2, "min": 3, "max": 4, "and": 5, "or": 6, "xor": 7}


class Work:
    """A collective that runs in the background; `Communicator.start` makes it.

    Dropping it does not stop the collective.

    Example:
        >>> import plait_abi, plait_multiprocessing
        >>> alone = plait_abi.Communicator.open("shared_memory", "shm:work", 0, 1)
        >>> work = alone.start("barrier", asynchronous=True)
        >>> work.wait()
        >>> work.query()
        True
    """

    def __init__(self, raw: binding.Work) -> None:
        self._raw = raw

    def wait(self) -> None:
        """Wait until it is done; raise its error if it failed.

        If its tensors are on a device, the current stream waits, and not the host.
        """
        self._raw.wait()

    def query(self) -> bool:
        """Whether it is done; raise its error if it failed."""
        return self._raw.query()


class Communicator:
    """One member of a group of processes that compute together: the role as it is.

    It calls a provider's functions, which `plait/abi.h` describes. Tests of providers use it;
    `plait_multiprocessing.Communicator` is for programs.

    Example:
        >>> import numpy as np, plait_abi, plait_multiprocessing
        >>> alone = plait_abi.Communicator.open("shared_memory", "shm:alone", 0, 1)
        >>> x = np.ones(2, np.float32)
        >>> alone.start("all_reduce", [x], [x], reduction="max")
        >>> x
        array([1., 1.], dtype=float32)
    """

    _preparations: ClassVar[dict[str, Preparation]] = {}

    def __init__(self, raw: binding.Communicator) -> None:
        self._raw = raw

    @classmethod
    def prepare_with(cls, provider: str, prepare: Preparation) -> None:
        """Let `open` call a function before it calls a provider: one whose processes meet in
        Python.

        Args:
            provider: its name.
            prepare: called with `where`, `rank`, `size` and `timeout`. It returns a context
                manager, which is left when the group is open, or cannot be opened.
        """
        cls._preparations[provider] = prepare

    @classmethod
    def open(
        cls,
        provider: str,
        where: str,
        rank: int,
        size: int,
        timeout: float = 300.0,
        device: Any = "cpu",
    ) -> Communicator:
        """Join the group that all members name by `where`, whose form is the provider's own.

        Raises:
            ValueError: if there is no such provider for the device, or an argument is wrong.
            TimeoutError: if the others did not come within `timeout` seconds.
            PlaitError: if the group cannot be made.
        """
        if not (0 <= rank < size):
            raise ValueError(f"open: `rank` must be in [0, {size - 1}], got {rank}")
        with contextlib.ExitStack() as stack:
            if (prepare := cls._preparations.get(provider)) is not None:
                stack.enter_context(prepare(where, rank, size, timeout))
            return cls(binding.open_communicator(provider, device, where, rank, size, timeout))

    @property
    def rank(self) -> int:
        """The number of this member."""
        return self._raw.rank

    @property
    def size(self) -> int:
        """The number of members."""
        return self._raw.size

    def start(
        self,
        kind: str,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        *,
        reduction: str = "sum",
        peer: int = 0,
        tag: int = 0,
        timeout: float = 0.0,
        asynchronous: bool = False,
    ) -> Work | None:
        """Run a collective, or with ``asynchronous=True`` begin it.

        If its tensors are on a device, it is in the current stream when this returns.

        Args:
            kind: `all_reduce`, `broadcast`, `reduce`, `all_gather`, `gather`, `scatter`,
                `reduce_scatter`, `all_to_all`, `send`, `recv` or `barrier`.
            inputs: tensors, or arrays of other libraries, that this member gives.
            outputs: those that it gets, which are written.
            reduction: `sum`, `mean`, `product`, `min`, `max`, `and`, `or` or `xor`.
            peer: the root, or the other member of `send` and `recv`.
            tag: of a message; of other kinds a number that all members give alike, or their calls
                count as different.
            timeout: seconds until it fails; 0: those of the communicator.
            asynchronous: whether to return before it is done.

        Raises:
            ValueError, TypeError: if an argument is wrong.
            NotImplementedError: if the provider lacks the kind.
            TimeoutError: if the others did not come in time.
            PlaitError: if a member died, left, aborted the group, or called something else.
        """
        if kind not in KINDS:
            raise ValueError(f"start: `kind` must be one of {', '.join(KINDS)}; got {kind!r}")
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"{kind}: `reduction` must be one of {', '.join(REDUCTIONS)}; got {reduction!r}"
            )
        if not 0 <= peer < self.size:
            raise ValueError(f"{kind}: `peer` must be in [0, {self.size - 1}], got {peer}")
        work = self._raw.start(
            KINDS[kind],
            tuple(inputs),
            tuple(outputs),
            REDUCTIONS[reduction],
            peer,
            tag,
            timeout,
            asynchronous,
        )
        return None if work is None else Work(work)

    def split(self, color: int, key: int = 0) -> Communicator | None:
        """Return the communicator of the members that give the same `color`, ranked by `key`.

        All members call it; one with a negative color gets None.
        """
        part = self._raw.split(color, key)
        return None if part is None else Communicator(part)

    def abort(self, why: str) -> None:
        """End all collectives of the group in every member, with an error that has this text.

        Raises:
            TypeError: if `why` is no text.
        """
        if not isinstance(why, str):
            raise TypeError(f"abort: `why` must be a str, got {type(why).__name__}")
        self._raw.abort(why)

    def interrupt(self, where: str) -> None:
        """End all collectives of the group, as the user interrupts this member.

        As `abort`, but this member is lost for the others.

        Args:
            where: the function that the user interrupts.
        """
        self._raw.interrupt(where)

    def close(self) -> None:
        """Leave the group. A second time nothing happens."""
        self._raw.close()
