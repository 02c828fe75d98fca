"""Functions that distributions share: broadcasting of parameters, and conversions of probabilities
and logits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any, Generic, TypeVar, overload

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

_T = TypeVar("_T")


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Draw from the standard normal distribution; a name of PyTorch that libraries import."""
    return pc.randn(tuple(shape), dtype=dtype, device=device)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast tensors and numbers to tensors of one shape.

    Numbers become tensors of the first tensor's dtype and device; without a tensor, of the default
    dtype.

    Raises:
        TypeError: for an argument that is neither.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.utils import broadcast_all
        >>> broadcast_all(pc.zeros(2), 1.0)
        (tensor([0., 0.]), tensor([1., 1.]))
    """
    first = None
    for value in values:
        if isinstance(value, Tensor):
            first = first if first is not None else value
        elif not isinstance(value, Number):
            raise TypeError(f"parameters must be tensors or numbers; got {type(value).__name__}")
    options: dict[str, Any] = {"dtype": pc.get_default_dtype()}
    if first is not None:
        options = {"dtype": first.dtype, "device": first.device}
    result = [v if isinstance(v, Tensor) else pc.tensor(v, **options) for v in values]
    shape = result[0].shape
    if all(each.shape == shape for each in result):
        return tuple(result)
    return tuple(pc.broadcast_tensors(*result))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """``sigmoid(logits)`` if binary, else the softmax over the last dimension.

    Args:
        is_binary: Whether each is of an event of its own, not of a class along the last dimension.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import utils
        >>> utils.logits_to_probs(pc.tensor(0.0), is_binary=True)
        tensor(0.5000)
    """
    return logits.sigmoid() if is_binary else F.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities away from 0 and 1, so that their logarithms are finite.

    Args:
        probs: Probabilities.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import utils
        >>> utils.clamp_probs(pc.tensor(0.0)) > 0
        tensor(True)
    """
    eps = pc.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return ``log(p) - log(1 - p)`` if binary, else ``log(p)``, of clamped probabilities.

    Args:
        probs: Probabilities.
        is_binary: Whether each is of an event of its own, not of a class along the last dimension.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import utils
        >>> utils.probs_to_logits(pc.tensor(0.5), is_binary=True)
        tensor(0.)
    """
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def sum_last(value: Tensor, count: int) -> Tensor:
    """Sum over the last ``count`` dimensions."""
    return value.sum(tuple(range(-count, 0))) if count else value


_sum_rightmost = sum_last  # a name of PyTorch that libraries import


def normal_noise(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Return standard normal numbers of the dtype and device of ``like``."""
    return like.new_empty(shape).normal_()


def open_uniform(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Return uniform numbers in the open interval (0, 1)."""
    information = pc.finfo(like.dtype)
    return like.new_empty(shape).uniform_().clamp_(information.tiny, 1 - information.eps)


class lazy_property(Generic[_T]):  # noqa: N801 - a decorator, by PyTorch's name
    """A property that is computed once: an attribute of the instance with the value replaces it.

    Example:
        >>> from plait_nn.distributions.utils import lazy_property
        >>> class Doubled:
        ...     x = 2
        ...
        ...     @lazy_property
        ...     def twice(self):
        ...         return 2 * self.x
        >>> made = Doubled()
        >>> made.twice, "twice" in made.__dict__
        (4, True)
    """

    def __init__(self, wrapped: Callable[[Any], _T]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> lazy_property[_T]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> _T: ...
    def __get__(self, instance: object | None, owner: Any = None) -> _T | lazy_property[_T]:
        if instance is None:
            return self
        value = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = value
        return value


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the matrix whose lower triangle, up to a diagonal, has these elements row by row.

    Args:
        vec: The elements of the triangle, row by row.
        diag: The last diagonal of the triangle.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.utils import vec_to_tril_matrix
        >>> vec_to_tril_matrix(pc.tensor([1.0, 2.0, 3.0]))
        tensor([[1., 0.],
                [2., 3.]])
    """
    if diag > 0:
        raise ValueError(f"vec_to_tril_matrix: `diag` must be 0 or less, got {diag}")
    count = vec.shape[-1]
    # n rows have (n + diag) (n + diag + 1) / 2 elements, for diag <= 0
    size = (math.isqrt(8 * count + 1) - 1) // 2 - diag
    rows, columns = pc.tril_indices(size, size, diag)
    if len(rows) != count:
        raise ValueError(
            f"vec_to_tril_matrix: {count} elements are not a lower triangle with diagonal {diag}"
        )
    flat = vec.new_zeros((*vec.shape[:-1], size * size))
    positions = (rows * size + columns).expand(vec.shape)
    return flat.scatter(-1, positions, vec).reshape(*vec.shape[:-1], size, size)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of the lower triangle, up to a diagonal, row by row.

    Args:
        mat: Square matrices.
        diag: The last diagonal of the triangle.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.utils import tril_matrix_to_vec
        >>> tril_matrix_to_vec(pc.arange(4).reshape(2, 2))
        tensor([0, 2, 3])
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"tril_matrix_to_vec: `diag` must be in [{-size}, {size - 1}], got {diag}")
    rows, columns = pc.tril_indices(size, size, diag)
    return mat.reshape(*mat.shape[:-2], size * size)[..., rows * size + columns]
