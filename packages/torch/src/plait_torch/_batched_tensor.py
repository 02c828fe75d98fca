"""Tensors of all samples of a batch, which look like the tensor of one sample: the values inside a
function that `vmap` calls.

Operators on them arrive below the layer that records derivatives (`plait_core.overrides`), where a
batching rule makes one call for all samples.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from typing import Any

import plait
from plait.autograd import Function
from plait_abi.imports import import_module
from plait_core import overrides

__all__ = [
    "BatchedTensor",
    "begin",
    "end",
    "enter",
    "leave",
    "find_level",
    "innermost",
    "note_leaf",
    "recognized",
    "unwrapped",
    "wrapped",
]


_numbers = itertools.count(1)


class _Level:
    """One call of a function by `vmap`: its number, which is larger than those of the calls around
    it; the number of samples, and what random operators do.
    """

    def __init__(self, size: int, randomness: str) -> None:
        self.number = next(_numbers)
        self.size, self.randomness = size, randomness


class _Thread(threading.local):
    def __init__(self) -> None:
        self.levels: list[_Level] = []


_thread = _Thread()
_watched: dict[int, weakref.ref[Any]] = {}


def innermost() -> _Level | None:
    """Return the innermost call of `vmap` that this thread is in."""
    return _thread.levels[-1] if _thread.levels else None


def find_level(number: int) -> _Level | None:
    """Return the call of this number if this thread is in it."""
    return next((each for each in _thread.levels if each.number == number), None)


class BatchedTensor(plait.Tensor):
    """The samples of a batch as one tensor with the shape, dtype and device of a sample.

    `value` holds all samples, along dimension 0; `level` is the number of the call of `vmap` that
    it belongs to.
    """

    value: Any
    level: int

    def __repr__(self) -> str:
        return f"BatchedTensor(level={self.level}, value={self.value!r})"

    def read(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse to read elements in Python."""
        raise RuntimeError(
            "vmap: the function reads the elements of a sample in Python (item(), float(), bool(), "
            "tolist() or numpy(), as in `if x > 0`); that is not possible for all samples at once: "
            "use where() and other operators"
        )

    item = tolist = numpy = to_numpy = read
    __array__ = __array_function__ = __array_ufunc__ = read


def begin(size: int, randomness: str) -> int:
    """Begin a call of `vmap` in this thread; return its number."""
    _thread.levels.append(_Level(size, randomness))
    return _thread.levels[-1].number


def end() -> None:
    """End the innermost call of `vmap`."""
    _thread.levels.pop()


# What is in memory that stands for samples, by its address: engines keep results as other handles
# on the same memory.
_values: dict[int, tuple[Any, int]] = {}
_BYTES_ALONE = frozenset({plait.bfloat16})  # dtypes that NumPy does not have


def _memory(value: Any) -> Any:
    """Return memory for a sample, which nobody reads, as a tensor; its end is noticed."""
    np = import_module("numpy")
    shape, dtype = tuple(value.shape[1:]), value.dtype
    if dtype in _BYTES_ALONE:
        array = np.empty((*shape, dtype.itemsize), np.uint8)
        return array, plait.from_numpy(array).view(dtype).reshape(shape)
    array = np.empty(shape, _numpy_dtype(dtype))
    return array, plait.from_numpy(array)


@functools.cache
def _numpy_dtype(dtype: Any) -> Any:
    return plait.empty(0, dtype=dtype).numpy().dtype


def wrapped(value: Any, level: int) -> BatchedTensor:
    """Return the samples along dimension 0 of a tensor as one batched tensor."""
    array, data = overrides.unseen(_memory, value)
    made: BatchedTensor = plait.Tensor._make_subclass(BatchedTensor, data, False)
    made.value, made.level = value, level
    address = made.data_ptr()
    _values[address] = (value, level)
    weakref.finalize(array, _values.pop, address, None).atexit = False
    return made


def recognized(tensor: Any) -> Any:
    """Return the batched tensor that a tensor is another handle of, else the tensor."""
    found = _values.get(tensor.data_ptr())
    if found is None:
        return tensor
    made = plait.Tensor._make_subclass(BatchedTensor, tensor, False)
    made.value, made.level = found
    return made


def unwrapped(tensor: Any, level: int, size: int) -> Any:
    """Return all samples of a tensor along dimension 0; one that is not batched is repeated."""
    if isinstance(tensor, BatchedTensor) and tensor.level == level:
        return tensor.value
    return tensor.unsqueeze(0).expand(size, *tensor.shape)


class _Enter(Function):
    @staticmethod
    def forward(ctx: Any, value: Any, level: int) -> Any:
        ctx.level, ctx.size = level, value.shape[0]
        return wrapped(value.detach(), level)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return leave(gradient, ctx.level, ctx.size), None


class _Leave(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        ctx.level = tensor.level
        return tensor.value.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return enter(gradient, ctx.level)


def enter(value: Any, level: int) -> Any:
    """Return `wrapped` of a tensor, with its history."""
    return _Enter.apply(value, level) if value.requires_grad else wrapped(value, level)


def leave(tensor: Any, level: int, size: int) -> Any:
    """Return `unwrapped` of a tensor, with its history."""
    if isinstance(tensor, BatchedTensor) and tensor.level == level:
        return _Leave.apply(tensor) if tensor.requires_grad else tensor.value
    return unwrapped(tensor, level, size)


# ---- gradients of what all samples share --------------------------------------------------------


def note_leaf(leaf: Any) -> None:
    """Let the gradient of a leaf, from a backward pass behind the call, be the sum over samples."""
    key = id(leaf)
    if key not in _watched:
        _watched[key] = weakref.ref(leaf, lambda _: _watched.pop(key, None))
        leaf.register_hook(_summed)


def _summed(gradient: Any) -> Any:
    while isinstance(gradient, BatchedTensor) and find_level(gradient.level) is None:
        gradient = leave(gradient, gradient.level, 0).sum(0)
    return gradient
