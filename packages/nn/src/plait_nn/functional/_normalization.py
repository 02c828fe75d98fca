"""Normalisation of activations and of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.arguments import passes_on
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn._halves import HALVES, in_float32, widened
from plait_nn.functional._checks import require_floating
from plait_nn.functional._package import F


def is_mixed(input: Tensor, *members: Tensor | None) -> bool:
    """Return whether the input has a half dtype and the layer's members are float32.

    Such layers compute in float32 and return the input's dtype, as in PyTorch.
    """
    if input.dtype not in HALVES:
        return False
    present = [each for each in members if each is not None]
    return bool(present) and all(each.dtype == pc.float32 for each in present)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Compute :math:`(x - \mathrm{E}[x]) / \sqrt{\mathrm{Var}[x] + \epsilon} \cdot w + b`.

    Mean and variance are each channel's over the batch if ``training``, else the running ones
    (Ioffe and Szegedy 2015). In training the running ones, if given, are updated with ``momentum``.
    The operator `plait.batch_norm` has another order of arguments, as in PyTorch.

    Args:
        input: Shape (N, C) or (N, C, \*).
        running_mean: Shape (C), written in training; None: not kept.
        running_var: Shape (C), written in training; None: not kept.
        weight: Shape (C), or None.
        bias: Shape (C), or None.
        training: Whether to normalise by the batch.
        momentum: The weight of the batch in the running statistics.
        eps: Keeps the root away from 0.

    Raises:
        ShapeError: A shape does not fit, or there is only one value for each channel in training.
        ValueError: There are no running statistics, and it is not training.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([[1.0], [3.0]])
        >>> nn.functional.batch_norm(x, None, None, training=True, eps=0.0).tolist()
        [[-1.0], [1.0]]
    """
    members = (weight, bias, running_mean, running_var)
    if is_mixed(input, *members):
        wide = pc.batch_norm(input.float(), *members, training, momentum, eps)
        return wide.to(input.dtype)
    return pc.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def batch_norm_activation(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    activation: str = "relu",
    residual: Tensor | None = None,
    min_val: float = 0.0,
    max_val: float = 6.0,
    negative_slope: float = 0.01,
) -> Tensor:
    r"""Compute ``activation(batch_norm(input, ...) + residual)``, in training in one pass.

    The numbers are those of the functions one after the other. Memory is read and written once
    forward and once backward, and without ``residual`` only ``input`` is kept for the gradient.
    A `plait.nn.Sequential` does this by itself.

    Args:
        input: Shape (N, C) or (N, C, \*).
        running_mean: Shape (C), written in training; None: not kept.
        running_var: Shape (C), written in training; None: not kept.
        weight: Shape (C), or None.
        bias: Shape (C), or None.
        training: Whether to normalise by the batch.
        momentum: The weight of the batch in the running statistics.
        eps: Keeps the root away from 0.
        activation: "relu", "hardtanh", "leaky_relu", "silu" or "hardswish".
        residual: What is added before the activation, of the shape of ``input``; None: nothing.
        min_val: The lower bound of "hardtanh"; the defaults are those of `relu6`.
        max_val: Its upper bound.
        negative_slope: The slope of "leaky_relu".

    Raises:
        ShapeError: A shape does not fit, or there is only one value for each channel in training.
        ValueError: The activation is another one; or there are no running statistics, and it is not
            training.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.tensor([[1.0], [3.0]])
        >>> F.batch_norm_activation(x, None, None, training=True, eps=0.0).tolist()
        [[0.0], [1.0]]
    """
    options = {
        "activation": activation,
        "min_val": min_val,
        "max_val": max_val,
        "negative_slope": negative_slope,
    }
    members = (weight, bias, running_mean, running_var)
    if is_mixed(input, *members):
        other = None if residual is None else residual.float()
        wide = operators.batch_norm_activation(
            input.float(), *members, training, momentum, eps, residual=other, **options
        )
        return wide.to(input.dtype)
    return operators.batch_norm_activation(
        input, *members, training, momentum, eps, residual=residual, **options
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Compute :math:`(x - \mathrm{E}[x]) / \sqrt{\mathrm{Var}[x] + \epsilon} \cdot w + b`.

    Mean and (biased) variance are over the last ``len(normalized_shape)`` dimensions (Ba 2016).

    Args:
        input: Shape ``(*, *normalized_shape)``.
        normalized_shape: The dimensions to normalise over.
        weight: Shape ``normalized_shape``, or None.
        bias: Shape ``normalized_shape``, or None.
        eps: Keeps the root away from 0.

    Raises:
        ShapeError: ``input`` does not end in ``normalized_shape``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.layer_norm(pc.tensor([[1.0, 3.0]]), (2,), eps=0.0).tolist()
        [[-1.0, 1.0]]
    """
    expected = tuple(normalized_shape)
    if not expected or input.shape[-len(expected) :] != expected:
        raise pc.ShapeError(
            f"layer_norm: `input` must end in the dimensions `normalized_shape` {expected}; "
            f"got shape {tuple(input.shape)}"
        )
    if is_mixed(input, weight, bias):
        return pc.layer_norm(input.float(), expected, weight, bias, eps).to(input.dtype)
    return pc.layer_norm(input, expected, weight, bias, eps)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide by the ``p``-norm along ``dim``, or by ``eps`` where that is larger.

    The result is written to ``out``, if given.

    Args:
        input: A tensor.
        p: The order of the norm.
        dim: The dimension of the vectors.
        eps: The least divisor.
        out: A tensor for the result, or None.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> unit = nn.functional.normalize(pc.tensor([[3.0, 4.0]]))
        >>> [round(u, 4) for u in unit[0].tolist()]
        [0.6, 0.8]
    """
    if input.dtype not in HALVES:
        norms = pc.norm(input, p, dim, True).clamp(min=eps)
        return input / norms if out is None else pc.div(input, norms, out=out)
    # a half holds neither every norm of halves nor the default eps; gradients of a copy in float32
    # are added before they are rounded
    wide = widened(input) if input.requires_grad else input
    norms = pc.norm(wide, p, dim, True, dtype=pc.float32).clamp(min=eps)
    unit = (wide / norms).to(input.dtype)
    return unit if out is None else pc.mul(unit, 1, out=out)


@unbound
@passes_on
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Compute ``x1 . x2 / (|x1| |x2|)`` along ``dim``, each norm at least ``eps``.

    Args:
        x1: The first vectors.
        x2: The second vectors; shapes broadcast.
        dim: The dimension of the vectors.
        eps: The least value of the product of the norms.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.cosine_similarity(pc.tensor([3.0, 4.0]), pc.tensor([3.0, 0.0]), dim=0)
        tensor(0.6000)
    """
    return pc.cosine_similarity(x1, x2, dim, eps)


def _by_channel(vector: Tensor, ndim: int) -> Tensor:
    return vector.reshape((1, -1) + (1,) * (ndim - 2))


def _check_channels(operator: str, input: Tensor, **vectors: Tensor | None) -> None:
    channels = input.shape[1]
    for name, vector in vectors.items():
        if vector is not None and tuple(vector.shape) != (channels,):
            raise pc.ShapeError(
                f"{operator}: `{name}` must have shape ({channels},) for input "
                f"{tuple(input.shape)}; got {tuple(vector.shape)}"
            )


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Compute :math:`(x - \mathrm{E}[x]) / \sqrt{\mathrm{Var}[x] + \epsilon} \cdot w + b`.

    Mean and (biased) variance are over each sample's groups of channels (Wu and He 2018).

    Args:
        input: Shape (N, C) or (N, C, \*).
        num_groups: The number of groups of channels; it divides C.
        weight: Shape (C), or None.
        bias: Shape (C), or None.
        eps: Keeps the root away from 0.

    Raises:
        ShapeError: ``num_groups`` doesn't divide C, or a shape does not fit.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([[1.0, 3.0, 10.0, 30.0]])
        >>> nn.functional.group_norm(x, 2, eps=0.0).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]
    """
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise pc.ShapeError(
            f"group_norm: `input` must be (N, C, *) with C divisible by `num_groups` {num_groups}; "
            f"got shape {tuple(input.shape)}"
        )
    require_floating("group_norm", "input", input)
    _check_channels("group_norm", input, weight=weight, bias=bias)
    if is_mixed(input, weight, bias):
        return group_norm(input.float(), num_groups, weight, bias, eps).to(input.dtype)
    shape = tuple(input.shape)
    size = input.shape[1] // num_groups * math.prod(shape[2:])
    rows = input.reshape((shape[0], num_groups, size))
    result = pc.layer_norm(rows, (size,), None, None, eps).reshape(shape).to(input.dtype)
    if weight is not None:
        result = result * _by_channel(weight, input.ndim)
    return result if bias is None else result + _by_channel(bias, input.ndim)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Compute :math:`(x - \mathrm{E}[x]) / \sqrt{\mathrm{Var}[x] + \epsilon} \cdot w + b`.

    Mean and (biased) variance are over each channel of each sample (Ulyanov et al. 2016).

    Args:
        input: Shape (N, C, \*).
        running_mean: Shape (C): updated with the mean of the samples' means; None: not kept.
        running_var: Shape (C): updated with the mean of the unbiased variances; None: not kept.
        weight: Shape (C), or None.
        bias: Shape (C), or None.
        use_input_stats: False normalises by the running statistics.
        momentum: The weight of the input in the running statistics.
        eps: Keeps the root away from 0.

    Raises:
        ShapeError: A shape does not fit, or a channel has only one element.
        ValueError: There are no running statistics to normalise by.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([[[1.0, 3.0], [10.0, 30.0]]])
        >>> nn.functional.instance_norm(x, eps=0.0).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    if input.ndim < 2:
        raise pc.ShapeError(
            f"instance_norm: `input` must be (N, C, *); got shape {tuple(input.shape)}"
        )
    require_floating("instance_norm", "input", input)
    _check_channels("instance_norm", input, running_mean=running_mean, running_var=running_var)
    _check_channels("instance_norm", input, weight=weight, bias=bias)
    members = (running_mean, running_var, weight, bias)
    if is_mixed(input, *members):
        wide = instance_norm(input.float(), *members, use_input_stats, momentum, eps)
        return wide.to(input.dtype)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                "instance_norm: `running_mean` and `running_var` are required unless "
                "`use_input_stats`"
            )
        return pc.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    shape = tuple(input.shape)
    size = math.prod(shape[2:])
    if size == 1:
        raise pc.ShapeError(
            f"instance_norm: a channel must have more than one element; got shape {shape}"
        )
    if running_mean is not None and running_var is not None and input.numel():
        values = input.detach()
        dims = tuple(range(2, input.ndim))
        for running, fresh in (
            (running_mean, values.mean(dims).mean(0)),
            (running_var, values.var(dims).mean(0)),
        ):
            running.detach().mul_(1 - momentum).add_(fresh.to(running.dtype), alpha=momentum)
    rows = input.reshape((*shape[:2], size))
    result = pc.layer_norm(rows, (size,), None, None, eps).reshape(shape).to(input.dtype)
    if weight is not None:
        result = result * _by_channel(weight, input.ndim)
    return result if bias is None else result + _by_channel(bias, input.ndim)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    r"""Compute :math:`x / \sqrt{\mathrm{E}[x^2] + \epsilon} \cdot w`.

    The mean is over the last ``len(normalized_shape)`` dimensions (Zhang and Sennrich 2019).

    Args:
        input: Shape ``(*, *normalized_shape)``.
        normalized_shape: The dimensions to normalise over.
        weight: Shape ``normalized_shape``, or None.
        eps: Keeps the root away from 0; None is the epsilon of the dtype that is computed in:
            that of the input, or float32 for float16 and bfloat16.

    Raises:
        ShapeError: ``input`` does not end in ``normalized_shape``, or ``weight`` has another shape.
        DTypeError: ``input`` has no floating-point or complex dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.rms_norm(pc.tensor([[3.0, 3.0, -3.0]]), (3,), eps=0.0)
        tensor([[ 1.,  1., -1.]])
    """
    require_floating("rms_norm", "input", input, complex=True)
    expected = tuple(normalized_shape)
    if not expected or tuple(input.shape[-len(expected) :]) != expected:
        raise pc.ShapeError(
            f"rms_norm: `input` must end in the dimensions `normalized_shape` {expected}; "
            f"got shape {tuple(input.shape)}"
        )
    if weight is not None and tuple(weight.shape) != expected:
        raise pc.ShapeError(
            f"rms_norm: `weight` must have shape {expected}; got {tuple(weight.shape)}"
        )
    wide = widened(input.contiguous())
    if eps is None:
        eps = float(pc.finfo(wide.dtype).eps)
    dims = tuple(range(-len(expected), 0))
    result = wide * pc.rsqrt((wide * wide).mean(dims, True) + eps)
    if weight is None:
        return result.to(input.dtype)
    scaled = result * weight
    rounded = is_mixed(input, weight) or weight.dtype == input.dtype
    return scaled.to(input.dtype) if rounded else scaled


