"""Compiled functions: with Python at every call, or without."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import plait_abi
import plait_nn
from plait_graph._compiled_module import CompiledModule, DeferredModule
from plait_graph._deferred import Deferred
from plait_graph._frozen import Compiled

__all__ = ["compile"]


def compile(
    function: Callable[..., Any] | None = None,
    *,
    frozen: bool = False,
    check: int = 0,
    dynamic: Any = None,
) -> Any:
    """Return a function whose operator calls run together; with ``frozen=True``, without Python.

    Python runs at every call of the function. Operator calls that an earlier call of it made wait
    until their elements are needed, and run as one program: at the latest at its end. Values that
    nobody keeps lie in memory that is planned ahead. Results, writes and errors are those of the
    function itself; an error that depends on elements comes when the calls run.

    With ``frozen=True`` the first two calls of each kind are recorded and compared; then Python
    does not run. Calls with arguments of other shapes, dtypes, devices or values, in other modes,
    or after something else changed that the function reads, are recorded anew.

    A compiled module is a module: its parameters, its hooks and all that methods change are those
    of the module, under the same names, also where it is a part of another module.

    Args:
        function: a function of tensors, a module, or a whole step of training.
        frozen: Python does not run in later calls, so that what it does besides calls of
            operators, such as printing or counting, happens in the first calls alone.
        check: with ``frozen=True``, n > 0 compares every n-th run of a program with the function
            itself, which runs as well: each value of each operator call. Parameters, buffers,
            gradients, optimizers, generators and what else the function sees are restored in
            between, so that the call counts once. It takes the time of a recording, and memory for
            all values.
        dynamic: with ``frozen=True``, which sizes of the arguments are free. When the function was
            recorded at enough of them (three if one size is free), it is not recorded at others.
            True: those sizes that differ between calls. Otherwise a dict from names or positions of
            arguments to the names of their free dimensions, such as ``{"x": {0: "batch"}}``, or a
            sequence with an entry for each argument; a `Dim` in the place of a name has a range.
            Sizes below 2 are recorded apart unless a range has them.

    Raises:
        ArgumentError: if `check` is negative or no int; if it or `dynamic` is given without
            ``frozen=True``.
        NotImplementedError: if a call cannot be part of a graph, with ``frozen=True``.
        RuntimeError: with ``frozen=True``, if calls with the same arguments make other operator
            calls; in a call that is checked, if an operator gives other values, with the name of
            the first one. All is then as it was before the call.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import compile
        >>> @compile
        ... def norm(x):
        ...     return (x * x).sum().sqrt()
        >>> [norm(pc.tensor([3.0, 4.0])).item() for _ in range(3)]
        [5.0, 5.0, 5.0]
    """
    if type(check) is not int or check < 0:
        raise plait_abi.ArgumentError(f"compile: `check` must be an int >= 0, got {check!r}")
    if check and not frozen:
        raise plait_abi.ArgumentError(
            "compile: `check` compares runs without Python: frozen=True is required"
        )
    if dynamic and not frozen:
        raise plait_abi.ArgumentError(
            "compile: `dynamic` is for programs without Python: frozen=True is required"
        )
    if function is None:
        return functools.partial(compile, frozen=frozen, check=check, dynamic=dynamic)
    is_module = isinstance(function, plait_nn.Module)
    if frozen:
        return (CompiledModule if is_module else Compiled)(function, check, dynamic)
    return (DeferredModule if is_module else Deferred)(function)
