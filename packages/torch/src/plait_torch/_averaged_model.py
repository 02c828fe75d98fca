"""`torch.optim.swa_utils.AveragedModel`, which is a module in PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import plait
from plait.nn import Module
from plait_optim import swa_utils

__all__ = ["AveragedModel"]


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over the steps of training.

    Args:
        model: the model, which is copied.
        device: where the copy lies; None: where the model lies.
        avg_fn: computes the average from the last one, the model's parameter and the count.
        multi_avg_fn: updates lists of averages in place.
        use_buffers: whether buffers are averaged too; otherwise they are copied.

    Example:
        >>> import plait
        >>> from plait_torch._averaged_model import AveragedModel
        >>> layer = plait.nn.Linear(1, 1, bias=False)
        >>> average = AveragedModel(layer)
        >>> average.update_parameters(layer)
        >>> average.n_averaged, sorted(average.state_dict())
        (tensor(1), ['module.weight', 'n_averaged'])
    """

    n_averaged: Any

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., Any] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", plait.tensor(0, dtype=plait.long, device=device))
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Any) -> None:
        """Update the averages with the parameters of ``model``."""
        updates: Any = swa_utils.AveragedModel.update_parameters  # it reads what both classes have
        updates(self, model)
