"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions._location_scale import Centered, factor_of, only_matrix
from plait_nn.distributions.utils import lazy_property, normal_noise

__all__ = ["MultivariateNormal"]


def squared_distance(factor: Tensor, difference: Tensor) -> Tensor:
    """Return ``|inv(factor) @ difference|**2`` for each vector, with both broadcast."""
    solved = pc.linalg.solve_triangular(factor, difference.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).square().sum(-1)


_batch_mahalanobis = squared_distance  # by the name with which libraries import it


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """Return the lower triangular L for which ``L @ L.mT`` is the inverse of a precision matrix.

    The Cholesky factor of the matrix in reversed order is an upper triangular root of the matrix,
    whose transposed inverse is L.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.multivariate_normal import _precision_to_scale_tril
        >>> _precision_to_scale_tril(pc.tensor([[4.0]]))
        tensor([[0.5000]])
    """
    root = pc.linalg.cholesky(P.flip((-2, -1))).flip((-2, -1)).mT
    one = pc.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    result: Tensor = pc.linalg.solve_triangular(root, one, upper=False)
    return result


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Return the products of matrices and vectors, whose batches broadcast.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.multivariate_normal import _batch_mv
        >>> _batch_mv(pc.eye(2) * 3, pc.ones(4, 2)).shape
        plait.Size([4, 2])
    """
    result: Tensor = (bmat @ bvec.unsqueeze(-1)).squeeze(-1)
    return result


class NormalVector(Centered):
    """The base of normal distributions of vectors."""

    support = constraints.real_vector
    has_rsample = True

    def _whole(self, matrix: Tensor) -> Tensor:
        size = self._event_shape[0]
        return matrix.expand(*self._batch_shape, size, size)

    def _log_determinant(self) -> Tensor:
        """Half of the logarithm of the covariance's determinant."""
        raise NotImplementedError

    def _distance(self, difference: Tensor) -> Tensor:
        """Return ``d @ inv(C) @ d`` for differences d from the mean."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        shared = 0.5 * self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * self._distance(value - self.loc) - shared - self._log_determinant()

    def entropy(self) -> Tensor:
        result = self._log_determinant() + 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))
        return result.expand(*self._batch_shape)


class MultivariateNormal(NormalVector):
    """The normal distribution of vectors: density proportional to ``exp(-d @ inv(C) @ d / 2)``.

    Here ``d = x - loc`` and C is the covariance.

    Args:
        loc: the mean, in the last dimension.
        covariance_matrix: C, positive definite, or else
        precision_matrix: its inverse, or else
        scale_tril: its Cholesky factor, lower triangular with a positive diagonal; the fastest.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import MultivariateNormal
        >>> pair = MultivariateNormal(pc.zeros(2), pc.eye(2))
        >>> pair.log_prob(pc.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = only_matrix(
            "MultivariateNormal",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if loc.ndim < 1 or matrix.ndim < 2:
            raise ValueError(
                f"MultivariateNormal: `loc` must have a dimension and `{name}` two; "
                f"got shapes {tuple(loc.shape)} and {tuple(matrix.shape)}"
            )
        batch = pc.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, loc.shape[-1])
        self.__dict__[name] = matrix.expand(*batch, *matrix.shape[-2:])
        self._parameter = name
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        # stored without batch dimensions that only the mean has, as factors are expensive
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        size = self._event_shape[0]
        identity = pc.eye(size, dtype=self.loc.dtype, device=self.loc.device)
        inverse = pc.linalg.solve_triangular(self._unbroadcasted_scale_tril, identity, upper=False)
        return self._whole(inverse.mT @ inverse)

    @property
    def variance(self) -> Tensor:
        variances = self._unbroadcasted_scale_tril.square().sum(-1)
        return variances.expand(*self._batch_shape, *self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = normal_noise(self.loc, self._extended_shape(sample_shape))
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def _log_determinant(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def _distance(self, difference: Tensor) -> Tensor:
        return squared_distance(self._unbroadcasted_scale_tril, difference)

    def __repr__(self) -> str:
        shapes = {"loc": self.loc.shape, self._parameter: self.__dict__[self._parameter].shape}
        shapes_text = ", ".join(f"{name}: {shape}" for name, shape in shapes.items())
        return f"{type(self).__name__}({shapes_text})"
