"""Operators of TorchScript on numbers, texts and containers, and the primitives of its compiler."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import plait
from plait_torch._torchscript._codes import dtype_number, layout_number
from plait_torch._torchscript._errors import ScriptError, raised


def _divided(a: Any, b: Any, rounding_mode: Any = None) -> Any:
    if rounding_mode == "floor":
        return a // b
    return math.trunc(a / b) if rounding_mode == "trunc" else a / b


def _item(owner: Any, key: Any) -> Any:
    """``owner[key]`` for containers, texts, and tensors by a number."""
    if isinstance(key, plait.Tensor):
        key = key.item()
    return owner[key]


def _set(owner: Any, key: Any, value: Any) -> Any:
    owner[key] = value
    return owner


def _deleted(owner: Any, key: Any) -> None:
    del owner[key]


def _sliced(owner: Any, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return owner[start:end:step]


def _formatted(text: str, *args: Any) -> str:
    """``text.format(*args)`` without attributes and indices: only ``{}`` is a place."""
    parts = text.split("{}")
    if len(parts) - 1 > len(args):
        raise raised(f"format: {len(parts) - 1} values are required, got {len(args)}")
    result = parts[0]
    for value, rest in zip(args, parts[1:], strict=False):
        result += shown(value) + rest
    return result


def shown(value: Any) -> str:
    """Return the text of a value, as ``str`` gives it."""
    return str(value)


def _percent(text: str, *args: Any) -> str:
    return text % (args[0] if len(args) == 1 and isinstance(args[0], tuple) else tuple(args))


def _appended(owner: list[Any], value: Any) -> list[Any]:
    owner.append(value)
    return owner


def _extended(owner: list[Any], values: Any) -> None:
    owner.extend(values)


def _extended_by(owner: list[Any], values: Any) -> list[Any]:
    owner += values
    return owner


def _sort(owner: list[Any], reverse: bool = False) -> None:
    owner.sort(reverse=reverse)


def _sorted(values: Any, reverse: bool = False) -> list[Any]:
    return sorted(values, reverse=reverse)


def _updated(owner: dict[Any, Any], other: Any) -> None:
    owner.update(other)


def _text_method(name: str) -> Callable[..., Any]:
    def call(text: str, *args: Any, **kwargs: Any) -> Any:
        if type(text) is not str:
            raise ScriptError(f"TorchScript: {name}: a text is required, got {type(text).__name__}")
        return getattr(text, name)(*args, **kwargs)

    return call


def _method(name: str, *kinds: type) -> Callable[..., Any]:
    def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
        if type(owner) not in kinds:
            raise ScriptError(f"TorchScript: {name}: a {type(owner).__name__} is not a container")
        return getattr(owner, name)(*args, **kwargs)

    return call


def _views(name: str) -> Callable[[Any], list[Any]]:
    def call(owner: Any) -> list[Any]:
        if type(owner) is not dict:
            raise ScriptError(f"TorchScript: {name}: a dict is required")
        result = list(getattr(owner, name)())
        return result

    return call


def _warn(message: Any, *args: Any, **kwargs: Any) -> None:
    import warnings

    warnings.warn(str(message), UserWarning, stacklevel=3)


def _one(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda value: function(value)


def _round_even(value: Any, *, decimals: int = 0) -> Any:
    return float(round(value, decimals)) if decimals else float(round(value))


def _power(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int and b < 0:
        return float(a) ** b
    return a**b


def _range_length(low: int, high: int, step: int) -> int:
    return len(range(low, high, step))


def _derived(index: int, start: int, step: int) -> int:
    return start + index * step


def _copy(value: Any) -> Any:
    return type(value)(value)


def _dict(pairs: Any = ()) -> dict[Any, Any]:
    return dict(pairs)


def _list(value: Any = ()) -> list[Any]:
    return list(value)


def _maximum(*values: Any) -> Any:
    return max(*values) if len(values) > 1 else max(values[0])


def _minimum(*values: Any) -> Any:
    return min(*values) if len(values) > 1 else min(values[0])


def _infer_size(a: Any, b: Any) -> list[int]:
    return list(plait.broadcast_shapes(tuple(a), tuple(b)))


def _log(value: Any, base: Any = None) -> float:
    return math.log(value) if base is None else math.log(value) / math.log(base)


def _same(value: Any, *others: Any) -> Any:
    return value


_MATHEMATICS = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "degrees", "erf",
    "erfc", "exp", "expm1", "factorial", "floor", "gcd", "isfinite", "isinf", "isnan", "lgamma",
    "log10", "log1p", "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "atan2",
    "copysign", "fabs", "fmod", "gamma", "ldexp", "modf", "frexp",
)  # fmt: skip
_TEXTS = (
    "capitalize", "center", "endswith", "expandtabs", "find", "isalnum", "isalpha", "isdecimal",
    "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle",
    "isupper", "join", "ljust", "lower", "lstrip", "partition", "replace", "rfind", "rindex",
    "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip",
    "swapcase", "title", "upper", "zfill",
)  # fmt: skip

TABLE: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in _MATHEMATICS},
    **{name: _text_method(name) for name in _TEXTS},
    "add": lambda a, b, alpha=1: a + (b if alpha == 1 else b * alpha),
    "sub": lambda a, b, alpha=1: a - (b if alpha == 1 else b * alpha),
    "add_": _extended_by,
    "mul": operator.mul,
    "div": _divided,
    "true_divide": operator.truediv,
    "floordiv": operator.floordiv,
    "floor_divide": operator.floordiv,
    "__round_to_zero_floordiv": lambda a, b: math.trunc(a / b),
    "remainder": operator.mod,
    "mathremainder": math.remainder,
    "divmod": divmod,
    "pow": _power,
    "log": _log,
    "neg": operator.neg,
    "positive": operator.pos,
    "abs": abs,
    "round": _round_even,
    "bitwise_not": operator.invert,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "__lshift__": operator.lshift,
    "__rshift__": operator.rshift,
    "__is__": operator.is_,
    "__isnot__": operator.is_not,
    "__not__": operator.not_,
    "__contains__": lambda owner, key: key in owner,
    "__getitem__": _item,
    "__range_length": _range_length,
    "__derive_index": _derived,
    "_set_item": _set,
    "Delete": _deleted,
    "len": len,
    "slice": _sliced,
    "select": _item,
    "append": _appended,
    "extend": _extended,
    "insert": _method("insert", list),
    "remove": _method("remove", list),
    "reverse": _method("reverse", list),
    "clear": _method("clear", list, dict),
    "pop": _method("pop", list, dict),
    "popitem": _method("popitem", dict),
    "get": _method("get", dict),
    "setdefault": _method("setdefault", dict),
    "update": _updated,
    "keys": _views("keys"),
    "values": _views("values"),
    "items": _views("items"),
    "index": _method("index", list, str),
    "count": _method("count", list, str),
    "copy": _copy,
    "sort": _sort,
    "sorted": _sorted,
    "list": _list,
    "dict": _dict,
    "any": any,
    "all": all,
    "sum": sum,
    "max": _maximum,
    "min": _minimum,
    "str": shown,
    "ord": ord,
    "chr": chr,
    "hex": hex,
    "oct": oct,
    "bin": bin,
    "hash": hash,
    "format": _formatted,
    "percentFormat": _percent,
    "warn": _warn,
    "Int": int,
    "Float": float,
    "Bool": bool,
    "Complex": complex,
    "_infer_size": _infer_size,
    "_unwrap_optional": _same,
    "is_scripting": lambda: True,
    "has_torch_function": lambda *args: False,
    "wait": lambda future: future.wait(),
    "numel": len,
}


def _raise(message: Any, kind: Any = "") -> None:
    raise raised(str(message), str(kind or ""))


def as_number(value: Any) -> Any:
    """Return a number, also for a tensor of one element."""
    return value.item() if isinstance(value, plait.Tensor) else value


def _nested(value: Any, *more: Any) -> Any:
    return value.tolist()


def _dtype_number(value: Any) -> int:
    return dtype_number(value.dtype)


PRIMITIVES: dict[str, Callable[..., Any]] = {
    "NumToTensor": lambda value: plait.tensor(value),
    "ImplicitTensorToNum": as_number,
    "RaiseException": _raise,
    "Print": print,
    "abs": abs,
    "data": lambda x: x.detach(),
    "device": lambda x: x.device,
    "dtype": _dtype_number,
    "layout": lambda x: layout_number(x.layout),
    "grad": lambda x: x.grad,
    "id": id,
    "is_cpu": lambda x: x.device.type == "cpu",
    "is_cuda": lambda x: x.device.type == "cuda",
    "is_meta": lambda x: x.device.type == "meta",
    "is_mkldnn": lambda x: False,
    "is_quantized": lambda x: False,
    "is_sparse": lambda x: x.layout != plait.strided,
    "is_nested": lambda x: False,
    "itemsize": lambda x: x.dtype.itemsize,
    "max": _maximum,
    "min": _minimum,
    "name": lambda x: getattr(x, "name", None),
    "ndim": lambda x: x.ndim,
    "rangelist": lambda n: list(range(n)),
    "requires_grad": lambda x: x.requires_grad,
    "shape": lambda x: list(x.shape),
    "tolist": _nested,
    "type": lambda device: device.type,
    "index": lambda device: device.index,
    "unchecked_unwrap_optional": _same,
    "unchecked_cast": _same,
    "VarConcat": lambda *args: plait.cat(args[:-1], args[-1]),
    "VarStack": lambda *args: plait.stack(args[:-1], args[-1]),
    "TupleUnpack": _same,
}
