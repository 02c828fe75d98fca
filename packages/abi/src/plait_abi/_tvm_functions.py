"""Operators as functions of tvm-ffi (docs/design/0045)."""

from __future__ import annotations

from typing import Any

from plait_abi import binding


def tvm_function(name: str) -> Any:
    """Return an operator as a ``tvm_ffi.Function``, for programs of any language that has tvm-ffi.

    The function takes the arguments of the schema by position; those that are left out at the end
    have their defaults. Tensors, `Tensor` and borrowed `DLTensor` of tvm-ffi, are used without a
    copy, and results are tensors of tvm-ffi, which Python gets as those of the library whose
    tensors it passed. It needs no Python and no GIL, and records no history. Once this was called,
    C++ and other languages get the functions from the global function ``plait.operator``.

    Args:
        name: the operator, ``"add"``, one overload of several, ``"max.dim"``, or its form in place,
            ``"add_"``.

    Raises:
        ImportError: if tvm_ffi (``pip install apache-tvm-ffi``) is not there.
        AttributeError: if there is no such operator.

    Example:
        >>> import plait_abi, plait_core as pc
        >>> add = plait_abi.tvm_function("add")  # doctest: +SKIP
        >>> add(pc.ones(2), 3)  # doctest: +SKIP
        tensor([4., 4.])
    """
    import tvm_ffi

    lookup = tvm_ffi.get_global_func("plait.operator", allow_missing=True)
    if lookup is None:
        binding.provide_operators()
        lookup = tvm_ffi.get_global_func("plait.operator")
    return lookup(name)
