"""Pickles of tensors and parameters with PyTorch's names, which PyTorch reads too.

While `torch` means plait, `pickle`, `copyreg` and programs that read ``__reduce_ex__`` see what
PyTorch's tensors say: a function of `torch._utils`, and a storage, which is the bytes of a file in
the older format of `torch.save`. Pickles of plait's own form stay readable.
"""

from __future__ import annotations

import copyreg
import importlib
import io
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import plait
from plait_abi import Operator
from plait_core._checkpoints._format import CompressedTensor, SparseTensor
from plait_optim._hooks import Hooks
from plait_optim._state import State
from plait_torch._file_names import STORAGES, Stored
from plait_torch._file_writer import file_of
from plait_torch._typed_storages import TypedStorage

__all__ = [
    "_VariableFunctionsClass",
    "_get_layout",
    "_load_from_bytes",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_parameter_with_state",
    "_rebuild_sparse_tensor",
    "bind",
    "unbind",
]

_CLASSES = {dtype: name for name, dtype in STORAGES.items() if name != "UntypedStorage"}


def _torch(module: str, name: str) -> Any:
    """Return a function under the name that pickles have for it."""
    return getattr(importlib.import_module(module), name)


# ---- storages


def _load_from_bytes(b: bytes) -> Any:
    """Return what a file of `torch.save` holds, which is a storage in pickles of tensors.

    Example:
        >>> import plait
        >>> from plait_torch._rebuilding import file_of, _load_from_bytes
        >>> data = plait.arange(3).untyped_storage().__plait_storage__
        >>> _load_from_bytes(file_of(data, "int64")).size()
        3
    """
    result = plait.load(io.BytesIO(b))
    if isinstance(result, Stored):
        whole = result.data._on_storage(plait.dtype("uint8"), 0, (result.data.numel(),), (1,))
        return TypedStorage(whole, dtype=result.dtype)
    return result


# the storage objects of tensors that are being pickled: pickle compares objects by identity, so
# that tensors of one storage and dtype share it again
_live: weakref.WeakValueDictionary[tuple[int, str], TypedStorage] = weakref.WeakValueDictionary()


def _typed(tensor: plait.Tensor) -> TypedStorage:
    untyped: Any = tensor.untyped_storage()
    key = id(untyped), tensor.dtype.name
    result = _live.get(key)
    if result is None:
        result = _live[key] = TypedStorage(tensor, untyped=untyped)
    return result


def _reduced_storage(storage: TypedStorage) -> tuple[Any, ...]:
    data = storage.untyped().__plait_storage__
    return _torch("torch.storage", "_load_from_bytes"), (file_of(data, storage.dtype.name),)


# ---- tensors


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Any:
    """Return a sparse tensor of its indices, values and shape, as pickles have them."""
    if str(layout) != "torch.sparse_coo" and str(layout) != "plait.sparse_coo":
        bounds, places, values, size = data
        make = plait.sparse_compressed_tensor
        return make(bounds, places, values, tuple(size), layout=layout)
    indices, values, size, *rest = data
    result = plait.sparse_coo_tensor(indices, values, tuple(size))
    return result._coalesced_(bool(rest[0])) if rest and rest[0] else result


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Any:
    """Return a tensor on the device meta."""
    result = plait.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return result.requires_grad_(requires_grad)


def _rebuild_parameter_with_state(
    data: Any, requires_grad: bool, backward_hooks: Any, state: Any
) -> Any:
    """Return a parameter with attributes."""
    result = plait.nn.Parameter(data, requires_grad)
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(result, name, value)
    return result


def _is_writable(tensor: Any) -> bool:
    return tensor.dtype.name in _CLASSES and all(step >= 0 for step in tensor.stride())


def _reduce_tensor(self: Any, protocol: Any) -> tuple[Any, ...]:
    if not _is_writable(self):
        return _own["Tensor"](self, protocol)  # type: ignore[no-any-return]
    hooks: OrderedDict[Any, Any] = OrderedDict()
    if self.device.type == "meta":
        function = _torch("torch._utils", "_rebuild_meta_tensor_no_storage")
        args: Any = (self.dtype, tuple(self.shape), self.stride(), self.requires_grad)
    else:
        function = _torch("torch._utils", "_rebuild_tensor_v2")
        sizes = (self.storage_offset(), tuple(self.shape), self.stride())
        args = (_typed(self), *sizes, self.requires_grad, hooks)
    if type(self) is plait.Tensor and not self.__dict__:
        return function, args
    rebuild = _torch("torch._tensor", "_rebuild_from_type_v2")
    return rebuild, (function, type(self), args, dict(self.__dict__))


