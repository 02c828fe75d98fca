"""The three kinds of arrays that optimizers write to, distinguished by their type.

- *plait*: the class has ``__plait_tensor__``. State is made by the operator ``optimizer_state``.
- *torch*: its tensors do not support DLPack while they require grad, so a detached alias is passed
    and the version counter is incremented afterwards through ``torch.autograd.graph``.
- *array*: anything else with ``__dlpack__``, such as NumPy arrays. State is made by the array's own
  ``zeros_like``, or by the operator if there is none.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from plait_optim._component import operator

Sort = Literal["plait", "torch", "array"]


def _sort_of(cls: type) -> Sort | None:
    if hasattr(cls, "__plait_tensor__"):
        return "plait"
    if not hasattr(cls, "__dlpack__"):
        return None
    torch = sys.modules.get("torch")
    return "torch" if torch is not None and issubclass(cls, torch.Tensor) else "array"


sort_of: Callable[[type], Sort | None] = functools.lru_cache(maxsize=256)(_sort_of)
"""The kind of arrays of a class, or None if they are not arrays."""


def type_name(value: object) -> str:
    """Return a class with its module, as in ``numpy.ndarray``."""
    cls = type(value)
    return (
        cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    )


def exposed(*lists: list[Any]) -> Sequence[list[Any]]:
    """Return lists of objects that operators accept, on the same bytes."""
    if not _any_torch(itertools.chain.from_iterable(lists)):
        return lists
    return [[a.detach() if sort_of(type(a)) == "torch" else a for a in each] for each in lists]


def mark_written(arrays: list[Any]) -> None:
    """Record writes to torch's tensors in its version counters; plait's runtime has seen those to
    its own.
    """
    if _any_torch(arrays):
        tensors = [a for a in arrays if sort_of(type(a)) == "torch"]
        sys.modules["torch"].autograd.graph.increment_version(tensors)


def _any_torch(arrays: Iterable[Any]) -> bool:
    return "torch" in sys.modules and "torch" in map(sort_of, {*map(type, arrays)})


def filled_like(param: Any, fill: float = 0.0) -> Any:
    """Return arrays filled with ``fill`` as state of ``param``, of its own library if possible."""
    if sort_of(type(param)) == "plait":
        return operator("optimizer_state")(param, fill)
    make = library_function(type(param), "full_like" if fill else "zeros_like")
    [[alias]] = exposed([param])
    if make is None:
        return operator("optimizer_state")(alias, fill)
    return make(alias, fill) if fill else make(alias)


def _library_function(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        module = getattr(sys.modules.get(base.__module__.partition(".")[0]), name, None)
        if module is not None:
            return module
    return None


library_function: Callable[[type, str], Any] = functools.lru_cache(maxsize=256)(_library_function)
"""The function of a name in the library of a class of arrays, or None."""


def number(handle: Any) -> float:
    """Return the number in an operator's 0-d result."""
    if hasattr(handle, "item"):
        return float(handle.item())
    for name in ("numpy", "plait_core", "torch"):
        read = getattr(sys.modules.get(name), "from_dlpack", None)
        if read is not None:
            return float(read(handle))
    raise RuntimeError("reading a norm needs one of numpy, plait_core and torch to be imported")


def moved_to(value: Any, array: Any) -> Any:
    """Return an array on the device of another one: itself, or a copy."""
    if sort_of(type(value)) == "plait":
        return value.to(array.device if sort_of(type(array)) == "plait" else "cpu")
    if sort_of(type(array)) != "plait" or array.is_cpu:
        return value
    return library_function(type(array), "from_dlpack")(value).to(array.device)


def load(array: Any, value: Any) -> None:
    """Copy ``value``, which may be on another device, into an array, cast to its dtype."""
    [[target, source]] = exposed([array, value])
    operator("optimizer_state_load")(target, moved_to(source, target))


def load_into(param: Any, value: Any) -> Any:
    """Return a copy of ``value`` as state of ``param``: in its library and dtype."""
    if sort_of(type(param)) == sort_of(type(value)) == "plait" and param.dtype.is_complex:
        copied: Any = value.detach().to(dtype=param.dtype, device=param.device, copy=True)
        return copied
    state = filled_like(param)
    load(state, value)
    return state
