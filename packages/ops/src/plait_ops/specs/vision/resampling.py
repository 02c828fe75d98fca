"""Resampling: a dimension of sequences, images and volumes gets another size."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.words import (
    check,
    contiguous_strides,
    float32,
    float64,
    format_strides,
    int64,
    is_contiguous,
    is_in_format,
    numel,
    part,
    require,
    result_as,
    to_dtype,
    uint8,
    wrap_dim,
)

_ARGUMENTS = "int size, float step, str mode, bool align_corners=False, bool antialias=False"

resample = Operator(
    f"resample(Tensor input, int dim, {_ARGUMENTS}) -> Tensor",
    doc="""
    `input` with `size` elements along `dim`. Element i of the result is at the coordinate ``(i + 1/2) * step - 1/2`` of
    `input`, or with `align_corners` at ``i * (n - 1) / (size - 1)``, where n is the size of `input` there. By `mode` it is

    - "nearest": element ``floor(i * step)``; "nearest-exact": element ``floor((i + 1/2) * step)``, both in float32 unless
      `input` is float64;
    - "linear": the sum of the two elements around the coordinate, weighted by ``1 - distance``;
    - "cubic": the sum of four elements, weighted by the cubic polynomials of Keys (1981) with the parameter -3/4;
    - "lanczos": the sum of six elements, weighted by ``sinc(distance) * sinc(distance / 3)`` (Lanczos).

    Outside of `input` its first and last element go on. With `antialias` the weights reach as far as `step` is larger than 1,
    those outside do not count, and the parameter of "cubic" is -1/2. Weights add up to 1. For uint8 they are rounded
    to integers of at most 15 bits times a power of 2, and the sum is rounded to 0 to 255.

    Dtypes: all for "nearest" and "nearest-exact", else floating-point and complex dtypes, and uint8. A result has the
    memory format of `input` if that is channels_last or channels_last_3d. Raises: IndexError for a `dim` out of range,
    ShapeError for a dimension without elements, ValueError for a `size` below 1, a `step` that is not positive and finite,
    and for another `mode`, DTypeError for other dtypes.

    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> operator("resample")(pc.tensor([0.0, 4.0]), 0, 4, 0.5, "linear").tolist()
    [0.0, 1.0, 3.0, 4.0]
    """,
    dtypes="any",
    widens=True,
    kernel="in[0] has any strides; the result is in C order or in one of the formats channels_last.",
    variants="",
)
resample.batch("leading")
resample_backward = Operator(
    "resample_backward(Tensor grad, int dim, int size, float step, str mode, bool align_corners, bool antialias) -> Tensor",
    doc="The derivative of `resample` with respect to its input, which has `size` elements along `dim`.",
    dtypes="inexact",
    widens=True,
    kernel="as for resample: the result of the transposed matrix of weights.",
    internal=True,
)
resample_backward.batch("leading")


@part
def reach_of(mode):
    """How many elements a result reads to each side, or 0 for the modes that select one."""
    return (
        3.0 if mode == "lanczos" else 2.0 if mode == "cubic" else 1.0 if mode == "linear" else 0.0
    )


@part
def check_numbers(size, step, mode):
    check(size >= 1, f"`size` must be at least 1; got {size}", "ValueError")
    check(
        step > 0.0 and step <= 1.7e308,
        f"`step` must be positive and finite; got {step}",
        "ValueError",
    )
    check(
        mode == "nearest" or mode == "nearest-exact" or reach_of(mode) > 0.0,
        f"`mode` must be nearest, nearest-exact, linear, cubic or lanczos; got {mode}",
        "ValueError",
    )


@part
def strides_like(input, made):
    """Strides for the shape `made`, in the order of `input`."""
    if is_contiguous(input):
        return contiguous_strides(made)
    if input.ndim == 4 and is_in_format("channels_last", input):
        return format_strides("channels_last", made, made)
    if input.ndim == 5 and is_in_format("channels_last_3d", input):
        return format_strides("channels_last_3d", made, made)
    return contiguous_strides(made)


@resample.shape
def _(input, dim, size, step, mode):
    at = wrap_dim("dim", dim, input.shape)
    check(
        input.ndim > 0 and input.shape[at] > 0,
        f"`input` must have elements along `dim` {dim}; got shape {input.shape}",
    )
    check_numbers(size, step, mode)
    if reach_of(mode) > 0.0 and input.dtype != uint8:
        require("input", input.dtype, "inexact")
    made = list(input.shape)
    made[at] = size
    return result_as(made, input.dtype, strides_like(input, made))


@resample.cost
def _(result, mode):
    return numel(result) * (
        11 if mode == "lanczos" else 7 if mode == "cubic" else 3 if mode == "linear" else 0
    )


@resample.vjp("input")
def _(g, input, dim, step, mode, align_corners, antialias):
    at = wrap_dim("dim", dim, input.shape)
    return resample_backward(g, at, input.shape[at], step, mode, align_corners, antialias)


@resample.jvp
def _(d_input, dim, size, step, mode, align_corners, antialias):
    return resample(d_input, dim, size, step, mode, align_corners, antialias)


@resample_backward.shape
def _(grad, dim, size, step, mode):
    at = wrap_dim("dim", dim, grad.shape)
    check(
        grad.ndim > 0 and grad.shape[at] > 0,
        f"`grad` must have elements along `dim` {dim}; got shape {grad.shape}",
    )
    check_numbers(size, step, mode)
    require("grad", grad.dtype, "inexact")
    made = list(grad.shape)
    made[at] = size
    return result_as(made, grad.dtype, strides_like(grad, made))


@resample_backward.cost
def _(grad, mode):
    return numel(grad) * (11 if mode == "lanczos" else 7 if mode == "cubic" else 3)


@resample_backward.vjp("grad")
def _(g, grad, dim, step, mode, align_corners, antialias):
    at = wrap_dim("dim", dim, grad.shape)
    return resample(g, at, grad.shape[at], step, mode, align_corners, antialias)


# ---- as operators of others: a product with the matrix of all weights ----------------------------
@part
def nearest_places(old, size, step, mode, dtype, device):
    """The elements that "nearest" and "nearest-exact" select; float32 as other libraries have it."""
    made = float64 if dtype == float64 else float32
    at = op.arange(size, dtype=made, device=device)
    steps = op.zeros([1], dtype=made, device=device) + step
    moved = op.mul(at + 0.5 if mode == "nearest-exact" else at, steps)
    return to_dtype(op.clamp(op.floor(moved), 0, old - 1), int64)


@part
def polynomial(x, mode, a):
    """The weight at distance `x`."""
    far = op.abs(x)
    if mode == "lanczos":
        return op.mul(op.mul(op.sinc(far), op.sinc(far / 3.0)), op.lt(far, 3.0))
    if mode != "cubic":
        return op.relu(1.0 - far)
    inner = ((a + 2.0) * far - (a + 3.0)) * far * far + 1.0
    outer = ((a * far - 5.0 * a) * far + 8.0 * a) * far - 4.0 * a
    return op.where(op.lt(far, 1.0), inner, op.mul(outer, op.lt(far, 2.0)))


@part
def matrix_of_weights(old, size, step, mode, align_corners, antialias, device):
    """The weights in float64, one row for each element of the result."""
    ratio = step
    if align_corners:
        ratio = (old - 1) / (size - 1) if size > 1 else 0.0
    wide = max(ratio, 1.0) if antialias else 1.0
    reach = wide * reach_of(mode)
    shift = 0.5 if align_corners and not antialias else 0.0
    a = -0.5 if antialias else -0.75
    rows = op.arange(size, dtype=float64, device=device) + (0.5 - shift)
    centre = op.reshape(rows * ratio, [size, 1])
    first = op.floor(centre + (0.5 + shift - reach))
    last = op.floor(centre + (0.5 + shift + reach))
    columns = op.reshape(op.arange(old, dtype=float64, device=device), [1, old])
    made = op.zeros([size, old], dtype=float64, device=device)
    if antialias:
        inside = op.mul(op.ge(columns, first), op.lt(columns, last))
        made = op.mul(polynomial((columns - centre + (0.5 - shift)) / wide, mode, a), inside)
    else:
        for k in range(6 if mode == "lanczos" else 4 if mode == "cubic" else 2):
            at = first + k
            weight = polynomial(at - centre + (0.5 - shift), mode, a)
            made = made + op.mul(op.eq(op.clamp(at, 0, old - 1), columns), weight)
    return op.div(made, op.sum(made, [-1], True))


@part
def laid_out_like(input, made):
    """`made` with the strides that the shape functions say."""
    if is_contiguous(input):
        return op.contiguous(made)
    if input.ndim == 4 and is_in_format("channels_last", input):
        return op.contiguous(made, memory_format="channels_last")
    if input.ndim == 5 and is_in_format("channels_last_3d", input):
        return op.contiguous(made, memory_format="channels_last_3d")
    return op.contiguous(made)


@part
def weighted(input, weights, at):
    """Sums along dimension `at`, with a row of weights for each."""
    sums = op.matmul(op.transpose(input, at, -1), op.transpose(weights, 0, 1))
    return laid_out_like(input, op.transpose(sums, at, -1))


@resample.decompose
def _(input, dim, size, step, mode, align_corners, antialias):
    at = wrap_dim("dim", dim, input.shape)
    old = input.shape[at]
    if mode == "nearest" or mode == "nearest-exact":
        places = nearest_places(old, size, step, mode, input.dtype, input.device)
        return laid_out_like(input, op.index_select(input, at, places))
    weights = matrix_of_weights(old, size, step, mode, align_corners, antialias, input.device)
    if input.dtype != uint8:
        return weighted(input, to_dtype(weights, input.dtype), at)
    largest = op.amax(weights)
    scale = op.ones([], dtype=float64, device=input.device)
    for _ in range(22):
        scale = scale * (
            1.0 + to_dtype(op.lt(op.floor(largest * scale * 2.0 + 0.5), 32768.0), float64)
        )
    whole = op.trunc(weights * scale + op.where(op.lt(weights, 0.0), -0.5, 0.5))
    total = weighted(to_dtype(input, float64), whole, at)
    return to_dtype(op.clamp(op.floor((total + op.floor(scale / 2.0)) / scale), 0.0, 255.0), uint8)


@resample_backward.decompose
def _(grad, dim, size, step, mode, align_corners, antialias):
    at = wrap_dim("dim", dim, grad.shape)
    new = grad.shape[at]
    device = grad.device
    if mode == "nearest" or mode == "nearest-exact":
        places = op.reshape(nearest_places(size, new, step, mode, grad.dtype, device), [new, 1])
        chosen = op.eq(places, op.reshape(op.arange(size, dtype=int64, device=device), [1, size]))
        return weighted(grad, op.transpose(to_dtype(chosen, grad.dtype), 0, 1), at)
    weights = matrix_of_weights(size, new, step, mode, align_corners, antialias, device)
    return weighted(grad, op.transpose(to_dtype(weights, grad.dtype), 0, 1), at)
