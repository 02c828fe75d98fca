"""Functions of `torch` whose arguments are those of PyTorch's operators: more than the functions of
plait and of `torch.nn.functional` have, or others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait
import plait.nn.functional as F

__all__ = [
    "alpha_dropout",
    "batch_norm",
    "embedding",
    "feature_alpha_dropout",
    "from_dlpack",
    "group_norm",
    "layer_norm",
    "lu_unpack",
]


def alpha_dropout(input: Any, p: float, train: bool) -> Any:
    """Return `nn.functional.alpha_dropout`.

    Example:
        >>> import plait
        >>> from plait_torch._operator_arguments import alpha_dropout
        >>> alpha_dropout(plait.ones(2), p=0.5, train=False)
        tensor([1., 1.])
    """
    return F.alpha_dropout(input, p, train)


def feature_alpha_dropout(input: Any, p: float, train: bool) -> Any:
    """Return `nn.functional.feature_alpha_dropout`.

    Example:
        >>> import plait
        >>> from plait_torch._operator_arguments import feature_alpha_dropout
        >>> feature_alpha_dropout(plait.ones(1, 2), p=0.5, train=False)
        tensor([[1., 1.]])
    """
    return F.feature_alpha_dropout(input, p, train)


def batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Any:
    """Return `nn.functional.batch_norm`; `cudnn_enabled` changes nothing.

    Example:
        >>> import plait
        >>> from plait_torch._operator_arguments import batch_norm
        >>> x = plait.tensor([[1.0], [3.0]])
        >>> batch_norm(x, None, None, None, None, True, 0.1, 0.0, False).tolist()
        [[-1.0], [1.0]]
    """
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def layer_norm(
    input: Any,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """Return `nn.functional.layer_norm`; `cudnn_enable` changes nothing.

    Example:
        >>> import plait
        >>> from plait_torch._operator_arguments import layer_norm
        >>> layer_norm(plait.tensor([1.0, 3.0]), (2,), eps=0.0, cudnn_enable=False)
        tensor([-1.,  1.])
    """
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Any,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    """Return `nn.functional.group_norm`; `cudnn_enabled` changes nothing.

    Example:
        >>> import plait
        >>> from plait_torch._operator_arguments import group_norm
        >>> group_norm(plait.tensor([[1.0, 3.0]]), 1, eps=0.0, cudnn_enabled=False)
        tensor([[-1.,  1.]])
    """
    return F.group_norm(input, num_groups, weight, bias, eps)


def embedding(
    weight: Any,
    indices: Any,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Return the rows of `weight` that `indices` name; -1 as `padding_idx` stands for no row.

    Example:
        >>> import plait
        >>> from plait_torch._operator_arguments import embedding
        >>> embedding(plait.eye(2), plait.tensor([1]), -1, False, True)
        tensor([[0., 1.]])
    """
    row = None if padding_idx == -1 else padding_idx
    return F.embedding(indices, weight, row, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def lu_unpack(
    LU_data: Any,
    LU_pivots: Any,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Any = None,
) -> Any:
    """Return P, L and U of `linalg.lu_factor`; those that are not asked for have no elements.

    Example:
        >>> import plait
        >>> from plait_torch._operator_arguments import lu_unpack
        >>> LU, pivots = plait.linalg.lu_factor(plait.eye(2))
        >>> lu_unpack(LU, pivots, unpack_data=False).L.shape
        plait.Size([0])
    """
    parts: Any = plait.lu_unpack(LU_data, LU_pivots, out=out)
    if unpack_data and unpack_pivots:
        return parts
    nothing = LU_data.new_empty(0)
    return type(parts)(
        (
            parts.P if unpack_pivots else nothing,
            parts.L if unpack_data else nothing,
            parts.U if unpack_data else nothing,
        )
    )


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """Return a tensor that shares another library's memory; see `plait.from_dlpack`.

    Example:
        >>> import plait
        >>> from plait_torch._operator_arguments import from_dlpack
        >>> from_dlpack(ext_tensor=plait.ones(1))
        tensor([1.])
    """
    return plait.from_dlpack(ext_tensor, device=device, copy=copy)
