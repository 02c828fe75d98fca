"""The names that PyTorch's files may use, and the function that each one stands for."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any, NamedTuple

import numpy as np

from plait_abi import binding
from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._machine import Named, keys
from plait_core._checkpoints._safe_globals import BLOCKED, SafeGlobals
from plait_core._checkpoints._tree import compressed_of, sparse_of, with_grad
from plait_core._core import Size, Tensor, is_tensor
from plait_core._tensor._memory_formats import layout, memory_format

__all__ = ["STORAGES", "ArrayState", "RefusedName", "Stored", "build", "find", "finding", "named"]

# dtypes of the elements of storage classes
STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
}
_DTYPES = tuple(kind.name for kind in binding.dtypes)
_OTHER_DTYPES = {"half": "float16", "float": "float32", "double": "float64", "long": "int64"}
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


class Stored(NamedTuple):
    """A storage of a file: its bytes as a tensor, and the dtype of its elements."""

    data: Tensor
    dtype: str
    shift: int = 0  # offset in elements, for a storage that is a part of another


def _sizes(value: Any) -> tuple[int, ...]:
    """Return sizes or strides; raise unless they are ints."""
    result = tuple(value)
    if not all(type(n) is int for n in result):
        raise TypeError("sizes and strides must be ints")
    return result


def _on(storage: Any, dtype: str, offset: Any, size: Any, stride: Any) -> Tensor:
    if type(storage) is not Stored or type(offset) is not int:
        raise TypeError("a storage and an offset are required")
    kind = binding.dtype(dtype)
    return storage.data._on_storage(kind, offset + storage.shift, _sizes(size), _sizes(stride))


def _no_hooks(hooks: Any) -> None:
    if hooks:
        raise CheckpointError("load: a tensor with hooks is refused; nothing was executed")


def _tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    return _on(storage, storage.dtype, offset, size, stride)


def _tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    _no_hooks(hooks)
    result = _lazy(_on(storage, storage.dtype, offset, size, stride), metadata)
    return with_grad(result, bool(requires_grad), False)


def _tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    _no_hooks(hooks)
    if type(dtype) is not binding.dtype:
        raise TypeError("a dtype is required")
    result = _lazy(_on(storage, dtype.name, offset, size, stride), metadata)
    return with_grad(result, bool(requires_grad), False)


def _lazy(tensor: Tensor, metadata: Any) -> Tensor:
    """Return the conjugate or the negative that PyTorch's lazy tensor stands for."""
    if isinstance(metadata, dict) and metadata and tensor.device.type != "meta":
        if tensor.numel() * tensor.dtype.itemsize > tensor._storage_extent()[1]:
            raise CheckpointError("load: an expanded tensor noted as conjugated is refused")
        if metadata.get("conj"):
            tensor = tensor.conj()
        if metadata.get("neg"):
            tensor = -tensor
    return tensor


def _parameter(data: Any, requires_grad: Any, hooks: Any = None, state: Any = None) -> Tensor:
    _no_hooks(hooks)
    if not is_tensor(data):
        raise TypeError("a tensor is required")
    return with_grad(data.detach(), bool(requires_grad), True)


def _sparse(kind: Any, parts: Any) -> Any:
    if kind in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        bounds, places, values, size = parts
        return compressed_of(bounds, places, values, _sizes(size), kind)
    if kind != "sparse_coo":
        raise CheckpointError(f"load: plait has no tensors of the layout {kind}")
    indices, values, size, *rest = parts
    coalesced = bool(rest[0]) if rest and rest[0] is not None else None
    return sparse_of(indices, values, _sizes(size), coalesced)


def _meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    operator = binding.operator("empty_strided")
    result = operator(_sizes(size), _sizes(stride), dtype=dtype, device="meta")
    return with_grad(result, bool(requires_grad), False)


def _from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """Return a tensor that was saved with attributes, without the attributes."""
    if type(function) is not Named or function.name not in _BUILDERS:
        raise CheckpointError("load: a tensor is built by a function that is refused")
    return function.call(*args)


