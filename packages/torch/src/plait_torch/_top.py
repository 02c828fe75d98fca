"""Names of `torch` itself: settings, and PyTorch's names of functions of plait."""

from __future__ import annotations

import sys
from typing import Any

import plait
from plait.func import vmap
from plait_torch import _filled_memory, _foreach, _tensor_types
from plait_torch._accelerator import get_device_module
from plait_torch._amp import GradScaler, autocast, get_autocast_dtype, is_autocast_enabled
from plait_torch._compiler import compile, disable as _disable_dynamo
from plait_torch._futures import Future
from plait_torch._random import (
    get_rng_state,
    manual_seed,
    set_rng_state,
    thread_safe_generator,
)
from plait_torch._serialization import load, save
from plait_torch._tensor_types import *  # noqa: F403 - the ten types
from plait_torch._version import __version__

__all__ = [  # noqa: PLE0604 - names of a table
    "_convert_indices_from_csr_to_coo",
    "_softmax_backward_data",
    *(name for name in _tensor_types.__all__ if name.endswith("Tensor")),
    "Future",
    "GradScaler",
    "StorageBase",
    "_disable_dynamo",
    "are_deterministic_algorithms_enabled",
    "autocast",
    "compile",
    "compiled_with_cxx11_abi",
    "finfo",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_deterministic_debug_mode",
    "get_device_module",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_rng_state",
    "manual_seed",
    "has_cuda",
    "has_mps",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "is_inference",
    "is_tensor",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_vulkan_available",
    "legacy_contiguous_format",
    "is_warn_always_enabled",
    "load",
    "save",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_rng_state",
    "set_warn_always",
    "thread_safe_generator",
    "typename",
    "use_deterministic_algorithms",
    "vmap",
]

# the class of all storages, of which there is one here
StorageBase = plait.UntypedStorage


class finfo(plait.finfo):  # noqa: N801 - PyTorch's name
    """`plait.finfo`, with PyTorch's name of the argument.

    Example:
        >>> import plait
        >>> from plait_torch._top import finfo
        >>> finfo(type=plait.float8_e4m3fn).max
        448.0
    """

    __slots__ = ()

    def __init__(self, type: Any = None) -> None:
        super().__init__(type)


legacy_contiguous_format = plait.contiguous_format
has_cuda = has_mps = has_cudnn = has_mkl = has_mkldnn = has_openmp = False
has_lapack = has_spectral = True
_settings: dict[str, Any] = {
    "deterministic": False,
    "warn_only": False,
    "precision": "highest",
    "interop": 1,
    "warn_always": False,
}


