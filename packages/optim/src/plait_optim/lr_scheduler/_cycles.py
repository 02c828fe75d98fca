"""Cyclic schedules, with momentum in the opposite direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from plait_optim._optimizer import Optimizer
from plait_optim._powers import cosine, power
from plait_optim.lr_scheduler._base import LRScheduler, check_optimizer, per_group, saved_functions


class _WithMomentum(LRScheduler):
    cycle_momentum: bool

    def _start_momentum(
        self, optimizer: Any, base: Any, top: Any, last_epoch: int
    ) -> tuple[list[float], list[float]]:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        bases = per_group("base_momentum", optimizer, base)
        tops = per_group("max_momentum", optimizer, top)
        if last_epoch == -1:
            for group, low, high in zip(optimizer.param_groups, bases, tops, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low
        return bases, tops

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    r"""Vary the rate between two bounds along straight lines.

    With cycle c from 1, and h from 0 up to 1 and back within it:

    .. math::
        \eta = \eta_{base} + (\eta_{max} - \eta_{base})\, h\, s

    where s is 1 ("triangular"), :math:`2^{1 - c}` ("triangular2"), :math:`\gamma^t` at step t
    ("exp_range"), or a given function. The momentum changes in the opposite direction.

    Args:
        optimizer: the optimizer whose rates are set.
        base_lr, max_lr: the bounds, for all groups or one for each.
        step_size_up, step_size_down: steps of the two halves of a cycle; equal by default.
        mode: "triangular", "triangular2" or "exp_range"; not used with a ``scale_fn``.
        gamma: :math:`\gamma` of "exp_range".
        scale_fn: s as a function of the cycle or the step.
        scale_mode: "cycle" or "iterations": the argument of ``scale_fn``.
        cycle_momentum: whether to change the momentum, or :math:`\beta_1`, too.
        base_momentum, max_momentum: the bounds of the momentum.
        last_epoch: the number of the last completed step; -1 starts from the beginning.

    Raises:
        ValueError: if the mode is unknown, or the optimizer has no momentum to cycle.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0, momentum=0.9)
        >>> schedule = plait_optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
        ...     schedule.step()
        >>> rates
        [0.0, 0.5, 1.0, 0.5, 0.0]

    References:
        Smith, "Cyclical learning rates for training neural networks" (2017).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                group["lr"] = rate
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(
                optimizer, base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return s at a cycle or a step.

        Args:
            x: The number of the cycle, or of the step, as `scale_mode` says.
        """
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return power(2.0, 1 - x)
        return power(self.gamma, x) if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``; this also sets momenta."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1 + self.last_epoch / self.total_size - cycle
        rising = x <= self.step_ratio
        height = x / self.step_ratio if rising else (x - 1) / (self.step_ratio - 1)
        factor = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                self._set_momentum(group, high - (high - low) * height * factor)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * factor for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Return the state without the optimizer, and with only the attributes of ``scale_fn``."""
        [saved] = saved_functions([self._scale_fn_custom])
        return {**super().state_dict(), "_scale_fn_custom": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`; ``scale_fn`` is kept."""
        state = dict(state_dict)
        saved = state.pop("_scale_fn_custom", None)
        if saved is not None:
            vars(self._scale_fn_custom).update(saved)
        super().load_state_dict(state)


class OneCycleLR(_WithMomentum):
    r"""Raise the rate once, then lower it to almost 0 until the end of the training.

    From :math:`\eta_{max} / \mathrm{div\_factor}` up to :math:`\eta_{max}` in the first
    ``pct_start`` of all steps, then down to the initial rate over ``final_div_factor``; with
    ``three_phase`` back to the initial rate in as many steps as it rose, and then down. The
    momentum changes in the opposite direction.

    Args:
        optimizer: whose groups are changed.
        max_lr: the peak, for all groups or one for each.
        total_steps: steps of the whole training; or ``epochs`` and ``steps_per_epoch``.
        epochs: Number of epochs, with `steps_per_epoch` instead of `total_steps`.
        steps_per_epoch: Number of steps in an epoch.
        pct_start: the part of all steps in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether to change the momentum, or :math:`\beta_1`, too.
        base_momentum, max_momentum: its bounds.
        div_factor, final_div_factor: the divisors of the peak and then of the initial rate.
        three_phase: fall to the initial rate first.
        last_epoch: the number of the last step done; -1 starts again.

    Raises:
        ValueError: if the number of steps isn't given, an option is out of its range, the
            optimizer has no momentum to cycle, or, in `step`, all steps are done.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0, momentum=0.9)
        >>> schedule = plait_optim.lr_scheduler.OneCycleLR(
        ...     optimizer, max_lr=1.0, total_steps=10, anneal_strategy="linear"
        ... )
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
        ...     schedule.step()
        >>> [round(rate, 3) for rate in rates]
        [0.04, 0.52, 1.0, 0.857]

    References:
        Smith and Topin, "Super-convergence: very fast training of neural networks using large
        learning rates" (2018).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            peaks = per_group("max_lr", optimizer, max_lr)
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at ``self.last_epoch``; this also sets momenta."""
        t = self.last_epoch
        if t > self.total_steps:
            raise ValueError(
                f"Tried to step {t} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if t <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (t - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*ends, part))
        return rates

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return start + (end - start) * part
        return end + (start - end) * (1 + cosine(math.pi * part)) / 2


def _total(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    numbers: dict[str, Any] = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    if total_steps is not None:
        numbers = {"total_steps": total_steps}
    for name, number in numbers.items():
        if not isinstance(number, int) or number <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {number}")
    return math.prod(numbers.values())


def _phases(total: int, rise: float, three: bool) -> list[dict[str, Any]]:
    def phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
        return {
            "end_step": end,
            "start_lr": rates[0],
            "end_lr": rates[1],
            "start_momentum": momenta[0],
            "end_momentum": momenta[1],
        }

    low, high = "base_momentum", "max_momentum"
    first = phase(float(rise * total) - 1, ("initial_lr", "max_lr"), (high, low))
    if not three:
        return [first, phase(total - 1, ("max_lr", "min_lr"), (low, high))]
    back = phase(float(2 * rise * total) - 2, ("max_lr", "initial_lr"), (low, high))
    return [first, back, phase(total - 1, ("initial_lr", "min_lr"), (high, high))]