def _layout(name: Any) -> layout:
    return layout(str(name).removeprefix("torch."))


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8"):
        raise TypeError("a text and latin1 are required")
    return text.encode(encoding)


class ArrayState:
    """A NumPy array whose state was not read yet."""

    def __init__(self, *args: Any) -> None:
        """Take the class, shape and kind at the beginning of every pickle of an array."""


def _np_dtype(name: Any, align: Any = False, copy: Any = True) -> np.dtype[Any]:
    if type(name) is not str:
        raise TypeError("the name of a dtype is required")
    result = np.dtype(name)
    if result.hasobject or result.names or result.subdtype:
        raise CheckpointError(f"load: an array of {name} (Python objects or records) is refused")
    return result


def _np_scalar(dtype: Any, data: Any = b"") -> Any:
    kind = _np_kind(dtype)
    if type(data) is not bytes or len(data) != kind.itemsize:
        raise TypeError("as many bytes as the dtype has are required")
    return np.frombuffer(data, kind)[0]


def _np_kind(dtype: Any) -> np.dtype[Any]:
    if not isinstance(dtype, np.dtype) or dtype.hasobject or not dtype.itemsize:
        raise TypeError("a dtype of numbers is required")
    return dtype


def _np_frombuffer(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray[Any, Any]:
    if type(data) not in (bytes, bytearray) or order not in ("C", "F"):
        raise TypeError("bytes and an order are required")
    array: np.ndarray[Any, Any] = np.frombuffer(bytes(data), _np_kind(dtype)).copy()
    return array.reshape(_sizes(shape), order="F" if order == "F" else "C")


def build(target: Any, state: Any) -> Any:
    """Set the state of an object that a function of the table made; NotImplemented for others."""
    if type(target) is ArrayState:
        _, shape, dtype, fortran, data = state
        if isinstance(data, str):  # written by Python 2
            data = data.encode("latin-1")
        kind, sizes = _np_kind(dtype), _sizes(shape)
        if type(data) is not bytes or math.prod(sizes) * kind.itemsize != len(data):
            raise CheckpointError("load: the pickle is damaged: an array's bytes and its shape")
        array = np.frombuffer(data, kind).reshape(sizes, order="F" if fortran else "C").copy()
        return array
    if isinstance(target, np.dtype):
        order = state[1]
        return target.newbyteorder(order) if order in ("<", ">") else target
    if type(target) is OrderedDict and isinstance(state, dict) and set(state) <= {"_metadata"}:
        vars(target).update(state)
        return target
    if is_tensor(target):
        return target  # attributes of a tensor are left out
    return NotImplemented


def _counted(values: Any = ()) -> Counter[Any]:
    if type(values) is not dict:
        raise TypeError("a dict is required")
    return Counter(values)


def _ordered(pairs: Any = ()) -> OrderedDict[Any, Any]:
    if type(pairs) not in (list, tuple, dict):
        raise TypeError("pairs are required")
    return OrderedDict(pairs if type(pairs) is dict else zip(*_split(pairs), strict=True))


def _split(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Return keys and values of pairs; the keys are checked before they are hashed."""
    values = [(key, value) for key, value in pairs]
    return keys([key for key, _ in values]), [value for _, value in values]


def _collected(kind: type) -> Callable[..., Any]:
    def make(values: Any = ()) -> Any:
        if type(values) not in (list, tuple, set, frozenset):
            raise TypeError("a list is required")
        return kind(keys(list(values)))

    return make


def _complex(real: Any = 0, imag: Any = 0) -> complex:
    if not all(type(part) in (int, float) for part in (real, imag)):
        raise TypeError("numbers are required")
    return complex(real, imag)


def _slice(*parts: Any) -> Any:
    return slice(*parts)


def _range(*parts: Any) -> range:
    return range(*_sizes(parts))


def _bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    if type(data) is str:
        data = _encoded(data, encoding)
    if type(data) not in (bytes, bytearray):
        raise TypeError("bytes are required")
    return bytearray(data)


_BUILDERS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
}


def _only_named(name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        raise CheckpointError(f"load: the pickle makes a {name}, which is refused")

    return call


_CALLABLES: dict[str, Callable[..., Any]] = {
    **_BUILDERS,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch.Size": lambda sizes=(): Size(_sizes(sizes)),
    "torch.device": lambda *args: binding.device(*args),
    "torch.serialization._get_layout": _layout,
    "torch.Tensor": _only_named("torch.Tensor"),
    "torch.nn.parameter.Parameter": _only_named("torch.nn.parameter.Parameter"),
    "collections.OrderedDict": _ordered,
    "collections.Counter": _counted,
    "_codecs.encode": _encoded,
    "builtins.bytes": lambda: b"",
    "builtins.set": _collected(set),
    "builtins.frozenset": _collected(frozenset),
    "builtins.complex": _complex,
    "builtins.bytearray": _bytearray,
    "builtins.slice": _slice,
    "builtins.range": _range,
    "numpy.ndarray": _only_named("numpy.ndarray"),
    "numpy.dtype": _np_dtype,
    "numpy.core.multiarray._reconstruct": ArrayState,
    "numpy.core.multiarray.scalar": _np_scalar,
    "numpy.core.numeric._frombuffer": _np_frombuffer,
}
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_VALUES: dict[str, Any] = {
    **{f"torch.{name}": binding.dtype(name) for name in _DTYPES},
    **{f"torch.{name}": binding.dtype(kind) for name, kind in _OTHER_DTYPES.items()},
    **{f"torch.{name}": memory_format(name) for name in _FORMATS},
    **{f"torch.{name}": layout(name) for name in _LAYOUTS},
}
_REAL: dict[str, Any] = {
    "torch.Size": Size,
    "torch.device": binding.device,
    "torch.Tensor": Tensor,
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype,
    **{f"builtins.{kind.__name__}": kind for kind in (bytes, set, frozenset, complex)},
    **{f"builtins.{kind.__name__}": kind for kind in (bytearray, slice, range)},
}
_TABLE: dict[str, Any] = {
    **{name: Named(name, call, _REAL.get(name)) for name, call in _CALLABLES.items()},
    **{
        f"{module}.{name}": Named(f"torch.{name}", _only_named(f"torch.{name}"))
        for name in STORAGES
        for module in ("torch", "torch.storage")
    },
    **_VALUES,
}


def named(module: str, name: str) -> Any:
    """Return the table's entry for a name, or None."""
    if module == "__builtin__":  # Python 2's name
        module = "builtins"
    if module.startswith("numpy._core."):  # NumPy 2's name
        module = "numpy.core." + module.removeprefix("numpy._core.")
    return _TABLE.get(f"{module}.{name}")


class RefusedName(CheckpointError, UnpicklingError):
    """A file asks for a name that is not in the table and not listed."""

    def __init__(self, text: str, module: str = "", name: str = "") -> None:
        super().__init__(text)
        self.module, self.name = module, name


def find(module: str, name: str, safe: SafeGlobals | None = None) -> Any:
    """Return the table's entry for a name, or the listed object; raise if there is none."""
    result = named(module, name)
    if result is None and safe:
        result = safe.find(module, name)
    if result is None:
        run = "nothing that is not listed was executed" if safe else "nothing was executed"
        raise RefusedName(
            f"load: the file asks for `{module}.{name}`, which is not one of the names "
            f"that load accepts{_hint(module, name)}; {run}. "
            f"load(..., safe_globals=[{name}]) allows this name, and weights_only=False "
            "would execute code of the file: use it only for files that you trust",
            module,
            name,
        )
    return result


def finding(safe: SafeGlobals) -> Callable[[str, str], Any]:
    """Return `find` with what the program listed."""
    return lambda module, name: find(module, name, safe)


def _hint(module: str, name: str) -> str:
    if module in BLOCKED:
        return f" (names of {module} are refused also if they are listed)"
    if "q" in name.lower() and module == "torch._utils":
        return " (plait has no quantized tensors)"
    if name[:1] == "Q" and name.endswith("Storage"):
        return " (plait has no quantized tensors)"
    if module.startswith("torch.nn."):
        return " (the file holds a pickled module; save its state_dict() instead)"
    return ""
