"""`torch.nn` beside plait's."""

from __future__ import annotations

import warnings
from typing import Any

import plait
from plait.torch._parallel import DataParallel

__all__ = ["DataParallel", "NLLLoss2d", "NonDynamicallyQuantizableLinear", "is_lazy"]

# the class of a layer in PyTorch's attention that tools leave alone
NonDynamicallyQuantizableLinear = plait.nn.Linear


class NLLLoss2d(plait.nn.NLLLoss):
    """PyTorch's older name of `NLLLoss`, for pictures."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn("NLLLoss2d is deprecated: use NLLLoss", FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)


def is_lazy(param: Any) -> bool:
    """Return whether the parameter has no shape yet."""
    return isinstance(param, plait.nn.UninitializedParameter)
