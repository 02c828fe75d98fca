"""Pooling in two dimensions."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    check,
    int64,
    numel,
    part,
    require,
    result,
    sizes,
    to_dtype,
    uint8,
    windows,
)

max_pool2d_with_indices = Operator(
    "max_pool2d_with_indices(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, "
    "bool ceil_mode=False) -> (Tensor, Tensor)",
    doc="""
    `max_pool2d`, and the place of each largest element in the image, ``y * w + x``, as int64. A dilated window may lie
    wholly outside of the image: its place is -1, its value is the lowest of the dtype, and it gets no gradient.

    Args:
        input: Images: shape (N, C, H, W).

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.max_pool2d_with_indices(pc.arange(4.0).reshape(1, 1, 2, 2), 2)[1].item()
    3
    """,
    dtypes="numeric",
    kernel="in[0] is (n, c, h, w) or (c, h, w) with any strides; the first of equal elements counts, nan wins; stride None: kernel_size.",
    variants="",
)
max_pool2d_with_indices.batch("rows")
max_pool2d_with_indices.slices(input=0, result0=0, result1=0)


@part
def check_images(input):
    check(
        input.ndim == 3 or input.ndim == 4,
        f"`input` must have 3 or 4 dimensions, (c, h, w) or (n, c, h, w); got shape {input.shape}",
    )


@part
def pooled(input, kernel_size, stride, padding, dilation, ceil_mode):
    """The shape of what a window that moves over images makes."""
    step = stride if stride is not None else kernel_size
    made = list(input.shape)
    for i in range(2):
        at = input.ndim - 2 + i
        check(
            padding[i] <= kernel_size[i] // 2,
            f"`padding` must be at most half of `kernel_size`; got {padding} and {kernel_size}",
            "ValueError",
        )
        made[at] = windows(
            input.shape, at, kernel_size[i], step[i], padding[i], dilation[i], ceil_mode
        )
    return made


@max_pool2d_with_indices.shape
def _(input, kernel_size, stride, padding, dilation, ceil_mode):
    check_images(input)
    require("input", input.dtype, "numeric")
    made = pooled(input, kernel_size, stride, padding, dilation, ceil_mode)
    return result(made, input.dtype), result(made, int64)


max_pool2d_backward = Operator(
    "max_pool2d_backward(Tensor grad, Tensor indices, int[] size) -> Tensor",
    doc="`grad` added up at `indices` in images of shape `size`: the derivative of `max_pool2d`.",
    dtypes="floating",
    internal=True,
    kernel="in[1] is int64 of the shape of in[0]; indices are those that max_pool2d_with_indices gave.",
)
max_pool2d_backward.batch("rows")
max_pool2d_backward.slices(grad=0, indices=0, size=0, result=0)


@max_pool2d_backward.shape
def _(grad, indices, size):
    sizes("size", size)
    check(
        grad.shape == indices.shape
        and grad.ndim == len(size)
        and (len(size) == 3 or len(size) == 4),
        f"`grad` of shape {grad.shape} and `indices` of shape {indices.shape} do not fit `size` {size}",
    )
    check(
        grad.shape[: grad.ndim - 2] == size[: len(size) - 2],
        f"`grad` of shape {grad.shape} does not fit `size` {size}",
    )
    require("grad", grad.dtype, "floating")
    check(indices.dtype == int64, f"`indices` must be int64; got {indices.dtype}", "DTypeError")
    return result(size, grad.dtype)


@max_pool2d_backward.decompose
def _(grad, indices, size):
    planes = list(size[: len(size) - 2])
    flat = op.zeros(planes + [size[-2] * size[-1]], dtype=grad.dtype, device=grad.device)
    windows_shape = planes + [grad.shape[-2] * grad.shape[-1]]
    counted = op.mul(grad, op.ge(indices, 0))
    places = op.reshape(op.clamp_min(indices, 0), windows_shape)
    made = op.scatter_add(flat, -1, places, op.reshape(counted, windows_shape))
    return op.reshape(made, size)


@max_pool2d_with_indices.vjp("input")
def _(g0, input, result1):
    return max_pool2d_backward(g0, result1, input.shape)


@part
def at_places(images, indices):
    """The elements of images at `indices`; 0 where there is none."""
    planes = list(images.shape[: images.ndim - 2])
    flat = op.reshape(images, planes + [images.shape[-2] * images.shape[-1]])
    places = op.reshape(op.clamp_min(indices, 0), planes + [indices.shape[-2] * indices.shape[-1]])
    return op.mul(op.reshape(op.gather(flat, -1, places), indices.shape), op.ge(indices, 0))


@max_pool2d_backward.vjp("grad")
def _(g, indices):
    return at_places(g, indices)


max_pool2d = Composite(
    "max_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, "
    "bool ceil_mode=False) -> Tensor",
    doc="""
    The largest element in each window of an image; places outside of the image are ignored. `stride` None means
    `kernel_size`.

    Args:
        input: Images: shape (N, C, H, W).

    Shapes: (n, c, h, w) or (c, h, w); ``oh = (h + 2 * ph - dh * (kh - 1) - 1) // sh + 1``, rounded up with `ceil_mode` if the
    last window begins inside the image or its left padding. Dtypes: integers and floating-point dtypes.
    Raises: ShapeError for other shapes and where a window is larger than the padded image, ValueError for sizes or steps
    below 1 or a `padding` of more than half a window.

    >>> import plait_core as pc
    >>> pc.max_pool2d(pc.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """,
    dtypes="numeric",
)


native_max_pool2d = Operator(
    "native_max_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, "
    "bool ceil_mode=False) -> (Tensor, Tensor)",
    doc="""
    `max_pool2d` with windows of at most 255 elements, and the number ``y * kw + x`` of each largest element within its
    window, as uint8; 255 where a window lies wholly outside of the image.
    """,
    dtypes="numeric",
    internal=True,
    kernel="optional; as `max_pool2d_with_indices`, but for the second result.",
)
native_max_pool2d.batch("rows")
native_max_pool2d.slices(input=0, result0=0, result1=0)
native_max_pool2d_backward = Operator(
    "native_max_pool2d_backward(Tensor grad, Tensor numbers, int[] size, int[2] kernel_size, int[2] stride, int[2] padding, "
    "int[2] dilation) -> Tensor",
    doc="The derivative of `native_max_pool2d` with respect to its input, which has shape `size`.",
    dtypes="floating",
    internal=True,
    kernel="optional; in[1] is uint8 of the shape of in[0], as native_max_pool2d gave it; windows that overlap are added up.",
)
native_max_pool2d_backward.batch("rows")
native_max_pool2d_backward.slices(grad=0, numbers=0, size=0, result=0)


@part
def places(numbers, size, kernel_size, stride, padding, dilation):
    """Places in the image from numbers within windows; -1: none."""
    wide = to_dtype(numbers, int64)
    rows = op.arange(numbers.shape[-2], device=numbers.device) * stride[0] - padding[0]
    columns = op.arange(numbers.shape[-1], device=numbers.device) * stride[1] - padding[1]
    down = op.floor_divide(wide, kernel_size[1]) * dilation[0] + op.reshape(
        rows, [numbers.shape[-2], 1]
    )
    across = op.remainder(wide, kernel_size[1]) * dilation[1] + columns
    return op.masked_fill(down * size[-1] + across, op.eq(wide, 255), -1)


@native_max_pool2d.shape
def _(input, kernel_size, stride, padding, dilation, ceil_mode):
    check_images(input)
    require("input", input.dtype, "numeric")
    made = pooled(input, kernel_size, stride, padding, dilation, ceil_mode)
    check(
        kernel_size[0] * kernel_size[1] <= 255,
        f"the windows of `kernel_size` must have at most 255 elements; got {kernel_size}",
        "ValueError",
    )
    return result(made, input.dtype), result(made, uint8)


@max_pool2d_with_indices.cost
@native_max_pool2d.cost
def _(kernel_size, result0):
    return numel(result0) * kernel_size[0] * kernel_size[1]


@native_max_pool2d.decompose
def _(input, kernel_size, stride, padding, dilation, ceil_mode):
    made, where = max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    step = stride if stride is not None else kernel_size
    w = input.shape[-1]
    rows = op.arange(made.shape[-2], device=made.device) * step[0] - padding[0]
    columns = op.arange(made.shape[-1], device=made.device) * step[1] - padding[1]
    down = op.floor_divide(where, max(w, 1)) - op.reshape(rows, [made.shape[-2], 1])
    across = op.remainder(where, max(w, 1)) - columns
    number = op.floor_divide(down, dilation[0]) * kernel_size[1] + op.floor_divide(
        across, dilation[1]
    )
    return made, to_dtype(op.masked_fill(number, op.eq(where, -1), 255), uint8)


@native_max_pool2d.vjp("input")
def _(g0, input, result1, kernel_size, stride, padding, dilation):
    step = stride if stride is not None else kernel_size
    return native_max_pool2d_backward(
        g0, result1, input.shape, kernel_size, step, padding, dilation
    )


@native_max_pool2d_backward.shape
def _(grad, numbers, size, kernel_size):
    sizes("size", size)
    check(
        grad.shape == numbers.shape
        and grad.ndim == len(size)
        and (len(size) == 3 or len(size) == 4),
        f"`grad` of shape {grad.shape} and `numbers` of shape {numbers.shape} do not fit `size` {size}",
    )
    check(
        grad.shape[: grad.ndim - 2] == size[: len(size) - 2],
        f"`grad` of shape {grad.shape} does not fit `size` {size}",
    )
    require("grad", grad.dtype, "floating")
    check(numbers.dtype == uint8, f"`numbers` must be uint8; got {numbers.dtype}", "DTypeError")
    check(
        kernel_size[0] * kernel_size[1] <= 255,
        f"the windows of `kernel_size` must have at most 255 elements; got {kernel_size}",
        "ValueError",
    )
    return result(size, grad.dtype)


@max_pool2d_backward.cost
@native_max_pool2d_backward.cost
def _(grad):
    return numel(grad)


@native_max_pool2d_backward.decompose
def _(grad, numbers, size, kernel_size, stride, padding, dilation):
    where = places(numbers, size, kernel_size, stride, padding, dilation)
    return max_pool2d_backward(grad, where, size)


@native_max_pool2d_backward.vjp("grad")
def _(g, numbers, kernel_size, stride, padding, dilation):
    return at_places(g, places(numbers, g.shape, kernel_size, stride, padding, dilation))


@max_pool2d.decompose
def _(input, kernel_size, stride, padding, dilation, ceil_mode):
    if kernel_size[0] * kernel_size[1] <= 255:
        made, _numbers = native_max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
        return made
    large, _where = max_pool2d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return large


avg_pool2d = Operator(
    "avg_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    doc="""
    The mean of each window of an image. Places of the padding are 0; they count as elements of the window unless
    `count_include_pad` is False. `stride` None means `kernel_size`. Shapes and errors are those of `max_pool2d`. Dtypes:
    floating-point dtypes.

    Args:
        input: Images: shape (N, C, H, W).

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.avg_pool2d(pc.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """,
    dtypes="floating",
    kernel="a window counts the padding it covers (but not beyond it) if in[5]; stride None: kernel_size.",
    variants="",
)
avg_pool2d.batch("rows")
avg_pool2d.slices(input=0, result=0)
avg_pool2d_backward = Operator(
    "avg_pool2d_backward(Tensor grad, int[] size, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, "
    "bool count_include_pad) -> Tensor",
    doc="The derivative of `avg_pool2d` with respect to its input, which has shape `size`.",
    kernel="in[0] has the shape of the result of `avg_pool2d`, of 3 or 4 dimensions, any strides; the others are its arguments; every element of the result is written; windows that overlap are added up.",
    dtypes="floating",
    internal=True,
)
avg_pool2d_backward.batch("rows")
avg_pool2d_backward.slices(grad=0, size=0, result=0)


@avg_pool2d.shape
def _(input, kernel_size, stride, padding, ceil_mode):
    check_images(input)
    require("input", input.dtype, "floating")
    return result(pooled(input, kernel_size, stride, padding, [1, 1], ceil_mode), input.dtype)


@max_pool2d.cost
@avg_pool2d.cost
def _(kernel_size, result):
    return numel(result) * kernel_size[0] * kernel_size[1]


@avg_pool2d_backward.shape
def _(grad, size, kernel_size, stride, padding, ceil_mode):
    sizes("size", size)
    check(
        grad.ndim == len(size) and (grad.ndim == 3 or grad.ndim == 4),
        f"`grad` of shape {grad.shape} does not fit `size` {size}",
    )
    require("grad", grad.dtype, "floating")
    made = list(size)
    for i in range(2):
        at = len(size) - 2 + i
        made[at] = windows(size, at, kernel_size[i], stride[i], padding[i], 1, ceil_mode)
    check(
        grad.shape == tuple(made),
        f"`grad` must have shape {tuple(made)} for `size` {size}; got {grad.shape}",
    )
    return result(size, grad.dtype)


@avg_pool2d_backward.cost
def _(grad, kernel_size):
    return numel(grad) * kernel_size[0] * kernel_size[1]


@avg_pool2d.vjp("input")
def _(g, input, kernel_size, stride, padding, ceil_mode, count_include_pad):
    step = stride if stride is not None else kernel_size
    return avg_pool2d_backward(
        g, input.shape, kernel_size, step, padding, ceil_mode, count_include_pad
    )


@avg_pool2d_backward.vjp("grad")
def _(g, kernel_size, stride, padding, ceil_mode, count_include_pad):
    return avg_pool2d(g, kernel_size, stride, padding, ceil_mode, count_include_pad)


adaptive_avg_pool2d = Composite(
    "adaptive_avg_pool2d(Tensor input, int[2] output_size) -> Tensor",
    doc="""
    Means over windows chosen so that the result has `output_size`: row i is the mean of the rows from
    ``floor(i * h / oh)`` to ``ceil((i + 1) * h / oh)``, and the same for columns.

    Args:
        output_size: The height and width of the result.
        input: Images: shape (N, C, H, W).

    Shapes: (n, c, h, w) or (c, h, w). Dtypes: floating-point dtypes.
    Raises: ShapeError for other shapes, ValueError if `output_size` holds numbers below 0, or numbers above 65536 if
    windows differ in size.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.adaptive_avg_pool2d(pc.arange(16.0).reshape(1, 1, 4, 4), 1).tolist()
    [[[[7.5]]]]
    """,
    dtypes="floating",
    variants="",
)


@adaptive_avg_pool2d.decompose
def _(input, output_size):
    check_images(input)
    check(
        output_size[0] >= 0 and output_size[1] >= 0,
        f"`output_size` must be at least 0; got {output_size}",
        "ValueError",
    )
    h = input.shape[-2]
    w = input.shape[-1]
    oh = output_size[0]
    ow = output_size[1]
    check(
        h > 0 and w > 0,
        f"`input` must have images of at least 1 x 1 elements; got shape {input.shape}",
    )
    if oh == 1 and ow == 1:
        return op.mean(input, [-2, -1], True)
    if oh == 0 or ow == 0:
        shape = list(input.shape)
        shape[input.ndim - 2] = oh
        shape[input.ndim - 1] = ow
        none = op.narrow(input, -2, 0, 1) if oh > 0 else op.narrow(input, -2, 0, 0)
        return op.expand(op.narrow(none, -1, 0, 1) if ow > 0 else op.narrow(none, -1, 0, 0), shape)
    if h % oh == 0 and w % ow == 0:
        return avg_pool2d(input, [h // oh, w // ow])
    check(
        oh <= 65536 and ow <= 65536,
        f"`output_size` must be at most 65536 where it does not divide the images of `input`, {h} x {w}; got {output_size}",
        "ValueError",
    )
    rows = []
    for i in range(oh):
        first = i * h // oh
        rows.append(
            op.mean(op.narrow(input, -2, first, ((i + 1) * h + oh - 1) // oh - first), [-2], True)
        )
    tall = op.cat(rows, -2)
    columns = []
    for j in range(ow):
        start = j * w // ow
        columns.append(
            op.mean(op.narrow(tall, -1, start, ((j + 1) * w + ow - 1) // ow - start), [-1], True)
        )
    return op.cat(columns, -1)
