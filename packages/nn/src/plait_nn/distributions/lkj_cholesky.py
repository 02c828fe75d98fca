"""The LKJ distribution of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.beta import Beta
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    r"""The distribution of L, where ``L @ L.T`` is a correlation matrix of density
    proportional to :math:`\det(L L^T)^{\eta - 1}` (Lewandowski, Kurowicka, Joe 2009).

    Args:
        dim: the number of rows, at least 2.
        concentration: :math:`\eta`; 1 is uniform; larger values concentrate at the identity.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import LKJCholesky
        >>> L = LKJCholesky(3, 0.5).sample()
        >>> pc.allclose((L @ L.mT).diagonal(), pc.ones(3))
        True
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: `dim` must be at least 2; got {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)
        # the i elements before the diagonal of row i are a point of a ball, of density
        # proportional to (1 - |w|^2) ** (eta - 1 + (dim - 1 - i) / 2): |w|^2 is a beta variate.
        # Row 0 has none; it is drawn like row 1, and `sample` drops it.
        eta = self.concentration
        before = pc.arange(dim, dtype=eta.dtype, device=eta.device).clamp(min=1)
        rest = eta.unsqueeze(-1) + 0.5 * (dim - 1 - before)
        self._beta = Beta(0.5 * before, rest, validate_args=False)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> LKJCholesky:
        new = super().expand(batch_shape, _instance)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return new

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        lengths = self._beta.sample(sample_shape).unsqueeze(-1)
        noise = pc.randn(
            self._extended_shape(sample_shape), dtype=lengths.dtype, device=lengths.device
        ).tril(-1)
        norms = pc.linalg.vector_norm(noise, dim=-1, keepdim=True)
        directions = noise / norms.masked_fill(norms == 0, 1)  # the first row has none
        below = lengths.sqrt() * directions
        tiny = pc.finfo(below.dtype).tiny
        diagonal = (1 - below.square().sum(-1)).clamp(min=tiny).sqrt()
        return below + pc.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        eta, below = self.concentration, self.dim - 1
        order = pc.arange(2, self.dim + 1, dtype=value.dtype, device=value.device)
        order = 2 * (eta - 1).unsqueeze(-1) + self.dim - order
        logs = value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()
        alpha = eta + 0.5 * below
        shared = 0.5 * below * math.log(math.pi) + pc.mvlgamma(alpha - 0.5, below)
        return (order * logs).sum(-1) - shared + alpha.lgamma() * below
