"""Arithmetic with parameters, by their own library.

For optimizers that need more than one fused pass. Parameters must be of a library that has
``concatenate`` and arithmetic: NumPy's, torch's, plait's. Halves are computed in float32 and stored
as halves, as in the fused steps.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import plait_abi
from plait_optim._arrays import (
    exposed,
    filled_like,
    library_function,
    load,
    load_into,
    sort_of,
    type_name,
)
from plait_optim._component import grad_mode
from plait_optim._sparse import is_sparse


def check_arithmetic(optimizer: object, params: list[Any]) -> None:
    """Raise for arrays without arithmetic."""
    for param in params:
        if library_function(type(param), "concatenate") is None:
            raise TypeError(
                f"{type(optimizer).__name__} computes with its parameters, and there is no "
                f"`concatenate` beside {type_name(param)}: give it arrays of NumPy, torch or plait"
            )


def dtype_name(array: Any) -> str:
    """Return the name of an array's dtype without its library's: ``float32``."""
    return str(array.dtype).rpartition(".")[2]


def zeros(param: Any, shape: Any) -> Any:
    """Return zeros of a shape in the library and dtype, and on the device of a parameter."""
    return _zeros(param, shape, param.dtype)


def _zeros(param: Any, shape: Any, dtype: Any) -> Any:
    place = {} if sort_of(type(param)) == "array" else {"device": param.device}
    return library_function(type(param), "zeros")(shape, dtype=dtype, **place)


def float32_number(param: Any, value: float) -> Any:
    """Return a 0-d tensor of float32 on the device of a parameter."""
    return _zeros(param, (), library_function(type(param), "float32")).fill_(value)


def wide(array: Any) -> Any:
    """Return an array for computations: for halves a copy in float32, else the array itself."""
    if not dtype_name(array).endswith("float16"):
        return array
    copy = _zeros(array, tuple(array.shape), library_function(type(array), "float32"))
    load(copy, array)
    return copy


@contextmanager
def widened(*arrays: Any) -> Iterator[list[Any]]:
    """A context manager with arrays to change in place; copies of halves are written back at its
    end.
    """
    [own] = exposed(list(arrays))
    wide_arrays = [wide(array) for array in own]
    yield wide_arrays
    for array, changed in zip(own, wide_arrays, strict=True):
        if changed is not array:
            load(array, changed)


def narrowed(param: Any, value: Any) -> Any:
    """Return a result in the dtype of a parameter, to be stored."""
    if value.dtype == param.dtype:
        return value
    copy = zeros(param, tuple(value.shape))
    load(copy, value)
    return copy


def load_array(param: Any, name: str, value: Any, *, shaped: bool) -> Any:
    """Return a copy of a loaded value of the state of ``param``.

    Args:
        param: the parameter.
        name: the value's name in the state, or "" within a list.
        value: an array; any other object is copied as it is.
        shaped: whether the value must have the shape of the parameter.

    Raises:
        ShapeError: if it must and does not.
    """
    kind, own = sort_of(type(value)), sort_of(type(param))
    sparse = is_sparse(value)
    if kind is None and not sparse:
        return copy.deepcopy(value)
    cast = "float" in dtype_name(param) and name != "step"
    same_shape = not sparse and tuple(value.shape) == tuple(param.shape)
    if (shaped and not sparse) or (cast and same_shape and "float" in dtype_name(value)):
        return load_into(param, value)
    if not sparse and kind != own:  # of a library that a program's own step may need
        return copy.deepcopy(value)
    dtype = param.dtype if cast else value.dtype
    if kind == "array":
        return value.astype(dtype) if hasattr(value, "astype") else copy.deepcopy(value)
    place = {} if name == "step" else {"device": param.device}
    with grad_mode(False):
        return value.detach().to(dtype=dtype, copy=True, **place)


def own_gradients(optimizer: object, params: list[Any], grads: list[Any]) -> list[Any]:
    """Return copies of the gradients, each in the library of its parameter."""
    copies = []
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        shapes = tuple(param.shape), tuple(grad.shape) if hasattr(grad, "shape") else None
        if shapes[1] is not None and shapes[0] != shapes[1]:
            raise plait_abi.ShapeError(
                f"{type(optimizer).__name__}: `grads[{i}]` must have the shape of `params[{i}]`, "
                f"{shapes[0]}; got {shapes[1]}"
            )
        copy = wide(filled_like(param))
        load(copy, grad)
        copies.append(copy)
    return copies


def root_of_sum(squares: Any) -> Any:
    """Return the root of a sum: a 0-d array, or NumPy's number, that stays on its device."""
    return squares.sum() ** 0.5
