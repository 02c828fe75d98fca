"""Learning-rate schedules: each `step` of one sets ``lr`` of an optimizer's groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from plait_optim._optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "StepLR"]


class LRScheduler:
    """Base class: a subclass says in `get_lr` what the rate of each group is at ``last_epoch``.

    Args:
        optimizer: whose groups are changed; each keeps its first rate as ``initial_lr``.
        last_epoch: the number of the last epoch done, to resume; -1 starts anew.

    Raises:
        TypeError: if ``optimizer`` is none.
        KeyError: if ``last_epoch`` isn't -1 and a group has no ``initial_lr``.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> class Halving(plait_optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [rate * 0.5**self.last_epoch for rate in self.base_lrs]
        >>> scheduler = Halving(plait_optim.SGD([np.zeros(1)], lr=0.5))
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not hasattr(optimizer, "param_groups"):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    "param 'initial_lr' is not specified in "
                    f"param_groups[{number}] when resuming an optimizer"
                )
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        raise NotImplementedError(f"{type(self).__name__}: implement `get_lr`")

    def get_last_lr(self) -> list[float]:
        """Return the rates set by the last `step`."""
        return self._last_lr

    def step(self) -> None:
        """Go to the next epoch and set its rates."""
        self.last_epoch += 1
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = lr
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return all that this schedule needs to go on, but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def _scaled(self, factor: float) -> list[float]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _current(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]


class StepLR(LRScheduler):
    r"""Multiply the rate by ``gamma`` every ``step_size`` epochs.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     schedule.step()
        >>> rates
        [1.0, 1.0, 0.5, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._current()
        return self._scaled(self.gamma)


class ExponentialLR(LRScheduler):
    """Multiply the rate by ``gamma`` every epoch.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        return self._current() if self.last_epoch == 0 else self._scaled(self.gamma)


class LambdaLR(LRScheduler):
    """Set the rate to the first one times ``lr_lambda(epoch)``.

    Args:
        optimizer: whose groups are changed.
        lr_lambda: one function of the epoch, or one for each group.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: if there are not as many functions as groups.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        n = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * n if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Return all but the optimizer and the functions, which a program makes anew."""
        state = super().state_dict()
        del state["lr_lambdas"]
        return state


class CosineAnnealingLR(LRScheduler):
    r"""Let the rate fall from the first one to ``eta_min`` along half a cosine of ``T_max`` epochs.

    .. math::
        \eta_t = \eta_{min} + (\eta_0 - \eta_{min}) \frac{1 + \cos(\pi t / T_{max})}{2}

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> schedule.step()
        >>> [round(rate, 6) for rate in schedule.get_last_lr()]
        [0.5]

    References:
        Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017),
        without the restarts.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``, by PyTorch's recursion.

        It follows a rate that was changed meanwhile, and is the closed form where none was.
        """
        t, period = self.last_epoch, self.T_max
        if t == 0:
            return self._current()
        pairs = zip(self.base_lrs, self._current(), strict=True)
        if (t - 1 - period) % (2 * period) == 0:
            rise = (1 - math.cos(math.pi / period)) / 2
            return [lr + (base - self.eta_min) * rise for base, lr in pairs]
        ratio = (1 + math.cos(math.pi * t / period)) / (1 + math.cos(math.pi * (t - 1) / period))
        return [self.eta_min + (lr - self.eta_min) * ratio for _, lr in pairs]
