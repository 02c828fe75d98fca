"""Kernels that are functions of Python, or of tvm-ffi."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from plait_abi import binding


class Kernel(AbstractContextManager["Kernel"]):
    """A registered kernel. It serves calls until `close`, or until the end of a ``with`` block.

    Example:
        >>> import plait_abi, plait_core as pc
        >>> calls = []
        >>> def count(x, out):
        ...     calls.append(x.shape)
        ...     return NotImplemented  # the kernel before it computes
        >>> with plait_abi.kernel("exp", count) as kernel:
        ...     _ = pc.exp(pc.zeros(3))
        >>> len(calls), kernel
        (1, <kernel of exp>)
    """

    def __init__(self, name: str, function: Callable[..., Any], device: Any) -> None:
        self._name = name
        address = _address_in_tvm(function)
        if address:
            self._registered = binding.implement_tvm(name, address, device)
        else:
            self._registered = binding.implement(name, function, device)

    def __repr__(self) -> str:
        return f"<kernel of {self._name}>"

    def close(self) -> None:
        """Remove the kernel: the one before it serves calls again. A second call does nothing."""
        binding.retract(self._registered)

    def __exit__(self, *exception: object) -> None:
        self.close()


def _address_in_tvm(function: Any) -> int:
    """Return the address of a function of tvm-ffi; 0 for all others."""
    tvm_ffi = sys.modules.get("tvm_ffi")
    if tvm_ffi is None or not isinstance(function, tvm_ffi.Function):
        return 0
    return int(function.__chandle__())


def kernel(name: str, function: Callable[..., Any], device: Any = "cpu") -> Kernel:
    """Register a Python function, or a function of tvm-ffi, as the kernel of an operator.

    ``function(*arguments, *results)`` gets every argument of the schema in its order, defaults
    filled in, and then the results: tensors that have their shape and dtype already and whose
    elements it sets. The shape function has validated the arguments and cast them. Tensors are seen
    without their history, and nothing that the function calls is recorded; the derivative of an
    operator stays what its definition says. The function returns None, or ``NotImplemented`` to
    leave the call to the kernel before it. An exception that it raises reaches the caller of the
    operator.

    A ``tvm_ffi.Function``, such as one of a compiled module, is called without Python and without
    the GIL. It gets tensors of tvm-ffi on the same memory, and arrays for lists, and fills its
    results in, too. If its error has the kind ``NotImplementedError``, the
    call is left to the kernel before it.

    Args:
        name: the operator, ``"exp"``, or one overload of several, ``"max.dim"``.
        function: the kernel; one of Python is called with the GIL held, on any thread.
        device: the kind of device whose tensors it computes.

    Returns: The registration. `Kernel.close` or the end of a ``with`` block removes it; without
        either the kernel stays.

    Raises:
        AttributeError: if there is no such operator.
        TypeError: if `function` cannot be called.
        ValueError: if the operator is a view, which no kernel runs for.

    Example:
        >>> import numpy as np, plait_abi, plait_core as pc
        >>> def exp(x, out):
        ...     print("called")
        ...     np.exp(x.numpy(), out=out.numpy())
        >>> with plait_abi.kernel("exp", exp):
        ...     pc.exp(pc.tensor([0.0]))
        called
        tensor([1.])
    """
    return Kernel(name, function, device)
