"""Nested containers as JSON, with tags for types that JSON does not have.

Lists, texts, finite numbers, True, False and None are written as themselves; everything else is an
object with one key, its tag. Tensors and arrays are indices into a table beside the tree.
"""

from __future__ import annotations

import base64
import math
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from plait_abi import binding
from plait_abi.components import choose, require
from plait_core._checkpoints._errors import CheckpointError
from plait_core._core import Size, Tensor, is_tensor
from plait_core._sparse._compressed import CompressedTensor, sparse_compressed_tensor
from plait_core._sparse._coordinates import SparseTensor
from plait_core._sparse._creation import sparse_coo_tensor
from plait_core._tensor._memory_formats import layout, memory_format

DEEPEST = 200
_LONGEST_BYTES = 4096  # longer ones are stored as tensors


def parameter_type() -> type[Tensor] | None:
    """Return the class Parameter of the component nn, or None if that is not imported."""
    module = sys.modules.get(choose("nn"))
    return getattr(module, "Parameter", None)


def is_parameter(tensor: Tensor) -> bool:
    """Return whether a tensor is a parameter; raise TypeError for other subclasses of Tensor."""
    if type(tensor) is Tensor:
        return False
    kind = parameter_type()
    if kind is not None and type(tensor) is kind:
        return True
    raise TypeError(f"got a {type(tensor).__name__}, a subclass of Tensor; save x.detach()")


def with_grad(tensor: Tensor, grad: bool, parameter: bool) -> Tensor:
    """Make a parameter, or a leaf that requires grad if an engine is installed."""
    try:
        if parameter:
            kind = parameter_type()
            if kind is None:
                kind = require("nn").Parameter
            return kind(tensor, grad)
        return tensor.requires_grad_() if grad else tensor
    except ModuleNotFoundError:
        return tensor


def refusal(path: str, value: Any) -> str:
    """Return the error for an object that is not data."""
    kind = type(value)
    return (
        f"save: {path} is a {kind.__module__}.{kind.__qualname__}, which cannot be saved as "
        "data. Data are tensors, arrays, numbers, strings, bytes, None, dtypes, devices, and dict, "
        "list, tuple and set of them; of a module, save its state_dict(). weights_only=False "
        "pickles whole objects; load reads them with weights_only=False, or with their classes in "
        "safe_globals"
    )


class Encoder:
    """An encoder that makes the tree and collects tensors and arrays with their paths.

    A container that occurs several times is encoded once: all its places in the tree are one list.
    """

    def __init__(self) -> None:
        self.found: list[tuple[str, Any]] = []
        self.count = 0  # of the values in the tree, each as often as it occurs
        self._numbers: dict[int, int] = {}
        # of containers, by id: themselves, their trees, how deep these are, and their counts
        self._encoded: dict[int, tuple[Any, Any, int, int]] = {}
        self._deepest = 0  # that a value was

    def number(self, path: str, value: Any) -> int:
        """Return the index of a tensor or array in the table, the same for the same object."""
        key = id(value)
        if key not in self._numbers:
            if is_tensor(value):
                try:
                    is_parameter(value)
                except TypeError as error:
                    raise CheckpointError(f"save: {path}: {error}") from None
            self._numbers[key] = len(self.found)
            # keeps the object alive, so that its id is not used again
            self.found.append((path, value))
        return self._numbers[key]

    def encode(self, value: Any, path: str = "", depth: int = 0) -> Any:
        """Return the JSON for `value`."""
        self._note_depth(path, depth)
        self.count += 1
        if value is None or value is True or value is False or type(value) is str:
            return value
        if is_tensor(value):
            return {"tensor": self.number(path, value)}
        encoder = _ENCODERS.get(type(value))
        if encoder is None and isinstance(value, np.generic):
            encoder = _encode_scalar
        if encoder is None and isinstance(value, np.dtype) and not value.hasobject:
            encoder = _tagged("numpy_dtype", lambda result: result.str)
        if encoder is None:
            raise CheckpointError(refusal(path or "the object", value))
        known = self._encoded.get(id(value))
        if known is None:
            deepest, count, self._deepest = self._deepest, self.count, depth
            tree = encoder(self, value, path, depth + 1)
            # the value is kept alive, so that its id is not used again
            known = value, tree, self._deepest - depth, self.count - count
            if type(tree) in (list, dict):
                self._encoded[id(value)] = known
            self._deepest = max(deepest, self._deepest)
            return tree
        _, tree, height, count = known
        self._note_depth(path, depth + height)
        self.count += count
        return tree

    def _note_depth(self, path: str, depth: int) -> None:
        if depth > DEEPEST:
            raise CheckpointError(
                f"save: {path[:60]}... is nested more than {DEEPEST} deep, or contains itself"
            )
        self._deepest = max(self._deepest, depth)

    def items(self, values: Any, path: str, depth: int) -> list[Any]:
        """Encode the members of a sequence."""
        dot = f"{path}." if path else ""
        return [self.encode(value, f"{dot}{i}", depth) for i, value in enumerate(values)]

    def pairs(self, values: Any, path: str, depth: int) -> list[list[Any]]:
        """Encode keys and values of a mapping."""
        dot = f"{path}." if path else ""
        return [
            [self.encode(key, f"{dot}(key)", depth), self.encode(value, f"{dot}{key}", depth)]
            for key, value in values.items()
        ]


