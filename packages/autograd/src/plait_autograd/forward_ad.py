"""Forward mode: directional derivatives that are computed together with the values.

A dual tensor has a tangent, and so has every result that depends on it within the level: for ``y =
f(x)`` the tangent of ``y`` is :math:`J_f(x)\\,t`, where ``t`` is the tangent of ``x``.

    >>> import plait_core as pc
    >>> from plait_autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(pc.tensor([1.0, 2.0]), pc.tensor([1.0, 0.0]))
    ...     forward_ad.unpack_dual(x * x).tangent.tolist()
    [2.0, 0.0]
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait_autograd import _autograd

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`.

    Args:
        primal: The value.
        tangent: The tangent, or None.

    Example:
        >>> from plait_autograd.forward_ad import UnpackedDualTensor
        >>> UnpackedDualTensor._fields
        ('primal', 'tangent')
    """

    primal: Any
    """The tensor without its tangent."""
    tangent: Any
    """The directional derivative; None if there is none."""


def enter_dual_level() -> int:
    """Enter a dual level on this thread and return its number.

    Raises:
        RuntimeError: a level is entered already; levels cannot be nested.

    Example:
        >>> from plait_autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> forward_ad.exit_dual_level(level=level)
    """
    return _autograd.enter_level()


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the dual level and drop its tangents.

    Args:
        level: the number that `enter_dual_level` returned; None: the current level.

    Raises:
        RuntimeError: no level is entered, or another one.

    Example:
        >>> from plait_autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> forward_ad.exit_dual_level(level=level)
    """
    current = _autograd.level()
    if level is not None and level != current:
        raise RuntimeError(
            f"exit_dual_level: `level` must be the one that is entered, {current}; got {level}"
        )
    _autograd.exit_level()


class dual_level:  # noqa: N801 - PyTorch's name
    """A context manager that enters a dual level.

    Example:
        >>> import plait_core as pc
        >>> from plait_autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(pc.ones(2), pc.ones(2))
        ...     tangent = forward_ad.unpack_dual(x.exp()).tangent
        >>> [round(value, 3) for value in tangent.tolist()]
        [2.718, 2.718]
    """

    __slots__ = ("_level",)

    def __enter__(self) -> int:
        self._level = enter_dual_level()
        return self._level

    def __exit__(self, *_: object) -> None:
        exit_dual_level(level=self._level)


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a clone of ``tensor`` with the tangent ``tangent``.

    Args:
        tensor: of a floating-point or complex dtype; the clone keeps its history in reverse mode.
        tangent: of its shape and dtype; never written.
        level: the level of the tangent, which must be the one that is entered; None: that one.

    Raises:
        RuntimeError: no level is entered, or another one.
        ShapeError, DTypeError: ``tangent`` does not fit ``tensor``.

    Example:
        >>> import plait_core as pc
        >>> from plait_autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(pc.tensor(3.0), pc.tensor(1.0))
        ...     forward_ad.unpack_dual(x**2).tangent.item()
        6.0
    """
    current = _autograd.level()
    if level is not None and level != current:
        raise RuntimeError(
            f"make_dual: `level` must be the one that is entered, {current}; got {level}"
        )
    return _autograd.make_dual(tensor, tangent)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a clone of the values, and the tangent or None.

    Args:
        tensor: any tensor.
        level: see `make_dual`; tangents of other levels are not returned.

    Example:
        >>> import plait_core as pc
        >>> from plait_autograd import forward_ad
        >>> forward_ad.unpack_dual(pc.ones(2)).tangent is None
        True
    """
    if level is not None and level != _autograd.level():
        return UnpackedDualTensor(_autograd.unpack_dual(tensor)[0], None)
    return UnpackedDualTensor(*_autograd.unpack_dual(tensor))


def __getattr__(name: str) -> Any:
    # Libraries read this name of PyTorch: -1 outside of a level, 0 inside. Levels cannot be nested.
    # Here each level has another number.
    if name == "_current_level":
        return 0 if _autograd.level() else -1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
