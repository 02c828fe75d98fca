"""The Wishart distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn._all_samples import all_samples
from plait_nn.distributions import constraints
from plait_nn.distributions._location_scale import factor_of, only_matrix
from plait_nn.distributions.exp_family import ExponentialFamily
from plait_nn.distributions.gamma import Gamma
from plait_nn.distributions.utils import lazy_property, normal_noise

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """The distribution of ``X @ X.T``, where X has `df` columns from ``Normal(0, V)``.

    Args:
        df: the degrees of freedom, more than the number of rows minus 1; need not be whole.
        covariance_matrix: V, positive definite, or else
        precision_matrix: its inverse, or else
        scale_tril: its Cholesky factor; the fastest.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Wishart
        >>> Wishart(3.0, pc.eye(2)).mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    arg_constraints: ClassVar = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = only_matrix(
            "Wishart",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if matrix.ndim < 2:
            raise ValueError(
                f"Wishart: `{name}` must have two dimensions; got shape {tuple(matrix.shape)}"
            )
        df = pc.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        size = matrix.shape[-1]
        if (df.is_cpu or validate_args) and bool(all_samples(df <= size - 1).any()):
            raise ValueError(
                f"Wishart: `df` must be more than {size - 1}; got {all_samples(df.detach())}"
            )
        batch = pc.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(*batch)
        matrix = matrix.expand(*batch, size, size)
        self.__dict__[name] = matrix
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of V."""
        return self._unbroadcasted_scale_tril

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """V."""
        return self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of V."""
        factor = self._unbroadcasted_scale_tril
        identity = pc.eye(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return pc.cholesky_solve(identity, factor)

    @property
    def mean(self) -> Tensor:
        return self._wide(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return self._wide(factor.masked_fill(factor <= 0, math.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self._wide(self.df) * (V.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    @staticmethod
    def _wide(values: Tensor) -> Tensor:
        return values.unsqueeze(-1).unsqueeze(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._bartlett_sampling(sample_shape)

    # by PyTorch's name, which libraries call
    def _bartlett_sampling(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # Bartlett: normal numbers below a diagonal of roots of chi-squared ones
        size = self._event_shape[-1]
        df = self.df
        degrees = df.unsqueeze(-1) - pc.arange(size, dtype=df.dtype, device=df.device)
        squares = Gamma(degrees / 2, pc.full_like(degrees, 0.5)).rsample(sample_shape)
        factor = self._unbroadcasted_scale_tril
        shape = self._extended_shape(sample_shape)
        count = size * (size - 1) // 2
        draws = normal_noise(factor, (*shape[:-2], count))
        numbers = pc.cat((draws, factor.new_zeros((*shape[:-2], 1))), -1)
        places = pc.full((size, size), count, device=df.device)
        places[tuple(pc.tril_indices(size, size, -1))] = pc.arange(count, device=df.device)
        noise = numbers[..., places]  # the last number, 0, is on and above the diagonal
        tiny = pc.finfo(squares.dtype).tiny
        root = factor @ (noise + pc.diag_embed(squares.clamp(min=tiny).sqrt()))
        return root @ root.mT

    def _half_log_determinant(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        size, df = self._event_shape[-1], self.df
        solved = pc.cholesky_solve(value, self._unbroadcasted_scale_tril)
        trace = solved.diagonal(dim1=-2, dim2=-1).sum(-1)
        volume = pc.linalg.cholesky(value).diagonal(dim1=-2, dim2=-1).log().sum(-1)
        result: Tensor = (
            -df * (0.5 * size * math.log(2) + self._half_log_determinant())
            - pc.mvlgamma(df / 2, size)
            + (df - size - 1) * volume
            - trace / 2
        )
        return result

    _mean_carrier_measure = 0

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        return pc.mvlgamma(half, size) - half * pc.linalg.slogdet(-x)[1]

    def entropy(self) -> Tensor:
        size, df = self._event_shape[-1], self.df
        halves = 0.5 * pc.arange(size, dtype=df.dtype, device=df.device)
        digammas = (df.unsqueeze(-1) / 2 - halves).digamma().sum(-1)
        result: Tensor = (
            (size + 1) * (0.5 * size * math.log(2) + self._half_log_determinant())
            + pc.mvlgamma(df / 2, size)
            - 0.5 * (df - size - 1) * digammas
            + df * size / 2
        )
        return result