def _encode_int(encoder: Encoder, value: int, path: str, depth: int) -> Any:
    return value if -(2**63) <= value < 2**63 else {"int": hex(value)}


def _encode_float(encoder: Encoder, value: float, path: str, depth: int) -> Any:
    return value if math.isfinite(value) else {"float": str(value)}


def _encode_complex(encoder: Encoder, value: complex, path: str, depth: int) -> Any:
    return {"complex": encoder.items([value.real, value.imag], path, depth)}


def _encode_bytes(encoder: Encoder, value: bytes | bytearray, path: str, depth: int) -> Any:
    tag = type(value).__name__
    if len(value) <= _LONGEST_BYTES:
        return {tag: base64.b64encode(value).decode()}
    data = np.frombuffer(bytes(value), np.uint8)
    return {tag: encoder.number(path, data)}


def _encode_ordered(encoder: Encoder, value: Any, path: str, depth: int) -> Any:
    result: dict[str, Any] = {"ordered": encoder.pairs(value, path, depth)}
    # attribute of a module's state_dict: the versions of its submodules
    if "_metadata" in vars(value):
        result["metadata"] = encoder.encode(value._metadata, f"{path}._metadata", depth)
    return result


def _encode_array(encoder: Encoder, value: Any, path: str, depth: int) -> Any:
    if value.dtype.hasobject:
        raise CheckpointError(
            f"save: {path} is an array of Python objects; only arrays of numbers can be saved"
        )
    return {"array": encoder.number(path, value)}


def _encode_scalar(encoder: Encoder, value: Any, path: str, depth: int) -> Any:
    if value.dtype.hasobject or value.dtype.names:
        raise CheckpointError(refusal(path, value))
    return {"scalar": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}


def _encode_sparse(encoder: Encoder, value: SparseTensor, path: str, depth: int) -> Any:
    parts = [value._indices(), value._values(), list(value.shape), value.is_coalesced()]
    return {"sparse": encoder.items(parts, path, depth)}


def _encode_compressed(encoder: Encoder, value: CompressedTensor, path: str, depth: int) -> Any:
    parts = [value._bounds, value._places, value._stored, list(value.shape), value.layout.name]
    return {"compressed": encoder.items(parts, path, depth)}


