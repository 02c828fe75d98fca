"""Schedules made of others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from plait_optim._optimizer import Optimizer
from plait_optim.lr_scheduler._base import LRScheduler, current_rates
from plait_optim.lr_scheduler._plateau import ReduceLROnPlateau


class _Composed(LRScheduler):
    _schedulers: Sequence[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the schedules, without the optimizer."""
        return {
            **super().state_dict(),
            "_schedulers": [schedule.state_dict() for schedule in self._schedulers],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`."""
        state = dict(state_dict)
        for schedule, saved in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            schedule.load_state_dict(saved)
        super().load_state_dict(state)


class SequentialLR(_Composed):
    """Run one schedule after the other.

    Args:
        optimizer: the optimizer whose rates are set.
        schedulers: the schedules, all of ``optimizer``; each starts from the first rates.
        milestones: the epochs at which the second, the third and so on begin.
        last_epoch: the number of the last completed epoch.

    Raises:
        ValueError: if there is no schedule, one is of another optimizer or a
            `ReduceLROnPlateau`, a `ChainedScheduler` isn't the first, or the number of milestones
            isn't one less than that of schedules.
        TypeError: if one is not a schedule.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> from plait_optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> parts = [ConstantLR(optimizer, 0.1), ExponentialLR(optimizer, 0.5)]
        >>> schedule = SequentialLR(optimizer, parts, milestones=[2])
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
        ...     schedule.step()
        >>> rates
        [0.1, 0.1, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        _check(type(self).__name__, optimizer, schedulers)
        if any(isinstance(schedule, ChainedScheduler) for schedule in schedulers[1:]):
            raise ValueError(
                "SequentialLR: a ChainedScheduler must come first: it can't go back to its start"
            )
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # each schedule took a first step when it was made: undo these, and let the first one step
        # again
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        _undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch and set its rates."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            schedule._update_lr(0)
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()


class ChainedScheduler(_Composed):
    """Step several schedules at once; each changes the rates that the one before it set.

    Args:
        schedulers: the schedules, all of one optimizer.
        optimizer: their optimizer; by default that of the first one.

    Raises:
        ValueError: if there is no schedule, or one is of another optimizer or a
            `ReduceLROnPlateau`.
        TypeError: if one is not a schedule.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> from plait_optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = ChainedScheduler(
        ...     [ConstantLR(optimizer, 0.5, total_iters=2), ExponentialLR(optimizer, 0.5)]
        ... )
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
        ...     schedule.step()
        >>> rates
        [0.5, 0.25, 0.25, 0.125]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        _check(type(self).__name__, optimizer, schedulers)
        self._schedulers = schedulers
        self.optimizer = schedulers[0].optimizer
        self._last_lr = current_rates(self.optimizer)

    def step(self) -> None:  # type: ignore[override]
        """Step each schedule."""
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = current_rates(self.optimizer)


def _check(name: str, optimizer: Any, schedulers: Sequence[Any]) -> None:
    if len(schedulers) < 1:
        raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
    for number, schedule in enumerate(schedulers):
        if not hasattr(schedule, "optimizer"):
            raise TypeError(
                f"{name} at index {number} should have `optimizer` as its attribute; "
                f"got {type(schedule).__name__}"
            )
        if isinstance(schedule, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau`, whose `step` needs a measure; "
                f"got one at index {number}"
            )
        if optimizer is None:
            optimizer = schedule.optimizer
        if schedule.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but scheduler "
                f"{type(schedule).__name__} at index {number} has another one"
            )


def _undo(schedule: Any) -> None:
    for part in getattr(schedule, "_schedulers", ()):
        _undo(part)
    if not hasattr(schedule, "_schedulers") and hasattr(schedule, "last_epoch"):
        schedule.last_epoch -= 1
