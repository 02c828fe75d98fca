"""NumPy's functions on tensors: ``__array__`` and ``__array_ufunc__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import ArgumentError, _binding
from plait_abi.imports import import_module
from plait_core._core import Tensor, from_numpy, is_tensor

__all__ = ["METHODS"]

# ufuncs whose operator has another name
_NAMES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "degrees": "rad2deg",
    "divide": "div",
    "equal": "eq",
    "fabs": "abs",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "power": "pow",
    "radians": "deg2rad",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "subtract": "sub",
}
_SAME_NAMES = (
    "add bitwise_and bitwise_or bitwise_xor ceil copysign cos cosh deg2rad exp exp2 expm1 "
    "float_power floor floor_divide fmax fmin fmod frexp gcd heaviside hypot isfinite isinf isnan "
    "lcm ldexp log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or "
    "logical_xor matmul maximum minimum nextafter positive rad2deg reciprocal remainder sign "
    "signbit sin sinh sqrt square tan tanh trunc"
)
_SAME = frozenset(_SAME_NAMES.split())
_REDUCTIONS = {
    "add": "sum",
    "logical_and": "all",
    "logical_or": "any",
    "maximum": "amax",
    "minimum": "amin",
    "multiply": "prod",
}


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: N807
    """Return a NumPy array, on the same memory where dtype and `copy` allow it."""
    np = import_module("numpy")

    array = self.numpy()
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise ArgumentError(
                f"__array__: `copy=False` cannot change {array.dtype} to {np.dtype(dtype)}"
            )
        return array.astype(dtype)
    return array.copy() if copy else array


def __array_ufunc__(  # noqa: N807
    self: Tensor, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any
) -> Any:
    """Run the operator for a NumPy ufunc; the result is a Tensor.

    ``out=`` may be a tensor or an array, which is written in place. ``np.add.reduce`` and similar
    methods are the reductions. A ufunc without an operator raises TypeError: convert with
    ``.numpy()`` first.
    """
    known = {key: value for key, value in kwargs.items() if not (key == "where" and value is True)}
    if method == "reduce":
        return _reduce(ufunc, inputs, out, known)
    if method != "__call__" or known:
        what = method if method != "__call__" else f"keyword {next(iter(known))}"
        raise TypeError(f"np.{ufunc.__name__}: tensors do not support `{what}`; use x.numpy()")
    values = [_operand(value) for value in inputs]
    if ufunc.__name__ == "divmod":
        quotient = _operator(ufunc, "floor_divide")(*values)
        return quotient, _operator(ufunc, "remainder")(*values)
    operator = _operator(ufunc, _NAMES.get(ufunc.__name__, ufunc.__name__))
    return _into(operator, values, out)


def _operator(ufunc: Any, name: str) -> Callable[..., Any]:
    if ufunc.__name__ in _NAMES or ufunc.__name__ in _SAME or ufunc.__name__ == "divmod":
        try:
            return _binding.operator(name)
        except AttributeError:
            pass
    raise TypeError(
        f"np.{ufunc.__name__}: no operator of plait stands behind it; convert with x.numpy() first"
    )


def _operand(value: Any) -> Any:
    np = import_module("numpy")

    if isinstance(value, np.ndarray):
        return from_numpy(value)
    if isinstance(value, (list, tuple)):
        return from_numpy(np.asarray(value))
    return value


def _into(operator: Callable[..., Any], values: list[Any], out: Any) -> Any:
    """Run an operator and return the object that was given as `out`, if any."""
    if out is None:
        return operator(*values)
    targets = out if isinstance(out, tuple) else (out,)
    views = [target if is_tensor(target) else from_numpy(target) for target in targets]
    operator(*values, out=views[0] if len(views) == 1 else tuple(views))
    return targets[0] if len(targets) == 1 else targets


def _reduce(ufunc: Any, inputs: tuple[Any, ...], out: Any, kwargs: dict[str, Any]) -> Any:
    name = _REDUCTIONS.get(ufunc.__name__)
    if name is None:
        raise TypeError(f"np.{ufunc.__name__}.reduce: tensors have no such reduction")
    axis, keepdims = kwargs.pop("axis", 0), bool(kwargs.pop("keepdims", False))
    dtype = kwargs.pop("dtype", None)
    if kwargs:
        raise TypeError(
            f"np.{ufunc.__name__}.reduce: tensors do not support `{next(iter(kwargs))}`"
        )
    value = _operand(inputs[0])
    if dtype is not None:
        value = value.to(_binding.dtype(dtype))
    dims = tuple(range(value.ndim)) if axis is None else axis
    if isinstance(dims, tuple) and name == "prod":
        for dim in sorted((d % value.ndim for d in dims), reverse=True):
            value = value.prod(dim, keepdim=keepdims)
        return _into(lambda x, out=None: out.copy_(x) if out is not None else x, [value], out)

    def reduced(x: Tensor, out: Any = None) -> Any:
        result = getattr(x, name)(dims, keepdim=keepdims)
        return result if out is None else out.copy_(result)

    return _into(reduced, [value], out)


METHODS: dict[str, Callable[..., Any]] = {
    "__array__": __array__,
    "__array_ufunc__": __array_ufunc__,
}
