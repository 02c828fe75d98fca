"""NumPy's functions on tensors: ``__array__`` and ``__array_ufunc__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import ArgumentError, DTypeError, binding
from plait_core._core import Tensor, _share_array, is_tensor
from plait_core._numpy._fallback import by_numpy

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
    import numpy as np

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
    """Run the operator for a NumPy ufunc, or NumPy's own on arrays; the result is a Tensor.

    ``out=`` may be a tensor or an array, which is written in place. ``np.add.reduce`` and similar
    methods are the reductions. Where there is no operator there is no gradient.
    """
    options = {
        key: value for key, value in kwargs.items() if not (key == "where" and value is True)
    }
    if method == "reduce" and not options.keys() - {"axis", "keepdims", "dtype"}:
        name = _REDUCTIONS.get(ufunc.__name__)
        if name is not None:
            return _reduce(name, inputs, out, options)
    if method == "__call__" and not options:
        values = [_operand(value) for value in inputs]
        if ufunc.__name__ == "divmod":
            return binding.operator("floor_divide")(*values), binding.operator("remainder")(*values)
        operator = _operator(ufunc)
        if operator is not None:
            try:
                return _into(operator, values, out)
            except TypeError as error:  # an operator that takes no numbers
                if isinstance(error, DTypeError) or all(map(is_tensor, values)):
                    raise
                return _into(operator, _as_tensors(values), out)
    if out is not None:
        kwargs["out"] = out
    return by_numpy(ufunc, inputs, kwargs, "" if method == "__call__" else method)


def _operator(ufunc: Any) -> Callable[..., Any] | None:
    import numpy as np

    name = ufunc.__name__
    if getattr(np, name, None) is not ufunc:
        return None  # of another library
    try:
        return binding.operator(_NAMES.get(name, name))
    except AttributeError:
        return None


def _operand(value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray):
        return _share_array(value)
    if isinstance(value, (list, tuple)):
        return _share_array(np.asarray(value))
    return value


def _as_tensors(values: list[Any]) -> list[Any]:
    """Return numbers as 0-d tensors of the dtype in which NumPy computes."""
    import numpy as np

    kinds = [value.detach().numpy().dtype for value in values if is_tensor(value)]
    numbers = [value for value in values if not is_tensor(value)]
    dtype = np.result_type(*kinds, *numbers)
    return [v if is_tensor(v) else _share_array(np.asarray(v, dtype)) for v in values]


def _into(operator: Callable[..., Any], values: list[Any], out: Any) -> Any:
    """Run an operator and return the object that was given as `out`, if any."""
    if out is None:
        return operator(*values)
    targets = out if isinstance(out, tuple) else (out,)
    views = [target if is_tensor(target) else _share_array(target) for target in targets]
    operator(*values, out=views[0] if len(views) == 1 else tuple(views))
    return targets[0] if len(targets) == 1 else targets


def _reduce(name: str, inputs: tuple[Any, ...], out: Any, kwargs: dict[str, Any]) -> Any:
    axis, keepdims = kwargs.get("axis", 0), bool(kwargs.get("keepdims", False))
    dtype = kwargs.get("dtype")
    value = _operand(inputs[0])
    if dtype is not None:
        value = value.to(binding.dtype(dtype))
    dims = tuple(range(value.ndim)) if axis is None else axis
    if isinstance(dims, tuple) and name == "prod":
        for dim in sorted((d % value.ndim for d in dims), reverse=True):
            value = value.prod(dim, keepdim=keepdims)
        return _into(lambda x, out=None: out.copy_(x) if out is not None else x, [value], out)

    def reduced(x: Tensor, out: Any = None) -> Any:
        result = getattr(x, name)(dims, keepdim=keepdims)
        return result if out is None else out.copy_(result)

    return _into(reduced, [value], out)


def to_numpy(self: Tensor) -> Any:
    """Return ``numpy()``: plotting and table libraries ask tensors for it by this name.

    Example:
        >>> import plait_core as pc
        >>> pc.ones(2).to_numpy()
        array([1., 1.], dtype=float32)
    """
    return self.numpy()


METHODS: dict[str, Callable[..., Any]] = {
    "__array__": __array__,
    "__array_ufunc__": __array_ufunc__,
    "to_numpy": to_numpy,
}
