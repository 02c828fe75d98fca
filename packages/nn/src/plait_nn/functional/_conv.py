"""Convolutions of lines, images and volumes, and their transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import plait_core as pc
from plait_abi import ArgumentError, ShapeError
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.functional._autocast import cast_for_products
from plait_nn.functional._checks import Sizes, require_same_dtype, sizes_of
from plait_nn.functional._padding import pad


@unbound
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    r"""Cross-correlate images with filters.

    .. math:: y_{n,k,i,j} = b_k + \sum_{c,u,v} w_{k,c,u,v} \, x_{n,c,\,i s + u d,\,j s + v d}

    Args:
        input: Shape (N, C, H, W) or (C, H, W).
        weight: Shape (K, C / groups, kH, kW).
        bias: Shape (K), or None.
        stride: One int, or one for each dimension.
        padding: Zeros on every side, as ints; ``"valid"`` is 0; ``"same"`` keeps H and W and
            requires stride 1 (for an even kernel the additional zero is at the end).
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.

    Returns:
        Shape (N, K, H', W') with ``H' = (H + 2 padding - dilation (kH - 1) - 1) // stride + 1``.

    Complex numbers take two convolutions, integers are summed in float64 (exact below 2^53).

    Raises:
        ShapeError: The shapes don't fit together.
        DTypeError: The dtypes differ.
        ValueError: ``padding`` is an unknown word, or ``"same"`` with a stride.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x, w = pc.ones(1, 1, 5, 5), pc.ones(2, 1, 3, 3)
        >>> tuple(nn.functional.conv2d(x, w, padding="same").shape)
        (1, 2, 5, 5)
        >>> nn.functional.conv2d(x, w)[0, 0, 0].tolist()
        [9.0, 9.0, 9.0]
    """
    if input.ndim == 3:
        images = input.unsqueeze(0)
        return conv2d(images, weight, bias, stride, padding, dilation, groups).squeeze(0)
    if not input.is_floating_point() and input.dtype == weight.dtype:
        require_same_dtype("conv2d", "input", input, bias=bias)
        output = _conv2d_of_others(input, weight, stride, padding, dilation, groups)
        return output if bias is None else output + bias.reshape((-1, 1, 1))
    if not isinstance(padding, str):
        return pc.conv2d(input, weight, bias, stride, padding, dilation, groups)
    if weight.ndim != 4:
        raise ShapeError(
            f"conv2d: `weight` must have 4 dimensions; got shape {tuple(weight.shape)}"
        )
    borders = _borders("conv2d", padding, stride, dilation, tuple(weight.shape[2:]))
    sides = [after for _, after in borders]
    result = pc.conv2d(input, weight, bias, stride, sides, dilation, groups)
    for dim, (before, after) in zip((-2, -1), borders, strict=True):
        if before != after:  # the larger border is on both sides, so the first output is dropped
            result = result.narrow(dim, 1, result.shape[dim] - 1)
    return result.contiguous()


def _conv2d_of_others(input: Tensor, weight: Tensor, *options: Any) -> Tensor:
    """Convolve integers in float64, and complex numbers by their parts."""
    if not input.is_complex():
        wide = conv2d(input.to(pc.float64), weight.to(pc.float64), None, *options)
        return wide.to(input.dtype)
    n = input.shape[0]
    parts = pc.cat([input.real, input.imag])
    real = conv2d(parts, weight.real, None, *options)
    imaginary = conv2d(parts, weight.imag, None, *options)
    return pc.complex(real[:n] - imaginary[n:], real[n:] + imaginary[:n])


def _check(operator: str, dims: int, input: Tensor, weight: Tensor, groups: int) -> None:
    fits = (
        groups >= 1
        and input.ndim in (dims + 1, dims + 2)
        and weight.ndim == dims + 2
        and input.shape[-dims - 1] == weight.shape[1] * groups
        and weight.shape[0] % groups == 0
    )
    if not fits:
        if groups >= 1 and input.ndim in (dims + 1, dims + 2) and weight.ndim == dims + 2:
            _check_channels(operator, input, weight, input.shape[-dims - 1], groups)
        indices = "L" if dims == 1 else "D, H, W"
        raise pc.ShapeError(
            f"{operator}: `input` must be (N, C, {indices}) or (C, {indices}) and `weight` "
            f"(K, C / groups, *) with {dims} more dimensions; got shapes {tuple(input.shape)} and "
            f"{tuple(weight.shape)} with groups {groups}"
        )


def _check_channels(
    operator: str, input: Tensor, weight: Tensor, channels: int, groups: int
) -> None:
    """Raise if the input has another number of channels than the weight was made for."""
    transposed = "transpose" in operator
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    if channels != expected:
        raise pc.ShapeError(
            f"{operator}: with `groups` {groups} and `weight` of shape {tuple(weight.shape)}, "
            f"expected `input` of shape {tuple(input.shape)} to have {expected} channels, but got "
            f"{channels} channels instead"
        )


def _borders(
    operator: str, padding: Sizes | str, stride: Sizes, dilation: Sizes, kernel: tuple[int, ...]
) -> list[tuple[int, int]]:
    """The zeros before and after every dimension."""
    dims = len(kernel)
    if not isinstance(padding, str):
        return [(p, p) for p in sizes_of(padding, dims, "padding", operator)]
    if padding == "valid":
        return [(0, 0)] * dims
    if padding != "same":
        raise ArgumentError(
            f'{operator}: `padding` must be an int, {dims} ints, "same" or "valid"; got {padding!r}'
        )
    if any(s != 1 for s in sizes_of(stride, dims, "stride", operator)):
        raise ArgumentError(f'{operator}: padding="same" needs stride 1; got {stride}')
    steps = sizes_of(dilation, dims, "dilation", operator)
    totals = [d * (k - 1) for d, k in zip(steps, kernel, strict=True)]
    return [(t // 2, t - t // 2) for t in totals]


@unbound
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    r"""Cross-correlate sequences with filters.

    .. math:: y_{n,k,i} = b_k + \sum_{c,u} w_{k,c,u} \, x_{n,c,\,i s + u d}

    Args:
        input: Shape (N, C, L) or (C, L).
        weight: Shape (K, C / groups, kL).
        bias: Shape (K), or None.
        stride: Distance of the windows.
        padding: Zeros on both sides; ``"valid"`` is 0; ``"same"`` keeps L and requires stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.

    Returns:
        Shape (N, K, L') with ``L' = (L + 2 padding - dilation (kL - 1) - 1) // stride + 1``.

    Raises:
        ShapeError: The shapes don't fit together.
        ValueError: ``padding`` is an unknown word, or ``"same"`` with a stride.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.conv1d(pc.arange(5.0).reshape(1, 1, 5), pc.ones(1, 1, 3)).flatten()
        tensor([3., 6., 9.])
    """
    input, weight, bias = cast_for_products(input, weight, bias)
    _check("conv1d", 1, input, weight, groups)
    require_same_dtype("conv1d", "input", input, weight=weight, bias=bias)
    ((before, after),) = _borders("conv1d", padding, stride, dilation, tuple(weight.shape[2:]))
    if before != after:
        input, after = pad(input, (before, after)), 0
    (step,) = sizes_of(stride, 1, "stride", "conv1d")
    (spread,) = sizes_of(dilation, 1, "dilation", "conv1d")
    rows, filters = input.unsqueeze(-2), weight.unsqueeze(2)
    result = conv2d(rows, filters, bias, (1, step), (0, after), (1, spread), groups)
    return result.squeeze(-2)


@unbound
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    r"""Cross-correlate volumes with filters.

    .. math::
        y_{n,k,h,i,j} = b_k + \sum_{c,t,u,v} w_{k,c,t,u,v} \,
        x_{n,c,\,h s + t d,\,i s + u d,\,j s + v d}

    The slices that a filter sees become channels of images, so memory grows with kD.

    Args:
        input: Shape (N, C, D, H, W) or (C, D, H, W).
        weight: Shape (K, C / groups, kD, kH, kW).
        bias: Shape (K), or None.
        stride: One int, or one for each dimension.
        padding: Zeros on every side; ``"valid"`` is 0; ``"same"`` keeps the size and requires
            stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.

    Returns:
        Shape (N, K, D', H', W').

    Raises:
        ShapeError: The shapes don't fit together.
        ValueError: ``padding`` is an unknown word, or ``"same"`` with a stride.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> out = F.conv3d(pc.ones(1, 1, 3, 3, 3), pc.ones(2, 1, 2, 2, 2))
        >>> tuple(out.shape), out[0, 0, 0, 0].tolist()
        ((1, 2, 2, 2, 2), [8.0, 8.0])
    """
    input, weight, bias = cast_for_products(input, weight, bias)
    _check("conv3d", 3, input, weight, groups)
    require_same_dtype("conv3d", "input", input, weight=weight, bias=bias)
    if input.ndim == 4:
        result = conv3d(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups)
        return result.squeeze(0)
    filters, channels, depth, *image = weight.shape
    borders = _borders("conv3d", padding, stride, dilation, (depth, *image))
    uneven = any(before != after for before, after in borders[1:])
    if uneven:
        flat = [n for before_after in reversed(borders) for n in before_after]
        input, borders = pad(input, flat), [(0, 0)] * 3
    elif borders[0] != (0, 0):
        input = pad(input, (0, 0, 0, 0, *borders[0]))
    steps = sizes_of(stride, 3, "stride", "conv3d")
    spreads = sizes_of(dilation, 3, "dilation", "conv3d")
    if min(steps) < 1 or min(spreads) < 1:
        raise ArgumentError(
            f"conv3d: `stride` and `dilation` must be positive; got {steps}, {spreads}"
        )
    slices = (input.shape[2] - spreads[0] * (depth - 1) - 1) // steps[0] + 1
    if slices < 1:
        raise pc.ShapeError(
            f"conv3d: the kernel {tuple(weight.shape[2:])} must fit into the padded input; "
            f"got shape {tuple(input.shape)} with dilation {spreads}"
        )
    indices = [o * steps[0] + k * spreads[0] for o in range(slices) for k in range(depth)]
    windows = input.index_select(2, pc.tensor(indices, device=input.device))
    batch, height, width = input.shape[0], input.shape[3], input.shape[4]
    windows = windows.reshape((batch, input.shape[1], slices, depth, height, width))
    images = windows.permute((0, 2, 1, 3, 4, 5)).reshape(
        (batch * slices, input.shape[1] * depth, height, width)
    )
    kernel = weight.reshape((filters, channels * depth, *image))
    sides = (borders[1][0], borders[2][0])
    result = conv2d(images, kernel, bias, steps[1:], sides, spreads[1:], groups)
    result = result.reshape((batch, slices, *result.shape[1:]))
    # its order in memory is PyTorch's: programs use `view`, and `randn_like` draws in this order
    return result.transpose(1, 2).contiguous()


_Options = tuple[Sizes, Sizes, Sizes, Sizes]  # stride, padding, output_padding, dilation

_backward_input = operators.conv2d_backward_input


class _Geometry(NamedTuple):
    """The geometry of a transposed convolution, with a number for each dimension."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    extra: tuple[int, ...]  # the argument `output_padding`
    dilation: tuple[int, ...]
    groups: int

    def extent(self, input: Tensor, weight: Tensor, i: int) -> int:
        """Return the size in dimension `i` of a result from which no padding is cut."""
        spread = self.dilation[i] * (weight.shape[i + 2] - 1)
        extent: int = (input.shape[i + 2] - 1) * self.stride[i] + spread + 1
        return extent


def _geometry(
    operator: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    groups: int,
    options: _Options,
) -> _Geometry:
    """Check all arguments and return the geometry."""
    dims = weight.ndim - 2
    fits = (
        groups >= 1
        and operator.endswith(f"{dims}d")
        and input.ndim == dims + 2
        and input.shape[1] == weight.shape[0]
        and weight.shape[0] % groups == 0
    )
    if not fits:
        if groups >= 1 and operator.endswith(f"{dims}d") and input.ndim == dims + 2:
            _check_channels(operator, input, weight, input.shape[1], groups)
        raise pc.ShapeError(
            f"{operator}: `input` must be (N, C, *) or (C, *) and `weight` (C, K / groups, *) with "
            f"{operator[-2]} more dimensions, `groups` a divisor of C; got shapes "
            f"{tuple(input.shape)} and {tuple(weight.shape)} with groups {groups}"
        )
    if bias is not None and tuple(bias.shape) != (weight.shape[1] * groups,):
        raise pc.ShapeError(
            f"{operator}: `bias` must have shape ({weight.shape[1] * groups},); "
            f"got {tuple(bias.shape)}"
        )
    names = ("stride", "padding", "output_padding", "dilation")
    result = [sizes_of(value, dims, n, operator) for n, value in zip(names, options, strict=True)]
    for name, sizes, least in zip(names, result, (1, 0, 0, 1), strict=True):
        if min(sizes) < least:
            raise ArgumentError(f"{operator}: `{name}` must be at least {least}; got {sizes}")
        if max(sizes) >= 2**31:
            raise ArgumentError(f"{operator}: `{name}` must be less than 2**31; got {sizes}")
    stride, padding, extra, dilation = result
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise ArgumentError(
            f"{operator}: `output_padding` must be less than stride or dilation; got {extra} with "
            f"stride {stride} and dilation {dilation}"
        )
    return _Geometry(stride, padding, extra, dilation, groups)


def _cut(output: Tensor, padding: tuple[int, ...], extra: tuple[int, ...]) -> Tensor:
    """Cut the padding off, except for ``output_padding`` elements at the end."""
    borders = [n for p, e in zip(padding, extra, strict=True) for n in (e - p, -p)][::-1]
    return pad(output, borders) if any(borders) else output


def _images(input: Tensor, weight: Tensor, geometry: _Geometry) -> Tensor:
    """Transpose the convolution of images."""
    if not input.is_floating_point() and input.dtype == weight.dtype:
        return _images_of_others(input, weight, geometry)
    stride, padding, extra, dilation, groups = geometry
    leading = [input.shape[0], weight.shape[1] * groups]
    whole = [geometry.extent(input, weight, i) for i in range(2)]
    size = [whole[i] + extra[i] - 2 * padding[i] for i in range(2)]
    # a convolution of images of this size has results of the input's size, if `extra` is less than
    # a stride
    fits = all(e < s for e, s in zip(extra, stride, strict=True)) and min(size) > 0
    cuts = not fits or 0 in input.shape[2:]
    result: Tensor = _backward_input(
        input,
        weight,
        leading + (whole if cuts else size),
        stride,
        (0, 0) if cuts else padding,
        dilation,
        groups,
    )
    return _cut(result, padding, extra) if cuts else result


def _images_of_others(input: Tensor, weight: Tensor, geometry: _Geometry) -> Tensor:
    """Transpose the convolution of integers in float64, and of complex numbers by their parts."""
    if not input.is_complex():
        wide = _images(input.to(pc.float64), weight.to(pc.float64), geometry)
        return wide.to(input.dtype)
    n = input.shape[0]
    parts = pc.cat([input.real, input.imag])
    real = _images(parts, weight.real, geometry)
    imaginary = _images(parts, weight.imag, geometry)
    return pc.complex(real[:n] - imaginary[n:], real[n:] + imaginary[:n])


def _lines(input: Tensor, weight: Tensor, geometry: _Geometry) -> Tensor:
    """Transpose the convolution of lines, which are images of one row."""
    stride, padding, extra, dilation, groups = geometry
    row = _Geometry((1, *stride), (0, *padding), (0, *extra), (1, *dilation), groups)
    return _images(input.unsqueeze(2), weight.unsqueeze(2), row).squeeze(2)


def _volumes(input: Tensor, weight: Tensor, geometry: _Geometry) -> Tensor:
    """Transpose the convolution of volumes, of each slice by each tap, and sum the results."""
    stride, padding, extra, dilation, groups = geometry
    batch, channels, slices, *image = input.shape
    taps, filters = weight.shape[2], weight.shape[1] * groups
    images = input.transpose(1, 2).reshape((batch * slices, channels, *image))
    kernel = weight.reshape((channels, weight.shape[1] * taps, *weight.shape[3:]))
    flat = _images(
        images, kernel, _Geometry(stride[1:], padding[1:], extra[1:], dilation[1:], groups)
    )
    size = flat.shape[2:]
    pieces = flat.reshape((batch, slices, filters, taps, *size)).permute((0, 2, 1, 3, 4, 5))
    pieces = pieces.reshape((batch, filters, slices * taps, *size))
    indices = [i * stride[0] + k * dilation[0] for i in range(slices) for k in range(taps)]
    blank = pieces.new_zeros((batch, filters, geometry.extent(input, weight, 0), *size))
    result = blank.index_add(2, pc.tensor(indices, device=input.device), pieces)
    return _cut(result, (padding[0], 0, 0), (extra[0], 0, 0))


def _transposed(
    operator: str,
    compute: Callable[[Tensor, Tensor, _Geometry], Tensor],
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    groups: int,
    options: _Options,
) -> Tensor:
    """Check, compute and add the bias; an input without a batch is a batch of one."""
    if input.ndim == weight.ndim - 1:
        batch = input.unsqueeze(0)
        return _transposed(operator, compute, batch, weight, bias, groups, options).squeeze(0)
    input, weight, bias = cast_for_products(input, weight, bias)
    require_same_dtype(operator, "input", input, weight=weight, bias=bias)
    result = compute(input, weight, _geometry(operator, input, weight, bias, groups, options))
    return result if bias is None else result + bias.reshape((-1,) + (1,) * (result.ndim - 2))


@unbound
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    r"""Compute the derivative of `conv2d` for its input, as a layer (also called deconvolution).

    .. math:: y_{n,k,a,b} = \sum w_{c,k,u,v} \, x_{n,c,i,j}

    The sum runs over all c, i, j, u and v with :math:`i s + u d - p = a` and
    :math:`j s + v d - p = b`, for the stride s, the dilation d and the padding p.

    Args:
        input: Shape (N, C, H, W) or (C, H, W).
        weight: Shape (C, K / groups, kH, kW).
        bias: Shape (K), or None.
        stride: Distance of the input's elements in the result.
        padding: Number of elements that are cut off on every side.
        output_padding: Number of elements that are not cut off at the end; less than stride or
            dilation.
        groups: Number of independent groups of channels.
        dilation: Distance of the kernel's elements.

    Returns:
        Shape (N, K, H', W'), ``H' = (H - 1) stride - 2 padding + dilation (kH - 1) +
        output_padding + 1``.

    Complex numbers take two such convolutions, integers are summed in float64 (exact below 2^53).

    Raises:
        ShapeError: The shapes don't fit together.
        ValueError: A number is out of range.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.conv_transpose2d(pc.ones(1, 1, 1, 2), pc.ones(1, 1, 1, 2), stride=2).flatten()
        tensor([1., 1., 1., 1.])
    """
    options = (stride, padding, output_padding, dilation)
    return _transposed("conv_transpose2d", _images, input, weight, bias, groups, options)


@unbound
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    r"""Compute the derivative of `conv1d` for its input, as a layer; see `conv_transpose2d`.

    Shapes: input (N, C, L) or (C, L), weight (C, K / groups, kL), bias (K).

    Args:
        input: Shape (N, C, ...) or (C, ...).
        weight: Shape (C, K / groups, ...).
        bias: Shape (K), or None.
        stride: Distance of the input's elements in the result.
        padding: Number of elements that are cut off on every side.
        output_padding: Number of elements that are not cut off at the end.
        groups: Number of independent groups of channels.
        dilation: Distance of the kernel's elements.

    Raises:
        ShapeError: The shapes don't fit together.
        ValueError: A number is out of range.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.conv_transpose1d(pc.tensor([[[1.0, 2.0]]]), pc.ones(1, 1, 3), stride=2).flatten()
        tensor([1., 1., 3., 2., 2.])
    """
    options = (stride, padding, output_padding, dilation)
    return _transposed("conv_transpose1d", _lines, input, weight, bias, groups, options)


@unbound
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    r"""Compute the derivative of `conv3d` for its input, as a layer; see `conv_transpose2d`.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), weight (C, K / groups, kD, kH, kW), bias (K).

    Args:
        input: Shape (N, C, ...) or (C, ...).
        weight: Shape (C, K / groups, ...).
        bias: Shape (K), or None.
        stride: Distance of the input's elements in the result.
        padding: Number of elements that are cut off on every side.
        output_padding: Number of elements that are not cut off at the end.
        groups: Number of independent groups of channels.
        dilation: Distance of the kernel's elements.

    Raises:
        ShapeError: The shapes don't fit together.
        ValueError: A number is out of range.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> out = F.conv_transpose3d(pc.ones(1, 1, 1, 1, 2), pc.ones(1, 1, 2, 1, 2), stride=2)
        >>> tuple(out.shape), out.sum().item()
        ((1, 1, 2, 1, 4), 8.0)
    """
    options = (stride, padding, output_padding, dilation)
    return _transposed("conv_transpose3d", _volumes, input, weight, bias, groups, options)


@unbound
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolve sequences whose dimensions are (time, batch, channels).

    Args:
        input: Shape (T, B, C).
        weight: Shape (k, C, D).
        bias: Shape (D).
        pad: Zeros at both ends.

    Returns:
        Shape (T + 2 pad - k + 1, B, D).

    Raises:
        ShapeError: The shapes don't fit together.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.conv_tbc(pc.arange(3.0).reshape(3, 1, 1), pc.ones(2, 1, 1), pc.zeros(1)).flatten()
        tensor([1., 3.])
    """
    if input.ndim != 3 or weight.ndim != 3 or input.shape[2] != weight.shape[1]:
        raise pc.ShapeError(
            f"conv_tbc: `input` must be (T, B, C) and `weight` (k, C, D); "
            f"got shapes {tuple(input.shape)} and {tuple(weight.shape)}"
        )
    result = conv1d(input.permute((1, 2, 0)), weight.permute((2, 1, 0)), bias, padding=pad)
    return result.permute((2, 0, 1))
