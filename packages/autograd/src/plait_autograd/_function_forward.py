"""Forward mode of `Function`: computes tangents of the results from those of the arguments."""

from __future__ import annotations

from typing import Any

from plait_autograd import _autograd


def tangents(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the tangent of each argument, or None if no argument has one on this thread."""
    if not _autograd.level() or not _carrying():
        return None
    tangents = tuple(_autograd.tangent(arg) if _autograd.is_tensor(arg) else None for arg in args)
    return None if all(t is None for t in tangents) else tangents


def _carrying() -> bool:
    on = _autograd.carry_tangents(False)
    _autograd.carry_tangents(on)
    return on


def carry(
    function: Any, context: Any, args: tuple[Any, ...], tangents: tuple[Any, ...], n: int
) -> tuple[Any, ...]:
    """Call the function's ``jvp`` and return the tangent of each of its ``n`` results."""
    if context._materialize:
        tangents = tuple(
            _autograd.zeros_like(arg) if t is None and _autograd.is_tensor(arg) else t
            for arg, t in zip(args, tangents, strict=True)
        )
    before = _autograd.carry_tangents(False)
    try:
        result = function.jvp(context, *tangents)
    finally:
        _autograd.carry_tangents(before)
    results = result if isinstance(result, (tuple, list)) else (result,)
    name = function.__name__
    if len(results) != n:
        raise RuntimeError(
            f"{name}: jvp must return one tangent (or None) for each of the {n} results of "
            f"forward; got {len(results)}"
        )
    for i, tangent in enumerate(results):
        if tangent is not None and not _autograd.is_tensor(tangent):
            raise TypeError(
                f"{name}: jvp must return tensors or None; for result {i} it returned "
                f"{type(tangent).__name__}"
            )
    return tuple(results)


def keep(
    name: str,
    outputs: tuple[Any, ...],
    results: tuple[Any, ...],
    dirty: tuple[Any, ...],
    constant: tuple[Any, ...],
) -> None:
    """Set the tangents of the results."""
    for i, (output, tangent) in enumerate(zip(outputs, results, strict=True)):
        if not _autograd.is_tensor(output) or any(output is other for other in constant):
            continue
        if not (_autograd.is_floating(output) or _autograd.is_complex(output)):
            continue
        if tangent is not None and tuple(tangent.shape) != tuple(output.shape):
            raise RuntimeError(
                f"{name}: the tangent that jvp returns for result {i} must have its shape, "
                f"{tuple(output.shape)}; got {tuple(tangent.shape)}"
            )
        _autograd.set_tangent(output, tangent, any(output is other for other in dirty))
