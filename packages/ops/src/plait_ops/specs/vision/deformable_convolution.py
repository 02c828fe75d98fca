"""Deformable convolution: each element of a filter has an offset of its own at each place."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.specs.convolution.convolution import check_filters
from plait_ops.words import (
    check,
    int64,
    numel,
    part,
    require,
    require_same,
    result,
    sizes,
    to_dtype,
    wide_dtype,
    windows,
)

deform_conv2d = Composite(
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor? mask=None, Tensor? bias=None, int[2] stride=1, "
    "int[2] padding=0, int[2] dilation=1, int groups=1, int offset_groups=1) -> Tensor",
    doc="""
    `conv2d` whose filter elements read the image at shifted places, each with a factor (Dai et al. 2017; Zhu et al. 2019):
    ``out[n, o, y, x] = bias[o] + sum_{c,i,j} weight[o, c, i, j] * m * input[n, c', y * sh + i * dh - ph + dy, x * sw + j *
    dw - pw + dx]``. Channel ``2 * (g * kh * kw + i * kw + j)`` of `offset` is dy and the next channel is dx; m is channel
    ``g * kh * kw + i * kw + j`` of `mask`, or 1 without a mask; g is the offset group of the channel c'. Values are
    interpolated between the four pixels around a place; outside of the image they are 0.

    Args:
        weight: The filters: shape (K, C / groups, kH, kW).
        offset: The shift of each point of the kernel, as (y, x): shape (N, 2 offset_groups kH kW, H', W').
        mask: The factor of each point of the kernel, or None.
        input: Images: shape (N, C, H, W).

    Shapes: `input` is (n, c, h, w), `weight` (o, c / groups, kh, kw), `offset` (n, 2 * offset_groups * kh * kw, oh, ow),
    `mask` (n, offset_groups * kh * kw, oh, ow), `bias` (o,), the result (n, o, oh, ow), sizes as of `conv2d`.
    Dtypes: floating, the same for all. Raises: ShapeError for other shapes, ValueError for numbers of groups below 1,
    DTypeError if dtypes differ. torchvision has an operator of this name.

    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> image, half = pc.arange(9.0).reshape(1, 1, 3, 3), pc.full((1, 2, 2, 2), 0.5)
    >>> operator("deform_conv2d")(image, pc.ones(1, 1, 1, 1), half, stride=2).tolist()
    [[[[2.0, 1.75], [3.25, 2.0]]]]
    """,
    dtypes="floating",
    variants="",
)
deform_sample = Operator(
    "deform_sample(Tensor input, Tensor offset, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, "
    "bool along_y, bool along_x) -> Tensor",
    doc="""
    The values that the filters of `deform_conv2d` read from images, in shape (n, c, kh * kw, oh * ow). With `along_y` or
    `along_x`, their derivative with respect to that coordinate of the place; with both, the mixed derivative.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional: without a kernel other operators compute it; in[0] is (n, c, h, w), in[1] (n, 2 * g * kh * kw, oh, ow) with c a multiple of g, of one floating dtype, any strides; kernel_size, stride, padding and dilation are two ints each; the result is in C order and every element of it is written; places that are not finite give 0.",
)
deform_sample.batch("rows")
deform_scatter = Operator(
    "deform_scatter(Tensor grad, Tensor offset, int[] size, int[2] kernel_size, int[2] stride, int[2] padding, "
    "int[2] dilation, bool along_y, bool along_x) -> Tensor",
    doc="The transposed `deform_sample`: its derivative with respect to the images, of shape `size`.",
    dtypes="floating",
    internal=True,
    kernel="optional: without a kernel other operators compute it; in[0] has the shape of the result of `deform_sample`, in[1] is as there, of one floating dtype, any strides; in[2] is the shape (n, c, h, w) of the result, in C order, of which every element is written; sums do not depend on the number of threads.",
)
deform_scatter.batch("rows")


