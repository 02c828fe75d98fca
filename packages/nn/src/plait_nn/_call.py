"""How a type checker sees a call of a module: with the signature of its ``forward``.

At run time ``Module.__call__`` is an ordinary function; this module is for annotations alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

__all__ = ["Call"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class _Forwards(Protocol[P, R_co]):
    @property
    def forward(self) -> Callable[P, R_co]: ...


class Call:
    """A descriptor whose value is typed as the instance's ``forward``."""

    def __get__(self, module: _Forwards[P, R_co], owner: object) -> Callable[P, R_co]:
        return module.forward
