"""`torch.TypedStorage` and `torch.FloatStorage` and its kin: a tensor's memory, by its elements."""

from __future__ import annotations

import sys
from typing import Any

import plait

__all__ = [
    "BFloat16Storage",
    "BoolStorage",
    "ByteStorage",
    "CharStorage",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "FloatStorage",
    "HalfStorage",
    "IntStorage",
    "LongStorage",
    "ShortStorage",
    "Storage",
    "TypedStorage",
]

_ORDERS = ("little", "big", "native")


class TypedStorage:
    """A tensor's memory, counted in its elements.

    Args:
        args: the number of elements, a sequence of numbers, or a tensor whose storage it is.
        wrap_storage: the bytes, in place of `args`.
        dtype: of the elements; None: the tensor's, or the default dtype.
        untyped: as `wrap_storage`.

    Raises:
        TypeError: for other arguments.

    Example:
        >>> from plait_torch._typed_storages import TypedStorage
        >>> TypedStorage([1, 2]).tolist()
        [1.0, 2.0]
    """

    is_sparse = False

    def __init__(
        self,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        untyped: Any = None,
        _internal: bool = False,
    ) -> None:
        given = wrap_storage if untyped is None else untyped
        if len(args) > 1:
            raise TypeError(f"TypedStorage: a size or one sequence is required; got {len(args)}")
        first = args[0] if args else 0
        if isinstance(first, plait.Tensor):
            given = first.untyped_storage() if given is None else given
            dtype = first.dtype if dtype is None else dtype
        self.dtype = plait.get_default_dtype() if dtype is None else dtype
        if given is None:
            if type(first) is int:
                new = plait.empty(first, dtype=self.dtype, device=device)
            elif isinstance(first, (str, bytes)) or not hasattr(first, "__iter__"):
                raise TypeError(
                    "TypedStorage: a size or a sequence of numbers is required; "
                    f"got {type(first).__name__}"
                )
            else:
                new = plait.tensor(list(first), dtype=self.dtype, device=device)
            given = new.untyped_storage()
        self._untyped = given

    def _elements(self) -> Any:
        return self._untyped.tensor(self.dtype, 0, (self.size(),), (1,))

    @property
    def _untyped_storage(self) -> Any:
        """The bytes, by the name that programs use which rebuild tensors."""
        return self.untyped()

    def untyped(self) -> Any:
        """Return the untyped storage."""
        return self._untyped

    @property
    def device(self) -> Any:
        """The device of the memory."""
        return self._untyped.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is a GPU's."""
        return bool(self.device.type == "cuda")

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return int(self._untyped.data_ptr())

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return int(self._untyped.nbytes())

    def element_size(self) -> int:
        """Return the number of bytes of an element."""
        return int(self.dtype.itemsize)

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def tolist(self) -> list[Any]:
        """Return the elements."""
        values: list[Any] = self._elements().tolist()
        return values

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int):
            raise RuntimeError(
                "TypedStorage: an element has an int as index; a slice is one of a tensor: "
                f"`torch.tensor([]).set_(storage)`; got {type(index).__name__}"
            )
        return self._elements()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(
                f"TypedStorage: an index is an int or a slice; got {type(index).__name__}"
            )
        self._elements()[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to a value."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: Any = None) -> TypedStorage:
        """Write the elements of another storage into this one."""
        other = source if isinstance(source, TypedStorage) else TypedStorage(untyped=source)
        self._elements().copy_(other._elements())
        return self

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return TypedStorage(self._elements().clone())

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        result = memo.get(id(self))
        if result is None:
            result = memo[id(self)] = self.clone()
        return result

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """Return the storage on a device, itself if it is there."""
        moved = self._elements().to(device)
        return self if moved.device == self.device else TypedStorage(moved)

    def cpu(self) -> TypedStorage:
        """Return the storage in memory of the CPU."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Return the storage on a CUDA device, None: the current one."""
        return self.to(device=self._untyped.cuda(device).device)

    def _as(self, dtype: Any) -> TypedStorage:
        return self if dtype == self.dtype else TypedStorage(self._elements().to(dtype))

    def resize_(self, size: int) -> TypedStorage:
        """Change the number of elements, as `UntypedStorage.resize_` does that of bytes."""
        self._untyped_storage.resize_(size * self.element_size())
        return self

    def is_shared(self) -> bool:
        """Return whether the memory is shared with other processes."""
        return bool(self._untyped.is_shared())

    def share_memory_(self) -> TypedStorage:
        """Move the memory to shared memory; see `UntypedStorage.share_memory_`."""
        self._untyped.share_memory_()
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Return whether the memory is page-locked."""
        return bool(self._untyped.is_pinned())

    def pickle_storage_type(self) -> str:
        """Return the name of the class of storages of the dtype, such as "FloatStorage"."""
        return _CLASSES[self.dtype.name].__name__ if self.dtype.name in _CLASSES else "TypedStorage"

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of its class, such as "torch.FloatStorage", or it in another dtype."""
        if dtype is None:
            place = "" if self.device.type == "cpu" else f"{self.device.type}."
            return f"torch.{place}{self.pickle_storage_type()}"
        return self._as(getattr(dtype, "dtype", dtype))

    def __repr__(self) -> str:
        about = f"dtype=torch.{self.dtype.name}, device={self.device}) of size {self.size()}"
        shown = "".join(f" {value}\n" for value in self.tolist())
        return f"{shown}[torch.storage.TypedStorage({about}]"

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = None) -> TypedStorage:
        dtype = getattr(cls, "dtype", None) or plait.get_default_dtype()
        nbytes = size * int(dtype.itemsize)
        return TypedStorage(untyped=plait.UntypedStorage._new_shared(nbytes), dtype=dtype)