@part
def checked_windows(size, kernel_size, stride, padding, dilation):
    """The rows and columns of the result."""
    check(
        kernel_size[0] < 32768 and kernel_size[1] < 32768,
        f"`kernel_size` must be below 32768; got {kernel_size}",
        "ValueError",
    )
    oh = windows(size, 2, kernel_size[0], stride[0], padding[0], dilation[0], False)
    ow = windows(size, 3, kernel_size[1], stride[1], padding[1], dilation[1], False)
    return [oh, ow]


@part
def check_offset(offset, images, channels, places, kernel_size):
    """`offset` has two channels for each element of a filter in each of its groups."""
    two = 2 * kernel_size[0] * kernel_size[1]
    check(
        offset.ndim == 4
        and offset.shape[0] == images
        and offset.shape[1] > 0
        and offset.shape[1] % two == 0
        and offset.shape[2:] == places,
        f"`offset` must have shape ({images}, a multiple of {two}, {places[0]}, {places[1]}); got {offset.shape}",
    )
    check(
        channels % (offset.shape[1] // two) == 0,
        f"the {channels} channels of `input` must be a multiple of the {offset.shape[1] // two} groups of `offset`; got shape {offset.shape}",
    )


@deform_sample.shape
def _(input, offset, kernel_size, stride, padding, dilation):
    check(input.ndim == 4, f"`input` must have shape (n, c, h, w); got {input.shape}")
    require("input", input.dtype, "floating")
    require_same("input", input, "offset", offset)
    places = checked_windows(input.shape, kernel_size, stride, padding, dilation)
    check_offset(offset, input.shape[0], input.shape[1], places, kernel_size)
    return result(
        [input.shape[0], input.shape[1], kernel_size[0] * kernel_size[1], places[0] * places[1]],
        input.dtype,
    )


@part
def corner_of(offset, size, kernel_size, stride, padding, dilation, along_y, along_x, i):
    """Corner `i` of the four pixels around each place in images of shape `size`: its index, its weight, and whether it
    lies in the image, each (n, groups, 1, places).
    """
    kw = kernel_size[1]
    k = kernel_size[0] * kw
    oh = offset.shape[2]
    ow = offset.shape[3]
    groups = offset.shape[1] // (2 * k)
    shifts = op.reshape(offset, [size[0], groups, k, 2, oh, ow])
    element = op.arange(k, device=offset.device)
    down = op.reshape(op.floor_divide(element, kw) * dilation[0] - padding[0], [k, 1, 1])
    right = op.reshape(op.remainder(element, kw) * dilation[1] - padding[1], [k, 1, 1])
    y = down + op.reshape(op.arange(oh, device=offset.device) * stride[0], [oh, 1])
    x = right + op.arange(ow, device=offset.device) * stride[1]
    row = op.select(shifts, 3, 0) + to_dtype(y, offset.dtype)
    column = op.select(shifts, 3, 1) + to_dtype(x, offset.dtype)
    top = op.floor(row)
    left = op.floor(column)
    if along_y:
        by_y = op.full_like(row, 1.0 if i >= 2 else -1.0)
    else:
        by_y = row - top if i >= 2 else 1.0 - (row - top)
    if along_x:
        by_x = op.full_like(column, 1.0 if i % 2 == 1 else -1.0)
    else:
        by_x = column - left if i % 2 == 1 else 1.0 - (column - left)
    r = top + i // 2
    q = left + i % 2
    inside = op.logical_and(
        op.logical_and(op.ge(r, 0), op.lt(r, size[2])),
        op.logical_and(op.ge(q, 0), op.lt(q, size[3])),
    )
    pixel_row = to_dtype(op.where(inside, r, 0.0), int64)
    at = pixel_row * size[3] + to_dtype(op.where(inside, q, 0.0), int64)
    wide = [size[0], groups, 1, k * oh * ow]
    return [op.reshape(at, wide), op.reshape(by_y * by_x, wide), op.reshape(inside, wide)]


@deform_sample.decompose
def _(input, offset, kernel_size, stride, padding, dilation, along_y, along_x):
    dtype = input.dtype
    wide = wide_dtype(dtype)
    if dtype != wide:  # places are computed in float32
        return to_dtype(
            deform_sample(
                to_dtype(input, wide),
                to_dtype(offset, wide),
                kernel_size,
                stride,
                padding,
                dilation,
                along_y,
                along_x,
            ),
            dtype,
        )
    n = input.shape[0]
    c = input.shape[1]
    k = kernel_size[0] * kernel_size[1]
    area = offset.shape[2] * offset.shape[3]
    made = op.zeros([n, c, k, area], dtype=dtype, device=input.device)
    if numel(input) == 0 or numel(offset) == 0:
        return made
    groups = offset.shape[1] // (2 * k)
    grouped = [n, groups, c // groups, k * area]
    images = op.reshape(input, [n, groups, c // groups, input.shape[2] * input.shape[3]])
    made = op.reshape(made, grouped)
    for i in range(4):
        corner = corner_of(
            offset, input.shape, kernel_size, stride, padding, dilation, along_y, along_x, i
        )
        pixels = op.gather(images, 3, op.expand(corner[0], grouped))
        made = made + op.where(corner[2], pixels * corner[1], 0.0)
    return op.reshape(made, [n, c, k, area])


@deform_scatter.decompose
def _(grad, offset, size, kernel_size, stride, padding, dilation, along_y, along_x):
    dtype = grad.dtype
    wide = wide_dtype(dtype)
    if dtype != wide:
        return to_dtype(
            deform_scatter(
                to_dtype(grad, wide),
                to_dtype(offset, wide),
                size,
                kernel_size,
                stride,
                padding,
                dilation,
                along_y,
                along_x,
            ),
            dtype,
        )
    if numel(size) == 0 or numel(offset) == 0:
        return op.zeros(size, dtype=dtype, device=grad.device)
    groups = offset.shape[1] // (2 * kernel_size[0] * kernel_size[1])
    channels = size[1] // groups
    columns = [size[0], groups, channels, grad.shape[2] * grad.shape[3]]
    by_pixel = op.reshape(grad, columns)
    made = op.zeros([size[0], groups, channels, size[2] * size[3]], dtype=dtype, device=grad.device)
    for i in range(4):
        corner = corner_of(
            offset, size, kernel_size, stride, padding, dilation, along_y, along_x, i
        )
        parts = op.where(corner[2], by_pixel * corner[1], 0.0)
        made = op.scatter_add(made, 3, op.expand(corner[0], columns), parts)
    return op.reshape(made, size)


@deform_sample.cost
def _(result):
    return 7 * numel(result)


@deform_scatter.shape
def _(grad, offset, size, kernel_size, stride, padding, dilation):
    sizes("size", size)
    check(len(size) == 4, f"`size` must be (n, c, h, w); got {size}")
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "offset", offset)
    places = checked_windows(size, kernel_size, stride, padding, dilation)
    check_offset(offset, size[0], size[1], places, kernel_size)
    made = [size[0], size[1], kernel_size[0] * kernel_size[1], places[0] * places[1]]
    check(
        grad.shape == tuple(made),
        f"`grad` must have shape {tuple(made)} for `size` {size}; got {grad.shape}",
    )
    return result(size, grad.dtype)


@deform_scatter.cost
def _(grad):
    return 8 * numel(grad)


@part
def offset_gradient(
    columns, input, offset, kernel_size, stride, padding, dilation, along_y, along_x
):
    """The derivative of ``sum(columns * deform_sample(input, offset, ...))`` by `offset`."""
    places = kernel_size[0] * kernel_size[1]
    groups = offset.shape[1] // (2 * places)
    area = offset.shape[2] * offset.shape[3]
    wide = [input.shape[0], groups, input.shape[1] // groups, places, area]
    none = op.zeros(
        [input.shape[0], groups, places, area], dtype=offset.dtype, device=offset.device
    )
    by_y = none
    by_x = none
    if not along_y:
        steep = deform_sample(input, offset, kernel_size, stride, padding, dilation, True, along_x)
        by_y = op.sum(op.reshape(op.mul(columns, steep), wide), [2])
    if not along_x:
        slope = deform_sample(input, offset, kernel_size, stride, padding, dilation, along_y, True)
        by_x = op.sum(op.reshape(op.mul(columns, slope), wide), [2])
    return op.reshape(op.stack([by_y, by_x], 3), offset.shape)


@deform_sample.vjp("input")
def _(g, input, offset, kernel_size, stride, padding, dilation, along_y, along_x):
    return deform_scatter(
        g, offset, input.shape, kernel_size, stride, padding, dilation, along_y, along_x
    )


@deform_sample.vjp("offset")
def _(g, input, offset, kernel_size, stride, padding, dilation, along_y, along_x):
    return offset_gradient(
        g, input, offset, kernel_size, stride, padding, dilation, along_y, along_x
    )


@deform_scatter.vjp("grad")
def _(g, offset, kernel_size, stride, padding, dilation, along_y, along_x):
    return deform_sample(g, offset, kernel_size, stride, padding, dilation, along_y, along_x)


@deform_scatter.vjp("offset")
def _(g, grad, offset, kernel_size, stride, padding, dilation, along_y, along_x):
    return offset_gradient(
        grad, g, offset, kernel_size, stride, padding, dilation, along_y, along_x
    )


@deform_conv2d.decompose
def _(input, weight, offset, mask, bias, stride, padding, dilation, groups, offset_groups):
    check(
        groups >= 1 and offset_groups >= 1,
        f"`groups` and `offset_groups` must be at least 1; got {groups} and {offset_groups}",
        "ValueError",
    )
    check_filters(input, weight, bias, groups)
    n = input.shape[0]
    c = input.shape[1]
    o = weight.shape[0]
    kernel_size = [weight.shape[2], weight.shape[3]]
    places = checked_windows(input.shape, kernel_size, stride, padding, dilation)
    k = kernel_size[0] * kernel_size[1]
    check(
        offset.shape == (n, 2 * offset_groups * k, places[0], places[1]),
        f"`offset` must have shape ({n}, {2 * offset_groups * k}, {places[0]}, {places[1]}) "
        f"for `weight` of shape {weight.shape} with `offset_groups` {offset_groups}; got {offset.shape}",
    )
    if mask is not None:
        require_same("input", input, "mask", mask)
        check(
            mask.shape == (n, offset_groups * k, places[0], places[1]),
            f"`mask` must have shape ({n}, {offset_groups * k}, {places[0]}, {places[1]}); got {mask.shape}",
        )
    area = places[0] * places[1]
    filters = op.reshape(weight, [1, groups, o // groups, c // groups * k])
    # a few images at a time: what filters see is k times as large as they are
    step = max(16777216 // max(c * k * area, 1), 1)
    rows = []
    first = 0
    while first < n or first == 0:
        m = min(step, n - first)
        some = op.narrow(input, 0, first, m)
        shifts = op.narrow(offset, 0, first, m)
        seen = deform_sample(some, shifts, kernel_size, stride, padding, dilation, False, False)
        if mask is not None:
            factors = op.reshape(op.narrow(mask, 0, first, m), [m, offset_groups, 1, k, area])
            wide = [m, offset_groups, c // offset_groups, k, area]
            seen = op.mul(op.reshape(seen, wide), factors)
        columns = op.reshape(seen, [m, groups, c // groups * k, area])
        rows.append(op.reshape(op.matmul(filters, columns), [m, o, places[0], places[1]]))
        first = first + step
    made = op.cat(rows, 0) if len(rows) > 1 else rows[0]
    if bias is not None:
        made = op.add(made, op.reshape(bias, [1, o, 1, 1]))
    return made
