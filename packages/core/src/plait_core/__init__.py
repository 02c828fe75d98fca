"""Tensors for plait: arrays of numbers, and the operators on them.

    >>> import plait_core as pc
    >>> x = pc.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> (x @ x + 1).sum()
    tensor(58.)

An operator of the registry is a function here, a method of `Tensor`, or both, as its definition in
`plait_ops` says; others are reached by `plait_abi.operator`, as ``plait.nn.functional`` does.
"""

from __future__ import annotations

import importlib as _importlib
import typing as _typing
from math import e, inf, nan, pi

from plait_abi import (
    ArgumentError,
    DTypeError,
    Event,
    Generator,
    OutOfMemoryError,
    OutOfRangeError,
    PlaitError,
    ShapeError,
    Stream,
    binding as _binding,
    device,
    dtype,
    get_default_device,
    set_default_device,
)
from plait_abi.arguments import name_arguments as _name_arguments
from plait_core import (
    _core as _core,  # an attribute also after an import that was interrupted and repeated
    _creation,
    _namespaces,
    _startup,
    sparse,
)
from plait_core._checkpoints import CheckpointError, load, save
from plait_core._core import (
    Size,
    Tensor,
    empty_cache,
    from_dlpack,
    from_numpy,
    get_default_dtype,
    get_num_threads,
    get_winograd,
    is_batch_invariant,
    is_reproducible,
    is_tensor,
    is_weight_cache_enabled,
    memory_stats,
    reset_peak_memory_stats,
    set_batch_invariant,
    set_default_dtype,
    set_num_threads,
    set_weight_cache,
    set_winograd,
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
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
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
from plait_core._functions import _comparison, _lists, _stft, _unique
from plait_core._functions._comparison import allclose, equal
from plait_core._functions._einsum import einsum
from plait_core._functions._gradient import gradient
from plait_core._functions._histograms import histogramdd, segment_reduce
from plait_core._functions._lists import (
    as_strided,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    histogram,
    meshgrid,
    nonzero,
)
from plait_core._functions._products import block_diag, chain_matmul, tensordot
from plait_core._functions._stft import istft, stft
from plait_core._functions._unique import unique, unique_consecutive
from plait_core._fusion import is_fusion_enabled, set_fusion
from plait_core._numpy import _api as _numpy_api, _functions as _numpy_functions
from plait_core._promotion import (
    can_cast,
    is_floating_point,
    is_nonzero,
    promote_types,
    result_type,
)
from plait_core._random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from plait_core._sparse import (
    _base as _sparse_base,
    _compressed as _sparse_compressed,
    _coordinates,
    _creation as _sparse_creation,
    _gradients as _sparse_gradients,
)
from plait_core._sparse._compressed import (
    CompressedTensor,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from plait_core._sparse._coordinates import SparseTensor
from plait_core._sparse._creation import sparse_coo_tensor
from plait_core._startup import set_reproducible
from plait_core._tensor import (
    _attributes,
    _complex,
    _conversions,
    _graph_attributes,
    _hooks,
    _methods as _tensor_methods,
    _protocols,
    _resizing,
    _views,
)
from plait_core._tensor._complex import (
    is_complex as is_complex,
    is_conj as is_conj,
    resolve_conj as resolve_conj,
)
from plait_core._tensor._memory_formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from plait_core._tensor._methods import is_same_size
from plait_core._tensor._protocols import mark_written
from plait_core._tensor._repr import set_printoptions
from plait_core._tensor._storages import UntypedStorage
from plait_core._tensor._views import narrow_copy

if _typing.TYPE_CHECKING:
    from plait_core import (
        _operators,
        accelerator as accelerator,
        array_api as array_api,
        cuda as cuda,
        testing as testing,
    )
    from plait_core._operators import *  # type: ignore[assignment]  # noqa: F403

    default_generator: Generator

__version__ = "0.2.0"

__all__ = [
    "istft",
    "stft",
    "CheckpointError",
    "CompressedTensor",
    "ArgumentError",
    "DTypeError",
    "Event",
    "Generator",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PlaitError",
    "ShapeError",
    "Size",
    "SparseTensor",
    "Stream",
    "Tensor",
    "UntypedStorage",
    "allclose",
    "as_strided",
    "as_tensor",
    "asarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bfloat16",
    "block_diag",
    "bool",
    "bool_",
    "broadcast_shapes",
    "broadcast_tensors",
    "can_cast",
    "cartesian_prod",
    "cdouble",
    "cfloat",
    "chain_matmul",
    "channels_last",
    "channels_last_3d",
    "complex128",
    "complex64",
    "contiguous_format",
    "device",
    "double",
    "dtype",
    "e",
    "einsum",
    "empty_cache",
    "equal",
    "fft",
    "finfo",
    "float",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "get_default_device",
    "get_default_dtype",
    "get_num_threads",
    "get_rng_state",
    "get_winograd",
    "gradient",
    "half",
    "histogram",
    "histogramdd",
    "iinfo",
    "inf",
    "initial_seed",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_batch_invariant",
    "is_floating_point",
    "is_fusion_enabled",
    "is_nonzero",
    "is_reproducible",
    "is_same_size",
    "is_tensor",
    "is_weight_cache_enabled",
    "layout",
    "linalg",
    "load",
    "long",
    "manual_seed",
    "mark_written",
    "memory_format",
    "memory_stats",
    "meshgrid",
    "nan",
    "newaxis",
    "narrow_copy",
    "nonzero",
    "numel",
    "pi",
    "preserve_format",
    "promote_types",
    "reset_peak_memory_stats",
    "result_type",
    "save",
    "seed",
    "segment_reduce",
    "set_batch_invariant",
    "set_default_device",
    "set_default_dtype",
    "set_fusion",
    "set_num_threads",
    "set_printoptions",
    "set_reproducible",
    "set_rng_state",
    "set_weight_cache",
    "set_winograd",
    "short",
    "sparse",
    "sparse_bsc",
    "sparse_bsc_tensor",
    "sparse_bsr",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo",
    "sparse_coo_tensor",
    "sparse_csc",
    "sparse_csc_tensor",
    "sparse_csr",
    "sparse_csr_tensor",
    "special",
    "strided",
    "tensor",
    "tensordot",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique",
    "unique_consecutive",
]
if _typing.TYPE_CHECKING:  # the operators, which are bound below
    __all__ += _operators.__all__


def numel(input: Tensor) -> _typing.Any:
    """Return the number of elements of a tensor.

    Args:
        input: The tensor.

    Example:
        >>> import plait_core as pc
        >>> pc.numel(pc.zeros(2, 3))
        6
    """
    return input.numel()


# modules that are imported at their first use
_LAZY = ("accelerator", "array_api", "cuda", "testing")


def __dir__() -> list[str]:
    # other modules of the package are names of it only once they are imported
    modules = {name for name, value in globals().items() if isinstance(value, type(_core))}
    names = {*globals()} - modules | {*_LAZY, *__all__}
    return sorted(name for name in names if name[:1] != "_" or name[:2] == "__")


if not _typing.TYPE_CHECKING:  # a checker reports a name that is not defined

    def __getattr__(name: str) -> _typing.Any:
        if name in _LAZY:
            return _importlib.import_module(f"plait_core.{name}")
        if name == "default_generator":
            return _binding.default_generator()
        operator = None if _namespaces.in_namespace(name) else _namespaces.defined_later(name)
        if operator is None:
            raise AttributeError(f"module 'plait_core' has no attribute {name!r}{_elsewhere(name)}")
        return operator


# names that readers of PyTorch's expect beside tensors, and the package that has them
_ELSEWHERE = {
    "compile": "plait_graph",
    "enable_grad": "plait_autograd",
    "export": "plait_graph",
    "inference_mode": "plait_autograd",
    "is_grad_enabled": "plait_autograd",
    "no_grad": "plait_autograd",
    "set_grad_enabled": "plait_autograd",
    "vmap": "plait_func",
}


def _elsewhere(name: str) -> str:
    """Return where a name is that another package has; nothing for other names."""
    from plait_abi.components import DEFAULTS

    if name in _ELSEWHERE:
        return f"; it is {_ELSEWHERE[name]}.{name}, or plait.{name}"
    if name in DEFAULTS:
        public = "utils.data" if name == "data" else name
        return f"; it is the package {DEFAULTS[name]}, or plait.{public}"
    return ""


def _bind_operators() -> None:
    """Make operators functions and methods, as their definitions say."""
    own = set(globals())
    for name, variants in _binding.operator_names():
        function = "function" in variants and not _namespaces.in_namespace(name)
        if function and name not in own:
            globals()[name] = _binding.operator(name)
        if "method" in variants and name not in Tensor.__dict__:
            setattr(Tensor, name, _binding.operator_method(name))


# Each module of a topic has METHODS and PROPERTIES of Tensor, and FALLBACKS: methods that are used
# only if no operator has their name.
_TOPICS = (
    _creation,
    _conversions,
    _protocols,
    _comparison,
    _numpy_functions,
    _tensor_methods,
    _attributes,
    _resizing,
    _sparse_creation,
    _sparse_compressed,
    _complex,
    _lists,
    _unique,
    _views,
    _numpy_api,
    _hooks,
    _graph_attributes,
    _stft,
)


def _bind_topics() -> None:
    for topic in _TOPICS:
        for kind in ("METHODS", "PROPERTIES"):
            for name, member in getattr(topic, kind, {}).items():
                setattr(Tensor, name, member)


def _bind_fallbacks() -> None:
    for topic in _TOPICS:
        for name, member in getattr(topic, "FALLBACKS", {}).items():
            if name not in Tensor.__dict__:
                setattr(Tensor, name, member)
    for name, first in _tensor_methods.SECOND_NAMES.items():
        if not name.endswith("_"):
            globals().setdefault(name, globals()[first])
        if name not in Tensor.__dict__:
            setattr(Tensor, name, Tensor.__dict__[first])


_bind_topics()
_startup.start()
_bind_operators()
_bind_fallbacks()
_sparse_gradients.register()
_sparse_base.bind()
_coordinates.bind()
_sparse_compressed.bind()

from plait_core import fft, linalg, special  # noqa: E402, they are filled from the registry

newaxis = None

# the dtypes that share a name with a builtin type come last: the code above needs the builtins
bool = bool_
float = float32
int = int32

_name_arguments(globals())

del annotations  # of __future__, not a name of plait
