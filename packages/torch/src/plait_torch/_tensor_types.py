"""`torch.FloatTensor` and similar classes: dtypes as classes for constructors and `isinstance`."""

from __future__ import annotations

from typing import Any

import plait
from plait_torch._typed_storages import TypedStorage

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "dtype_of",
    "name_of",
]


class TensorType(type):
    """The metaclass of tensor types: a tensor is an instance of one by its dtype."""

    _dtype: Any
    _where: str

    def __instancecheck__(cls, value: Any) -> bool:
        return (
            isinstance(value, plait.Tensor)
            and value.device.type == cls._where
            and value.dtype == cls._dtype
        )

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if cls._where != "cpu":
            return _make(cls.__name__)(*args).to(cls._where if device is None else device)
        if len(args) == 1 and isinstance(args[0], plait.Size):
            return plait.empty(args[0], dtype=cls._dtype)
        if all(isinstance(arg, int) for arg in args):
            return plait.empty(args or (0,), dtype=cls._dtype)
        if len(args) != 1:
            raise TypeError(f"{cls}: sizes, or one sequence, array or tensor is required")
        if isinstance(args[0], (plait.UntypedStorage, TypedStorage)):
            return plait.empty(0, dtype=cls._dtype).set_(args[0].untyped())
        if isinstance(args[0], plait.Tensor):
            return args[0].detach().to(cls._dtype)
        return plait.tensor(args[0], dtype=cls._dtype)

    def __repr__(cls) -> str:
        return f"torch.{'' if cls._where == 'cpu' else cls._where + '.'}{cls.__name__}"

    @property
    def dtype(cls) -> Any:
        """The dtype of the type."""
        return cls._dtype


_NAMES = {
    "BFloat16Tensor": "bfloat16",
    "BoolTensor": "bool",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "DoubleTensor": "float64",
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "ShortTensor": "int16",
}


def _make(name: str, where: str = "cpu") -> Any:
    members = {
        "_dtype": getattr(plait, _NAMES[name]),
        "_where": where,
        "__doc__": f"Tensors of {_NAMES[name]}: of sizes, or of a sequence's values.",
        "__module__": f"torch.{where}" if where != "cpu" else __name__,
    }
    return TensorType(name, (), members)


BFloat16Tensor = _make("BFloat16Tensor")
BoolTensor = _make("BoolTensor")
ByteTensor = _make("ByteTensor")
CharTensor = _make("CharTensor")
DoubleTensor = _make("DoubleTensor")
FloatTensor = _make("FloatTensor")
HalfTensor = _make("HalfTensor")
IntTensor = _make("IntTensor")
LongTensor = _make("LongTensor")
ShortTensor = _make("ShortTensor")
OF_CUDA = {name: _make(name, "cuda") for name in _NAMES}


def dtype_of(kind: Any, request: str) -> Any:
    """Return the dtype of a tensor type, of its name, or a dtype itself.

    Raises:
        RuntimeError: for types of CUDA where there is no device.
        ValueError: for other names.
    """
    if isinstance(kind, TensorType):
        kind = repr(kind)
    if kind is plait.Tensor or kind == "torch.Tensor":
        return plait.get_default_dtype()
    if not isinstance(kind, str):
        return kind
    if device_of(kind) == "cuda" and not plait.cuda.is_available():
        raise RuntimeError(f"{request}: {kind} needs CUDA; check torch.cuda.is_available() first")
    name = kind.removeprefix("torch.").removeprefix("cuda.")
    if name in _NAMES:
        return getattr(plait, _NAMES[name])
    if name in _NAMES.values():
        return getattr(plait, name)
    raise ValueError(f"{request}: a type such as 'torch.FloatTensor' is required, got {kind!r}")


def device_of(kind: Any) -> str:
    """Return the type of device of a tensor type or of its name; a dtype means the CPU."""
    name = repr(kind) if isinstance(kind, TensorType) else kind
    return "cuda" if isinstance(name, str) and name.startswith("torch.cuda.") else "cpu"


def name_of(tensor: Any) -> str:
    """Return PyTorch's name of a tensor's type, such as ``"torch.FloatTensor"``."""
    where = "" if tensor.device.type == "cpu" else f"{tensor.device.type}."
    for name, dtype in _NAMES.items():
        if tensor.dtype == getattr(plait, dtype):
            return f"torch.{where}{name}"
    kind = tensor.dtype.name
    if kind.startswith("float8"):
        return f"torch.{where}{kind.capitalize()}Tensor"
    return f"torch.{where}{kind}"
