"""Transposed convolution: the derivative of convolution for its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.functional._dtypes import require_bias
from plait_nn.functional._padding import pad
from plait_nn.functional._sizes import Sizes, sizes_of

__all__ = ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

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
        return int((input.shape[i + 2] - 1) * self.stride[i] + spread + 1)


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


def _cut(made: Tensor, padding: tuple[int, ...], extra: tuple[int, ...]) -> Tensor:
    """Cut the padding off, except for ``output_padding`` elements at the end."""
    borders = [n for p, e in zip(padding, extra, strict=True) for n in (e - p, -p)][::-1]
    return pad(made, borders) if any(borders) else made


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
    require_bias(operator, input, bias)
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
