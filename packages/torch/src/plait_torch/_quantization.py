"""The parts of `torch.ao.quantization` in models of floats: modules that mark where quantization
would be.
"""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["DeQuantStub", "FloatFunctional", "QuantStub"]


class QuantStub(plait.nn.Module):
    """A module that returns its input, as PyTorch's does until a model is converted, which plait
    does not support.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """Return the input."""
        return x


class DeQuantStub(QuantStub):
    """A module that returns its input; see `QuantStub`."""


class FloatFunctional(plait.nn.Module):
    """Operators as methods, which PyTorch's conversion can replace: sums, products, ``cat``.

    Example:
        >>> import plait
        >>> from plait_torch._quantization import FloatFunctional
        >>> FloatFunctional().add_relu(plait.ones(1), plait.tensor([-3.0]))
        tensor([0.])
    """

    def forward(self, x: Any) -> Any:
        """Raise: only the other methods can be called."""
        raise RuntimeError("FloatFunctional: call a method, such as `add`, not the module")

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum."""
        return x + y

    def add_scalar(self, x: Any, y: float) -> Any:
        """Return the sum with a number."""
        return x + y

    def mul(self, x: Any, y: Any) -> Any:
        """Return the product."""
        return x * y

    def mul_scalar(self, x: Any, y: float) -> Any:
        """Return the product with a number."""
        return x * y

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Return the concatenation of tensors."""
        return plait.cat(x, dim)

    def add_relu(self, x: Any, y: Any) -> Any:
        """Return the positive part of the sum."""
        return plait.relu(x + y)

    def matmul(self, x: Any, y: Any) -> Any:
        """Return the product of matrices."""
        return x @ y
