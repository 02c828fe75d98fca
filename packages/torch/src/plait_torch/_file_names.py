"""The names that PyTorch's files may use, and the function that each one stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait
from plait_abi import binding
from plait_core._checkpoints._format import (
    FUNCTIONS,
    REAL,
    CheckpointError,
    Named,
    Names,
    compressed_of,
    refused_call,
    sizes_of,
    sparse_of,
    with_grad,
)
from plait_torch._typed_storages import TypedStorage

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
_OTHER_DTYPES = {"half": "float16", "float": "float32", "double": "float64", "long": "int64"}
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


class Stored(TypedStorage):
    """A storage of a file: its bytes as a tensor, and the dtype of its elements.

    Args:
        data: the bytes.
        dtype: of the elements.
        shift: offset in elements, for a storage that is a part of another.
    """

    def __init__(self, data: plait.Tensor, dtype: binding.dtype, shift: int = 0) -> None:
        self._untyped = plait.UntypedStorage(data)
        self.data, self.dtype, self.shift = data, dtype, shift


def _on(storage: Any, kind: binding.dtype, offset: Any, size: Any, stride: Any) -> plait.Tensor:
    if not isinstance(storage, TypedStorage) or type(offset) is not int:
        raise TypeError("a storage and an offset are required")
    if type(storage) is not Stored:  # of a pickle that Python's own unpickler reads
        storage = Stored(storage.untyped().__plait_storage__, storage.dtype)
    stored: Stored = storage
    return stored.data._on_storage(kind, offset + stored.shift, sizes_of(size), sizes_of(stride))


def _no_hooks(hooks: Any) -> None:
    if hooks:
        raise CheckpointError("load: a tensor with hooks is not allowed; nothing was executed")


def _tensor(storage: Any, offset: Any, size: Any, stride: Any) -> plait.Tensor:
    return _on(storage, storage.dtype, offset, size, stride)


def _tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any = None,
    metadata: Any = None,
) -> plait.Tensor:
    _no_hooks(hooks)
    result = _lazy(_on(storage, storage.dtype, offset, size, stride), metadata)
    return with_grad(result, bool(requires_grad), False)


def _tensor_v3(storage: Any, *args: Any) -> plait.Tensor:
    """Do what `_tensor_v2` does, with the dtype after the hooks."""
    kind = args[5] if len(args) > 5 else None
    refuse = kind.call if type(kind) is Named else kind
    if callable(refuse) and refuse in _OTHER_KINDS.values():
        refuse()
    if type(storage) is not Stored or len(args) < 6 or type(args[5]) is not binding.dtype:
        raise TypeError("a storage, its view and a dtype are required")
    return _tensor_v2(Stored(storage.data, args[5], storage.shift), *args[:5], *args[6:])


def _lazy(tensor: plait.Tensor, metadata: Any) -> plait.Tensor:
    """Return the conjugate or the negative that PyTorch's lazy tensor stands for."""
    if isinstance(metadata, dict) and metadata and tensor.device.type != "meta":
        if tensor.numel() * tensor.dtype.itemsize > tensor._storage_extent()[1]:
            raise CheckpointError("load: an expanded tensor marked as conjugated is not allowed")
        tensor = meant(tensor, metadata)
    return tensor


def meant(tensor: plait.Tensor, metadata: dict[str, Any]) -> plait.Tensor:
    """Return a tensor conjugated and negated, as PyTorch's metadata say."""
    tensor = tensor.conj() if metadata.get("conj") else tensor
    return -tensor if metadata.get("neg") else tensor


def _parameter(data: Any, requires_grad: Any, hooks: Any = None, state: Any = None) -> plait.Tensor:
    _no_hooks(hooks)
    if not plait.is_tensor(data):
        raise TypeError("a tensor is required")
    return with_grad(data.detach(), bool(requires_grad), True)


def _sparse(kind: Any, parts: Any) -> Any:
    if kind in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        bounds, places, values, size = parts
        return compressed_of(bounds, places, values, sizes_of(size), kind)
    if kind != "sparse_coo":
        raise CheckpointError(f"load: plait has no tensors of the layout {kind}")
    indices, values, size, *rest = parts
    coalesced = bool(rest[0]) if rest and rest[0] is not None else None
    return sparse_of(indices, values, sizes_of(size), coalesced)


def _meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> plait.Tensor:
    operator = binding.operator("empty_strided")
    result = operator(sizes_of(size), sizes_of(stride), dtype=dtype, device="meta")
    return with_grad(result, bool(requires_grad), False)


