"""The schedule that depends on a metric."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

from plait_optim._optimizer import Optimizer
from plait_optim.lr_scheduler._base import (
    LRScheduler,
    check_optimizer,
    current_rates,
    warn_of_epoch,
)


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rate by ``factor`` when a metric has stopped improving.

    Args:
        optimizer: the optimizer whose rates are set.
        mode: "min" if smaller is better, "max" if larger is.
        factor: the factor of the rate, less than 1.
        patience: the number of epochs without improvement before a reduction.
        threshold: the smallest difference from the best metric that counts as improvement.
        threshold_mode: "rel" for a part of the best, "abs" for a difference.
        cooldown: epochs after a reduction that are not counted.
        min_lr: the smallest rate, or one for each group.
        eps: smaller reductions are not made.

    Raises:
        ValueError: if a mode is unknown, ``factor`` at least 1, or ``min_lr`` of another length.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.5]
    """

    best: float

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        n = len(optimizer.param_groups)
        one_for_all = not isinstance(min_lr, (list, tuple))
        if not one_for_all and len(min_lr) != n:  # type: ignore[arg-type]
            raise ValueError(f"expected {n} min_lrs, got {len(min_lr)}")  # type: ignore[arg-type]
        self.optimizer = optimizer
        self.default_min_lr = min_lr if one_for_all else None
        self.min_lrs: list[Any] = [min_lr] * n if one_for_all else list(min_lr)  # type: ignore[arg-type]
        self.factor = factor
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self._init_is_better(mode=mode, threshold=threshold, threshold_mode=threshold_mode)
        self.last_epoch = 0
        self.cooldown_counter = 0
        self._last_lr = current_rates(optimizer)
        self._reset()

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted because of a recent reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take the metric of an epoch, and reduce the rates if it has stopped improving.

        The metric is read: a tensor on a device is waited for.

        Args:
            metrics: The value that should improve.
            epoch: The number of the epoch; None is the next one.
        """
        value = float(metrics)
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = current_rates(self.optimizer)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    # The following have PyTorch's names and arguments: subclasses override them.

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf

    def _is_better(self, a: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            bar = best * (1 + sign * self.threshold)
        else:
            bar = best + sign * self.threshold
        return a > bar if self.mode == "max" else a < bar

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau: min_lr holds {len(self.min_lrs)} rates, but the optimizer "
                    f"has {len(groups)} groups now; change `min_lrs`"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            rate = max(before * self.factor, least)
            if before - rate > self.eps:
                group["lr"] = rate
