"""The transform to Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions._elementwise_transforms import Fixed
from plait_nn.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = ["CorrCholeskyTransform"]


class CorrCholeskyTransform(Fixed):
    r"""From n (n - 1) / 2 numbers to the Cholesky factor of an n x n correlation matrix.

    With :math:`r = \tanh x`, row by row below the diagonal, and 1 on it:
    :math:`y_{ij} = r_{ij} \prod_{k < j} \sqrt{1 - r_{ik}^2}`. The rows have length 1.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import CorrCholeskyTransform
        >>> CorrCholeskyTransform()(pc.tensor([0.0]))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = pc.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), diag=-1)
        left = (1 - r * r).sqrt().cumprod(-1)
        r = r + pc.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        first = pc.ones_like(left[..., :1])
        return r * pc.cat([first, left[..., :-1]], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        first = pc.ones_like(y[..., :1])
        left = pc.cat([first, (1 - (y * y).cumsum(-1))[..., :-1]], -1)
        return (tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        # the last element of a row makes its length 1
        sticks = 0.5 * tril_matrix_to_vec(left, -2).log().sum(-1) if y.shape[-1] > 2 else 0.0
        softplus = (-2 * x).logaddexp(pc.zeros_like(x))
        return sticks - 2 * (x + softplus - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        count = shape[-1] if len(shape) else 0
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if not len(shape) or size * (size - 1) // 2 != count:
            raise ValueError(
                "CorrCholeskyTransform: n (n - 1) / 2 elements in the last dimension are "
                f"required; got shape {tuple(shape)}"
            )
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(
                f"CorrCholeskyTransform: square matrices are required; got shape {tuple(shape)}"
            )
        size = shape[-1]
        return (*shape[:-2], size * (size - 1) // 2)