def _from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """Return a tensor that was saved with attributes: without them, unless its class is allowed."""
    if type(function) is Named and function.name in _BUILDERS:
        result = function.call(*args)
    elif function in _BUILDERS.values():  # as Python's own unpickler gets it
        result = function(*args)
    else:
        raise CheckpointError("load: a tensor is rebuilt by a function that load does not allow")
    if isinstance(kind, type) and issubclass(kind, plait.Tensor) and kind is not plait.Tensor:
        result = result.as_subclass(kind)
        result.__dict__.update(state if isinstance(state, dict) else {})
    return result


def _variable(data: Any, *state: Any) -> plait.Tensor:
    """Return the tensor of a Variable or a Parameter that PyTorch 0.3 or older wrote."""
    if not isinstance(data, plait.Tensor):
        raise TypeError("a tensor is required")
    return data


def _old_parameter(data: Any, requires_grad: Any = True) -> plait.Tensor:
    return _parameter(data, requires_grad)


def _refused(kind: str, remedy: str) -> Callable[..., Any]:
    """Return what builds a tensor of a kind that plait does not have: an error with the remedy."""

    def build(*args: Any) -> Any:
        raise CheckpointError(f"load: the file has {kind}, which plait does not have; {remedy}")

    return build


_QUANTIZED_STORAGES = (
    "QInt8Storage",
    "QInt32Storage",
    "QUInt8Storage",
    "QUInt2x4Storage",
    "QUInt4x2Storage",
)
QUANTIZED = _refused("a quantized tensor", "save its dequantize() with PyTorch")
_NESTED = _refused("a nested tensor", "save the list of its unbind() with PyTorch")
_OTHERS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_qtensor": QUANTIZED,
    "torch._utils._rebuild_nested_tensor": _NESTED,
    "torch.nested._internal.nested_tensor._rebuild_njt": _NESTED,
}
_BITS = ("bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float4_e2m1fn_x2")
_SMALL = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8))
_REMEDIES = {
    "complex32": "save its to(torch.complex64) with PyTorch",
    **dict.fromkeys(_BITS, "save its view(torch.uint8) with PyTorch"),
    **dict.fromkeys(_SMALL, "save its to(torch.int8) with PyTorch"),
    **dict.fromkeys(("qint8", "qint32", "quint8"), "save its dequantize() with PyTorch"),
}
_OTHER_KINDS = {name: _refused(f"a tensor of {name}", remedy) for name, remedy in _REMEDIES.items()}


def _layout(name: Any) -> plait.layout:
    return plait.layout(str(name).removeprefix("torch."))


_BUILDERS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
}


_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def hint(module: str, name: str) -> str:
    """Return what may help with a refused name, or an empty text."""
    if "q" in name.lower() and module == "torch._utils":
        return " (plait has no quantized tensors: save their dequantize() with PyTorch)"
    if module.startswith("torch.nested"):
        return " (plait has no nested tensors: save the list of their unbind() with PyTorch)"
    if module.startswith("torch.nn."):
        return " (the file holds a pickled module; save its state_dict() instead)"
    return ""


_VALUES: dict[str, Any] = {
    **{f"torch.{name}": Named(name, QUANTIZED) for name in _QUANTIZED_STORAGES},
    **{f"torch.{name}": Named(name, refuse) for name, refuse in _OTHER_KINDS.items()},
    **{f"torch.{kind.name}": kind for kind in binding.dtypes},
    **{f"torch.{name}": binding.dtype(kind) for name, kind in _OTHER_DTYPES.items()},
    **{f"torch.{name}": plait.memory_format(name) for name in _FORMATS},
    **{f"torch.{name}": plait.layout(name) for name in _LAYOUTS},
    **{
        f"{module}.{name}": Named(f"torch.{name}", refused_call(f"torch.{name}"))
        for name in STORAGES
        for module in ("torch", "torch.storage")
    },
}
NAMES = Names(
    FUNCTIONS
    | _BUILDERS
    | _OTHERS
    | {
        "torch._tensor._rebuild_from_type_v2": _from_type,
        "torch.Size": lambda sizes=(): plait.Size(sizes_of(sizes)),
        "torch.device": lambda *args: plait.device(*args),
        "torch.serialization._get_layout": _layout,
        "torch.Tensor": refused_call("torch.Tensor"),
        "torch.nn.parameter.Parameter": _old_parameter,
        "torch.autograd.variable.Variable": _variable,
    },
    REAL | {"torch.Size": plait.Size, "torch.device": plait.device, "torch.Tensor": plait.Tensor},
    _VALUES,
    hint,
)
