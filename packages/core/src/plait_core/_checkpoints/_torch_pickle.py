"""Pickles whole objects for the zip that `torch.load` reads: tensors become calls and storages."""

from __future__ import annotations

import pickle
from typing import Any

from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._torch_opcodes import CALLS, Call, Name
from plait_core._checkpoints._tree import is_parameter
from plait_core._core import Tensor, is_tensor

__all__ = ["Pickled", "pickled"]


class Pickled:
    """A pickle in parts, with a gap for each tensor."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.gaps: list[int] = []
        self.tensors: list[Tensor] = []

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self.parts.append(data)

    def leave(self, tensor: Tensor) -> None:
        """Leave a gap for the opcodes of a tensor, whose place in a storage is not known yet."""
        self.gaps.append(len(self.parts))
        self.parts.append(b"")
        self.tensors.append(tensor)


# Python's pickler in Python: the one in C imports the names that are written, and PyTorch's names
# need not be there.
_PythonPickler: Any = pickle._Pickler  # its methods have no types


class _Pickler(_PythonPickler):  # type: ignore[misc]
    """A pickler that writes tensors, dtypes, sizes and their kin as PyTorch does."""

    def __init__(self, target: Pickled) -> None:
        super().__init__(target, protocol=2)
        self._target = target

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if type(obj) is Name:
            self._target.write(obj.opcode())
        elif type(obj) is Call:
            self.save(obj.function)
            self.save(obj.args)
            self._target.write(pickle.REDUCE)
            if obj.state is not None:
                self.save(obj.state)
                self._target.write(pickle.BUILD)
        elif id(obj) in self.memo:
            super().save(obj)
        elif type(obj) in CALLS:
            self.save(CALLS[type(obj)](obj))
            self.memoize(obj)
        elif is_tensor(obj) and _is_plain(obj):
            self._target.leave(obj)
            self.memoize(obj)
        else:
            super().save(obj)


def _is_plain(tensor: Tensor) -> bool:
    try:
        is_parameter(tensor)
    except TypeError:  # other classes pickle themselves
        return False
    return True


def pickled(value: Any) -> Pickled:
    """Return the pickle of an object of any class."""
    result = Pickled()
    try:
        _Pickler(result).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"save: the object cannot be pickled: {error}") from error
    return result
