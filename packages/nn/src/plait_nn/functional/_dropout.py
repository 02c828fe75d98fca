"""Dropout of elements and of whole channels."""

from __future__ import annotations

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.frames import warn
from plait_core import Tensor


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and divide the others by ``1 - p``.

    With ``training=False`` the input is returned as it is (Srivastava et al. 2014).

    Args:
        input: A tensor of any shape.
        p: Probability that an element becomes 0.
        training: Whether anything is dropped; False returns the input.
        inplace: Whether the result is written to the input's memory.

    Raises:
        ValueError: ``p`` is not in [0, 1].

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> out = nn.functional.dropout(pc.ones(1000), 0.5)
        >>> sorted(set(out.tolist()))
        [0.0, 2.0]
    """
    _check(p, "dropout")
    result = pc.dropout(input, p, training)
    return input.copy_(result) if inplace and training else result


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels with probability ``p`` and divide the others by ``1 - p``.

    Args:
        input: Shape (N, C, H, W); also (N, C) and others that begin so, as PyTorch reads them
            with a warning.
        p: In [0, 1].
        training: False returns the input as it is.
        inplace: Write the result over the input.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> out = nn.functional.dropout2d(pc.ones(1, 100, 2, 2), 0.5)
        >>> {tuple(channel.flatten().tolist()) for channel in out[0]} == {(0.0,) * 4, (2.0,) * 4}
        True
    """
    _check(p, "dropout2d")
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            f"behavior is desired: `input` {tuple(input.shape)} is read as (N, C, L), and not as "
            "(C, H, W); use dropout1d, or add a dimension for the batch"
        )
    elif input.ndim != 4:
        warn(
            f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is not (N, C, H, W): "
            f"the first two dimensions of `input` {tuple(input.shape)} number what becomes 0"
        )
    if not training or p == 0:
        return input
    if input.ndim < 2:
        raise ArgumentError(
            f"dropout2d: `input` must be (N, C, H, W), or (N, C, *); got {tuple(input.shape)}"
        )
    return _scaled(input, 2, p, inplace)


def _check(p: float, name: str) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: `p` must be in [0, 1]; got {p}")


_ALPHA = -1.7580993408473766  # the limit of selu at minus infinity


def _channels(
    operator: str, dims: int, input: Tensor, p: float, training: bool, inplace: bool
) -> Tensor:
    _check(p, operator)
    if input.ndim not in (dims + 1, dims + 2):
        raise ArgumentError(
            f"{operator}: `input` must have {dims + 1} or {dims + 2} dimensions; "
            f"got {tuple(input.shape)}"
        )
    if not training or p == 0:
        return input
    return _scaled(input, input.ndim - dims, p, inplace)


def _scaled(input: Tensor, leading: int, p: float, inplace: bool) -> Tensor:
    """Return the input times 0 or ``1 / (1 - p)``, one number for each index of the leading
    dimensions.
    """
    shape = (*tuple(input.shape)[:leading], *(1,) * (input.ndim - leading))
    result = input * pc.dropout(pc.ones(shape, dtype=input.dtype, device=input.device), p, True)
    return input.copy_(result) if inplace else result


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (N, C, L) or (C, L); see `dropout2d`.

    Args:
        input: A tensor of any shape.
        p: Probability that an element becomes 0.
        training: Whether anything is dropped; False returns the input.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> out = F.dropout1d(pc.ones(1, 100, 2), 0.5)
        >>> {tuple(channel) for channel in out[0].tolist()} == {(0.0, 0.0), (2.0, 2.0)}
        True
    """
    return _channels("dropout1d", 1, input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (N, C, D, H, W), or of (C, D, H, W) and others without N; see
    `dropout2d`.

    Args:
        input: A tensor of any shape.
        p: Probability that an element becomes 0.
        training: Whether anything is dropped; False returns the input.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.dropout3d(pc.ones(1, 100, 2, 1, 1), 0.5).unique().tolist()
        [0.0, 2.0]
    """
    _check(p, "dropout3d")
    if input.ndim not in (4, 5):
        warn(
            f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is neither "
            f"(N, C, D, H, W) nor (C, D, H, W): of `input` {tuple(input.shape)} single elements "
            "become 0"
        )
    if not training or p == 0 or input.ndim == 0:
        return input
    leading = 2 if input.ndim == 5 else 1
    return _scaled(input, leading, p, inplace)


def _alpha(input: Tensor, p: float, noise: Tensor, inplace: bool) -> Tensor:
    """Return the alpha dropout with one number of ``noise``, whose values are not used, for each
    element or channel.
    """
    if p == 1:
        result = input * 0
    else:
        keep = 1 - p
        a = 1 / ((_ALPHA**2 * p + 1) * keep) ** 0.5
        noise = noise.bernoulli_(keep)
        # a * x - a * p * alpha for elements that stay, else a * alpha - a * p * alpha
        shift = (noise - 1) * (-_ALPHA * a) + -_ALPHA * a * p
        result = input * (noise * a) + shift
    return input.copy_(result) if inplace else result


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Set elements to the limit of selu with probability ``p``, and keep mean and variance.

    The result is scaled and shifted, so that mean 0 and variance 1 are kept (Klambauer et al.
    2017).

    Args:
        input: A tensor of any shape.
        p: Probability that an element becomes 0.
        training: Whether anything is dropped; False returns the input.
        inplace: Whether the result is written to the input's memory.

    Raises:
        ValueError: ``p`` is not in [0, 1].

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> out = F.alpha_dropout(pc.randn(10000), 0.3, training=True)
        >>> abs(out.mean().item()) < 0.1, abs(out.std().item() - 1) < 0.1
        (True, True)
    """
    _check(p, "alpha_dropout")
    if not training or p == 0:
        return input
    return _alpha(input, p, pc.empty_like(input.detach()), inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    r"""Compute `alpha_dropout` of whole channels of (N, C, \*).

    Args:
        input: A tensor of any shape.
        p: Probability that an element becomes 0.
        training: Whether anything is dropped; False returns the input.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> out = F.feature_alpha_dropout(pc.zeros(1, 100, 4), 0.5, training=True)
        >>> bool((out[0, :, :1] == out[0]).all()), out.unique().numel()
        (True, 2)
    """
    _check(p, "feature_alpha_dropout")
    if not training or p == 0:
        return input
    if input.ndim < 2:
        raise ArgumentError(
            f"feature_alpha_dropout: `input` must be (N, C, *); got {tuple(input.shape)}"
        )
    shape = (*tuple(input.shape)[:2], *(1,) * (input.ndim - 2))
    noise = pc.empty(shape, dtype=input.dtype, device=input.device)
    return _alpha(input, p, noise, inplace)
