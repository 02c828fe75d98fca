"""The operators of which PyTorch's `GradScaler` consists; optimizers of libraries call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait

__all__ = ["_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"]


def _amp_foreach_non_finite_check_and_unscale_(
    self: Sequence[Any], found_inf: Any, inv_scale: Any
) -> None:
    """Multiply gradients by `inv_scale`, and set `found_inf` to 1 if one has no finite number.

    Raises:
        RuntimeError: if `found_inf` or `inv_scale` has more than one element.

    Example:
        >>> import plait
        >>> from plait_torch._scaling import _amp_foreach_non_finite_check_and_unscale_ as unscale
        >>> gradient, found = plait.tensor([8.0, 4.0]), plait.zeros(1)
        >>> unscale([gradient], found, plait.tensor([0.5]))
        >>> gradient, found
        (tensor([4., 2.]), tensor([0.]))
    """
    name = "_amp_foreach_non_finite_check_and_unscale_"
    for word, each in (("found_inf", found_inf), ("inv_scale", inv_scale)):
        if each.numel() != 1:
            raise RuntimeError(f"{name}: `{word}` must have one element; got {tuple(each.shape)}")
    with plait.no_grad():
        for gradient in self:
            if not bool(gradient.isfinite().all()):
                found_inf.fill_(1)
            gradient.mul_(inv_scale.reshape(()).to(gradient.dtype))


def _amp_update_scale_(
    self: Any,
    growth_tracker: Any,
    found_inf: Any,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Any:
    """Change a scale in place: smaller after a step with `found_inf`, larger after
    `growth_interval` steps without; return it.

    Example:
        >>> import plait
        >>> from plait_torch._scaling import _amp_update_scale_
        >>> steps = plait.zeros(1, dtype=plait.int32)
        >>> _amp_update_scale_(plait.tensor([8.0]), steps, plait.ones(1), 2.0, 0.5, 3)
        tensor([4.])
    """
    with plait.no_grad():
        if float(found_inf) != 0:
            self.mul_(scale_backoff_factor)
            growth_tracker.zero_()
            return self
        steps = int(growth_tracker) + 1
        if steps == growth_interval:
            larger = self * scale_growth_factor
            if bool(larger.isfinite().all()):
                self.copy_(larger)
            steps = 0
        growth_tracker.fill_(steps)
    return self
