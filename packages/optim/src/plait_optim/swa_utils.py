"""Averages of weights over a training, and a schedule for them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from plait_optim._arrays import (
    exposed,
    library_function,
    load_into,
    mark_written,
    moved_to,
    sort_of,
)
from plait_optim._component import grad_mode, operator
from plait_optim._devices import by_device
from plait_optim._optimizer import Optimizer
from plait_optim._powers import cosine
from plait_optim.lr_scheduler._base import LRScheduler, per_group

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Any, Any, int], Any]
MultiAverage = Callable[[list[Any], list[Any], int], None]


class AveragedModel:
    r"""A copy of a model whose parameters are averages over calls of `update_parameters`.

    The first call copies the parameters; call n + 1 computes
    :math:`a \leftarrow a + (p - a) / n`, the mean of all; with `get_ema_multi_avg_fn` an
    exponential average instead.

    Args:
        model: a model with ``parameters()`` and ``buffers()``, of plait or torch, or a list of
            arrays. It is copied; ``module`` is the copy.
        device: the device of the copy, which is moved by its ``to``.
        avg_fn: the new average from (average, parameter, n), for each parameter.
        multi_avg_fn: writes the new averages into its first argument: (averages, parameters, n).
        use_buffers: average buffers too, instead of copying the model's.

    Raises:
        ValueError: if both functions are given, or a model with another number of parameters is
            passed.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> weights = [np.array([1.0])]
        >>> average = plait_optim.swa_utils.AveragedModel(weights)
        >>> for value in (1.0, 2.0, 6.0):
        ...     weights[0][:] = value
        ...     average.update_parameters(weights)
        >>> average.module
        [array([3.])]

    References:
        Izmailov et al., "Averaging weights leads to wider optima and better generalization" (2018).
    """

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("Only one of avg_fn and multi_avg_fn should be provided")
        if hasattr(model, "parameters"):
            self.module = copy.deepcopy(model)
        else:
            self.module = [load_into(array, array) for array in model]
        if device is not None:
            self.module = self.module.to(device)
        self.n_averaged = 0
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    forward = __call__

    def __getattr__(self, name: str) -> Any:
        # other attributes of the model: parameters, named_modules, ...
        if name == "module":
            raise AttributeError(name)
        return getattr(self.module, name)

    def train(self, mode: bool = True) -> AveragedModel:
        """Put the averaged model into training mode.

        Args:
            mode: True: training, False: evaluation.
        """
        self.module.train(mode)
        return self

    def eval(self) -> AveragedModel:
        """Put the averaged model into evaluation mode."""
        return self.train(False)

    def update_parameters(self, model: Any) -> None:
        """Update the averages with the parameters of ``model``."""
        averages, buffers = _arrays_of(self.module)
        values, new_buffers = _arrays_of(model)
        if self.use_buffers:
            averages, values = averages + buffers, values + new_buffers
        if len(averages) != len(values):
            raise ValueError(
                f"update_parameters: the model must have {len(averages)} parameters; "
                f"got {len(values)}"
            )
        with grad_mode(False):
            averages, values = exposed(averages, values)
            values = [moved_to(v, a) for a, v in zip(averages, values, strict=True)]
            if self.n_averaged == 0:
                _assign(averages, values)
            elif self.avg_fn is not None:
                new = [
                    self.avg_fn(a, v, self.n_averaged)
                    for a, v in zip(averages, values, strict=True)
                ]
                _assign(averages, new)
            else:
                step = self.multi_avg_fn or get_swa_multi_avg_fn()
                step(averages, values, self.n_averaged)
            if not self.use_buffers:
                _assign(*exposed(buffers, new_buffers))
            mark_written(averages)
        self.n_averaged += 1

    def state_dict(self) -> dict[str, Any]:
        """Return ``n_averaged`` and the model's state, whose names begin with ``module.``."""
        if isinstance(self.module, list):
            inner = {str(i): array for i, array in enumerate(self.module)}
        else:
            inner = self.module.state_dict()
        make = next(
            (library_function(type(v), "tensor") for v in inner.values() if sort_of(type(v))), None
        )
        count = self.n_averaged if make is None else make(self.n_averaged)
        return {"n_averaged": count, **{f"module.{name}": v for name, v in inner.items()}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`."""
        if "n_averaged" not in state_dict:
            raise KeyError(f"load_state_dict: 'n_averaged' is missing; got {sorted(state_dict)}")
        prefix = "module."
        inner = {k[len(prefix) :]: v for k, v in state_dict.items() if k.startswith(prefix)}
        if isinstance(self.module, list):
            names = [str(i) for i in range(len(self.module))]
            if sorted(inner) != sorted(names):
                raise KeyError(f"load_state_dict: {len(names)} arrays are kept; got {len(inner)}")
            _assign(*exposed(self.module, [inner[name] for name in names]))
        else:
            self.module.load_state_dict(inner)
        self.n_averaged = int(state_dict["n_averaged"])


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    r"""Return the step of an exponential average: :math:`a \leftarrow d\, a + (1 - d)\, p`.

    Args:
        decay: The part of the average that stays at each update.

    Example:
        >>> import numpy as np
        >>> from plait_optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
        >>> weights = [np.array([0.0])]
        >>> average = AveragedModel(weights, multi_avg_fn=get_ema_multi_avg_fn(0.5))
        >>> for value in (0.0, 1.0, 1.0):
        ...     weights[0][:] = value
        ...     average.update_parameters(weights)
        >>> average.module
        [array([0.75])]
    """
    _check_decay(decay)

    def step(averages: list[Any], values: list[Any], n_averaged: Any) -> None:
        _average(averages, values, 1 - decay)

    return step


def get_swa_multi_avg_fn() -> MultiAverage:
    r"""Return the step of a mean: :math:`a \leftarrow a + (p - a) / (n + 1)`.

    Example:
        >>> import numpy as np
        >>> from plait_optim.swa_utils import get_swa_multi_avg_fn
        >>> average = np.array([1.0])
        >>> get_swa_multi_avg_fn()([average], [np.array([4.0])], 2)
        >>> average
        array([2.])
    """

    def step(averages: list[Any], values: list[Any], n_averaged: Any) -> None:
        _average(averages, values, 1 / (int(n_averaged) + 1))

    return step


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    r"""Return the exponential average of one parameter: :math:`d\, a + (1 - d)\, p`.

    Args:
        decay: The part of the average that stays at each update.

    Example:
        >>> from plait_optim.swa_utils import get_ema_avg_fn
        >>> get_ema_avg_fn(0.5)(1.0, 2.0, 7)
        1.5
    """
    _check_decay(decay)
    return lambda average, value, n_averaged: decay * average + (1 - decay) * value


def get_swa_avg_fn() -> Average:
    r"""Return the mean with one parameter more: :math:`a + (p - a) / (n + 1)`.

    Example:
        >>> from plait_optim.swa_utils import get_swa_avg_fn
        >>> get_swa_avg_fn()(1.0, 4.0, 2)
        2.0
    """
    return lambda average, value, n_averaged: average + (value - average) / (n_averaged + 1)


def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Recompute the running statistics of a model's batch normalisations over a loader.

    The buffers of an averaged model do not have the statistics for its parameters.

    Args:
        loader: batches; if a batch is a list or a tuple, its first entry is used.
        model: the model, with ``modules()``; it is called with each batch.
        device: the device to which batches are moved first, by their ``to``.

    Example:
        >>> import numpy as np
        >>> from plait_optim.swa_utils import update_bn
        >>> class BatchNorm:  # as much of one as is looked at
        ...     training, momentum = False, 0.1
        ...     def modules(self):
        ...         return [self]
        ...     def train(self, mode=True):
        ...         self.training = mode
        ...     def reset_running_stats(self):
        ...         self.means = []
        ...     def __call__(self, batch):
        ...         self.means.append(float(batch.mean()))
        >>> model = BatchNorm()
        >>> update_bn([np.array([1.0, 3.0]), np.array([5.0, 7.0])], model)
        >>> model.means
        [2.0, 6.0]
    """
    norms = [m for m in model.modules() if _is_batch_norm(m)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    try:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        with grad_mode(False):
            for batch in loader:
                input = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(input if device is None else input.to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    r"""Change the rate to a constant one for weight averaging.

    .. math::
        \eta_t = \alpha\, \eta_{swa} + (1 - \alpha)\, \eta, \quad
            \alpha = \tfrac{1 - \cos(\pi \tau)}{2} \text{ or } \tau, \quad
            \tau = \min(1, t / \mathrm{anneal\_epochs})

    Args:
        optimizer: the optimizer whose rates are set; each group stores its final rate as
            ``swa_lr``.
        swa_lr: the rate to reach, for all groups or one for each.
        anneal_epochs: the number of epochs until then.
        anneal_strategy: "cos" or "linear".
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: if the strategy is unknown, or the number of epochs is below 0.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> optimizer = plait_optim.SGD([np.ones(1)], lr=1.0)
        >>> schedule = plait_optim.swa_utils.SWALR(optimizer, 0.5, 2, "linear")
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(grads=[np.zeros(1)])
        ...     schedule.step()
        >>> rates
        [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        aims = per_group("swa_lr", optimizer, swa_lr)
        for group, aim in zip(optimizer.param_groups, aims, strict=True):
            group["swa_lr"] = aim
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates at the present step, from the current rates."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._weight(step - 1), self._weight(step)
        rates = []
        for group in self.optimizer.param_groups:
            rate, aim = group["lr"], group["swa_lr"]
            start = aim if before == 1 else (rate - before * aim) / (1 - before)
            rates.append(aim * now + start * (1 - now))
        return rates

    def _weight(self, step: int) -> float:
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - cosine(math.pi * part)) / 2


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. It must be in [0, 1].")


def _is_batch_norm(module: Any) -> bool:
    names = [base.__name__ for base in type(module).__mro__]
    return hasattr(module, "reset_running_stats") and any("BatchNorm" in name for name in names)


def _arrays_of(model: Any) -> tuple[list[Any], list[Any]]:
    if not hasattr(model, "parameters"):
        return list(model), []
    return list(model.parameters()), list(model.buffers())


def _is_averaged_by_operator(array: Any) -> bool:
    return str(getattr(array, "dtype", "float32")).endswith(("float16", "float32", "float64"))


def _average(averages: list[Any], values: list[Any], weight: float) -> None:
    pairs = list(zip(averages, values, strict=True))
    real = [pair for pair in pairs if _is_averaged_by_operator(pair[0])]
    for positions in by_device([a for a, _ in real]).values():
        states = [real[i] for i in positions]
        operator("average_step")(
            [a for a, _ in states], [v for _, v in states], weight=float(weight)
        )
    for average, value in pairs:  # integers, and other arrays without a fused step
        if not _is_averaged_by_operator(average):
            average[...] = average * (1 - weight) + value * weight


def _assign(targets: list[Any], values: list[Any]) -> None:
    for target, value in zip(targets, values, strict=True):
        target[...] = value
