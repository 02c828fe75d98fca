"""`torch.utils.data._utils.collate`: the collation of each type, which libraries add theirs to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import plait
from plait_data import default_collate, default_convert
from plait_data.collate import register

__all__ = [
    "collate",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
    "default_collate",
    "default_collate_err_msg_format",
    "default_collate_fn_map",
    "default_convert",
    "np_str_obj_array_pattern",
]

# the kinds of NumPy's dtypes that tensors do not have: texts and objects
np_str_obj_array_pattern = re.compile(r"[SaUO]")

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Return the tensors as one with a new first dimension."""
    return plait.stack(list(batch))


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Return the arrays as one tensor with a new first dimension."""
    return default_collate(batch, convert=plait.from_numpy)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Return NumPy's numbers as a tensor."""
    return plait.as_tensor(np.asarray(batch))


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: Any = None) -> Any:
    """Return the numbers as a tensor of float64."""
    return plait.tensor(list(batch), dtype=plait.float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: Any = None) -> Any:
    """Return the numbers as a tensor."""
    return plait.tensor(list(batch))


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Return the texts as they are."""
    return batch


class _FunctionMap(dict[Any, Callable[..., Any]]):
    """Functions by types; what a program adds counts for `default_collate`, too."""

    def __setitem__(self, kind: Any, function: Callable[..., Any]) -> None:
        super().__setitem__(kind, function)
        for each in kind if isinstance(kind, tuple) else (kind,):
            register(each, lambda samples: function(samples, collate_fn_map=self))

    def update(self, *args: Any, **kwargs: Any) -> None:
        for kind, function in dict(*args, **kwargs).items():
            self[kind] = function

    def setdefault(self, kind: Any, function: Any = None) -> Any:
        if kind not in self:
            self[kind] = function
        return self[kind]


default_collate_fn_map = _FunctionMap(
    {
        plait.Tensor: collate_tensor_fn,
        np.ndarray: collate_numpy_array_fn,
        (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
        float: collate_float_fn,
        int: collate_int_fn,
        str: collate_str_fn,
        bytes: collate_str_fn,
    }
)


def collate(batch: Any, *, collate_fn_map: Mapping[Any, Any] | None = None) -> Any:
    """Return samples as a batch, by functions for the types of their parts.

    Args:
        batch: the samples; mappings, sequences and named tuples are collated part by part.
        collate_fn_map: functions ``f(samples, *, collate_fn_map)`` by type, or tuples of types.

    Raises:
        RuntimeError: if sequences are of several lengths.
        TypeError: if there is no function for a type.

    Example:
        >>> from plait_torch._collate import collate
        >>> functions = {int: lambda samples, *, collate_fn_map: sum(samples)}
        >>> collate([{"a": (1, 2)}, {"a": (10, 20)}], collate_fn_map=functions)
        {'a': [11, 22]}
    """
    first = batch[0]
    kind = type(first)
    functions = collate_fn_map or {}
    matching = [kind] if kind in functions else [t for t in functions if isinstance(first, t)]
    if matching:
        return functions[matching[0]](batch, collate_fn_map=collate_fn_map)

    def parts(columns: Any) -> list[Any]:
        return [collate(list(column), collate_fn_map=collate_fn_map) for column in columns]

    if isinstance(first, Mapping):
        columns = parts([sample[key] for sample in batch] for key in first)
        return dict(zip(first, columns, strict=True))
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*parts(zip(*batch, strict=True)))
    if isinstance(first, Sequence) and not isinstance(first, (str, bytes)):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("collate: sequences of one length are required in a batch")
        return parts(zip(*batch, strict=True))
    raise TypeError(default_collate_err_msg_format.format(kind))
