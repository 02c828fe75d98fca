"""The multivariate normal distribution with a covariance of low rank and a diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.multivariate_normal import NormalVector, squared_distance
from plait_nn.distributions.utils import normal_noise

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(NormalVector):
    """The normal distribution of vectors with covariance ``W @ W.T + diag(D)``.

    Only matrices of the rank's size are factorised (Woodbury's identity).

    Args:
        loc: the mean, in the last dimension.
        cov_factor: the W, of shape (..., n, rank).
        cov_diag: the D, positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import LowRankMultivariateNormal
        >>> wide = LowRankMultivariateNormal(pc.zeros(2), pc.tensor([[1.0], [0.0]]), pc.ones(2))
        >>> wide.variance
        tensor([2., 1.])
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        shapes = [tuple(each.shape) for each in (loc, cov_factor, cov_diag)]
        n = loc.shape[-1:]
        fits = loc.ndim >= 1 and cov_factor.ndim >= 2 and cov_diag.ndim >= 1
        if not fits or cov_factor.shape[-2:-1] != n or cov_diag.shape[-1:] != n:
            raise ValueError(
                "LowRankMultivariateNormal: `loc` (..., n), `cov_factor` (..., n, rank) and "
                f"`cov_diag` (..., n) are required; got shapes {shapes[0]}, {shapes[1]} and "
                f"{shapes[2]}"
            )
        batch = pc.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(*batch, *n)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(*batch, *n)
        super().__init__(batch, n, validate_args=validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        # the factor of 1 + W.T @ inv(D) @ W, the capacitance
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        size = cov_factor.shape[-1]
        identity = pc.eye(size, dtype=loc.dtype, device=loc.device)
        self._capacitance_tril = pc.linalg.cholesky(scaled @ cov_factor + identity)

    @property
    def variance(self) -> Tensor:
        own = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return own.expand(*self._batch_shape, *self._event_shape)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor, diagonal = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        return self._whole(factor @ factor.mT + diagonal.diag_embed())

    @property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return pc.linalg.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        solved = pc.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        own = self._unbroadcasted_cov_diag.reciprocal().diag_embed() - solved.mT @ solved
        return self._whole(own)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        thin = normal_noise(self.loc, (*shape[:-1], self.cov_factor.shape[-1]))
        spread = (self._unbroadcasted_cov_factor @ thin.unsqueeze(-1)).squeeze(-1)
        scale = self._unbroadcasted_cov_diag.sqrt()
        return self.loc + spread + scale * normal_noise(self.loc, shape)

    def _log_determinant(self) -> Tensor:
        inner = self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return inner + 0.5 * self._unbroadcasted_cov_diag.log().sum(-1)

    def _distance(self, difference: Tensor) -> Tensor:
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        inner = (scaled @ difference.unsqueeze(-1)).squeeze(-1)
        outer = (difference.square() / self._unbroadcasted_cov_diag).sum(-1)
        return outer - squared_distance(self._capacitance_tril, inner)
