"""Schedules whose factors depend on the epoch only.

Each `get_lr` starts from the current rates, so that schedules can be chained; ``step(epoch)`` uses
the closed form.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from plait_optim._optimizer import Optimizer
from plait_optim._powers import power
from plait_optim.lr_scheduler._base import LRScheduler


class StepLR(LRScheduler):
    r"""Multiply the rate by ``gamma`` every ``step_size`` epochs.

    .. math::
        \eta_t = \eta_0\, \gamma^{\lfloor t / \mathrm{step\_size} \rfloor}

    Args:
        optimizer: The optimizer whose rates are set.
        step_size: Number of epochs between two decays.
        gamma: The factor of each decay.
        last_epoch: The epoch from which to go on; -1 begins.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
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

    def _get_closed_form_lr(self) -> list[float]:
        return self._base_scaled(power(self.gamma, self.last_epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """Multiply the rate by ``gamma`` at each of the epochs in ``milestones``.

    Args:
        optimizer: The optimizer whose rates are set.
        milestones: Epochs of the decays, ascending.
        gamma: The factor of each decay.
        last_epoch: The epoch from which to go on; -1 begins.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
        ...     schedule.step()
        >>> rates
        [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        times = self.milestones[self.last_epoch]
        return self._scaled(power(self.gamma, times)) if times else self._current()

    def _get_closed_form_lr(self) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return self._base_scaled(power(self.gamma, passed))


class ConstantLR(LRScheduler):
    """Multiply the rate by ``factor`` until epoch ``total_iters``.

    Args:
        optimizer: The optimizer whose rates are set.
        factor: The factor of the rates until `total_iters`.
        total_iters: Number of steps until the last value.
        last_epoch: The epoch from which to go on; -1 begins.

    Raises:
        ValueError: if ``factor`` isn't in [0, 1].

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
        ...     schedule.step()
        >>> rates
        [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor must be between 0 and 1; got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch != self.total_iters:
            return self._current()
        # a factor of 0 cannot be divided out
        return self._scaled(1 / self.factor) if self.factor else list(self.base_lrs)

    def _get_closed_form_lr(self) -> list[float]:
        return self._base_scaled(self.factor if self.last_epoch < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    r"""Let the rate's factor go from ``start_factor`` to ``end_factor`` on a line.

    .. math::
        \eta_t = \eta_0 \bigl(s + (e - s) \min(1, t / \mathrm{total\_iters})\bigr)

    Args:
        optimizer: The optimizer whose rates are set.
        start_factor: The factor of the rates at the first step, in (0, 1].
        end_factor: The factor of the rates from step `total_iters` on.
        total_iters: Number of steps until the last value.
        last_epoch: The epoch from which to go on; -1 begins.

    Raises:
        ValueError: if ``start_factor`` isn't in (0, 1] or ``end_factor`` not in [0, 1].

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
        ...     schedule.step()
        >>> rates
        [0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"LinearLR: start_factor must be greater than 0 and at most 1; got {start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: end_factor must be between 0 and 1; got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        t = self.last_epoch
        if t == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or t > self.total_iters:
            return self._current()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (t - 1) * rise
        return self._scaled(1 + rise / before)

    def _get_closed_form_lr(self) -> list[float]:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return self._base_scaled(self.start_factor + (self.end_factor - self.start_factor) * part)


class ExponentialLR(LRScheduler):
    r"""Multiply the rate by ``gamma`` every epoch: :math:`\eta_t = \eta_0 \gamma^t`.

    Args:
        optimizer: The optimizer whose rates are set.
        gamma: The factor of each decay.
        last_epoch: The epoch from which to go on; -1 begins.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> optimizer.step(grads=[np.zeros(1)])
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        return self._current() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[float]:
        return self._base_scaled(power(self.gamma, self.last_epoch))


class PolynomialLR(LRScheduler):
    r"""Let the rate fall to 0 at epoch ``total_iters``.

    .. math::
        \eta_t = \eta_0 \left(1 - \frac{\min(t, \mathrm{total\_iters})}{\mathrm{total\_iters}}
            \right)^{\mathrm{power}}

    Args:
        optimizer: The optimizer whose rates are set.
        total_iters: Number of steps until the last value.
        power: The exponent of the polynomial.
        last_epoch: The epoch from which to go on; -1 begins.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2.0)
        >>> optimizer.step(grads=[np.zeros(1)])
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5625]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        t, last = self.last_epoch, self.total_iters
        if self._is_initial or t > last:
            return self._current()
        return self._scaled(power((1 - t / last) / (1 - (t - 1) / last), self.power))

    def _get_closed_form_lr(self) -> list[float]:
        left = 1 - min(self.total_iters, self.last_epoch) / self.total_iters
        return self._base_scaled(power(left, self.power))
