"""Schedules given by functions of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait_optim._optimizer import Optimizer
from plait_optim.lr_scheduler._base import LRScheduler, saved_functions

Factor = Callable[[int], float]


class _ByFunctions(LRScheduler):
    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1
    ) -> None:
        n = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * n if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(self.lr_lambdas)}")
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state without the optimizer; of functions only attributes of objects."""
        return {**super().state_dict(), "lr_lambdas": saved_functions(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`; functions are kept."""
        state = dict(state_dict)
        for function, saved in zip(self.lr_lambdas, state.pop("lr_lambdas", []), strict=False):
            if saved is not None:
                vars(function).update(saved)
        super().load_state_dict(state)


class LambdaLR(_ByFunctions):
    """Set the rate to the first one times ``lr_lambda(epoch)``.

    Args:
        optimizer: the optimizer whose rates are set.
        lr_lambda: one function of the epoch, or one for each group.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: if the number of functions is not that of the groups.
        TypeError: if one can't be called.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> optimizer.step(grads=[np.zeros(1)])
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]


class MultiplicativeLR(_ByFunctions):
    """Multiply the rate by ``lr_lambda(epoch)`` at each epoch after the first.

    Arguments and errors are those of `LambdaLR`.

    Args:
        optimizer: The optimizer whose rates are set.
        lr_lambda: A function from the epoch to the factor, or one for each group.
        last_epoch: The epoch from which to go on; -1 begins.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> optimizer.step(grads=[np.zeros(1)])
        >>> schedule.step()
        >>> optimizer.step(grads=[np.zeros(1)])
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        if self._is_initial:
            return self._current()
        pairs = zip(self._current(), self.lr_lambdas, strict=True)
        return [rate * function(self.last_epoch) for rate, function in pairs]
