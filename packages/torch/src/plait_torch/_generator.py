"""Which generator programs for PyTorch draw from."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import plait
import plait_abi
from plait_abi.binding import default_generator

__all__ = ["bind", "unbind", "use_generator"]

_path = plait_abi.paths("plait_torch")["libplait_torch.so"]
plait_abi.load(_path)
_library = ctypes.CDLL(str(_path))
_lock = threading.Lock()
_get_state, _set_state = plait_abi.Generator.get_state, plait_abi.Generator.set_state
_restore = plait_abi.Generator.__setstate__  # type: ignore[attr-defined]
_reduce: Any = plait_abi.Generator.__reduce__


def use_generator(name: str) -> None:
    """Choose where random numbers of the CPU come from.

    `install` chooses PyTorch's and `uninstall` plait's. Each has a default generator of its own,
    whose state stays as it is while the other one is in use.

    Args:
        name: ``"pytorch"``: MT19937, with PyTorch's rules for uniform and normal numbers, integers,
            Bernoulli, permutations, exponential numbers and draws from a table, so that a program
            with a seed gets PyTorch's numbers; its states are PyTorch's 5,056 bytes. ``"plait"``:
            Philox, whose numbers several threads compute.

    Raises:
        ValueError: for another name.

    Example:
        >>> import plait, plait_torch
        >>> plait_torch.use_generator("pytorch")
        >>> generator = plait.manual_seed(0)
        >>> plait.rand(3)
        tensor([0.4963, 0.7682, 0.0885])
        >>> plait_torch.use_generator("plait")
    """
    if name not in ("pytorch", "plait"):
        raise ValueError(f"use_generator: `name` must be 'pytorch' or 'plait', got {name!r}")
    with _lock:
        if _library.plait_torch_use_generator(int(name == "pytorch")) < 0:
            raise MemoryError("use_generator: no memory for a generator")


def tensor_of(state: Any) -> Any:
    """Return a state of a generator as a tensor of bytes."""
    if isinstance(state, plait.Tensor):
        return state
    if not isinstance(state, bytes):
        state = b"".join(word.to_bytes(8, "little") for word in state)
    return plait.frombuffer(bytearray(state), dtype=plait.uint8)


def state_of(tensor: Any) -> Any:
    """Return the state that `tensor_of` made a tensor of: bytes, or a seed and an offset."""
    if isinstance(tensor, (tuple, bytes)):
        return tensor
    if not isinstance(tensor, plait.Tensor) or tensor.dtype != plait.uint8:
        kind = tensor.dtype.name if isinstance(tensor, plait.Tensor) else type(tensor).__name__
        raise TypeError(f"set_rng_state: a tensor of bytes (uint8) is required, got {kind}")
    state = tensor.detach().cpu().contiguous().numpy().tobytes()
    if len(state) != 16 or not isinstance(_get_state(default_generator()), tuple):
        return state
    return int.from_bytes(state[:8], "little"), int.from_bytes(state[8:], "little")


def bind() -> None:
    """Let states of generators be tensors of bytes, and draw from PyTorch's."""
    from plait_torch._random_arguments import OF_GENERATORS

    def get_state(self: Any) -> Any:
        """Return the state as a tensor of bytes."""
        return tensor_of(_get_state(self))

    def set_state(self: Any, state: Any) -> Any:
        """Continue at a state that `get_state` returned."""
        return _set_state(self, state_of(state))

    def restore(self: Any, state: Any) -> None:
        """Continue at the state in a pickle: PyTorch's seed, offset and bytes, or plait's."""
        of_torch = type(state) is tuple and len(state) == 3
        _set_state(self, state_of(state[2] if of_torch else state))

    def reduce(self: Any) -> tuple[Any, ...]:
        """Return PyTorch's form: the seed, the offset of a device's generator, and the state."""
        state = _get_state(self)
        if not isinstance(state, bytes):
            return tuple(_reduce(self))
        return plait_abi.Generator, (self.device,), (self.initial_seed(), None, tensor_of(state))

    _put(get_state, set_state, restore, reduce)
    for name, method in OF_GENERATORS.items():
        setattr(plait_abi.Generator, name, method)
    use_generator("pytorch")


def unbind() -> None:
    """Restore what was before `bind`."""
    from plait_torch._random_arguments import OF_GENERATORS

    _put(_get_state, _set_state, _restore, _reduce)
    for name in OF_GENERATORS:
        delattr(plait_abi.Generator, name)
    use_generator("plait")


def _put(get_state: Any, set_state: Any, restore: Any, reduce: Any) -> None:
    kind: Any = plait_abi.Generator
    kind.__reduce__ = reduce
    kind.get_state, kind.set_state, kind.__setstate__ = get_state, set_state, restore
