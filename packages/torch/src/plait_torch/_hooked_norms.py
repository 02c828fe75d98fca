"""`torch.nn.utils.weight_norm` and `spectral_norm` as modules: the classes of their hooks."""

from __future__ import annotations

from plait_nn.utils._norms import (
    SpectralNorm as SpectralNorm,
    SpectralNormLoadStateDictPreHook as SpectralNormLoadStateDictPreHook,
    SpectralNormStateDictHook as SpectralNormStateDictHook,
    WeightNorm as WeightNorm,
)

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "WeightNorm",
]
