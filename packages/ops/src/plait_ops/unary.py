"""Functions of one tensor, element by element: what the specs of several families share."""

from __future__ import annotations

from plait_ops.spec import Pointwise

__all__ = ["float_function", "function_of_one", "predicate", "special_function"]


def float_function(
    name: str,
    text: str,
    at: float,
    value: float,
    domain: tuple[float, float] = (-3.0, 3.0),
    dtypes: str = "any",
    variants: str = "function",
    libm: str = "",
    zero_preserving: bool = False,
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
        variants=variants,
        libm=libm,
        zero_preserving=zero_preserving,
    )


def function_of_one(
    name: str,
    text: str,
    example: str,
    dtypes: str = "all",
    real: bool = False,
    variants: str = "function function_ method",
    libm: str = "",
    zero_preserving: bool = False,
) -> Pointwise:
    """Return a function of each element, whose documentation is `text` with the values at -1.5 and
    2.5. The result has the dtype of the tensor, or with `real` that of its parts.
    """
    return Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([-1.5, 2.5])).tolist()
    {example}
    """,
        dtypes=dtypes,
        real=real,
        variants=variants,
        libm=libm,
        zero_preserving=zero_preserving,
    )


def predicate(
    name: str, text: str, example: str, dtypes: str = "all", zero_preserving: bool = False
) -> Pointwise:
    """Return a test of each element, with a bool result, whose documentation is `text` with the
    values at minus infinity and 1.
    """
    return Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([-float("inf"), 1.0])).tolist()
    {example}
    """,
        promote="bool",
        dtypes=dtypes,
        inplace=False,
        variants="function method",
        zero_preserving=zero_preserving,
    )


def special_function(
    name: str,
    text: str,
    at: tuple[str, float],
    domain: tuple[float, float] = (-3.0, 3.0),
    variants: str = "function",
    libm: str = "",
    zero_preserving: bool = False,
) -> Pointwise:
    """Return a float function whose documentation shows its value at a number, rounded: `at` has
    both. With a name that begins with "special_" it stands in the namespace ``special`` alone.
    """
    public = f"special.{name[8:]}" if name.startswith("special_") else name
    return Pointwise(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> round(pc.{public}(pc.tensor([{at[0]}])).item(), 4)
    {at[1]}
    """,
        promote="float",
        domain=domain,
        inplace="method" in variants,
        variants=variants,
        libm=libm,
        zero_preserving=zero_preserving,
    )