def _reduce_parameter(self: Any, protocol: Any) -> tuple[Any, ...]:
    if type(self) is not plait.nn.Parameter or not _is_writable(self):
        return _own["Parameter"](self, protocol)  # type: ignore[no-any-return]
    hooks: OrderedDict[Any, Any] = OrderedDict()
    data = self.detach()
    data.__dict__.clear()
    if not self.__dict__:
        function = _torch("torch._utils", "_rebuild_parameter")
        return function, (data, self.requires_grad, hooks)
    function = _torch("torch._utils", "_rebuild_parameter_with_state")
    return function, (data, self.requires_grad, hooks, dict(self.__dict__))


# ---- other objects


class _OfTorch(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _torch("torch", name)


class _VariableFunctionsClass(metaclass=_OfTorch):
    """The class of which PyTorch's functions are methods: its attributes are those of `torch`.

    Example:
        >>> import plait, plait_torch
        >>> from plait_torch._rebuilding import _VariableFunctionsClass
        >>> with plait_torch.installed():
        ...     _VariableFunctionsClass.add is plait.add
        True
    """


def _get_layout(name: str) -> Any:
    """Return the layout with this text.

    Example:
        >>> from plait_torch._rebuilding import _get_layout
        >>> _get_layout("torch.strided").name
        'strided'
    """
    return getattr(plait, plait.layout(str(name).removeprefix("torch.")).name)


def _reduced_operator(operator: Any) -> Any:
    if operator.__qualname__.startswith("_VariableFunctionsClass."):
        return getattr, (_torch("torch._C", "_VariableFunctionsClass"), operator.__name__)
    if operator.__module__.partition(".")[0] != "torch":
        return operator.__reduce__()
    result: str = operator.__qualname__
    return result


def _reduced_sparse(tensor: Any) -> Any:
    if isinstance(tensor, SparseTensor):
        parts = (tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced())
    else:
        parts = (tensor._bounds, tensor._places, tensor._stored, tensor.shape)
    return _torch("torch._utils", "_rebuild_sparse_tensor"), (tensor.layout, parts)


def _reduced_state(state: State) -> Any:
    return defaultdict, (dict,), None, None, iter(list(state.items()))


_reducers: dict[Any, Callable[[Any], Any]] = {
    plait.dtype: lambda value: value.name,
    plait.layout: lambda v: (_torch("torch.serialization", "_get_layout"), (f"torch.{v.name}",)),
    Operator: _reduced_operator,
    SparseTensor: _reduced_sparse,
    CompressedTensor: _reduced_sparse,
    # what optimizers hold: PyTorch's are plain mappings
    State: _reduced_state,
    Hooks: lambda hooks: (OrderedDict, ()),
    TypedStorage: _reduced_storage,
}
_own: dict[str, Any] = {}


def bind() -> None:
    """Let tensors, dtypes, layouts and operators be pickled by PyTorch's names."""
    for kind, reducer in _reducers.items():
        copyreg.pickle(kind, reducer)
    _own["Tensor"] = plait.Tensor.__dict__["__reduce_ex__"]
    tensor: Any = plait.Tensor
    parameter: Any = plait.nn.Parameter
    tensor.__reduce_ex__ = _reduce_tensor
    _own["Parameter"] = parameter.__dict__["__reduce_ex__"]
    parameter.__reduce_ex__ = _reduce_parameter


def unbind() -> None:
    """Restore what was before `bind`."""
    for kind in _reducers:
        copyreg.dispatch_table.pop(kind, None)
    tensor: Any = plait.Tensor
    parameter: Any = plait.nn.Parameter
    tensor.__reduce_ex__, parameter.__reduce_ex__ = _own.pop("Tensor"), _own.pop("Parameter")
