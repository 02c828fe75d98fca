"""Covariances, given by the matrix, its inverse or its Cholesky factor."""

from __future__ import annotations

import plait_core as pc
from plait_core import Tensor

__all__ = ["factor_of", "the_given"]


def the_given(name: str, **matrices: Tensor | None) -> tuple[str, Tensor]:
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
