"""Layers with quantised weights."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.words import (
    bfloat16,
    check,
    float16,
    float32,
    float64,
    int8,
    int32,
    is_floating,
    numel,
    part,
    result,
    sum_to,
    to_dtype,
)

linear_int8 = Operator(
    "linear_int8(Tensor input, Tensor weight, Tensor scale, Tensor? bias=None, *, bool activations=False) -> Tensor",
    doc="""
    A linear layer with int8 weights: ``(input @ weight.T) * scale + bias``, where row j of the float weights is
    ``weight[j] * scale[j]``.

    With `activations` each row x of `input` is quantised too: ``s = max|x| / 127`` and ``q = clamp(round(x / s), -127,
    127)`` in float32, with q = 0 where s is 0. The result is ``(q @ weight.T) * (s * scale) + bias``. The product is
    computed in integers, so it is exact, and the same on every processor. A row with nan or an infinity gives nan.

    Args:
        scale: The scale of each row of `weight`: shape (out).
        weight: The weights as int8: shape (out, in).
        bias: What is added to each output: shape (out), or None.
        input: Shape (..., in).

    Shapes: `input` is (..., k), `weight` (m, k), `scale` and `bias` (m,), the result (..., m); with `activations` k is at most 131072.
    Dtypes: `input` and `bias` float32, float16 or bfloat16, `weight` int8, `scale` one of these floating-point dtypes;
    floating-point sums are computed in float32. Gradients flow to all but the weight; there are none with `activations`.
    Raises: ShapeError for other shapes, DTypeError for other dtypes, NotImplementedError for gradients with `activations`.

    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> weight = pc.tensor([[1, -2], [4, 0]], dtype=pc.int8)
    >>> operator("linear_int8")(pc.ones(1, 2), weight, pc.tensor([0.5, 0.25])).tolist()
    [[-0.5, 1.0]]
    """,
    dtypes="floating",
    kernel="optional: without a kernel other operators compute it; in[0] has any number of leading dimensions; in[3] may be None; in[4] is `activations`.",
    variants="",
)


@linear_int8.shape
def _(input, weight, scale, bias, activations):
    check(input.ndim > 0, f"`input` must have at least 1 dimension; got shape {input.shape}")
    check(weight.ndim == 2, f"`weight` must have 2 dimensions; got shape {weight.shape}")
    check(
        input.shape[-1] == weight.shape[1],
        f"the last dimension of `input` {input.shape} must equal the last of `weight` {weight.shape}",
    )
    check(
        scale.ndim == 1 and scale.shape[0] == weight.shape[0],
        f"`scale` must have shape {tuple(weight.shape[:1])} for `weight` of shape {weight.shape}; got {scale.shape}",
    )
    check(
        not activations or weight.shape[1] <= 131072,
        f"`weight` must have at most 131072 columns where `activations` is True; got shape {weight.shape}",
    )
    check(
        input.dtype == float32 or input.dtype == float16 or input.dtype == bfloat16,
        f"`input` must be float32, float16 or bfloat16; got {input.dtype}",
        "DTypeError",
    )
    check(weight.dtype == int8, f"`weight` must be int8; got {weight.dtype}", "DTypeError")
    check(
        is_floating(scale.dtype) and scale.dtype != float64,
        f"`scale` must be float32, float16 or bfloat16; got {scale.dtype}",
        "DTypeError",
    )
    if bias is not None:
        check(
            bias.ndim == 1 and bias.shape[0] == weight.shape[0],
            f"`bias` must have shape {tuple(weight.shape[:1])} for `weight` of shape {weight.shape}; got {bias.shape}",
        )
        check(
            bias.dtype == input.dtype,
            f"`bias` must have the dtype of `input`, {input.dtype}; got {bias.dtype}",
            "DTypeError",
        )
    return result(input.shape[:-1] + weight.shape[:1], input.dtype)


@linear_int8.decompose
def _(input, weight, scale, bias, activations):
    x = to_dtype(input, float32)
    factor = to_dtype(scale, float32)
    if activations and input.shape[-1] > 0:
        step = op.amax(op.abs(x), [-1], True) / 127.0
        used = op.logical_and(op.gt(step, 0.0), op.isfinite(step))
        q = op.clamp(op.round(op.where(used, x / step, 0.0)), -127.0, 127.0)
        # whole numbers, so that the sums are exact
        sums = op.matmul(to_dtype(q, int32), op.transpose(to_dtype(weight, int32), 0, 1))
        made = to_dtype(sums, float32) * (step * factor)
    else:
        made = op.matmul(x, op.transpose(to_dtype(weight, float32), 0, 1)) * factor
    if bias is not None:
        made = made + to_dtype(bias, float32)
    return to_dtype(made, input.dtype)


@part
def check_differentiable(activations):
    check(
        not activations,
        "`activations` must be False where gradients are recorded: whole numbers have no derivative; detach the input",
        "NotImplementedError",
    )


@linear_int8.vjp("input")
def _(g, input, weight, scale, activations):
    check_differentiable(activations)
    by_product = to_dtype(g, float32) * to_dtype(scale, float32)
    return to_dtype(op.matmul(by_product, to_dtype(weight, float32)), input.dtype)


@linear_int8.vjp("scale")
def _(g, input, weight, scale, activations):
    check_differentiable(activations)
    product = op.matmul(to_dtype(input, float32), op.transpose(to_dtype(weight, float32), 0, 1))
    return to_dtype(sum_to(to_dtype(g, float32) * product, scale.shape), scale.dtype)


@linear_int8.vjp("bias")
def _(g, scale, activations):
    check_differentiable(activations)
    return to_dtype(sum_to(to_dtype(g, float32), scale.shape), g.dtype)


@linear_int8.cost
def _(input, weight):
    # the sums begin with the bias
    return 2 * numel(input) * weight.shape[0]
