"""The base class of schedules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from plait_abi.frames import warn
from plait_optim._optimizer import Optimizer
from plait_optim._options import check_arguments


class LRScheduler:
    """Base class; a subclass returns the rate of each group at ``last_epoch`` in `get_lr`.

    Args:
        optimizer: the optimizer whose rates are set; each group stores its first rate as
            ``initial_lr``.
        last_epoch: the number of the last completed epoch, to resume; -1 starts from the beginning.

    Raises:
        TypeError: if ``optimizer`` is not an optimizer.
        KeyError: if ``last_epoch`` isn't -1 and a group has no ``initial_lr``.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> class Halving(plait_optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [rate * 0.5**self.last_epoch for rate in self.base_lrs]
        >>> optimizer = plait_optim.SGD([np.zeros(1)], lr=0.5)
        >>> scheduler = Halving(optimizer)
        >>> optimizer.step(grads=[np.zeros(1)])
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    # true during the first step in the constructor, in which there are no earlier rates
    _is_initial = False
    _get_lr_called_within_step = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__ and cls.__module__.startswith("plait_optim."):
            cls.__init__ = check_arguments(cls, cls.__init__)  # type: ignore[method-assign]
        if "get_lr" in cls.__dict__ and cls.__module__.startswith("plait_optim."):
            cls.get_lr = _warn_outside_of_steps(cls.get_lr)  # type: ignore[method-assign,assignment]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
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
        self.last_epoch: int = last_epoch
        self._initial_step()

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``."""
        raise NotImplementedError(f"{type(self).__name__}: implement `get_lr`")

    def get_last_lr(self) -> list[float]:
        """Return the rates set by the last `step`."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to ``epoch``, and set its rates.

        It follows ``optimizer.step()``: before the first one, it warns.
        """
        if self._step_count == 1:
            warn_before_optimizer(self)
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this schedule, without the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`."""
        self.__dict__.update(state_dict)

    # ---- for schedules; the names are those that PyTorch's have, on which subclasses rely --------

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _update_lr(self, epoch: int | None = None) -> None:
        if epoch is None:
            self.last_epoch += 1
            rates = self._rates_of(self.get_lr)
        else:
            self.last_epoch = epoch
            rates = self._rates_of(getattr(self, "_get_closed_form_lr", self.get_lr))
        self._set_rates(rates)

    def _rates_of(self, function: Callable[[], list[float]]) -> list[float]:
        """Call `get_lr` within a step: those that others write ask whether it is called so."""
        self._get_lr_called_within_step = True
        try:
            return function()
        finally:
            self._get_lr_called_within_step = False

    def _set_rates(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = current_rates(self.optimizer)

    def _current(self) -> list[float]:
        return current_rates(self.optimizer)

    def _scaled(self, factor: float) -> list[float]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _base_scaled(self, factor: float) -> list[float]:
        return [base * factor for base in self.base_lrs]


def _warn_outside_of_steps(get_lr: Callable[[Any], list[float]]) -> Callable[[Any], list[float]]:
    @functools.wraps(get_lr)
    def rates(self: Any) -> list[float]:
        if not self._get_lr_called_within_step:
            warn(
                "To get the last learning rate computed by the scheduler, please use "
                f"`get_last_lr()`: {type(self).__name__}.get_lr computes the rates of a step under "
                "way"
            )
        return get_lr(self)

    return rates


def warn_of_epoch() -> None:
    """Warn that a step counts the epochs itself."""
    warn(
        "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
        "possible: step() without it goes to the next epoch"
    )


def warn_before_optimizer(schedule: Any) -> None:
    """Warn about a step of a schedule whose optimizer has made no step."""
    if not getattr(schedule.optimizer, "_opt_called", True):
        warn(
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`: "
            f"{type(schedule).__name__} then leaves its first learning rate unused; call "
            "`optimizer.step()` first"
        )


def check_optimizer(optimizer: Any) -> None:
    """Raise for an object without groups."""
    if not hasattr(optimizer, "param_groups"):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def current_rates(optimizer: Any) -> list[float]:
    """Return the rates of all groups."""
    return [group["lr"] for group in optimizer.param_groups]


def per_group(name: str, optimizer: Any, value: Any) -> list[Any]:
    """Return one value for each group, from a single value or a sequence."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise ValueError(f"expected {n} values for {name}, got {len(value)}")
    return list(value)


def saved_functions(functions: Sequence[Any]) -> list[dict[str, Any] | None]:
    """Return the state of functions: attributes of callable objects, None for plain functions."""
    return [
        dict(vars(f)) if not hasattr(f, "__code__") and hasattr(f, "__dict__") else None
        for f in functions
    ]
