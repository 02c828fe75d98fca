"""Tensors for plait: arrays of numbers, and the operators on them.

    >>> import plait_core as pc
    >>> x = pc.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> (x @ x + 1).sum()
    tensor(58.)

All operators of the registry are functions here, and methods of `Tensor` where their first argument
is called ``self``; `plait_ops` documents them.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any

from plait_abi import (
    DTypeError,
    Generator,
    OutOfMemoryError,
    PlaitError,
    ShapeError,
    _binding,
    device,
    dtype,
)
from plait_core import _conversions, _protocols, _startup
from plait_core._comparison import allclose, equal
from plait_core._core import (
    Size,
    Tensor,
    empty_cache,
    from_dlpack,
    from_numpy,
    get_default_dtype,
    get_num_threads,
    is_tensor,
    memory_stats,
    set_default_dtype,
    set_num_threads,
)
from plait_core._creation import as_tensor, asarray, frombuffer, tensor
from plait_core._dtypes import (
    bfloat16,
    bool_,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    finfo,
    float16,
    float32,
    float64,
    half,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    long,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from plait_core._protocols import mark_written
from plait_core._random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from plait_core._repr import set_printoptions

if TYPE_CHECKING:
    from plait_core._operators import *  # noqa: F403

__version__ = "0.1.0"

__all__ = [
    "DTypeError",
    "Generator",
    "OutOfMemoryError",
    "PlaitError",
    "ShapeError",
    "Size",
    "Tensor",
    "allclose",
    "as_tensor",
    "asarray",
    "bfloat16",
    "bool",
    "bool_",
    "cdouble",
    "cfloat",
    "complex64",
    "complex128",
    "device",
    "double",
    "dtype",
    "e",
    "empty_cache",
    "equal",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "get_default_dtype",
    "get_num_threads",
    "get_rng_state",
    "half",
    "iinfo",
    "inf",
    "initial_seed",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_tensor",
    "long",
    "manual_seed",
    "mark_written",
    "memory_stats",
    "nan",
    "numel",
    "pi",
    "seed",
    "set_default_dtype",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "short",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


def numel(input: Tensor) -> Any:
    """Return the number of elements of a tensor."""
    return input.numel()


def __getattr__(name: str) -> Any:
    if name == "default_generator":
        return _binding.default_generator()
    try:  # an operator that a plug-in defined after this package was imported
        return _binding.operator(name)
    except AttributeError:
        raise AttributeError(f"module 'plait_core' has no attribute {name!r}") from None


def _bind_operators() -> None:
    """Make every operator a function, and a method where it works on ``self``."""
    own = set(globals())
    for name, place in _binding.operator_names():
        operator = _binding.operator(name)
        if name not in own and place != "internal":
            globals()[name] = operator
        if place == "method" and name not in Tensor.__dict__:
            setattr(Tensor, name, operator)


for _name, _method in {**_conversions.METHODS, **_protocols.METHODS}.items():
    setattr(Tensor, _name, _method)
_startup.start()
_bind_operators()
del _name, _method

# the dtypes that share a name with a builtin type, last: nothing above may see them
bool = bool_
float = float32
int = int32
