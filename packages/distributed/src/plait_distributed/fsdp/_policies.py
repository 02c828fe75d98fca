"""The dtypes in which sharded modules compute, and the device of parameters between uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a module that `fully_shard` shards; parameters keep theirs between uses.

    Args:
        param_dtype: the dtype of gathered parameters and of the computation; None: their own.
        reduce_dtype: the dtype in which gradients are reduced; None: that of the computation. Sums
            of halves are computed in float32 in any case.
        output_dtype: the dtype of the module's floating outputs; None: they are not cast.
        cast_forward_inputs: whether floating inputs are cast to `param_dtype`.

    Example:
        >>> import plait_core as pc
        >>> from plait_distributed.fsdp import MixedPrecisionPolicy
        >>> MixedPrecisionPolicy(param_dtype=pc.bfloat16).cast_forward_inputs
        True
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay on their device.

    Example:
        >>> from plait_distributed.fsdp import OffloadPolicy
        >>> OffloadPolicy()
        OffloadPolicy()
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters are on the CPU between uses; here they always are.

    Args:
        pin_memory: unused.

    Example:
        >>> from plait_distributed.fsdp import CPUOffloadPolicy
        >>> CPUOffloadPolicy()
        CPUOffloadPolicy(pin_memory=True)
    """

    pin_memory: bool = True
