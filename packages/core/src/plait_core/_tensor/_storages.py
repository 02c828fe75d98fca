"""The storages of tensors: `untyped_storage`, and pickling."""

from __future__ import annotations

import copy
import mmap
import os
import weakref
from collections.abc import Sequence
from typing import Any

import plait_core._core as _core
from plait_abi import binding
from plait_core._core import Tensor


class UntypedStorage:
    """The bytes that a tensor and its views share.

    Args:
        tensor: A tensor; a number of bytes, which are not set; or a sequence of bytes.

    Example:
        >>> import plait_core as pc
        >>> x = pc.zeros(4)
        >>> storage = x[1:].untyped_storage()
        >>> storage.nbytes(), storage.data_ptr() == x.data_ptr()
        (16, True)
    """

    __slots__ = ("__weakref__", "_bytes")

    def __init__(self, tensor: Tensor | int | Sequence[int] = 0) -> None:
        """Take the storage of a tensor, or make one."""
        self._bytes: Tensor
        if isinstance(tensor, Tensor):
            self._bytes = tensor.detach()._storage_bytes()
        elif isinstance(tensor, int):
            self._bytes = binding.operator("empty")((tensor,), dtype="uint8")
        else:
            self._bytes = _filled(bytes(tensor))._bytes

    @property
    def device(self) -> binding.device:
        """The device of the memory."""
        return self._bytes.device

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._bytes._storage_extent()[1]

    def size(self) -> int:
        """Return the number of bytes."""
        return self.nbytes()

    def __len__(self) -> int:
        return self.nbytes()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def data_ptr(self) -> int:
        """Return the address of the first byte; 0 on the device meta."""
        return self._bytes.data_ptr()

    def tolist(self) -> list[int]:
        """Return the bytes as ints."""
        values: list[int] = self._bytes.tolist()
        return values

    def __getitem__(self, index: Any) -> Any:
        result = self._bytes[index]
        return result.item() if result.ndim == 0 else result.tolist()

    def untyped(self) -> UntypedStorage:
        """Return the storage itself, which is untyped."""
        return self

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return the first bytes of a file as a storage, which are read when they are used.

        Args:
            filename: a path.
            shared: True: writes change the file, which is extended to `nbytes`; False: they stay in
                memory.
            nbytes: the number of bytes.

        Raises:
            OSError: if the file cannot be opened.
            ValueError: if it is shorter, and not shared.

        Example:
            >>> import os, tempfile, plait_core as pc
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = os.path.join(folder, "numbers")
            ...     with open(path, "wb") as file:
            ...         _ = file.write(bytes([1, 2, 3]))
            ...     pc.UntypedStorage.from_file(path, nbytes=2).tolist()
            [1, 2]
        """
        import numpy as np

        path = os.fspath(filename)
        if shared and (not os.path.exists(path) or os.path.getsize(path) < nbytes):
            with open(path, "ab") as file:
                file.truncate(nbytes)
        if os.path.getsize(path) < nbytes:
            raise ValueError(
                f"UntypedStorage.from_file: {nbytes} bytes are required, {path} has "
                f"{os.path.getsize(path)}"
            )
        if not nbytes:
            return _FileBytes(_filled(b"").__plait_storage__)
        with open(path, "r+b" if shared else "rb") as file:
            # the pages of a private mapping are the file's until they are written to
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            pages = mmap.mmap(file.fileno(), nbytes, access=access)
        return _FileBytes(_core._share_array(np.frombuffer(pages, np.uint8)), not shared)

    @staticmethod
    def _new_shared(size: int, *, device: Any = "cpu") -> UntypedStorage:
        """Return a storage of new bytes in shared memory, for batches that a worker makes."""
        new = binding.operator("empty")((size,), dtype="uint8", device=device)
        return UntypedStorage(new.share_memory_())

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is that of a CUDA device."""
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """Return the number of the device; -1 for the CPU."""
        return -1 if self.device.index is None else self.device.index

    def element_size(self) -> int:
        """Return 1: the elements are bytes."""
        return 1

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """Return a copy of the bytes on a device; itself if they are there.

        Args:
            device: The device.
            non_blocking: Whether the host may go on before the bytes are copied.

        Example:
            >>> import plait_core as pc
            >>> storage = pc.zeros(2).untyped_storage()
            >>> storage.to(device="cpu") is storage
            True
        """
        moved = self._bytes.to(device, non_blocking=non_blocking)
        return self if moved.device == self.device else UntypedStorage(moved)

    def cpu(self) -> UntypedStorage:
        """Return a copy of the bytes on the CPU; itself if they are there."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Return a copy of the bytes on a CUDA device; itself if they are there.

        Args:
            device: The device, or its number; None is the current one.
            non_blocking: Whether the host may go on before the bytes are copied.

        Raises:
            RuntimeError: if there is no device.
        """
        if device is None:
            place = binding.device("cuda")
        elif isinstance(device, int):
            place = binding.device("cuda", device)
        else:
            place = binding.device(device)
        return self.to(device=place, non_blocking=non_blocking)

    def clone(self) -> UntypedStorage:
        """Return a copy of the bytes on the same device."""
        return UntypedStorage(self._bytes.clone())

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Write the bytes of another storage into this one.

        Args:
            source: A storage of the same size, on any device.
            non_blocking: Whether the host may go on before the bytes are copied.
        """
        self._bytes.copy_(source._bytes, non_blocking=non_blocking)
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Set all bytes to a number.

        Args:
            value: A number from 0 to 255.
        """
        self._bytes.fill_(value)
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Change the number of bytes; this is possible only while no tensor uses them.

        The first bytes keep their values, the others are not set.

        Args:
            size: The number of bytes.

        Raises:
            ValueError: for a negative number.
            RuntimeError: if a tensor uses the storage: the bytes of a tensor never move.

        Example:
            >>> import plait_core as pc
            >>> storage = pc.UntypedStorage([1, 2, 3])
            >>> storage.resize_(2).tolist()
            [1, 2]
        """
        before = self._bytes._storage_extent()
        if size < 0:
            raise binding.ArgumentError(f"resize_: `size` must not be negative, got {size}")
        if size != before[1]:
            try:  # to more bytes, which new memory has
                self._bytes._resize((max(size, before[1] + 1),), (1,))
            except RuntimeError:
                raise RuntimeError(
                    f"resize_: tensors use the storage of {before[1]} bytes, and the bytes of "
                    f"tensors never move; make a new storage of {size} bytes"
                ) from None
            if size < self.nbytes():
                self._bytes = self._bytes[:size].clone()
            if _known.get(before) is self:
                _known.move(before, self._bytes._storage_extent())
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Return whether these bytes are page-locked memory, which a device copies without a wait.

        Args:
            device: Accepted as PyTorch has it.

        Example:
            >>> import plait_core as pc
            >>> pc.zeros(2).untyped_storage().is_pinned()
            False
        """
        return self._bytes._is_pinned()

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """Return a copy in page-locked memory; itself if it is there, or without an accelerator.

        Args:
            device: Accepted as PyTorch has it.

        Example:
            >>> import plait_core as pc
            >>> storage = pc.zeros(2).untyped_storage().pin_memory()
            >>> storage.is_pinned() == pc.accelerator.is_available()
            True
        """
        pinned = self._bytes.pin_memory(device)
        return self if pinned is self._bytes else UntypedStorage(pinned)

    def is_shared(self) -> bool:
        """Return whether these bytes are in shared memory, where other processes may see them."""
        return self._bytes.is_shared()

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes to shared memory; this is possible only while no tensor uses them.

        Raises:
            RuntimeError: if a tensor uses the storage. Use `Tensor.share_memory_` instead.

        Example:
            >>> import plait_core as pc
            >>> storage = pc.arange(3, dtype=pc.uint8).untyped_storage()
            >>> storage.share_memory_().is_shared(), storage.tolist()
            (True, [0, 1, 2])
        """
        before = self._bytes._storage_extent()
        self._bytes.share_memory_()
        if _known.get(before) is self:
            _known.move(before, self._bytes._storage_extent())
        return self

    @property
    def __plait_storage__(self) -> Tensor:
        """All bytes as a tensor, from which another process makes a storage object."""
        return self._bytes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        own, theirs = self._bytes._storage_extent(), other._bytes._storage_extent()
        return self is other or (bool(own[0]) and own == theirs)

    def __hash__(self) -> int:
        return hash(self._bytes._storage_extent())

    def __repr__(self) -> str:
        return f"<UntypedStorage of {self.nbytes()} bytes on {self.device}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.device.type == "meta":
            return _empty, (self.nbytes(),)
        data = self._bytes._to_bytes()
        # as before there were devices, so that older versions read pickles of the CPU
        return _filled, (data,) if self.device.type == "cpu" else (data, str(self.device))

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        result = memo.get(id(self))
        if result is None:
            result = memo[id(self)] = UntypedStorage(self._bytes.clone())
        return result

    def tensor(
        self, dtype: Any, offset: int, size: tuple[int, ...], stride: tuple[int, ...]
    ) -> Tensor:
        """Return a tensor on these bytes; `offset` and `stride` count elements.

        Args:
            dtype: The dtype.
            size: The shape.

        Raises:
            ShapeError: if it would lie outside of the storage.
        """
        return self._bytes._on_storage(dtype, offset, size, stride)


class _FileBytes(UntypedStorage):
    """The bytes of a file; a slice of them is a tensor that shares the memory.

    In a private mapping a slice that is not aligned is a copy, so that ``view(dtype)`` of it is one
    of any dtype: readers of files cut them at the places that the files say.
    """

    __slots__ = ("_is_private",)

    def __init__(self, tensor: Tensor, is_private: bool = True) -> None:
        super().__init__(tensor)
        self._is_private = is_private

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return super().__getitem__(index)
        result = self._bytes[index]
        return result.clone() if self._is_private and result.data_ptr() % 8 else result


def _filled(data: bytes, device: str = "cpu") -> UntypedStorage:
    result = _core._from_bytes(data, binding.dtype("uint8"), (len(data),))
    return UntypedStorage(result.to(device))


def _empty(nbytes: int) -> UntypedStorage:
    return UntypedStorage(binding.operator("empty")((nbytes,), dtype="uint8", device="meta"))


# The live UntypedStorage of each storage. Pickle and deepcopy compare objects by identity, so they
# write a storage once for all tensors on it.
class _Known:
    """A table of live objects. Unlike `weakref.WeakValueDictionary` it runs no Python code when one
    is freed: there, the KeyboardInterrupt of Ctrl-C would be printed and lost.
    """

    def __init__(self) -> None:
        self._references: dict[tuple[int, int], weakref.ref[UntypedStorage]] = {}
        self._most = 64

    def get(self, extent: tuple[int, int]) -> UntypedStorage | None:
        """Return the object of an extent, if it lives."""
        reference = self._references.get(extent)
        return None if reference is None else reference()

    def add(self, extent: tuple[int, int], storage: UntypedStorage) -> None:
        """Add an object; from time to time, remove those that were freed."""
        self._references[extent] = weakref.ref(storage)
        if len(self._references) > self._most:
            for key, reference in list(self._references.items()):
                if reference() is None and self._references.get(key) is reference:
                    self._references.pop(key, None)
            self._most = 2 * len(self._references) + 64

    def move(self, before: tuple[int, int], extent: tuple[int, int]) -> None:
        """Change the extent of an object."""
        self._references[extent] = self._references.pop(before)


_known = _Known()


def refuse_batched(tensor: Tensor, caller: str) -> None:
    """Raise RuntimeError for a tensor in `vmap`, whose memory has the elements of no sample."""
    if _core._samples(tensor) is not None:
        raise RuntimeError(
            f"vmap: {caller}: inside vmap a tensor represents all samples and has no memory to "
            "access; "
            "use operators, or call it on what vmap returns"
        )


def storage_of(tensor: Tensor) -> UntypedStorage:
    """Return the storage of a tensor, the same object as long as it is alive."""
    refuse_batched(tensor, "untyped_storage")
    extent = tensor._storage_extent()
    if not extent[0]:
        return UntypedStorage(tensor)
    result = _known.get(extent)
    if result is None:
        result = UntypedStorage(tensor)
        _known.add(extent, result)
    return result


def rebuild_on(
    cls: type[Tensor],
    storage: UntypedStorage,
    dtype: binding.dtype,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    grad: bool,
) -> Tensor:
    """Make a tensor from the arguments that `reduce_arguments` returned."""
    result = storage.tensor(dtype, offset, size, stride)
    if cls is not Tensor:
        return Tensor._make_subclass(cls, result, grad)
    return result.requires_grad_() if grad else result


def reduce_arguments(tensor: Tensor, memo: dict[int, Any] | None = None) -> tuple[Any, ...]:
    """Return the arguments of `rebuild_on`; with a memo of deepcopy, on a copy of the storage."""
    storage = storage_of(tensor)
    if memo is not None:
        storage = copy.deepcopy(storage, memo)
    offset, size, stride = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    return type(tensor), storage, tensor.dtype, offset, size, stride, tensor.requires_grad
