"""The error of a checkpoint, on every rank."""

from __future__ import annotations

from plait_distributed._process_group import ProcessGroup, tell_interrupt


class CheckpointException(RuntimeError):
    """The errors of saving or loading of all ranks, raised on every rank.

    Args:
        message: what was done.
        failures: a text for each rank that failed, by rank.

    Example:
        >>> from plait_distributed.checkpoint import CheckpointException
        >>> str(CheckpointException("save", {1: "the disk is full"}))
        'save: rank 1: the disk is full'
    """

    def __init__(self, message: str, failures: dict[int, str] | None = None) -> None:
        self.failures = dict(failures or {})
        notice = "; ".join(f"rank {rank}: {text}" for rank, text in self.failures.items())
        super().__init__(f"{message}: {notice}" if notice else message)


class Together:
    """The steps of ranks that save or load together, in each of which all call `agree`.

    As a context it lets no other rank wait for this one when an interrupt ends the steps and the
    others did not learn of it: their groups are broken then, as by an interrupt in a collective.

    Args:
        who: the function that the program called.
        group: the ranks; None: this process alone.
        later: a group of the same ranks, to which `group` may be set between two steps.
    """

    def __init__(
        self, caller: str, group: ProcessGroup | None, later: ProcessGroup | None = None
    ) -> None:
        self._who, self.group = caller, group
        self._groups = [each for each in (group, later) if each is not None]
        self._told: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not self._told:
            tell_interrupt(self._who, self._groups, error)

    def agree(self, error: BaseException | None, message: str = "") -> list[str]:
        """Raise on every rank if any has an error, else return what each rank said.

        The errors of `CheckpointException.failures` are by the ranks of the group of all processes.
        """
        own = f"+{message}" if error is None else f"-{type(error).__name__}: {error}"
        group = self.group
        try:
            texts = [own] if group is None else group.gather_texts(f"{self._who} result", own)
            self._told = error
        except BaseException as other:
            if error is not None and not isinstance(error, Exception):
                raise error from other  # an interrupt, which the other ranks do not get to know
            raise
        ranks = (0,) if group is None else group.ranks
        failures = {rank: t[1:] for rank, t in zip(ranks, texts, strict=True) if t[:1] != "+"}
        if error is not None and not isinstance(error, Exception):
            raise error
        if failures:
            raise CheckpointException(self._who, failures) from error
        return [text[1:] for text in texts]
