"""Complex tensors: their parts as attributes, and predicates."""

from __future__ import annotations

from typing import Any

from plait_abi import binding
from plait_core._core import Tensor, is_tensor
from plait_core._docstrings import example


def _part(name: str, doc: str, text: str) -> property:
    def get(self: Tensor) -> Tensor:
        return binding.operator(name)(self)  # type: ignore[no-any-return]

    def put(self: Tensor, value: Any) -> None:
        part = get(self)
        if is_tensor(value):
            part.copy_(value)
        else:
            part.fill_(value)

    return property(get, put, doc=f"{doc}\n\n{example(text)}")


def is_complex(input: Tensor) -> bool:
    """Return whether the elements are complex numbers: complex64 or complex128.

    Example:
        >>> import plait_core as pc
        >>> pc.is_complex(pc.tensor([1j]))
        True
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"is_complex: `input` must be a Tensor, got {type(input).__name__}")
    return input.dtype.is_complex


def is_conj(input: Tensor) -> bool:
    """Return False: conjugates are computed at once, never lazily as in PyTorch.

    Example:
        >>> import plait_core as pc
        >>> pc.is_conj(pc.tensor([1j]).conj())
        False
    """
    return False


def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself: conjugates are computed at once, never lazily as in PyTorch.

    Example:
        >>> import plait_core as pc
        >>> pc.resolve_conj(pc.tensor([1j]).conj()).tolist()
        [-1j]
    """
    return input


PROPERTIES: dict[str, property] = {
    "real": _part(
        "real",
        "The real parts, a view; of a real tensor, the tensor itself.",
        ">>> pc.tensor([1 + 2j]).real\ntensor([1.])",
    ),
    "imag": _part(
        "imag",
        "The imaginary parts, a view; a DTypeError for real tensors.",
        ">>> x = pc.tensor([1 + 2j])\n>>> x.imag = 5.0\n>>> x\ntensor([1.+5.j])",
    ),
}
