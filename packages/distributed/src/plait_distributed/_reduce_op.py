"""How collectives reduce."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["ReduceOp", "reduction_name"]


class ReduceOp(Enum):
    """How the values of all ranks become one.

    Halves are summed in float32. For bools a sum or maximum is "or", a product or minimum "and".

    - SUM, PRODUCT: of numbers; integers wrap around.
    - AVG: the sum over the number of ranks, for floating-point and complex dtypes.
    - MIN, MAX: for dtypes with an order.
    - BAND, BOR, BXOR: of the bits of integers and bools.

    Example:
        >>> import plait_distributed as dist
        >>> dist.ReduceOp.SUM
        <ReduceOp.SUM: 'sum'>
    """

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "and"
    BOR = "or"
    BXOR = "xor"


# PyTorch's name for the type of the members, which libraries ask for
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]

_NAMES = {op: op.value for op in ReduceOp}


def reduction_name(who: str, op: Any) -> str:
    """Return the ABI's name of a reduction."""
    name = _NAMES.get(op)
    if name is None:
        raise TypeError(
            f"{who}: `op` must be one of ReduceOp.{', '.join(each.name for each in ReduceOp)}; "
            f"got {op!r}"
        )
    return name
