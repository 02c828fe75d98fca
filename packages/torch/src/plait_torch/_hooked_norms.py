"""`torch.nn.utils.weight_norm` and `spectral_norm` as modules: the classes of their hooks."""

from __future__ import annotations

from plait_nn.utils._norms import SpectralNorm as SpectralNorm, WeightNorm as WeightNorm

__all__ = ["SpectralNorm", "WeightNorm"]
