"""Functions of one tensor with floating-point results, for the specs of several families."""

from __future__ import annotations

from plait_ops.spec import Pointwise

__all__ = ["float_function"]


def float_function(
    name: str,
    text: str,
    at: float,
    value: float,
    domain: tuple[float, float] = (-3.0, 3.0),
    dtypes: str = "any",
) -> Pointwise:
    """Return a function of each element, whose documentation is `text` with its `value` at `at`.

    Integers become the default dtype; samples are drawn from `domain`.
    """
    return Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([{at}])).tolist()
    [{value}]
    """,
        promote="float",
        domain=domain,
        dtypes=dtypes,
    )
