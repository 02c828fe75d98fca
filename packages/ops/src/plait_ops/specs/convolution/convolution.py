"""Convolution in two dimensions."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.specs.normalization.batch_norm import activated, check_activation
from plait_ops.words import check, numel, part, require, require_same, result, sizes, windows

conv2d = Operator(
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] dilation=1, "
    "int groups=1) -> Tensor",
    doc="""
    Cross-correlation of images with filters, plus a bias for each filter: ``out[n, o, y, x] = bias[o] + sum_{c,i,j}
    weight[o, c, i, j] * input[n, c', y * sh + i * dh - ph, x * sw + j * dw - pw]``, where `input` is 0 outside of the image
    and c' runs over the channels of the group that o belongs to.

    Args:
        weight: The filters: shape (K, C / groups, kH, kW).
        input: Images: shape (N, C, H, W).

    Shapes: `input` is (n, c, h, w), `weight` (o, c / groups, kh, kw), `bias` (o,), the result (n, o, oh, ow) with
    ``oh = (h + 2 * ph - dh * (kh - 1) - 1) // sh + 1``. Dtypes: floats, the same for all.
    Raises: ShapeError for other shapes and where a filter is larger than the padded image, ValueError for a stride,
    dilation or number of groups below 1 or a negative padding, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.conv2d(pc.ones(1, 1, 3, 3), pc.ones(1, 1, 2, 2)).tolist()
    [[[[4.0, 4.0], [4.0, 4.0]]]]
    """,
    dtypes="floating",
    kernel="in[0] is (n, c, h, w), in[1] (o, c / groups, kh, kw), in[2] None or (o,), of one floating dtype, any strides; stride, padding and dilation are two ints each; the result is in C order and every element of it is written; arguments fit one another, n or c may be 0.",
)
conv2d.batch("rows", weight="same", bias="same")
conv2d.slices(input=0, result=0)
conv2d_activation = Operator(
    "conv2d_activation(Tensor input, Tensor weight, Tensor? bias, int[2] stride, int[2] padding, int[2] dilation, "
    "int groups, str activation, float min_val, float max_val, float negative_slope) -> Tensor",
    doc="""
    ``activation(conv2d(input, weight, bias, ...))`` in one pass over the result; `activation` is one of those of
    `batch_norm_activation`. It has no derivative: where one is needed, convolution and activation run separately.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; the arguments are those of `conv2d`, then in[7], one of the names in `batch_norm_activation`, and its numbers; the result is in C order.",
)
conv2d_activation.batch("rows", weight="same", bias="same")
conv2d_activation.slices(input=0, result=0)
conv2d_add_activation = Operator(
    "conv2d_add_activation(Tensor input, Tensor weight, Tensor? bias, int[2] stride, int[2] padding, int[2] dilation, "
    "int groups, Tensor residual, str? activation, float min_val, float max_val, float negative_slope) -> Tensor",
    doc="""
    ``activation(conv2d(input, weight, bias, ...) + residual)`` in one pass over the result. `activation` is one of those of
    `batch_norm_activation`, or None: the sum is the result. It has no derivative: where one is needed, its parts run
    separately.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; the arguments are those of `conv2d`, then in[7], which has the shape and dtype of the result and any strides, then in[8], None or one of the names in `batch_norm_activation`, and its numbers; the result is in C order.",
)
conv2d_add_activation.batch("rows", weight="same", bias="same")
conv2d_add_activation.slices(input=0, residual=0, result=0)
conv2d_backward_input = Operator(
    "conv2d_backward_input(Tensor grad, Tensor weight, int[] size, int[2] stride, int[2] padding, int[2] dilation, "
    "int groups) -> Tensor",
    doc="The derivative of `conv2d` with respect to its input, which has shape `size`. It is also the transposed convolution.",
    dtypes="floating",
    internal=True,
    kernel="in[0] is (n, o, oh, ow) as `conv2d` gives it, in[1] (o, c / groups, kh, kw), of one floating dtype, any strides; stride, padding and dilation are two ints each; the result is in C order and every element of it is written, zeros included; in[2] is its shape (n, c, h, w).",
)
conv2d_backward_input.batch("rows", weight="same")
conv2d_backward_input.slices(grad=0, size=0, result=0)
conv2d_backward_weight = Operator(
    "conv2d_backward_weight(Tensor grad, Tensor input, int[] size, int[2] stride, int[2] padding, int[2] dilation, "
    "int groups) -> Tensor",
    doc="The derivative of `conv2d` with respect to its weight, which has shape `size`.",
    dtypes="floating",
    internal=True,
    kernel="in[0] is (n, o, oh, ow) as `conv2d` gives it, in[1] (n, c, h, w), of one floating dtype, any strides; stride, padding and dilation are two ints each; the result is in C order and every element of it is written; in[2] is its shape (o, c / groups, kh, kw), and the images are summed over.",
)
conv2d_backward_weight.batch("code")
conv2d_backward_weight.slices(grad=0, input=0, result="sum")


@part
def check_filters(input, weight, bias, groups):
    check(
        input.ndim == 4 and weight.ndim == 4,
        f"`input` and `weight` must have 4 dimensions; got shapes {input.shape} and {weight.shape}",
    )
    require("input", input.dtype, "floating")
    require_same("input", input, "weight", weight)
    check(groups >= 1, f"`groups` must be at least 1; got {groups}", "ValueError")
    check(
        weight.shape[0] % groups == 0 and (groups == 1 or groups <= weight.shape[0]),
        f"`weight` of shape {weight.shape} must have a multiple of `groups` {groups} as its number of output channels",
    )
    check(
        input.shape[1] % groups == 0 and weight.shape[1] == input.shape[1] // groups,
        f"with `groups` {groups} and `weight` of shape {weight.shape}, expected `input` of shape {input.shape} to "
        f"have {weight.shape[1] * groups} channels, but got {input.shape[1]} channels instead",
    )
    if bias is not None:
        check(
            bias.ndim == 1 and bias.shape[0] == weight.shape[0],
            f"`bias` must have shape {tuple(weight.shape[:1])} for `weight` of shape {weight.shape}; got {bias.shape}",
        )
        require_same("input", input, "bias", bias)


@part
def checked_sizes(input, weight, bias, stride, padding, dilation, groups):
    check_filters(input, weight, bias, groups)
    made = [input.shape[0], weight.shape[0]]
    for i in range(2):
        made.append(
            windows(
                input.shape, 2 + i, weight.shape[2 + i], stride[i], padding[i], dilation[i], False
            )
        )
    return made


@conv2d.shape
def _(input, weight, bias, stride, padding, dilation, groups):
    made = checked_sizes(input, weight, bias, stride, padding, dilation, groups)
    return result(made, input.dtype)


@conv2d_activation.shape
def _(input, weight, bias, stride, padding, dilation, groups, activation):
    check_activation(activation)
    made = checked_sizes(input, weight, bias, stride, padding, dilation, groups)
    return result(made, input.dtype)


@conv2d_activation.cost
def _(weight, result):
    return 2 * numel(result) * numel(weight.shape[1:]) + numel(result)


@conv2d_activation.decompose
def _(
    input,
    weight,
    bias,
    stride,
    padding,
    dilation,
    groups,
    activation,
    min_val,
    max_val,
    negative_slope,
):
    made = conv2d(input, weight, bias, stride, padding, dilation, groups)
    return activated(made, activation, min_val, max_val, negative_slope)


@conv2d_add_activation.shape
def _(input, weight, bias, stride, padding, dilation, groups, residual, activation):
    if activation is not None:
        check_activation(activation)
    made = checked_sizes(input, weight, bias, stride, padding, dilation, groups)
    require_same("input", input, "residual", residual)
    check(
        residual.shape == made,
        f"`residual` of shape {residual.shape} must have the shape of the result, {tuple(made)}",
    )
    return result(made, input.dtype)


@conv2d_add_activation.cost
def _(weight, result, activation):
    return 2 * numel(result) * numel(weight.shape[1:]) + numel(result) * (
        1 if activation is None else 2
    )


@conv2d_add_activation.decompose
def _(
    input,
    weight,
    bias,
    stride,
    padding,
    dilation,
    groups,
    residual,
    activation,
    min_val,
    max_val,
    negative_slope,
):
    made = conv2d(input, weight, bias, stride, padding, dilation, groups) + residual
    if activation is None:
        return made
    return activated(made, activation, min_val, max_val, negative_slope)


@conv2d.cost
def _(weight, result):
    return 2 * numel(result) * numel(weight.shape[1:])


@conv2d_backward_input.shape
def _(grad, weight, size, stride, padding, dilation, groups):
    sizes("size", size)
    check(
        grad.ndim == 4 and weight.ndim == 4 and len(size) == 4,
        f"`grad`, `weight` and `size` must have 4 dimensions; got {grad.shape}, {weight.shape} and {size}",
    )
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "weight", weight)
    check(groups >= 1, f"`groups` must be at least 1; got {groups}", "ValueError")
    check(
        size[0] == grad.shape[0]
        and weight.shape[0] == grad.shape[1]
        and weight.shape[0] % groups == 0
        and size[1] % groups == 0
        and weight.shape[1] == size[1] // groups,
        f"`grad` of shape {grad.shape} and `weight` of shape {weight.shape} do not fit `size` {size} with `groups` {groups}",
    )
    for i in range(2):
        n = windows(size, 2 + i, weight.shape[2 + i], stride[i], padding[i], dilation[i], False)
        check(
            grad.shape[2 + i] == n,
            f"`grad` of shape {grad.shape} must have {n} elements in dimension {2 + i}",
        )
    return result(size, grad.dtype)


@conv2d_backward_input.cost
def _(grad, weight):
    return 2 * numel(grad) * numel(weight.shape[1:])


@conv2d_backward_weight.shape
def _(grad, input, size, stride, padding, dilation, groups):
    sizes("size", size)
    check(
        grad.ndim == 4 and input.ndim == 4 and len(size) == 4,
        f"`grad`, `input` and `size` must have 4 dimensions; got {grad.shape}, {input.shape} and {size}",
    )
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "input", input)
    check(groups >= 1, f"`groups` must be at least 1; got {groups}", "ValueError")
    check(
        input.shape[0] == grad.shape[0]
        and size[0] == grad.shape[1]
        and size[0] % groups == 0
        and input.shape[1] % groups == 0
        and size[1] == input.shape[1] // groups,
        f"`grad` of shape {grad.shape} and `input` of shape {input.shape} do not fit `size` {size} with `groups` {groups}",
    )
    for i in range(2):
        n = windows(input.shape, 2 + i, size[2 + i], stride[i], padding[i], dilation[i], False)
        check(
            grad.shape[2 + i] == n,
            f"`grad` of shape {grad.shape} must have {n} elements in dimension {2 + i}",
        )
    return result(size, grad.dtype)


@conv2d_backward_weight.cost
def _(grad, result):
    return 2 * numel(grad) * numel(result.shape[1:])


@conv2d.vjp("input")
def _(g, input, weight, stride, padding, dilation, groups):
    return conv2d_backward_input(g, weight, input.shape, stride, padding, dilation, groups)


@conv2d.vjp("weight")
def _(g, input, weight, stride, padding, dilation, groups):
    return conv2d_backward_weight(g, input, weight.shape, stride, padding, dilation, groups)


@conv2d.vjp("bias")
def _(g):
    return op.sum(g, [0, 2, 3])


@conv2d_backward_input.vjp("grad")
def _(g, weight, stride, padding, dilation, groups):
    return conv2d(g, weight, None, stride, padding, dilation, groups)


@conv2d_backward_input.vjp("weight")
def _(g, grad, weight, stride, padding, dilation, groups):
    return conv2d_backward_weight(grad, g, weight.shape, stride, padding, dilation, groups)


@conv2d_backward_weight.vjp("grad")
def _(g, input, stride, padding, dilation, groups):
    return conv2d(input, g, None, stride, padding, dilation, groups)


@conv2d_backward_weight.vjp("input")
def _(g, grad, input, stride, padding, dilation, groups):
    return conv2d_backward_input(grad, g, input.shape, stride, padding, dilation, groups)
