"""The names that PyTorch gives functions, types and constants in the code of a graph."""

from __future__ import annotations

import builtins
import functools
import importlib
import keyword
import math
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import plait
from plait._aliases import is_alias
from plait_abi.binding import Function
from plait_abi.origins import module_of

# functions of `torch.nn.functional` that are PyTorch's own in C++, under other names
_OF_NN = (
    "avg_pool2d", "avg_pool3d", "elu_", "gelu", "hardtanh_", "leaky_relu_", "linear", "one_hot",
    "scaled_dot_product_attention", "softplus", "softshrink",
)  # fmt: skip
_OF_TORCH = (
    "adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu_", "channel_shuffle", "conv1d",
    "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_similarity", "hardshrink", "pairwise_distance", "pdist", "pixel_shuffle",
    "pixel_unshuffle", "prelu", "relu_", "rrelu_", "selu_", "threshold_",
)  # fmt: skip
# functions of `torch` that are Python in PyTorch
_OF_FUNCTIONAL = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes",
    "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "lu", "meshgrid",
    "norm", "split", "stft", "tensordot", "unique", "unique_consecutive", "unravel_index",
)  # fmt: skip
# functions that accept objects of any kind, and record nothing
_PLAIN = frozenset({"is_tensor", "is_storage", "typename", "compile", "is_fx_tracing"})

_RESERVED = frozenset({
    *keyword.kwlist, "inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree", "self",
})  # fmt: skip


def is_reserved(name: str) -> bool:
    """Return whether generated code gives the name another meaning."""
    return name in _RESERVED


@functools.cache
def functions() -> dict[int, tuple[Any, str]]:
    """Return the functions of `torch` and its namespaces, and PyTorch's names of them, by id."""
    from plait_torch._module_names import PLACES

    results: dict[int, tuple[Any, str]] = {}

    def add(place: str, rename: Any) -> None:
        for source in PLACES[place]:
            if ":" in source:
                continue  # names that refuse
            module = importlib.import_module(source)
            for name in dir(module):
                if name.startswith("__") or (module is plait and is_alias(name)):
                    continue  # packages are not imported for this
                value = getattr(module, name, None)
                if callable(value) and not isinstance(value, type) and name not in _PLAIN:
                    home = module_of(value) if hasattr(value, "__module__") else ""
                    if home.startswith("plait") and getattr(value, "__name__", name) == name:
                        results.setdefault(id(value), (value, rename(name)))

    functional = plait.nn.functional
    own = {
        name: f"torch._C._nn.{name}" if name in _OF_NN else f"torch.{name}"
        for name in (*_OF_NN, *_OF_TORCH)
    }
    for name in dir(functional):
        value = getattr(functional, name)
        if callable(value) and not isinstance(value, type) and not name.startswith("_"):
            if name == "logsigmoid":
                own[name] = "torch._C._nn.log_sigmoid"
            if name in own:
                results[id(value)] = (value, own[name])
            elif isinstance(value, (FunctionType, Function)):
                results[id(value)] = (value, f"torch.nn.functional.{name}")
    add("torch", lambda name: f"torch.functional.{name}" if name in _OF_FUNCTIONAL
        else f"torch.{name}")  # fmt: skip
    for place in ("torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"):
        add(place, lambda name, place=place: f"{place}.{name}")
    return results


def qualified(target: Any) -> str:
    """Return the dotted name of a function."""
    known = functions().get(id(target))
    if known is not None:
        return known[1]
    name = getattr(target, "__name__", type(target).__name__)
    module = module_of(target) if hasattr(target, "__module__") else None
    if getattr(builtins, name, None) is target:
        return f"builtins.{name}"
    if module in (None, "plait_abi", "plait_core"):
        return f"torch.{name}"
    return f"{target.__module__}.{getattr(target, '__qualname__', name)}".replace(
        ".<locals>", ""
    ).replace("<lambda>", "_lambda")


@dataclass(frozen=True)
class _Name:
    """A function of `torch` in a pickle."""

    name: str


def pickled(target: Any) -> Any:
    """Return what stands for a target in a pickle: the name of a function of `torch`."""
    known = functions().get(id(target))
    return target if known is None else _Name(known[1])


def unpickled(target: Any) -> Any:
    """Return the target that `pickled` was given."""
    if not isinstance(target, _Name):
        return target
    return next(value for value, name in functions().values() if name == target.name)


def type_name(kind: Any) -> str:
    """Return the name of an annotation."""
    if kind is plait.Tensor:
        return "torch.Tensor"
    if isinstance(kind, type) and not hasattr(kind, "__origin__"):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return f"{kind.__module__}.{kind.__qualname__}"
    return repr(kind)


def constant(value: Any, text: Any = repr) -> str:
    """Return a constant as an expression; dtypes and devices by PyTorch's names."""
    kind = type(value)
    if kind in (tuple, list, dict) or hasattr(kind, "_fields"):
        if kind is dict:
            return "{" + ", ".join(f"{k!r}: {constant(v)}" for k, v in value.items()) + "}"
        parts = [constant(each) for each in value]
        if kind is list:
            return "[" + ", ".join(parts) + "]"
        inner = "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
        return inner if kind is tuple else f"{kind.__module__}_{kind.__name__}{inner}"
    if isinstance(value, slice):
        return f"slice({constant(value.start)}, {constant(value.stop)}, {constant(value.step)})"
    if isinstance(value, float) and not math.isfinite(value):
        return str(text(value))
    if isinstance(value, plait.dtype):
        return f"torch.{value.name}"
    if isinstance(value, plait.device):
        index = f", index={value.index}" if value.index is not None else ""
        return f"device(type={value.type!r}{index})"
    result = text(value)
    return f"torch.{result[6:]}" if result.startswith("plait.") else str(result)
