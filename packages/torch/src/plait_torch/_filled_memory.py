"""`torch.utils.deterministic`: values for new memory while algorithms must be deterministic.

With `use_deterministic_algorithms(True)`, `torch.empty`, its kin, and `resize_` fill memory that
they would leave as it is: floats with NaN, integers with their largest value, bool with True. A
program that reads such memory by mistake then fails in the same way in each run.
``torch.utils.deterministic.fill_uninitialized_memory = False`` turns this off.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import plait

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory = True

_FUNCTIONS = ("empty", "empty_like", "empty_permuted", "empty_strided")
_METHODS = ("new_empty", "new_empty_strided")
# the functions and methods before they were replaced, by the object that holds them
_plain: dict[tuple[Any, str], Any] = {}


def _is_asked_for() -> bool:
    module = sys.modules.get("torch.utils.deterministic")
    asked = getattr(module, "fill_uninitialized_memory", fill_uninitialized_memory)
    if not isinstance(asked, bool):
        raise RuntimeError(
            "torch.utils.deterministic.fill_uninitialized_memory must be a bool; got "
            f"{type(asked).__name__}"
        )
    return asked


def _value(dtype: Any) -> Any:
    if dtype.is_complex:
        return complex("nan")  # with an imaginary part of 0
    if dtype.is_floating_point:
        return float("nan")
    return True if dtype == plait.bool else plait.iinfo(dtype).max


def _fill(tensor: Any) -> None:
    if tensor.device.type != "meta" and tensor.numel():
        tensor.detach().fill_(_value(tensor.dtype))


def _filling(plain: Any) -> Any:
    def filled(*args: Any, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        if _is_asked_for():
            _fill(result)
        return result

    return functools.update_wrapper(filled, plain, updated=())


def _filling_the_rest(plain: Any) -> Any:
    """Return `resize_` that fills the elements which were not there before."""

    def resize_(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.numel()
        result = plain(self, *args, **kwargs)
        if result.numel() > before and _is_asked_for():
            _fill(result.as_strided((result.numel(),), (1,))[before:])
        return result

    return functools.update_wrapper(resize_, plain, updated=())


def set_filling(on: bool) -> None:
    """Replace the functions and methods that leave memory as it is, or put them back."""
    if on and not _plain:
        torch = sys.modules.get("torch")
        for name in _FUNCTIONS if torch is not None else ():
            _plain[torch, name] = getattr(torch, name)
        for name in (*_METHODS, "resize_"):
            _plain[plait.Tensor, name] = getattr(plait.Tensor, name)
        for (holder, name), plain in _plain.items():
            wrapped = _filling_the_rest(plain) if name == "resize_" else _filling(plain)
            setattr(holder, name, wrapped)
    elif not on:
        for (holder, name), plain in _plain.items():
            if holder is plait.Tensor:
                setattr(holder, name, plain)
            else:
                delattr(holder, name)  # what the module means by the name
        _plain.clear()