@in_float32
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    r"""Compute :math:`x_c / (k + \frac{\alpha}{n} \sum_{c'} x_{c'}^2)^\beta`.

    The sum is over the ``n = size`` channels around c (Krizhevsky et al. 2012).

    Args:
        input: Shape (N, C, \*), with at least one dimension after the channels.
        size: The number of neighbouring channels.
        alpha: Factor of the mean square.
        beta: The exponent.
        k: Added to the mean square.

    Raises:
        ShapeError: ``input`` has fewer than 3 dimensions.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.ones(1, 3, 1)
        >>> nn.functional.local_response_norm(x, 3, alpha=3.0, beta=1.0).reshape(-1)
        tensor([0.3333, 0.2500, 0.3333])
    """
    if input.ndim < 3:
        raise pc.ShapeError(
            f"local_response_norm: `input` must have 3 or more dimensions (N, C, *); "
            f"got shape {tuple(input.shape)}"
        )
    if size < 1:
        raise ArgumentError(f"local_response_norm: `size` must be positive; got {size}")
    if input.numel() == 0:
        return input
    shape = tuple(input.shape)
    squares = (input * input).reshape((shape[0], shape[1], math.prod(shape[2:])))
    before, after = size // 2, (size - 1) // 2
    padded = F.pad(squares, (0, 0, before, after)).unsqueeze(1)
    means: Tensor = F.avg_pool2d(padded, (size, 1), (1, 1)).reshape(shape)
    return input / (means * alpha + k) ** beta