def _conversion(name: str, dtype: str) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._as(plait.dtype(dtype))

    convert.__name__ = name
    convert.__doc__ = f"Return the elements as {dtype}."
    return convert


for _name, _dtype in (
    *(("double", "float64"), ("float", "float32"), ("half", "float16"), ("bfloat16", "bfloat16")),
    *(("long", "int64"), ("int", "int32"), ("short", "int16"), ("char", "int8")),
    *(("byte", "uint8"), ("bool", "bool"), ("complex_float", "complex64")),
    ("complex_double", "complex128"),
):
    setattr(TypedStorage, _name, _conversion(_name, _dtype))


class _OfDtype(type):
    """The classes of storages of one dtype: what they make is a `TypedStorage`."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TypedStorage)
            and instance.dtype == cls.dtype
            and instance.device.type == "cpu"
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if kwargs.keys() - {"wrap_storage", "_internal"}:
            raise RuntimeError(
                f"{cls.__name__}: a size, a sequence or `wrap_storage` is required; "
                f"got {', '.join(sorted(kwargs))}"
            )
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)


class _Storage(TypedStorage, metaclass=_OfDtype):
    dtype: Any

    @classmethod
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        dtype: Any = None,
    ) -> TypedStorage:
        """Return a storage with a copy of the numbers in a buffer.

        Args:
            buffer: bytes, or what has their interface.
            byte_order: "little", "big" or "native"; dtypes of one byte need none.
            count: the number of elements; -1: all that follow.
            offset: the number of bytes to skip.
            dtype: must be the class's.

        Raises:
            ValueError: for another `byte_order`, or bytes that are no whole number of elements.
            RuntimeError: without a `byte_order` that the dtype needs.
        """
        size = int(cls.dtype.itemsize)
        if size > 1 and byte_order is None:
            raise RuntimeError(f"{cls.__name__}.from_buffer: `byte_order` is required")
        order = "native" if byte_order is None else byte_order
        if order not in _ORDERS:
            raise ValueError(
                f"{cls.__name__}.from_buffer: `byte_order` must be {', '.join(_ORDERS)}; "
                f"got {byte_order}"
            )
        data = bytes(memoryview(buffer))[offset:]
        if count >= 0 and len(data) >= count * size:
            data = data[: count * size]
        if len(data) % size or (count >= 0 and len(data) != count * size):
            raise ValueError(
                f"{cls.__name__}.from_buffer: {len(data)} bytes are no "
                f"{'whole number' if count < 0 else count} of elements of {size} bytes"
            )
        values = plait.empty(0, dtype=plait.uint8)
        if data:
            values = plait.frombuffer(bytearray(data), dtype=plait.uint8)
        if order not in ("native", sys.byteorder):
            # each part of a complex number has its own order
            width = size // 2 if cls.dtype.is_complex else size
            values = values.reshape(-1, width).flip(1).reshape(-1)
        return TypedStorage(untyped=values.untyped_storage(), dtype=cls.dtype)

    _from_buffer = from_buffer

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return the first `size` elements of a file; see `UntypedStorage.from_file`."""
        nbytes = size * int(cls.dtype.itemsize)
        file = plait.UntypedStorage.from_file(filename, shared, nbytes)
        return TypedStorage(untyped=file, dtype=cls.dtype)


def _of_dtype(name: str, dtype: str) -> Any:
    about = {"dtype": plait.dtype(dtype), "__module__": "torch"}
    about["__doc__"] = f"Storages of {dtype}: `{name}(3)`, `{name}([1, 2])`, `{name}.from_buffer`."
    return _OfDtype(name, (_Storage,), about)


DoubleStorage = _of_dtype("DoubleStorage", "float64")
FloatStorage = _of_dtype("FloatStorage", "float32")
HalfStorage = _of_dtype("HalfStorage", "float16")
BFloat16Storage = _of_dtype("BFloat16Storage", "bfloat16")
LongStorage = _of_dtype("LongStorage", "int64")
IntStorage = _of_dtype("IntStorage", "int32")
ShortStorage = _of_dtype("ShortStorage", "int16")
CharStorage = _of_dtype("CharStorage", "int8")
ByteStorage = _of_dtype("ByteStorage", "uint8")
BoolStorage = _of_dtype("BoolStorage", "bool")
ComplexFloatStorage = _of_dtype("ComplexFloatStorage", "complex64")
ComplexDoubleStorage = _of_dtype("ComplexDoubleStorage", "complex128")
Storage = FloatStorage
_CLASSES = {
    each.dtype.name: each
    for each in (
        *(DoubleStorage, FloatStorage, HalfStorage, BFloat16Storage, LongStorage, IntStorage),
        *(ShortStorage, CharStorage, ByteStorage, BoolStorage, ComplexFloatStorage),
        ComplexDoubleStorage,
    )
}
