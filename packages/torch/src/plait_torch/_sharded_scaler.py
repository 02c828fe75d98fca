"""`torch.distributed.fsdp.sharded_grad_scaler`: a scaler of gradients that all ranks share."""

from __future__ import annotations

from typing import Any

from plait_abi.components import require
from plait_torch._amp import GradScaler

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A `GradScaler` for parameters of which each rank has a part: if a gradient of one rank is not
    finite, all ranks skip the step.

    Args:
        device: the type of device of the gradients, such as "cpu" or "cuda".
        init_scale, backoff_factor, growth_factor, growth_interval: as for `GradScaler`.
        enabled: False for a scaler that does nothing.
        process_group: the ranks that share the parameters; None: all.

    Example:
        >>> import plait
        >>> from plait_torch._sharded_scaler import ShardedGradScaler
        >>> ShardedGradScaler("cpu", init_scale=4.0).scale(plait.ones(1))
        tensor([4.])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(
            device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
        self.process_group = process_group

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients by the scale; all ranks learn whether one is not finite."""
        super().unscale_(optimizer)
        distributed = require("distributed")
        if not self._enabled or not distributed.is_initialized():
            return
        results = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        if not results:  # the others wait for this rank, too
            results[self._scale.device] = self._scale.new_zeros(())
        for result in results.values():
            distributed.all_reduce(result, distributed.ReduceOp.MAX, self.process_group)
