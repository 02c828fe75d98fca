"""Attributes of a tensor that follow from others: its kind, and its conjugate transposes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from plait_abi import binding
from plait_abi.components import choose, require
from plait_abi.frames import warn
from plait_core._core import Tensor
from plait_core._docstrings import example
from plait_core._tensor._memory_formats import layout, strided
from plait_core._tensor._storages import refuse_batched


def _is_on(kind: str) -> property:
    example_text = example(f">>> pc.zeros(2).is_{kind}\n{kind == 'cpu'}")
    doc = f"Whether the device is {kind}.\n\n{example_text}"
    return property(lambda self: self.device.type == kind, doc=doc)


def _never(name: str, kind: str) -> property:
    example_text = example(f">>> pc.zeros(2).{name}\nFalse")
    doc = f"False: plait has no {kind} tensors of this class.\n\n{example_text}"
    return property(lambda self: False, doc=doc)


def _layout(self: Tensor) -> layout:
    """The layout of a dense tensor: `strided`.

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
        raise binding.ShapeError(
            f"H: a matrix is required, got shape {tuple(self.shape)}; use .mH for batches"
        )
    if self.ndim:
        return _adjoint(self)
    warn("Tensor.H is deprecated on 0-D tensors. x.conj() gives the conjugate.")
    return self


def is_shared(self: Tensor) -> bool:
    """Tell whether the elements are in shared memory, where other processes may see them.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(2).is_shared()
        False
    """
    # without it no memory is shared
    component = sys.modules.get(choose("multiprocessing"))
    return bool(component is not None and component.is_shared(self))


def share_memory_(self: Tensor) -> Tensor:
    """Move the elements to memory that other processes see, and return the same tensor.

    A tensor that is shared already is not moved. The component "multiprocessing" does the
    work, by default the package plait-multiprocessing.

    Raises:
        ModuleNotFoundError: if it isn't installed.
        RuntimeError: if the storage is used by others as well: views, `detach`, NumPy arrays, a
            recorded graph. A storage never moves: share before they are made, or share a clone.

    Example:
        >>> import plait_core as pc, plait_multiprocessing
        >>> x = pc.zeros(2)
        >>> x.share_memory_() is x, x.is_shared()
        (True, True)
    """
    refuse_batched(self, "share_memory_")
    shared: Tensor = require("multiprocessing").share_memory_(self)
    return shared


_CODES = {  # of dtypes whose names are not NumPy's
    "bool": "b1",
    "bfloat16": "V2",
    **{kind.name: "V1" for kind in binding.dtypes if kind.name.startswith("float8")},
}


def _cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """What libraries such as Numba and CuPy read of a tensor on a CUDA device (version 3).

    Raises:
        AttributeError: for a tensor on another device.
        RuntimeError: for one that requires grad.

    Example:
        >>> import plait_core as pc
        >>> hasattr(pc.zeros(2), "__cuda_array_interface__")
        False
    """
    if self.device.type != "cuda":
        raise AttributeError(
            "__cuda_array_interface__: a tensor on a CUDA device is required; this one is on "
            f"{self.device}"
        )
    if self.requires_grad:
        raise RuntimeError("__cuda_array_interface__: call detach() of a tensor that requires grad")
    refuse_batched(self, "__cuda_array_interface__")
    kind, size = self.dtype, self.element_size()
    letter = "c" if kind.is_complex else "f" if kind.is_floating_point else "i"
    if letter == "i" and not kind.is_signed:
        letter = "u"
    code = _CODES.get(kind.name, f"{letter}{size}")
    stream = binding.current_stream(self.device).cuda_stream
    return {
        "shape": tuple(self.shape),
        "typestr": f"{'|' if size == 1 or code[0] == 'V' else '<'}{code}",
        "data": (self.data_ptr(), False),
        "strides": None if self.is_contiguous() else tuple(each * size for each in self.stride()),
        "stream": stream or 1,  # 1 is the default stream
        "version": 3,
    }


METHODS: dict[str, Callable[..., Any]] = {"is_shared": is_shared, "share_memory_": share_memory_}
PROPERTIES: dict[str, property] = {
    "__cuda_array_interface__": property(_cuda_array_interface),
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
