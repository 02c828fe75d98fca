"""The exceptions of collectives."""

from __future__ import annotations

from collections.abc import Iterable


class DistError(RuntimeError):
    """The base class of the errors of this package."""


class DistBackendError(DistError):
    """A collective failed: the base of `RankLost`, `MismatchError` and `CollectiveTimeout`.

    Args:
        text: The message.

    Attributes:
        failure: why, as `PlaitError.failure` states it; empty if the provider does not.
    """

    failure = ""
    is_of_another_rank = False  # which is lost, or ended the group

    def __init__(self, text: str = "", failure: str = "") -> None:
        super().__init__(text)
        if failure:
            self.failure = failure


class DistNetworkError(DistError):
    """Processes could not reach each other."""


class DistStoreError(DistError):
    """A `Store` could not be used, or a key did not come in time.

    Example:
        >>> import plait_distributed as dist
        >>> try:
        ...     dist.HashStore(timeout=0.01).get("missing")
        ... except dist.DistStoreError as error:
        ...     print("missing" in str(error))
        True
    """


class RankLost(DistBackendError):
    """A process of the group died, left or is stopped; the text names it and the collective.

    Args:
        text: The message.

    Attributes:
        ranks: the lost ones, among all processes.

    Example:
        >>> import plait_distributed as dist
        >>> dist.RankLost("rank 3 was lost", (3,)).ranks
        (3,)
    """

    failure = "lost"
    is_of_another_rank = True

    def __init__(self, text: str = "", ranks: Iterable[int] = ()) -> None:
        super().__init__(text)
        self.ranks = tuple(ranks)


class MismatchError(DistBackendError):
    """Ranks called different collectives; the text says which rank called what, at which line.

    No tensor has changed, and the group can be used further.

    Args:
        text: The message.
        failure: The kind of the failure.
    """

    failure = "mismatch"


class CollectiveTimeout(DistBackendError, TimeoutError):
    """Other ranks did not come within the group's timeout; the group is broken from then on.

    Args:
        text: The message.
        failure: The kind of the failure.
    """

    failure = "timed_out"
