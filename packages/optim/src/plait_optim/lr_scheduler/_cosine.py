"""Schedules along half a cosine."""

from __future__ import annotations

import math

from plait_optim._optimizer import Optimizer
from plait_optim._powers import cosine
from plait_optim.lr_scheduler._base import LRScheduler


class CosineAnnealingLR(LRScheduler):
    r"""Let the rate fall from the first one to ``eta_min`` along half a cosine of ``T_max`` epochs.

    .. math::
        \eta_t = \eta_{min} + (\eta_0 - \eta_{min}) \frac{1 + \cos(\pi t / T_{max})}{2}

    Args:
        optimizer: The optimizer whose rates are set.
        T_max: Number of steps from the largest rate to the smallest.
        eta_min: The smallest rate.
        last_epoch: The epoch from which to go on; -1 begins.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> optimizer.step(grads=[np.zeros(1)])
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

        It takes changes of the rate into account; without changes it equals the closed form.
        """
        t, period = self.last_epoch, self.T_max
        if self._is_initial:
            return self._current()
        pairs = zip(self.base_lrs, self._current(), strict=True)
        if (t - 1 - period) % (2 * period) == 0:
            rise = (1 - cosine(math.pi / period)) / 2
            return [lr + (base - self.eta_min) * rise for base, lr in pairs]
        ratio = (1 + cosine(math.pi * t / period)) / (1 + cosine(math.pi * (t - 1) / period))
        return [self.eta_min + (lr - self.eta_min) * ratio for _, lr in pairs]

    def _get_closed_form_lr(self) -> list[float]:
        return _on_cosine(self.base_lrs, self.eta_min, math.pi * self.last_epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Let the rate fall along half a cosine, again and again from the first one.

    The first fall takes ``T_0`` epochs, each later one ``T_mult`` times the one before. With
    :math:`T_{cur}` epochs since the last restart, of :math:`T_i`:

    .. math::
        \eta_t = \eta_{min} + (\eta_0 - \eta_{min}) \frac{1 + \cos(\pi T_{cur} / T_i)}{2}

    ``step(epoch)`` takes fractions of epochs, such as ``epoch + batch / batches``.

    Args:
        optimizer: The optimizer whose rates are set.
        T_0: Number of steps until the first restart.
        T_mult: The factor of the number of steps after each restart.
        eta_min: The smallest rate.
        last_epoch: The epoch from which to go on; -1 begins.

    Raises:
        ValueError: if ``T_0`` or ``T_mult`` is not a positive integer, or ``eta_min`` is not a
            number.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
        ...     schedule.step()
        >>> [round(rate, 6) for rate in rates]
        [1.0, 0.5, 1.0, 0.5]

    References:
        Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (int, float)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min!r}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.T_cur``."""
        return _on_cosine(self.base_lrs, self.eta_min, math.pi * self.T_cur / self.T_i)

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to ``epoch``, which may be a fraction, and set its rates."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self._rates_of(self.get_lr))

    def _go_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            m = self.T_mult
            self.T_i, self.T_cur = self.T_0, epoch
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= m


def _on_cosine(rates: list[float], least: float, angle: float) -> list[float]:
    height = (1 + cosine(angle)) / 2
    return [least + (rate - least) * height for rate in rates]
