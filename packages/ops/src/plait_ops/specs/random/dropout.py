"""Dropout."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import bool_, check, dense_strides, numel, require, result_as, to_dtype

native_dropout = Operator(
    "native_dropout(Tensor input, float p, *, Generator? generator=None) -> (Tensor, Tensor)",
    doc="""
    `input` with each element set to 0 with probability `p` and the others divided by ``1 - p``, and a bool mask of those
    that were kept.

    Args:
        p: The probability that an element becomes 0.

    Raises: ValueError unless `p` is in [0, 1], DTypeError for dtypes that are not floating-point.

    >>> import plait_core as pc
    >>> pc.native_dropout(pc.ones(2), 0.0)[1].tolist()
    [True, True]
    """,
    random=True,
    dtypes="floating",
    kernel="with p = 1 all elements are 0.",
)
native_dropout.batch("code")


@native_dropout.shape
def _(input, p):
    require("input", input.dtype, "floating")
    check(0.0 <= p <= 1.0, f"`p` must be in [0, 1]; got {p}", "ValueError")
    strides = dense_strides(input)
    return result_as(input.shape, input.dtype, strides), result_as(input.shape, bool_, strides)


@native_dropout.cost
def _(input):
    return numel(input)


@native_dropout.decompose
def _(input, p, generator):
    kept = op.bernoulli_(op.empty_like(input, dtype=bool_), 1.0 - p, generator=generator)
    return op.mul(op.mul(input, kept), 1.0 / (1.0 - p) if p < 1.0 else 0.0), kept


native_dropout_backward = Operator(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    doc="``grad_output * mask * scale``: the derivative of `native_dropout`.",
    dtypes="floating",
    kernel="optional; `mask` is bool.",
)


@native_dropout_backward.shape
def _(grad_output, mask):
    require("grad_output", grad_output.dtype, "floating")
    check(mask.dtype == bool_, f"`mask` must be bool; got {mask.dtype}", "DTypeError")
    check(
        mask.shape == grad_output.shape,
        f"`mask` of shape {mask.shape} must have the shape of `grad_output`, {grad_output.shape}",
    )
    return result_as(grad_output.shape, grad_output.dtype, dense_strides(mask))


@native_dropout_backward.cost
def _(grad_output):
    return numel(grad_output)


@native_dropout_backward.decompose
def _(grad_output, mask, scale):
    return op.mul(op.mul(to_dtype(mask, grad_output.dtype), grad_output), scale)


@native_dropout.vjp("input")
def _(g0, result1, p):
    return native_dropout_backward(g0, result1, 1.0 / (1.0 - p) if p < 1.0 else 0.0)


@native_dropout_backward.vjp("grad_output")
def _(g, mask, scale):
    return native_dropout_backward(g, mask, scale)


dropout = Composite(
    "dropout(Tensor input, float p=0.5, bool training|train=True) -> Tensor",
    doc="""
    With `training`, `input` with each element set to 0 with probability `p` and the others divided by ``1 - p``; without
    it, `input`.

    Args:
        p: The probability that an element becomes 0.

    Raises: ValueError unless `p` is in [0, 1], DTypeError for dtypes that are not floating-point.

    >>> import plait_core as pc
    >>> pc.dropout(pc.ones(2), training=False).tolist()
    [1.0, 1.0]
    """,
    dtypes="floating",
    random=True,
)
dropout.shard("code")


@dropout.decompose
def _(input, p, training):
    check(0.0 <= p <= 1.0, f"`p` must be in [0, 1]; got {p}", "ValueError")
    if not training or p == 0.0:
        return input
    made, _kept = native_dropout(input, p)
    return made
