"""Writes the zip that `torch.load` reads: a pickle with PyTorch's names, and storages."""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

import plait
from plait_core._checkpoints._format import (
    CheckpointError,
    CompressedTensor,
    Encoder,
    RegionView,
    SparseTensor,
    Writer,
    is_parameter,
    regions_of,
)
from plait_torch._file_names import STORAGES
from plait_torch._typed_storages import TypedStorage
from plait_torch._zip_records import Zip

_CLASSES = {dtype: name for name, dtype in STORAGES.items() if name != "UntypedStorage"}
# the first values of a file in the older format
_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_SYSTEM = {
    "protocol_version": _PROTOCOL,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


class _Name(tuple[str, str]):
    """A module and a name in it."""


class Call:
    """A call that the reader makes of a named function; BUILD sets `state`."""

    code = pickle.REDUCE

    def __init__(self, module: str, name: str, *args: Any, state: Any = None) -> None:
        self.function, self.args, self.state = _Name((module, name)), args, state


class NewObject(Call):
    """An object that the reader makes of a named class without a call of `__init__`."""

    code = pickle.NEWOBJ


class _Reference(tuple[Any, ...]):
    """A persistent id: a name for a storage outside of the pickle."""


def _array(value: np.ndarray[Any, Any]) -> Call:
    kind, state = _Name(("numpy", "ndarray")), value.__reduce__()[2]
    return Call("numpy.core.multiarray", "_reconstruct", kind, (0,), b"b", state=state)


def _numpy_dtype(value: np.dtype[Any]) -> Call:
    reduced: Any = value.__reduce__()
    _, args, state = reduced
    return Call("numpy", "dtype", *args, state=state)


def _sparse(value: Any) -> Call:
    if type(value) is SparseTensor:
        parts = (value._indices(), value._values(), value.shape, value.is_coalesced())
    else:
        parts = (value._bounds, value._places, value._stored, value.shape)
    return Call("torch._utils", "_rebuild_sparse_tensor", value.layout, parts)


def _of_torch(value: Any) -> _Name:
    return _Name(("torch", value.name))


# objects whose names in files are those of PyTorch, Python 3 and NumPy 1
_WAYS: dict[type, Callable[[Any], Call | _Name]] = {
    plait.Size: lambda v: Call("torch", "Size", tuple(v)),
    SparseTensor: _sparse,
    CompressedTensor: _sparse,
    plait.dtype: _of_torch,
    plait.memory_format: _of_torch,
    plait.device: lambda v: Call("torch", "device", v.type, *([v.index] if v.index else [])),
    plait.layout: lambda v: Call("torch.serialization", "_get_layout", f"torch.{v.name}"),
    np.ndarray: _array,
    **{type(np.dtype(code)): _numpy_dtype for code in "?bBhHiIlLqQefdgFDGSUVmMO"},
    bytes: lambda v: Call("_codecs", "encode", v.decode("latin-1"), "latin1"),
    complex: lambda v: Call("builtins", "complex", v.real, v.imag),
    bytearray: lambda v: Call("builtins", "bytearray", bytes(v)),
    set: lambda v: Call("builtins", "set", list(v)),
    frozenset: lambda v: Call("builtins", "frozenset", list(v)),
    slice: lambda v: Call("builtins", "slice", v.start, v.stop, v.step),
    range: lambda v: Call("builtins", "range", v.start, v.stop, v.step),
    Counter: lambda v: Call("collections", "Counter", dict(v)),
}


_PLAIN = frozenset((bool, int, float, str, list, tuple, dict))
# Python's pickler in Python: the one in C imports the names that are written, and PyTorch's names
# need not be there.
_PythonPickler: Any = pickle._Pickler  # its methods have no types


class Pickler(_PythonPickler):
    """A pickler of which the output is in `parts`, with a gap for each of the `tensors`.

    The storage of a tensor is known when all tensors are. Then its gap is filled.
    """

    def __init__(self, only_data: bool = True) -> None:
        self._only_data = only_data
        self.parts: list[bytes] = []
        self.gaps: list[int] = []
        self.tensors: list[plait.Tensor] = []
        self.storages: dict[int, TypedStorage] = {}  # for which some of the tensors stand
        super().__init__(self, protocol=2)

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self.parts.append(data)

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        kind = type(obj)
        if kind in _PLAIN:
            super().save(obj)
        elif kind is _Name:
            self.write(b"c" + "\n".join(obj).encode() + b"\n")
        elif kind is _Reference:
            self.save(tuple(obj))
            self.write(pickle.BINPERSID)
        elif kind is Call or kind is NewObject:
            self.save(obj.function)
            self.save(obj.args)
            self.write(obj.code)
            if obj.state is not None:
                self.save(obj.state)
                self.write(pickle.BUILD)
        elif id(obj) in self.memo:
            super().save(obj)
        elif kind in _WAYS:
            self.save(_WAYS[kind](obj))
            self.memoize(obj)
        elif kind is OrderedDict and self._only_data:  # other attributes are not data
            state = {k: v for k, v in vars(obj).items() if k == "_metadata"}
            self.save_reduce(OrderedDict, (), state or None, None, iter(obj.items()), obj=obj)
        elif isinstance(obj, np.generic):
            self.save(Call("numpy.core.multiarray", "scalar", obj.dtype, obj.tobytes()))
        elif plait.is_tensor(obj) and _is_plain(obj):
            self._leave_gap(obj, obj)
        elif kind is TypedStorage and obj.dtype.name in _CLASSES:
            self.storages[len(self.tensors)] = obj
            self._leave_gap(obj, obj._elements())
        else:
            super().save(obj)

    def _leave_gap(self, obj: Any, tensor: plait.Tensor) -> None:
        self.gaps.append(len(self.parts))
        self.tensors.append(tensor)
        self.write(b"")
        self.memoize(obj)


def pickled(value: Any) -> bytes:
    """Return the pickle of data and of calls, with PyTorch's names."""
    pickler = Pickler()
    pickler.dump(value)
    return b"".join(pickler.parts)


def _opcodes(value: Any) -> bytes:
    """Return what builds a value, anywhere in a pickle: without the memo."""
    pickler = Pickler()
    pickler.fast = True
    pickler.save(value)
    return b"".join(pickler.parts)


def file_of(data: plait.Tensor, dtype: str) -> bytes:
    """Return a file of `torch.save` in the older format that holds one storage."""
    count = data.numel() // plait.dtype(dtype).itemsize
    kind = _Name(("torch", _CLASSES[dtype]))
    reference = _Reference(("storage", kind, "0", str(data.device), count, None))
    head = [pickle.dumps(value, 2) for value in (_MAGIC, _PROTOCOL, _SYSTEM)]
    parts = [*head, b"\x80\x02" + _opcodes(reference) + b".", pickle.dumps(["0"], 2)]
    return b"".join([*parts, count.to_bytes(8, "little"), data.cpu()._to_bytes()])


def _is_plain(tensor: plait.Tensor) -> bool:
    try:
        is_parameter(tensor)
    except TypeError:  # other classes pickle themselves
        return False
    return True


class Archive:
    """The records of a file of `torch.save`.

    Args:
        value: tensors and containers of them, or an object of any class.
        weights_only: whether an object that is not data is an error.

    Example:
        >>> import plait
        >>> from plait_torch.files import Archive
        >>> Archive({"w": plait.ones(2)})
        <a file of torch.save with 1 storage>
        >>> Archive({"f": print})
        Traceback (most recent call last):
            ...
        plait_core._checkpoints._errors.CheckpointError: save: f is a builtins...
    """

    _pickler = Pickler

    def __init__(self, value: Any, weights_only: bool = True) -> None:
        if weights_only:
            Encoder().encode(value)  # raises if the value is not plain data
        text = self._pickler(weights_only)
        try:
            text.dump(value)
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"save: the object cannot be pickled: {error}") from error
        self._regions, views = regions_of(text.tensors)
        untyped = self._without_type(views, text.tensors)
        for number, (gap, view) in enumerate(zip(text.gaps, views, strict=True)):
            is_untyped = view.region in untyped
            if number in text.storages:
                call = self._storage(view, text.storages[number], is_untyped)
            else:
                call = self._call(view, text.tensors[number], is_untyped)
            text.parts[gap] = _opcodes(call)
        self.pickle = b"".join(text.parts)

    def __repr__(self) -> str:
        count = len(self._regions)
        return f"<a file of torch.save with {count} storage{'' if count == 1 else 's'}>"

    def _without_type(self, views: list[RegionView], tensors: list[plait.Tensor]) -> set[int]:
        """Return the regions with several dtypes, or with a dtype that has no storage class in
        PyTorch.
        """
        kinds: dict[int, set[str]] = {}
        for view, tensor in zip(views, tensors, strict=True):
            if view.region >= 0:  # tensors on the device meta have none
                kinds.setdefault(view.region, set()).add(tensor.dtype.name)
        return {
            region
            for region, names in kinds.items()
            if len(names) > 1
            or not names <= set(_CLASSES)
            or self._regions[region].data.size % plait.dtype(min(names)).itemsize
        }

    def _call(self, view: RegionView, tensor: plait.Tensor, untyped: bool) -> Call:
        grad, kind = bool(tensor.requires_grad), _of_torch(tensor.dtype)
        if any(step < 0 for step in view.stride):
            raise CheckpointError(
                "save: a tensor that shares its storage with others has negative strides, which "
                "PyTorch does not have; save its contiguous()"
            )
        if view.region < 0:
            args = (kind, plait.Size(view.shape), view.stride, grad)
            call = Call("torch._utils", "_rebuild_meta_tensor_no_storage", *args)
        else:
            reference = self._reference(view, tensor, untyped)
            function = "_rebuild_tensor_v3" if untyped else "_rebuild_tensor_v2"
            hooks: OrderedDict[Any, Any] = OrderedDict()
            sizes = (view.offset, view.shape, view.stride)
            last = [kind] if untyped else []
            call = Call("torch._utils", function, reference, *sizes, grad, hooks, *last)
        if is_parameter(tensor):
            call = Call("torch._utils", "_rebuild_parameter", call, grad, OrderedDict())
        return call

    def _reference(self, view: RegionView, tensor: plait.Tensor, untyped: bool) -> _Reference:
        storage = ("torch.storage", "UntypedStorage")
        count = self._regions[view.region].data.size
        if not untyped:
            storage = ("torch", _CLASSES[tensor.dtype.name])
            count //= tensor.dtype.itemsize
        place = (str(view.region), str(tensor.device), count)
        return _Reference(("storage", _Name(storage), *place))

    def _storage(self, view: RegionView, storage: TypedStorage, untyped: bool) -> Any:
        """Return what stands for a storage, which the reduction of a class of tensors contains."""
        if not untyped and view.region >= 0:
            return self._reference(view, storage._elements(), untyped)
        data = storage.untyped().__plait_storage__
        return Call("torch.storage", "_load_from_bytes", file_of(data, storage.dtype.name))

    def write(self, writer: Writer) -> None:
        """Write the zip."""
        archive = Zip(writer)
        archive.add("archive/data.pkl", self.pickle)
        archive.add("archive/byteorder", b"little")
        self.add_storages(archive, "archive/data")
        archive.add("archive/version", b"3\n")
        archive.finish()

    def add_storages(self, archive: Zip, folder: str) -> None:
        """Write the storages' bytes, each a record of a folder."""
        for number, region in enumerate(self._regions):
            archive.add(f"{folder}/{number}", region.data)
