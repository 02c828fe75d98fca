"""What operators do with sparse tensors, ``mm(S, x)`` and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_core._sparse import SparseTensor
from plait_core._sparse_functions import KEEPING_ZERO, cat, index_select

__all__ = ["run"]


def run(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the function of this module that stands for an operator.

    Raises:
        TypeError: if there is none.
    """
    name = operator.__name__
    known = _CALLS.get(name)
    if known is None:
        raise TypeError(f"{name}: sparse tensors do not have this operator; call to_dense() first")
    try:
        result = known(*args, **kwargs)
    except TypeError as error:
        # only what Python says of the arguments lacks our name for the function
        if "positional argument" in str(error) or "keyword argument" in str(error):
            raise TypeError(f"{name}: on sparse tensors, {error}") from None
        raise
    if result is NotImplemented:
        kinds = ", ".join(type(value).__name__ for value in args)
        raise TypeError(f"{name}: sparse tensors do not have this operator for {kinds}")
    return result


def _mm(input: Any, mat2: Any) -> Any:
    if isinstance(input, SparseTensor):
        return input.mm(mat2)
    return mat2.t().mm(input.t()).t()


def _matmul(input: Any, other: Any) -> Any:
    if isinstance(input, SparseTensor):
        return input.__matmul__(other)
    return other.__rmatmul__(input)


def _addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    return beta * input + alpha * _mm(mat1, mat2)


def _add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    if isinstance(input, SparseTensor):
        return input.add(other, alpha=alpha)
    return (other.mul(alpha)).add(input)


def _sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    return _add(input, other, alpha=-alpha)


def _mul(input: Any, other: Any) -> Any:
    return input.mul(other) if isinstance(input, SparseTensor) else other.mul(input)


def _div(input: Any, other: Any) -> Any:
    return input.div(other) if isinstance(input, SparseTensor) else NotImplemented


def _sum(input: SparseTensor, dim: Any = None) -> Any:
    return input.sum(dim)


def _method(name: str) -> Callable[..., Any]:
    def function(input: SparseTensor, *args: Any) -> Any:
        return getattr(input, name)(*args)

    return function


_CALLS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "addmm": _addmm,
    "div": _div,
    "divide": _div,
    "matmul": _matmul,
    "mm": _mm,
    "mul": _mul,
    "multiply": _mul,
    "sub": _sub,
    "subtract": _sub,
    "sum": _sum,
    "true_divide": _div,
    "cat": cat,
    "index_select": index_select,
    **{
        name: _method(name)
        for name in ("clone", "detach", "mv", "norm", "pow", "t", "transpose", *KEEPING_ZERO)
    },
}
