"""Bases of distributions: a location, a scale, probabilities or logits, a covariance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Size, Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import broadcast_all


class Centered(Distribution):
    """A distribution whose location is its mean and its mode."""

    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class LocationScale(Distribution):
    """The distribution of ``loc + scale * z``, where z has a fixed distribution with mode 0."""

    arg_constraints: ClassVar[Mapping[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _standard(self, value: Tensor) -> Tensor:
        """Return the z of a value, and check it."""
        self._check(value)
        return (value - self.loc) / self.scale


class ProbsOrLogits:
    """A distribution with one of `probs` and `logits`, from which the other one follows."""

    def _require_one(self, probs: Any, logits: Any) -> Any:
        if (probs is None) == (logits is None):
            which = "neither" if probs is None else "both"
            raise ValueError(
                f"{type(self).__name__}: one of `probs` and `logits` is required; got {which}"
            )
        return logits if probs is None else probs

    @property
    def param(self) -> Tensor:
        """The given one of `probs` and `logits`."""
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]  # type: ignore[no-any-return]

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` and `logits`."""
        return self.param.shape


def only_matrix(name: str, **matrices: Tensor | None) -> tuple[str, Tensor]:
    """Return name and value of the only matrix that is not None; there must be exactly one."""
    present = {key: matrix for key, matrix in matrices.items() if matrix is not None}
    if len(present) != 1:
        raise ValueError(
            f"{name}: one of `covariance_matrix`, `precision_matrix` and `scale_tril` is "
            f"required; got {', '.join(present) or 'none'}"
        )
    ((key, matrix),) = present.items()
    return key, matrix


def factor_of(key: str, matrix: Tensor) -> Tensor:
    """Return the Cholesky factor of a covariance from the matrix that the key names."""
    if key == "covariance_matrix":
        return pc.linalg.cholesky(matrix)
    return _factor_of_precision(matrix) if key == "precision_matrix" else matrix


def _factor_of_precision(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse of a matrix.

    It is the inverse of the factor of the matrix with rows and columns reversed, so only a
    triangular matrix is inverted.
    """
    reversed_factor = pc.linalg.cholesky(precision.flip((-2, -1)))
    upper = reversed_factor.flip((-2, -1)).mT
    identity = pc.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return pc.linalg.solve_triangular(upper, identity, upper=False)
