"""`torch.backends`: flags that programs set. Those of TF32, of deterministic results and of the use
of cuDNN are asked of accelerators; the others are stored but have no effect."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import plait
from plait_abi import components

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
    "xnnpack",
]


class Flags(ModuleType):
    """A module of flags for a backend that is not available.

    Example:
        >>> from plait_torch._backends import mkldnn
        >>> mkldnn.allow_tf32 = False
        >>> mkldnn.is_available(), mkldnn.allow_tf32
        (False, False)
        >>> mkldnn.allow_tf32 = True
    """

    def __init__(self, name: str, **flags: Any) -> None:
        super().__init__(f"torch.backends.{name}", f"Flags of {name}, which nothing here reads.")
        self.__dict__.update(flags)

    def is_available(self) -> bool:
        """Return False: plait computes with its own kernels."""
        return False

    @contextmanager
    def flags(self, **flags: Any) -> Iterator[None]:
        """A context manager that sets flags."""
        before = {name: getattr(self, name, None) for name in flags}
        for name, value in flags.items():
            setattr(self, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)


@functools.cache
def _library_of_convolutions() -> Any:
    """Return the module of cuDNN of the package that brings CUDA devices; None without one."""
    if not components.offers("cuda"):
        return None
    package = components.choose("cuda")
    try:
        return importlib.import_module(f"{package}.cudnn")
    except ModuleNotFoundError as error:
        if error.name == f"{package}.cudnn":
            return None
        raise


class _Cudnn(Flags):
    """The flags of cuDNN.

    `enabled`, `allow_tf32` and `deterministic` are asked; `benchmark` is stored but has no effect:
    how a convolution is computed depends on its sizes, never on measurements.
    """

    _is_enabled = True  # without CUDA devices

    @property
    def enabled(self) -> bool:
        """Whether convolutions of CUDA devices may go to cuDNN."""
        library = _library_of_convolutions()
        return library.is_enabled() if library else self._is_enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self._is_enabled = bool(value)
        if library := _library_of_convolutions():
            library.set_enabled(self._is_enabled)

    def is_available(self) -> bool:
        """Return whether plait-cuda and cuDNN are installed."""
        library = _library_of_convolutions()
        return library is not None and library.is_available()

    def version(self) -> int | None:
        """Return the version of cuDNN, such as 91300; None if it is not available."""
        library = _library_of_convolutions()
        return library.version() if library else None

    def is_acceptable(self, tensor: Any) -> bool:
        """Return whether convolutions of this tensor may go to cuDNN."""
        return (
            tensor.device.type == "cuda"
            and tensor.is_floating_point()
            and self.enabled
            and self.is_available()
        )

    @property
    def allow_tf32(self) -> bool:
        """Whether convolutions may use TF32."""
        return plait.accelerator.uses_tf32()[1]

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        plait.accelerator.set_tf32(convolutions=bool(value))

    @property
    def deterministic(self) -> bool:
        """Whether accelerators give the same bits in every run."""
        return plait.accelerator.is_deterministic()

    @deterministic.setter
    def deterministic(self, value: bool) -> None:
        plait.accelerator.set_deterministic(bool(value))


class _Matmul(Flags):
    """The flags of matrix products; one of them is a setting of accelerators."""

    @property
    def allow_tf32(self) -> bool:
        """Whether matrix products may use TF32."""
        return plait.accelerator.uses_tf32()[0]

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        plait.accelerator.set_tf32(products=bool(value))


def _no_version() -> None:
    return None


def _ignore_setting(mode: bool = True) -> None:
    return None


def _false() -> bool:
    return False


def _preferred_linalg_library(backend: Any = None) -> str:
    """Return "default": an accelerator's package chooses the library of its decompositions."""
    if backend not in (None, "default", "cusolver", "magma"):
        raise RuntimeError(
            "preferred_linalg_library: 'default', 'cusolver' or 'magma' is required; got "
            f"{backend!r}"
        )
    return "default"


def _preferred_blas_library(backend: Any = None) -> str:
    """Return "cublaslt": the library of products of matrices, where it is installed."""
    if backend not in (None, "default", "cublas", "cublaslt", "ck", "hipblaslt"):
        raise RuntimeError(
            "preferred_blas_library: 'default', 'cublas' or 'cublaslt' is required; got "
            f"{backend!r}"
        )
    return "cublaslt"


class _PlanCache:
    """The cache of plans of Fourier transforms, of each device and of all: it is empty, as
    plait-cuda's kernels need no plans. `max_size` is stored but has no effect.
    """

    size, max_size = 0, 0

    def clear(self) -> None:
        """Do nothing: the cache is empty."""

    def __getitem__(self, device: Any) -> _PlanCache:
        return self


class SDPAParams:
    """The arguments of `scaled_dot_product_attention`, by which backends are checked."""

    def __init__(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any,
        dropout: float,
        is_causal: bool,
        enable_gqa: bool,
    ) -> None:
        self.query, self.key, self.value = query, key, value
        self.attn_mask, self.dropout = attn_mask, dropout
        self.is_causal, self.enable_gqa = is_causal, enable_gqa


def _cannot_use(params: SDPAParams, debug: bool = False) -> bool:
    """Return False: there is no CUDA device."""
    return False


@contextmanager
def _sdp_kernel(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


cudnn = _Cudnn(
    "cudnn",
    benchmark=False,
    benchmark_limit=10,
    fp32_precision="none",
)
cuda = Flags(
    "cuda",
    preferred_linalg_library=_preferred_linalg_library,
    preferred_blas_library=_preferred_blas_library,
    cufft_plan_cache=_PlanCache(),
    is_built=lambda: bool(plait.cuda.is_available()),
    matmul=_Matmul(
        "cuda.matmul",
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
        fp32_precision="none",
    ),
    enable_flash_sdp=_ignore_setting,
    enable_math_sdp=_ignore_setting,
    enable_mem_efficient_sdp=_ignore_setting,
    enable_cudnn_sdp=_ignore_setting,
    flash_sdp_enabled=_false,
    math_sdp_enabled=lambda: True,
    mem_efficient_sdp_enabled=_false,
    cudnn_sdp_enabled=_false,
    sdp_kernel=_sdp_kernel,
    SDPAParams=SDPAParams,
    can_use_cudnn_attention=_cannot_use,
    can_use_efficient_attention=_cannot_use,
    can_use_flash_attention=_cannot_use,
    is_flash_attention_available=_false,
)
mkl = Flags("mkl")
mkldnn = Flags("mkldnn", enabled=False, deterministic=False, allow_tf32=True)
mps = Flags(
    "mps",
    is_built=_false,
    is_macos13_or_newer=lambda minor=0: False,
    is_macos_or_newer=lambda major, minor: False,
)
nnpack = Flags("nnpack", set_flags=lambda enabled: (True,))
openmp = Flags("openmp")
opt_einsum = Flags("opt_einsum", enabled=False, strategy=None, get_opt_einsum=_no_version)
xnnpack = Flags("xnnpack", enabled=False)
quantized = Flags("quantized", engine="none", supported_engines=["none"])


def get_cpu_capability() -> str:
    """Return the vector instructions of the kernels: "AVX2", or "DEFAULT" if they need none.

    torchvision resizes bytes as bytes only where it is told "AVX2" or "AVX512".
    """
    from plait_core.instruction_sets import kernel_library

    return "AVX2" if kernel_library().endswith("avx2") else "DEFAULT"


cpu = Flags("cpu", get_cpu_capability=get_cpu_capability)