def set_default_tensor_type(t: Any) -> None:
    """Set the default floating-point dtype by a tensor type or its name.

    Raises:
        RuntimeError: for types of CUDA.
        TypeError: for types of other dtypes.

    Example:
        >>> import plait
        >>> from plait_torch._top import set_default_tensor_type
        >>> set_default_tensor_type("torch.DoubleTensor")
        >>> plait.zeros(1).dtype
        plait.float64
        >>> set_default_tensor_type("torch.FloatTensor")
    """
    plait.set_default_dtype(_tensor_types.dtype_of(t, "set_default_tensor_type"))
    plait.set_default_device(_tensor_types.device_of(t))


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask accelerators for the same bits in every run; the CPU always gives them.

    With `warn_only` nothing is asked for, as an accelerator would raise an error. New memory gets
    the values of `torch.utils.deterministic`.
    """
    _settings["deterministic"], _settings["warn_only"] = bool(mode), bool(warn_only)
    _filled_memory.set_filling(bool(mode))
    plait.accelerator.set_deterministic(bool(mode) and not warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Return the flag that `use_deterministic_algorithms` stored."""
    return bool(_settings["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return the flag ``warn_only`` that `use_deterministic_algorithms` stored."""
    return bool(_settings["warn_only"])


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """Call `use_deterministic_algorithms`, for 1 and "warn" with ``warn_only``."""
    use_deterministic_algorithms(
        debug_mode not in (0, "default"), warn_only=debug_mode in (1, "warn")
    )


def get_deterministic_debug_mode() -> int:
    """Return 2 ("error") or 1 ("warn") if `use_deterministic_algorithms` is on, else 0."""
    if not _settings["deterministic"]:
        return 0
    return 1 if _settings["warn_only"] else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Let accelerators use TF32 in products of float32, unless it is "highest"."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            "set_float32_matmul_precision: 'highest', 'high' or 'medium' is required, got "
            f"{precision!r}"
        )
    _settings["precision"] = precision
    plait.accelerator.set_tf32(products=precision != "highest")


def get_float32_matmul_precision() -> str:
    """Return the setting of `set_float32_matmul_precision`, or of ``allow_tf32``."""
    if not plait.accelerator.uses_tf32()[0]:
        return "highest"
    return "high" if _settings["precision"] == "highest" else str(_settings["precision"])


def set_num_interop_threads(num: int) -> None:
    """Store the number only: operators run one after another."""
    _settings["interop"] = int(num)


def get_num_interop_threads() -> int:
    """Return the number of `set_num_interop_threads`."""
    return int(_settings["interop"])


def set_flush_denormal(mode: bool) -> bool:
    """Return False, as PyTorch does on machines without support: denormal numbers are kept."""
    return False


def set_warn_always(b: bool) -> None:
    """Store the flag only."""
    _settings["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """Return the flag of `set_warn_always`."""
    return bool(_settings["warn_always"])


def _shape_as_tensor(input: Any) -> Any:
    """Return the shape of a tensor as a tensor of int64."""
    return plait.tensor(list(input.shape), dtype=plait.int64)


def _softmax_backward_data(
    grad_output: Any, output: Any, dim: int, input_dtype: Any, *, grad_input: Any = None
) -> Any:
    """Return the gradient of `softmax` from that of its result and the result.

    Example:
        >>> import plait
        >>> from plait_torch._top import _softmax_backward_data
        >>> grad, y = plait.tensor([1.0, 0.0]), plait.tensor([0.25, 0.75])
        >>> _softmax_backward_data(grad, y, 0, plait.float32)
        tensor([ 0.1875, -0.1875])
    """
    product = grad_output * output
    result = (product - output * product.sum(dim, keepdim=True)).to(input_dtype)
    return result if grad_input is None else grad_input.copy_(result)


def _convert_indices_from_csr_to_coo(
    crow_indices: Any, col_indices: Any, *, out_int32: bool = False, transpose: bool = False
) -> Any:
    """Return the rows and columns of the elements of a CSR matrix, as a tensor ``(2, n)``.

    Args:
        crow_indices: where each row begins, with the end of the last.
        col_indices: the column of each element.
        out_int32: whether the result is of int32, else int64.
        transpose: whether the columns come first.

    Example:
        >>> import plait
        >>> from plait_torch._top import _convert_indices_from_csr_to_coo
        >>> _convert_indices_from_csr_to_coo(plait.tensor([0, 1, 3]), plait.tensor([2, 0, 1]))
        tensor([[0, 1, 1],
                [2, 0, 1]])
    """
    numbers = plait.arange(crow_indices.shape[0] - 1)
    rows = numbers.repeat_interleave((crow_indices[1:] - crow_indices[:-1]).to(plait.int64))
    dtype = plait.int32 if out_int32 else plait.int64
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return plait.stack([each.to(dtype) for each in pair])


def is_vulkan_available() -> bool:
    """Return False: no tensor is computed with Vulkan."""
    return False


def is_inference(input: Any) -> bool:
    """Return False: there are no inference tensors."""
    return False


def is_autocast_cpu_enabled() -> bool:
    """Return whether a region of `autocast` for the CPU is active."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Any:
    """Return the dtype of regions of the CPU."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """Return the dtype of regions of CUDA devices."""
    return get_autocast_dtype("cuda")


def is_tensor(obj: Any) -> bool:
    """Return ``isinstance(obj, torch.Tensor)``, which is True of sparse tensors too.

    Example:
        >>> import plait
        >>> from plait_torch._top import is_tensor
        >>> is_tensor(plait.eye(2).to_sparse()), is_tensor([1.0])
        (True, False)
    """
    return isinstance(obj, plait.Tensor)


def compiled_with_cxx11_abi() -> bool:
    """Return True."""
    return True


def typename(obj: Any) -> str:
    """Return the name of an object's type, for tensors that of PyTorch: ``"torch.FloatTensor"``."""
    if isinstance(obj, plait.Tensor):
        return _tensor_types.name_of(obj)
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "") or ""
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def __getattr__(name: str) -> Any:
    if name == "classproperty" or name.startswith("__"):
        raise AttributeError(name)
    if name == "torch":  # `torch.torch` is `torch`, as in PyTorch
        return sys.modules["torch"]
    if _foreach.has(name):
        return _foreach.make(name)
    result = sys.modules[__name__].__dict__.get(name)
    if result is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return result


assert __version__
