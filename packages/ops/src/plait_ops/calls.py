"""Operators by name, for specs that call operators of other files.

``from plait_ops import calls as op``, then ``op.mul(a, b)``: a name is the operator's identifier
(``max_dim`` for ``max.dim``). It is resolved when it is called or translated, so that spec files
need no order.
"""

from __future__ import annotations

from typing import Any

from plait_ops.spec import REGISTRY, Operator, SpecError

__all__ = ["Named"]


class Named:
    """A reference to the operator with that identifier, or to its in-place form (``add_``)."""

    def __init__(self, identifier: str) -> None:
        self.identifier = identifier

    def _find(self, identifier: str) -> Operator | None:
        words = identifier.split("_")
        names = ["_".join(words[:i]) + "." + "_".join(words[i:]) for i in range(1, len(words))]
        return next((REGISTRY[name] for name in [identifier, *names] if name in REGISTRY), None)

    @property
    def operator(self) -> Operator:
        operator = self._find(self.identifier)
        if operator is None and self.identifier.endswith("_"):
            base = self._find(self.identifier[:-1])
            operator = base if base is not None and base.inplace else None
        if operator is None:
            raise SpecError(f"there is no operator `{self.identifier}`")
        return operator

    @property
    def in_place(self) -> bool:
        """Whether it refers to the in-place form."""
        return self.operator.identifier != self.identifier

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.in_place:
            return self.operator(*args, **kwargs)
        args[0][...] = self.operator(*args, **kwargs)
        return args[0]


def __getattr__(name: str) -> Any:
    if name.startswith(
        ("_", "pytest", "setup", "setUp", "teardown", "tearDown")
    ):  # attributes that test runners read
        raise AttributeError(name)
    return Named(name)
