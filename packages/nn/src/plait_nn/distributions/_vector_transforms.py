"""Transforms of vectors and matrices, and of parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn.distributions import constraints
from plait_nn.distributions._elementwise_transforms import Fixed
from plait_nn.distributions._transform import Transform

__all__ = [
    "CatTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
]


class SoftmaxTransform(Fixed):
    """``y = softmax(x)`` over the last dimension; its inverse returns ``log(y)``, one of many
    solutions.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import SoftmaxTransform
        >>> SoftmaxTransform()(pc.tensor([1.0, 1.0]))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _at_least(self, shape, 1)
        return shape

    inverse_shape = forward_shape


def _at_least(transform: Transform, shape: Sequence[int], ndim: int) -> None:
    if len(shape) < ndim:
        raise ValueError(
            f"{type(transform).__name__}: a shape of at least {ndim} dimensions is required; "
            f"got {tuple(shape)}"
        )


class StickBreakingTransform(Fixed):
    """A map from n - 1 numbers to n positive shares that sum to 1, by stick breaking.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.transforms import StickBreakingTransform
        >>> StickBreakingTransform()(pc.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _pieces(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        left = pc.arange(n, 0, -1, dtype=x.dtype, device=x.device)
        return x - left.log()

    def _call(self, x: Tensor) -> Tensor:
        taken = self._pieces(x).sigmoid()
        rest = (1 - taken).cumprod(-1)
        ones = x.new_ones((*x.shape[:-1], 1))
        return pc.cat([taken, ones], -1) * pc.cat([ones, rest], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        short = y.narrow(-1, 0, y.shape[-1] - 1)
        n = short.shape[-1]
        left = pc.arange(n, 0, -1, dtype=y.dtype, device=y.device)
        rest = (1 - short.cumsum(-1)).clamp(min=pc.finfo(y.dtype).tiny)
        return short.log() - rest.log() + left.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pieces = self._pieces(x)
        shares = y.narrow(-1, 0, y.shape[-1] - 1)
        return (-pieces + F.logsigmoid(pieces) + shares.log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _at_least(self, shape, 1)
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _at_least(self, shape, 1)
        return (*shape[:-1], shape[-1] - 1)


def _with_diagonal(matrix: Tensor, diagonal: Tensor) -> Tensor:
    return matrix.tril(-1) + diagonal.diag_embed()


class LowerCholeskyTransform(Fixed):
    """A map to lower triangular matrices with a positive diagonal: exp of the diagonal, 0 above it.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import LowerCholeskyTransform
        >>> LowerCholeskyTransform()(pc.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 0.],
                [2., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return _with_diagonal(x, x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return _with_diagonal(y, y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Fixed):
    """A map to positive definite matrices: ``L @ L.T`` with L of `LowerCholeskyTransform`.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import PositiveDefiniteTransform
        >>> PositiveDefiniteTransform()(pc.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 2.],
                [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(pc.linalg.cholesky(y))


class _Several(Transform):
    """A transform for each part of a tensor along ``dim``."""

    transforms: list[Transform]
    dim: int

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(each.bijective for each in self.transforms)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(x), strict=True)
        return self._join([each(part) for each, part in pairs])

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(y), strict=True)
        return self._join([each.inv(part) for each, part in pairs])


class CatTransform(_Several):
    """Transforms of consecutive slices along ``dim``, of the given lengths.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import transforms as t
        >>> both = t.CatTransform([t.ExpTransform(), t.AbsTransform()], lengths=[1, 2])
        >>> both(pc.tensor([0.0, -1.0, -2.0]))
        tensor([1., 1., 2.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size)
        self.transforms = [each.with_cache(cache_size) if cache_size else each for each in tseq]
        self.dim = dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"CatTransform: a length for each transform is required; "
                f"got {len(self.lengths)} for {len(self.transforms)}"
            )

    @property
    def event_dim(self) -> int:
        return max(each.event_dim for each in self.transforms)

    @property
    def length(self) -> int:
        """The size along ``dim``."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([each.domain for each in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([each.codomain for each in self.transforms], self.dim, self.lengths)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        if x.shape[self.dim] != self.length:
            raise ValueError(
                f"CatTransform: size {self.length} in dimension {self.dim} is required; "
                f"got shape {tuple(x.shape)}"
            )
        return x.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return pc.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result = []
        parts = zip(self.transforms, self._split(x), self._split(y), strict=True)
        for each, before, after in parts:
            own = each.log_abs_det_jacobian(before, after)
            gap = self.event_dim - each.event_dim
            result.append(own.sum(tuple(range(-gap, 0))) if gap else own)
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        return pc.cat(result, dim) if dim < 0 else sum(result[1:], result[0])


class StackTransform(_Several):
    """A transform for each index along ``dim``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import AbsTransform, ExpTransform, StackTransform
        >>> StackTransform([ExpTransform(), AbsTransform()])(pc.tensor([0.0, -3.0]))
        tensor([1., 3.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [each.with_cache(cache_size) if cache_size else each for each in tseq]
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([each.domain for each in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([each.codomain for each in self.transforms], self.dim)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        if x.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform: size {len(self.transforms)} in dimension {self.dim} is "
                f"required; got shape {tuple(x.shape)}"
            )
        return x.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return pc.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._split(x), self._split(y), strict=True)
        result = [each.log_abs_det_jacobian(before, after) for each, before, after in parts]
        return pc.stack(result, self.dim)
