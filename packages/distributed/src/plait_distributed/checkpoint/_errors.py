"""The error of a checkpoint, on every rank."""

from __future__ import annotations

from plait_distributed._process_group import ProcessGroup

__all__ = ["CheckpointException", "raise_together"]


class CheckpointException(RuntimeError):
    """What a rank could not save or load, on every rank.

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
        told = "; ".join(f"rank {rank}: {text}" for rank, text in self.failures.items())
        super().__init__(f"{message}: {told}" if told else message)


def raise_together(
    who: str, group: ProcessGroup | None, error: BaseException | None, said: str = ""
) -> list[str]:
    """Raise on every rank if any has an error, else return what each rank said; all ranks call it.

    The errors of `CheckpointException.failures` are by the ranks of the group of all processes.
    """
    mine = f"+{said}" if error is None else f"-{type(error).__name__}: {error}"
    try:
        texts = [mine] if group is None else group.gather_texts(f"{who} result", mine)
    except BaseException as other:
        if error is not None and not isinstance(error, Exception):
            raise error from other  # an interrupt, which the other ranks do not get to know
        raise
    ranks = (0,) if group is None else group.ranks
    failures = {rank: text[1:] for rank, text in zip(ranks, texts, strict=True) if text[:1] != "+"}
    if error is not None and not isinstance(error, Exception):
        raise error
    if failures:
        raise CheckpointException(who, failures) from error
    return [text[1:] for text in texts]
