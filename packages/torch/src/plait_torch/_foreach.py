"""`torch._foreach_add_` and similar functions: one call for a list of tensors, for third-party
optimizers.

They are private in PyTorch, but optimizers call them, because on GPUs one kernel processes the
whole list. Here each is a loop over the list, with the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plait

_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "clone", "cos", "cosh", "erf", "erfc", "exp", "expm1",
    "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round",
    "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "zero",
)  # fmt: skip
_BINARY = ("add", "sub", "mul", "div", "pow", "copy", "maximum", "minimum", "mm")
_BOUNDED = {"clamp_max": "minimum", "clamp_min": "maximum"}
_TERNARY = ("addcmul", "addcdiv", "lerp")
_REDUCED = ("norm", "max", "powsum")
_OPERATIONS = frozenset((*_UNARY, *_BINARY, *_BOUNDED, *_TERNARY, *_REDUCED))


def has(name: str) -> bool:
    """Return whether `name` is the name of such a function, such as ``_foreach_sqrt_``.

    Example:
        >>> from plait_torch._foreach import has
        >>> has("_foreach_sqrt_"), has("_foreach_norm_"), has("sqrt")
        (True, False, False)
    """
    if not name.startswith("_foreach_"):
        return False
    operation = name.removeprefix("_foreach_").removesuffix("_")
    alone = operation in _REDUCED or operation in ("clone", "mm")
    only = operation in ("zero", "copy")
    return operation in _OPERATIONS and not (alone if name.endswith("_") else only)


def make(name: str) -> Callable[..., Any]:
    """Return the function for a name that `has` accepts.

    Example:
        >>> import plait
        >>> from plait_torch._foreach import make
        >>> a, b = plait.ones(2), plait.zeros(1)
        >>> make("_foreach_add_")([a, b], [plait.ones(2), plait.ones(1)], alpha=3)
        >>> a, b
        (tensor([4., 4.]), tensor([3.]))
    """
    inplace = name.endswith("_")
    operation = name.removeprefix("_foreach_").removesuffix("_")
    one = _function(operation, inplace)

    def each(self: Sequence[Any], *others: Any, **options: Any) -> Any:
        rows = [_spread(name, other, len(self)) for other in others]
        named = {key: _spread(name, value, len(self)) for key, value in options.items()}
        out = [
            one(tensor, *(row[i] for row in rows), **{key: row[i] for key, row in named.items()})
            for i, tensor in enumerate(self)
        ]
        return None if inplace else tuple(out)

    each.__name__ = each.__qualname__ = name
    each.__doc__ = f"Call `{operation}{'_' * inplace}` of each tensor of a list."
    return each


def _function(operation: str, inplace: bool) -> Callable[..., Any]:
    """Return the function for one tensor of the list."""
    if operation == "norm":
        return _norm
    if operation == "powsum":
        return lambda tensor, ord=2, dtype=None: (tensor.abs() ** ord).sum(dtype=dtype)
    if operation in _BOUNDED:
        bound = "max" if operation == "clamp_max" else "min"
        method = getattr(plait.Tensor, "clamp_" if inplace else "clamp")
        return lambda tensor, value: method(tensor, **{bound: value})
    if operation in ("maximum", "minimum"):
        return _bounded(operation, inplace)
    if operation == "pow" and not inplace:
        power: Callable[..., Any] = plait.pow
        return power
    name = operation + "_" * inplace
    if operation in ("addcmul", "addcdiv"):
        scaled = getattr(plait.Tensor, name)
        return lambda tensor, one, two, value=1: scaled(tensor, one, two, value=value)
    return lambda tensor, *others, **options: getattr(tensor, name)(*others, **options)


def _bounded(operation: str, inplace: bool) -> Callable[..., Any]:
    function = getattr(plait, operation)
    option = "min" if operation == "maximum" else "max"

    def one(tensor: Any, other: Any) -> Any:
        if not plait.is_tensor(other):
            result = plait.clamp(tensor, **{option: other})
        else:
            result = function(tensor, other)
        return tensor.copy_(result) if inplace else result

    return one


def _norm(tensor: Any, ord: float = 2, dtype: Any = None) -> Any:
    return plait.linalg.vector_norm(tensor, ord, dtype=dtype)


def _spread(name: str, value: Any, count: int) -> Sequence[Any]:
    """Return one value for each tensor: the items of a list, or the same value for all."""
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise RuntimeError(
                f"{name}: lists of one length are required, got {count} and {len(value)}"
            )
        return value
    if plait.is_tensor(value) and value.dim() == 1 and name in _SCALARS:
        return value.tolist()  # type: ignore[no-any-return]
    return [value] * count


# functions that take a tensor with one number for each tensor of the list
_SCALARS = frozenset(
    f"_foreach_{name}{end}" for name in ("addcmul", "addcdiv") for end in ("", "_")
)