def _tagged(tag: str, change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda encoder, value, path, depth: {tag: change(value)}


def _listed(tag: str) -> Callable[..., Any]:
    return lambda encoder, value, path, depth: {tag: encoder.items(value, path, depth)}


_ENCODERS: dict[type, Callable[..., Any]] = {
    int: _encode_int,
    float: _encode_float,
    complex: _encode_complex,
    bytes: _encode_bytes,
    bytearray: _encode_bytes,
    list: lambda encoder, value, path, depth: encoder.items(value, path, depth),
    tuple: _listed("tuple"),
    set: _listed("set"),
    frozenset: _listed("frozenset"),
    slice: lambda encoder, v, path, depth: {
        "slice": encoder.items([v.start, v.stop, v.step], path, depth)
    },
    range: lambda encoder, v, path, depth: {
        "range": encoder.items([v.start, v.stop, v.step], path, depth)
    },
    Size: _listed("size"),
    dict: lambda encoder, value, path, depth: {"dict": encoder.pairs(value, path, depth)},
    Counter: lambda encoder, value, path, depth: {"counter": encoder.pairs(value, path, depth)},
    OrderedDict: _encode_ordered,
    np.ndarray: _encode_array,
    SparseTensor: _encode_sparse,
    CompressedTensor: _encode_compressed,
    binding.dtype: _tagged("dtype", lambda value: value.name),
    binding.device: _tagged("device", str),
    layout: _tagged("layout", lambda value: value.name),
    memory_format: _tagged("memory_format", lambda value: value.name),
}


def decode(tree: Any, entry: Callable[[int], Any]) -> Any:
    """Return the object that `tree` describes; `entry` returns tensors and arrays by index."""
    if type(tree) is list:
        return [decode(value, entry) for value in tree]
    if type(tree) is not dict:
        return tree
    if not tree:
        raise CheckpointError("load: the tree of the data is damaged: no tag")
    tag, value = next(iter(tree.items()))
    if tag == "ordered":
        result = OrderedDict(_pairs(value, entry))
        if "metadata" in tree:
            result._metadata = decode(tree["metadata"], entry)  # type: ignore[attr-defined]
        return result
    return _DECODERS[tag](value, entry)


def _pairs(pairs: Any, entry: Callable[[int], Any]) -> dict[Any, Any]:
    return {decode(key, entry): decode(value, entry) for key, value in pairs}


def _bytes(value: Any, entry: Callable[[int], Any]) -> bytes:
    return base64.b64decode(value) if isinstance(value, str) else entry(value).tobytes()


def _scalar(value: Any, entry: Callable[[int], Any]) -> Any:
    return np.frombuffer(base64.b64decode(value[1]), np.dtype(value[0]))[0]


def _sparse(value: Any, entry: Callable[[int], Any]) -> SparseTensor:
    indices, values, shape, coalesced = decode(value, entry)
    return sparse_of(indices, values, tuple(shape), bool(coalesced))


def sparse_of(
    indices: Tensor, values: Tensor, shape: tuple[int, ...], coalesced: bool | None
) -> SparseTensor:
    """Make a sparse tensor; indices on the device meta are not checked."""
    if indices.device.type == "meta":
        return SparseTensor(indices, values, shape, bool(coalesced))
    return sparse_coo_tensor(indices, values, shape, is_coalesced=coalesced)


def _compressed(value: Any, entry: Callable[[int], Any]) -> CompressedTensor:
    bounds, places, values, shape, kind = decode(value, entry)
    return compressed_of(bounds, places, values, tuple(shape), kind)


def compressed_of(
    bounds: Tensor, places: Tensor, values: Tensor, shape: tuple[int, ...], kind: str
) -> CompressedTensor:
    """Make a compressed tensor; its parts are checked."""
    return sparse_compressed_tensor(bounds, places, values, shape, layout=layout(kind))


def _of(build: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda value, entry: build(decode(value, entry))


_DECODERS: dict[str, Callable[[Any, Callable[[int], Any]], Any]] = {
    "tensor": lambda value, found: found(value),
    "array": lambda value, found: found(value),
    "int": lambda value, found: int(value, 16),
    "float": lambda value, found: float(value),
    "complex": _of(lambda parts: complex(*parts)),
    "bytes": _bytes,
    "bytearray": lambda value, found: bytearray(_bytes(value, found)),
    "tuple": _of(tuple),
    "set": _of(set),
    "frozenset": _of(frozenset),
    "slice": _of(lambda parts: slice(*parts)),
    "range": _of(lambda parts: range(*parts)),
    "size": _of(Size),
    "dict": _pairs,
    "counter": lambda value, found: Counter(_pairs(value, found)),
    "scalar": _scalar,
    "sparse": _sparse,
    "compressed": _compressed,
    "dtype": lambda value, found: binding.dtype(value),
    "numpy_dtype": lambda value, found: np.dtype(value),
    "device": lambda value, found: binding.device(value),
    "layout": lambda value, found: layout(value),
    "memory_format": lambda value, found: memory_format(value),
}
