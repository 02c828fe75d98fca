"""Plait's versions of NumPy's functions, with NumPy's arguments."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import plait_core._core as _core
from plait_abi import binding
from plait_core._core import Tensor, is_tensor


@functools.cache
def _op(name: str) -> Any:
    return binding.operator(name)


def _xp() -> Any:
    from plait_core import array_api

    return array_api


def _tensor(value: Any) -> Tensor:
    from plait_core import _creation

    return _creation.as_tensor(value)


def _floating(a: Tensor) -> Tensor:
    inexact = a.dtype.is_floating_point or a.dtype.is_complex
    return a if inexact else a.to(_core.get_default_dtype())


# ---- what is known of an array -------------------------------------------------------------------
def _size(a: Any, axis: int | None = None) -> int:
    return a.numel() if axis is None else a.shape[axis]  # type: ignore[no-any-return]


# ---- reductions ----------------------------------------------------------------------------------
def _total(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
        result: Tensor = getattr(_xp(), name)(_tensor(a), axis=axis, dtype=dtype, keepdims=keepdims)
        return result

    return function


def _reduction(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        result: Tensor = getattr(_xp(), name)(_tensor(a), axis=axis, keepdims=keepdims)
        return result

    return function


def _mean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    x = _floating(_tensor(a)) if dtype is None else _tensor(a).to(dtype=binding.dtype(dtype))
    return _xp().mean(x, axis=axis, keepdims=keepdims)  # type: ignore[no-any-return]


def _spread(name: str) -> Callable[..., Tensor]:
    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
        correction: float | None = None,
    ) -> Tensor:
        x = _floating(_tensor(a)) if dtype is None else _tensor(a).to(dtype=binding.dtype(dtype))
        less = float(ddof if correction is None else correction)
        result: Tensor = getattr(_xp(), name)(x, axis=axis, correction=less, keepdims=keepdims)
        return result

    return function


def _scan(name: str) -> Callable[..., Tensor]:
    def function(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
        x = _tensor(a)
        flat = x.reshape(-1) if axis is None else x
        result: Tensor = getattr(_xp(), name)(flat, axis=0 if axis is None else axis, dtype=dtype)
        return result

    return function


def _ordered(name: str) -> Callable[..., Tensor]:
    def function(
        a: Any, axis: int | None = -1, kind: Any = None, *, stable: bool | None = None
    ) -> Tensor:
        x = _tensor(a)
        flat = x.reshape(-1) if axis is None else x
        result: Tensor = getattr(_xp(), name)(flat, axis=-1 if axis is None else axis)
        return result

    return function


def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Tensor:
    low, high = a_min if min is None else min, a_max if max is None else max
    return _tensor(a) if low is None and high is None else _op("clamp")(_tensor(a), low, high)


# ---- shapes --------------------------------------------------------------------------------------
def _concatenate(arrays: Any, axis: int | None = 0, *, dtype: Any = None) -> Tensor:
    parts = [_tensor(each) for each in arrays]
    result: Tensor = _xp().concat(parts, axis=axis)
    return result if dtype is None else result.to(dtype=binding.dtype(dtype))


def _stack(arrays: Any, axis: int = 0) -> Tensor:
    return _xp().stack([_tensor(each) for each in arrays], axis=axis)  # type: ignore[no-any-return]


def _joined(name: str) -> Callable[..., Tensor]:
    def function(tup: Any) -> Tensor:
        return _op(name)([_tensor(each) for each in tup])  # type: ignore[no-any-return]

    return function


def _reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    if order not in ("C", "F"):
        raise TypeError(f"np.reshape: on tensors `order` must be C or F, got {order!r}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    x = _tensor(a)
    if order == "F":
        x, sizes = _transpose(x), sizes[::-1]
    result: Tensor = _xp().reshape(x, sizes, copy=copy)
    return _transpose(result) if order == "F" else result


def _ravel(a: Any, order: str = "C") -> Tensor:
    return _reshape(a, -1, order)


def _transpose(a: Any, axes: Any = None) -> Tensor:
    return _op("permute")(a, tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))  # type: ignore[no-any-return]


def _squeeze(a: Any, axis: Any = None) -> Tensor:
    return a.squeeze() if axis is None else _xp().squeeze(a, axis)  # type: ignore[no-any-return]


def _expand_dims(a: Any, axis: Any) -> Tensor:
    if isinstance(axis, int):
        return _xp().expand_dims(a, axis)  # type: ignore[no-any-return]
    ndim = a.ndim + len(axis)
    for each in sorted(each % ndim for each in axis):
        a = a.unsqueeze(each)
    return a  # type: ignore[no-any-return]


def _repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    x = _tensor(a)
    count = repeats if isinstance(repeats, int) else _tensor(repeats)
    return _xp().repeat(x, count, axis=axis)  # type: ignore[no-any-return]


def _tile(A: Any, reps: Any) -> Tensor:
    return _xp().tile(_tensor(A), (reps,) if isinstance(reps, int) else tuple(reps))  # type: ignore[no-any-return]


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    x, count = _tensor(ary), indices_or_sections
    if isinstance(count, int) and (count < 1 or x.shape[axis] % count):
        raise ValueError(f"np.split: equal parts are required, got {count} of size {x.shape[axis]}")
    return _array_split(x, count, axis)


def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    where = indices_or_sections
    parts = where if isinstance(where, int) else tuple(map(operator.index, where))
    return list(_op("tensor_split")(_tensor(ary), parts, axis))


def _like(name: str) -> Callable[..., Tensor]:
    def function(prototype: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
        result: Tensor = getattr(_xp(), name)(prototype, dtype=dtype, device=device)
        return result

    return function


def _full_like(a: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    return _xp().full_like(a, fill_value, dtype=dtype)  # type: ignore[no-any-return]


# ---- searching -----------------------------------------------------------------------------------
def _where(condition: Any, *values: Any) -> Any:
    if not values:
        return _xp().nonzero(condition)
    x, y = (each if is_tensor(each) or not isinstance(each, list) else _tensor(each)
            for each in values)  # fmt: skip
    return _op("where")(_tensor(condition), x, y)


def _take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    x, index = _tensor(a), _tensor(indices)
    flat = x.reshape(-1) if axis is None else x
    return _xp().take(flat, index, axis=0 if axis is None else axis)  # type: ignore[no-any-return]


def _take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Tensor:
    return _xp().take_along_axis(_tensor(arr), _tensor(indices), axis=axis)  # type: ignore[no-any-return]


def _searchsorted(a: Any, v: Any, side: str = "left") -> Tensor:
    return _op("searchsorted")(_tensor(a), v, side=side)  # type: ignore[no-any-return]


def _unique(
    ar: Any, *, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:
    from plait_core._functions._unique import unique

    return unique(ar, return_inverse=return_inverse, return_counts=return_counts, dim=axis)


# ---- products ------------------------------------------------------------------------------------
def _dot(a: Any, b: Any) -> Tensor:
    x, y = _tensor(a), _tensor(b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if x.ndim <= 2 and y.ndim <= 2:
        return x @ y
    return _tensordot(x, y, ([-1], [max(y.ndim - 2, 0)]))


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    return _xp().tensordot(_tensor(a), _tensor(b), axes=axes)  # type: ignore[no-any-return]


def _outer(a: Any, b: Any) -> Tensor:
    return _op("outer")(_tensor(a).reshape(-1), _tensor(b).reshape(-1))  # type: ignore[no-any-return]


def _at_least(name: str) -> Callable[..., Any]:
    def function(*arys: Any) -> Any:
        result = tuple(_op(name)(_tensor(each)) for each in arys)
        return result[0] if len(result) == 1 else result

    return function


def _namespace_function(space: str, name: str) -> Callable[..., Any]:
    def function(a: Any, *args: Any, **kwargs: Any) -> Any:
        return _op(f"{space}_{name}")(_tensor(a), *args, **kwargs)

    return function


def _svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    if compute_uv and not hermitian:
        return _op("linalg_svd")(_tensor(a), full_matrices)
    if hermitian:
        raise TypeError("np.linalg.svd: on tensors `hermitian` must be False")
    return _op("linalg_svdvals")(_tensor(a))


def _named(module: str, **functions: Callable[..., Any]) -> dict[tuple[str, str], Any]:
    return {(module, name): function for name, function in functions.items()}


_TABLE: dict[tuple[str, str], Callable[..., Any]] = {
    **_named(
        "numpy",
        array_split=_array_split,
        **{name: _at_least(name) for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
        broadcast_to=lambda array, shape: _op("broadcast_to")(
            array, (shape,) if isinstance(shape, int) else tuple(shape)
        ),
        clip=_clip,
        concatenate=_concatenate,
        concat=_concatenate,
        copy=lambda a, order="K": a.clone(),
        count_nonzero=_reduction("count_nonzero"),
        diagonal=lambda a, offset=0, axis1=0, axis2=1: _op("diagonal")(a, offset, axis1, axis2),
        diff=lambda a, n=1, axis=-1: _xp().diff(_tensor(a), n=n, axis=axis),
        dot=_dot,
        expand_dims=_expand_dims,
        flip=lambda m, axis=None: _xp().flip(m, axis=axis),
        full_like=_full_like,
        iscomplexobj=lambda x: x.dtype.is_complex,
        imag=lambda val: _op("imag")(val),
        isrealobj=lambda x: not x.dtype.is_complex,
        mean=_mean,
        moveaxis=lambda a, source, destination: _op("movedim")(a, source, destination),
        ndim=lambda a: a.ndim,
        nonzero=lambda a: _xp().nonzero(a),
        outer=_outer,
        permute_dims=_transpose,
        around=lambda a, decimals=0: _op("round")(_tensor(a), decimals=decimals),
        ravel=_ravel,
        real=lambda val: _op("real")(val),
        repeat=_repeat,
        reshape=_reshape,
        roll=lambda a, shift, axis=None: _xp().roll(a, shift, axis=axis),
        round=lambda a, decimals=0: _op("round")(_tensor(a), decimals=decimals),
        searchsorted=_searchsorted,
        shape=lambda a: tuple(a.shape),
        size=_size,
        split=_split,
        squeeze=_squeeze,
        stack=_stack,
        swapaxes=lambda a, axis1, axis2: _op("transpose")(a, axis1, axis2),
        take=_take,
        take_along_axis=_take_along_axis,
        tensordot=_tensordot,
        tile=_tile,
        transpose=_transpose,
        tril=lambda m, k=0: _op("tril")(m, k),
        triu=lambda m, k=0: _op("triu")(m, k),
        unique=_unique,
        where=_where,
        **{name: _total(name) for name in ("sum", "prod")},
        **{name: _reduction(name) for name in ("all", "any", "max", "min", "argmax", "argmin")},
        **{f"a{name}": _reduction(name) for name in ("max", "min")},
        **{name: _spread(name) for name in ("std", "var")},
        **{name: _scan(f"cumulative_{name[3:]}") for name in ("cumsum", "cumprod")},
        **{name: _ordered(name) for name in ("sort", "argsort")},
        **{name: _joined(name) for name in ("vstack", "hstack", "dstack", "column_stack")},
        **{f"{name}_like": _like(f"{name}_like") for name in ("zeros", "ones", "empty")},
    ),
    **{
        (f"numpy.{space}", name): _namespace_function(space, name)
        for space, names in {
            "fft": "fft ifft rfft irfft hfft ihfft fft2 ifft2 fftn ifftn rfftn irfftn "
            "fftshift ifftshift",
            "linalg": "cholesky det eigh eigvalsh inv matrix_power norm qr slogdet solve",
        }.items()
        for name in names.split()
    },
    ("numpy.linalg", "svd"): _svd,
}


def adapter(func: Any) -> Callable[..., Any] | None:
    """Return plait's version of a function of NumPy, with its arguments; None if there is none."""
    return _TABLE.get((func.__module__, func.__name__))
