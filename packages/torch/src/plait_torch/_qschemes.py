"""The names of PyTorch's schemes of quantization, which programs compare and keep in settings.

plait has no quantized tensors, so no tensor has a scheme.
"""

from __future__ import annotations

__all__ = [
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "qscheme",
]


class qscheme:  # noqa: N801 - PyTorch's name
    """How numbers and small integers correspond: by one scale or one for each channel.

    Example:
        >>> import pickle
        >>> from plait_torch._qschemes import per_tensor_affine
        >>> per_tensor_affine, pickle.loads(pickle.dumps(per_tensor_affine)) is per_tensor_affine
        (torch.per_tensor_affine, True)
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


per_tensor_affine = qscheme("per_tensor_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_affine = qscheme("per_channel_affine")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")
