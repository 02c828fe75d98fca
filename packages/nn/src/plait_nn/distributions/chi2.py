"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.gamma import Gamma
from plait_nn.distributions.utils import broadcast_all

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The distribution of a sum of ``df`` squared standard normal numbers: Gamma(df / 2, 1 / 2).

    Args:
        df: Degrees of freedom; positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import Chi2
        >>> Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints: ClassVar = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
