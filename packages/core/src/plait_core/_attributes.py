"""Attributes of a tensor that follow from others: what it is not, and its conjugate transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi import _binding
from plait_core._core import Tensor
from plait_core._docstrings import example
from plait_core._memory_formats import layout, strided

__all__ = ["METHODS", "PROPERTIES"]


def _is_on(kind: str) -> property:
    shown = example(f">>> pc.zeros(2).is_{kind}\n{kind == 'cpu'}")
    doc = f"Whether the device is {kind}.\n\n{shown}"
    return property(lambda self: self.device.type == kind, doc=doc)


def _never(name: str, what: str) -> property:
    shown = example(f">>> pc.zeros(2).{name}\nFalse")
    doc = f"False: plait has no {what} tensors of this class.\n\n{shown}"
    return property(lambda self: False, doc=doc)


def _layout(self: Tensor) -> layout:
    """`strided`: elements are reached by steps.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(2).layout
        plait.strided
    """
    return strided


def _adjoint(self: Tensor) -> Tensor:
    """The last two dimensions exchanged, and complex elements conjugated.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([[1 + 1j, 2 + 0j]]).mH.tolist()
        [[(1-1j)], [(2-0j)]]
    """
    turned = self.mT
    return turned.conj() if self.is_complex() else turned


def _hermitian(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix; a ShapeError for more than two dimensions.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([[1 + 1j, 2 + 0j]]).H.tolist()
        [[(1-1j)], [(2-0j)]]
    """
    if self.ndim not in (0, 2):
        raise _binding.ShapeError(
            f"H: a matrix is required, got shape {tuple(self.shape)}; use .mH for batches"
        )
    return _adjoint(self) if self.ndim else self


def is_shared(self: Tensor) -> bool:
    """Return False: no other process sees the elements.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(2).is_shared()
        False
    """
    return False


def share_memory_(self: Tensor) -> Tensor:
    """Move the elements to memory that other processes see; plait has none yet.

    Raises:
        NotImplementedError: always; the package plait-multiprocessing will bring it.

    Example:
        >>> import plait_core as pc
        >>> try:
        ...     pc.zeros(2).share_memory_()
        ... except NotImplementedError as error:
        ...     print(error)
        share_memory_: shared memory comes with the package plait-multiprocessing, not there yet
    """
    raise NotImplementedError(
        "share_memory_: shared memory comes with the package plait-multiprocessing, not there yet"
    )


METHODS: dict[str, Callable[..., Any]] = {"is_shared": is_shared, "share_memory_": share_memory_}
PROPERTIES: dict[str, property] = {
    "H": property(_hermitian),
    "mH": property(_adjoint),
    "is_cpu": _is_on("cpu"),
    "is_cuda": _is_on("cuda"),
    "is_meta": _is_on("meta"),
    "is_mps": _is_on("mps"),
    "is_xpu": _is_on("xpu"),
    "is_mkldnn": _never("is_mkldnn", "opaque"),
    "is_nested": _never("is_nested", "nested"),
    "is_quantized": _never("is_quantized", "quantized"),
    "is_sparse": _never("is_sparse", "sparse"),
    "is_sparse_csr": _never("is_sparse_csr", "compressed"),
    "layout": property(_layout),
}
