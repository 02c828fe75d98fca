"""Operators that fill a tensor with random numbers: what the specs of several families share."""

from __future__ import annotations

from typing import Any

from plait_ops import calls as op
from plait_ops.costs import nbytes
from plait_ops.spec import Operator

__all__ = ["random_fill"]

_ERRORS = (
    "Raises: DTypeError for other dtypes, ValueError for parameters outside the range that the "
    "distribution allows."
)
_KERNEL = (
    "writes in[0], which has any strides and no two elements in one place, and reads nothing of "
    "it; the generator is the last argument, None is the default one."
)


def random_fill(
    name: str,
    arguments: str,
    text: str,
    example: str,
    value: str = "True",
    dtypes: str = "floating",
    libm: str = "",
) -> Operator:
    """Return an operator that writes random numbers, whose documentation is `text` with an
    `example` and its `value`.
    """
    operator = Operator(
        f"{name}(Tensor(a)! self{arguments}, *, Generator? generator=None) -> Tensor(a)!",
        doc=f"""
    {text} Returns `self`.

    {_ERRORS}

    >>> import plait_core as pc
    >>> {example}
    {value}
    """,
        kernel=_KERNEL,
        random=True,
        dtypes=dtypes,
        variants="method",
        libm=libm,
    )

    @operator.cost
    def _(self: Any) -> Any:
        return 0, 0, nbytes(self)

    @operator.vjp("self")
    def _(g: Any) -> Any:
        return op.zeros_like(g)

    return operator
