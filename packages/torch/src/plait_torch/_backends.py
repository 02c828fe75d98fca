"""`torch.backends`: flags that programs set. Those of TF32 and of deterministic results are asked
of accelerators; the others are stored but have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import plait

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
]


class Flags(ModuleType):
    """A module of flags for a backend that is not available.

    Example:
        >>> from plait_torch._backends import cudnn
        >>> cudnn.benchmark = True
        >>> cudnn.is_available(), cudnn.benchmark
        (False, True)
        >>> cudnn.benchmark = False
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


class _Cudnn(Flags):
    """The flags of cuDNN; two of them are settings of accelerators."""

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
    enabled=True,
    benchmark=False,
    benchmark_limit=10,
    fp32_precision="none",
    version=_no_version,
    is_acceptable=lambda tensor: False,
)
cuda = Flags(
    "cuda",
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
quantized = Flags("quantized", engine="none", supported_engines=["none"])
cpu = Flags("cpu", get_cpu_capability=lambda: "DEFAULT")
