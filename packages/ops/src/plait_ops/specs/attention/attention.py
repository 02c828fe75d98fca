"""Attention: scores, softmax and the weighted sum of values in one operator."""

import math

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    bool_,
    broadcast,
    check,
    dense_strides,
    numel,
    part,
    require,
    require_same,
    result,
    result_as,
    sum_to,
    to_dtype,
    wide_dtype,
)

NOTHING = -math.inf  # the score of keys that do not count
# the logarithm of the sum of a row in which no key counts, so that its weights become 0
ENDLESS = math.inf

scaled_dot_product_attention = Composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, bool is_causal=False, "
    "float? scale=None, bool enable_gqa=False) -> Tensor",
    doc="""
    ``softmax(query @ key^T * scale + attn_mask) @ value`` (Vaswani et al. 2017), computed in blocks (Dao et al. 2022): the
    matrix of scores is never in memory as a whole. A bool `attn_mask` is True where there is attention; a floating-point
    one is added to the scores. With `is_causal` row i attends to the columns up to i. A row that attends to nothing gives
    0. `scale` is ``1 / sqrt(E)`` unless given. With `enable_gqa` several heads of the query (dimension -3) share one head
    of key and value.

    Args:
        value: The values: shape (..., S, Ev).

    Shapes: `query` (*, L, E), `key` (*, S, E), `value` (*, S, Ev), whose leading dimensions broadcast, `attn_mask`
    broadcastable to (*, L, S); the result is (*, L, Ev). Dtypes: floating-point, the same for all; `attn_mask` may also be
    bool.
    Raises: ShapeError for other shapes, DTypeError for other dtypes, ValueError for `attn_mask` with `is_causal`.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> q, k, v = pc.zeros(1, 2, 4), pc.zeros(1, 2, 4), pc.tensor([[[1.0], [3.0]]])
    >>> F.scaled_dot_product_attention(q, k, v, is_causal=True).flatten().tolist()
    [1.0, 2.0]
    """,
    dtypes="floating",
    variants="",
)
attention_forward = Operator(
    "attention_forward(Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, float scale) -> (Tensor, Tensor)",
    doc="""
    `scaled_dot_product_attention` of operands with the same leading dimensions, and the logarithm of the sum of
    exponentials of each row: inf for a row that attends to nothing, float32 for float16 and bfloat16.
    """,
    dtypes="floating",
    internal=True,
    auxiliary=[1],
    kernel="optional; any strides, out[0] has those that the shape function gives; in[3] is bool or has the dtype of in[0].",
    libm="wide",
)
attention_forward.batch("code")
attention_backward = Operator(
    "attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor output, Tensor lse, "
    "bool is_causal, float scale) -> (Tensor, Tensor, Tensor)",
    doc="""
    The derivatives of `attention_forward` with respect to query, key and value. With the weights ``P = exp(scores - lse)``
    the gradient of the scores is ``P * (grad @ value^T - sum(grad * output))``.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; any strides, results have those that the shape function gives.",
    libm="wide",
)
attention_backward.batch("code")

attention_mask_backward = Composite(
    "attention_mask_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor mask, bool is_causal, "
    "float scale) -> Tensor",
    doc="The derivative of `attention_forward` with respect to a mask of numbers.",
    dtypes="floating",
    internal=True,
    widens=True,
)


# ---- shapes --------------------------------------------------------------------------------------
@part
def check_heads(query, key, value):
    check(
        min(query.ndim, min(key.ndim, value.ndim)) >= 2
        and query.shape[-1] == key.shape[-1]
        and key.shape[-2] == value.shape[-2],
        f"`query` must be (*, L, E), `key` (*, S, E) and `value` (*, S, Ev); "
        f"got shapes {query.shape}, {key.shape} and {value.shape}",
    )
    require("query", query.dtype, "floating")
    require_same("query", query, "key", key)
    require_same("query", query, "value", value)


@part
def check_same_heads(query, key, value):
    check_heads(query, key, value)
    check(
        query.shape[:-2] == key.shape[:-2] and query.shape[:-2] == value.shape[:-2],
        f"`query`, `key` and `value` must have the same leading dimensions; "
        f"got shapes {query.shape}, {key.shape} and {value.shape}",
    )


@part
def check_mask(mask, query, columns):
    if mask.dtype != bool_:
        require_same("query", query, "attn_mask", mask)
    scores = list(query.shape[:-1]) + [columns]
    lead = len(scores) - mask.ndim
    fits = lead >= 0
    for i in range(mask.ndim):
        if lead >= 0:
            fits = fits and (mask.shape[i] == scores[lead + i] or mask.shape[i] == 1)
    check(fits, f"`attn_mask` of shape {mask.shape} must broadcast to {tuple(scores)}, (*, L, S)")


@attention_forward.shape
def _(query, key, value, mask):
    check_same_heads(query, key, value)
    if mask is not None:
        check_mask(mask, query, key.shape[-2])
    rows = list(query.shape[:-1])
    wide = wide_dtype(query.dtype)
    made = rows + [value.shape[-1]]
    strides = dense_strides(query)
    if value.shape[-1] != query.shape[-1] or (made[-1] > 1 and strides[-1] != 1):
        return result(made, query.dtype), result(rows, wide)
    return result_as(made, query.dtype, strides), result(rows, wide)


@attention_forward.cost
def _(query, key, value):
    # of the matrix products alone, as is usual; a mask spares nothing
    scores = numel(query.shape[:-1]) * key.shape[-2]
    return 2 * scores * (query.shape[-1] + value.shape[-1])


@attention_backward.shape
def _(grad, query, key, value, mask, output, lse):
    check_same_heads(query, key, value)
    require_same("query", query, "grad", grad)
    require_same("query", query, "output", output)
    rows = list(query.shape[:-1])
    made = rows + [value.shape[-1]]
    check(
        grad.shape == made and output.shape == made,
        f"`grad` and `output` must have shape {tuple(made)}; got {grad.shape} and {output.shape}",
    )
    check(lse.shape == rows, f"`lse` must have shape {tuple(rows)}; got {lse.shape}")
    wide = wide_dtype(query.dtype)
    check(
        lse.dtype == wide or lse.dtype == query.dtype,
        f"`lse` must be {wide}; got {lse.dtype}",
        "DTypeError",
    )
    if mask is not None:
        check_mask(mask, query, key.shape[-2])
    return (
        result_as(query.shape, query.dtype, dense_strides(query)),
        result_as(key.shape, query.dtype, dense_strides(key)),
        result_as(value.shape, query.dtype, dense_strides(value)),
    )


@attention_backward.cost
def _(query, key, value):
    # the scores again, the gradients of query and key; those of the weights and of value
    scores = numel(query.shape[:-1]) * key.shape[-2]
    return 2 * scores * (3 * query.shape[-1] + 2 * value.shape[-1])


# ---- derivatives and decompositions --------------------------------------------------------------
@part
def attention_scores(query, key, mask, is_causal, scale):
    scores = (query * scale) @ op.transpose(key, -2, -1)
    if mask is not None:
        if mask.dtype == bool_:
            scores = op.masked_fill(scores, op.logical_not(mask), NOTHING)
        else:
            scores = scores + mask
    if is_causal:
        square = op.ones([query.shape[-2], key.shape[-2]], dtype=bool_, device=query.device)
        scores = op.masked_fill(scores, op.logical_not(op.tril(square)), NOTHING)
    return scores


@part
def attention_weights(scores):
    if scores.shape[-1] == 0:
        return scores * 1.0
    blind = op.eq(op.amax(scores, [-1], True), NOTHING)  # its softmax would be 0 / 0
    return op.masked_fill(op.softmax(op.masked_fill(scores, blind, 0.0), -1), blind, 0.0)


@part
def widened_mask(mask, wide):
    """A mask beside operands in the dtype `wide`."""
    made = mask
    if mask is not None and mask.dtype != bool_:
        made = to_dtype(mask, wide)
    return made


# halves: the same operators in float32, and each result is rounded once
@attention_forward.decompose
def _(query, key, value, mask, is_causal, scale):
    wide = wide_dtype(query.dtype)
    if query.dtype != wide:
        made, lse = attention_forward(
            to_dtype(query, wide),
            to_dtype(key, wide),
            to_dtype(value, wide),
            widened_mask(mask, wide),
            is_causal,
            scale,
        )
        return to_dtype(made, query.dtype), lse
    scores = attention_scores(query, key, mask, is_causal, scale)
    made = attention_weights(scores) @ value
    lse = op.logsumexp(scores, [-1])
    return made, op.masked_fill(lse, op.eq(lse, NOTHING), ENDLESS)


@attention_forward.vjp("query", "key", "value")
def _(g0, query, key, value, mask, result0, result1, is_causal, scale):
    gq, gk, gv = attention_backward(g0, query, key, value, mask, result0, result1, is_causal, scale)
    return gq, gk, gv


@attention_forward.vjp("mask")
def _(g0, query, key, value, mask, is_causal, scale):
    return attention_mask_backward(g0, query, key, value, mask, is_causal, scale)


@attention_mask_backward.decompose
def _(grad, query, key, value, mask, is_causal, scale):
    # of the shape of the scores, as a mask of numbers may be itself
    weights = attention_weights(attention_scores(query, key, mask, is_causal, scale))
    return sum_to(op.softmax_backward(grad @ op.transpose(value, -2, -1), weights, -1), mask.shape)


@attention_backward.decompose
def _(grad, query, key, value, mask, output, lse, is_causal, scale):
    dtype = query.dtype
    wide = wide_dtype(dtype)
    if dtype != wide:
        gq, gk, gv = attention_backward(
            to_dtype(grad, wide),
            to_dtype(query, wide),
            to_dtype(key, wide),
            to_dtype(value, wide),
            widened_mask(mask, wide),
            to_dtype(output, wide),
            to_dtype(lse, wide),
            is_causal,
            scale,
        )
        return to_dtype(gq, dtype), to_dtype(gk, dtype), to_dtype(gv, dtype)
    # saved values depend on the operands: they are computed again here, so that they can be
    # differentiated
    weights = attention_weights(attention_scores(query, key, mask, is_causal, scale))
    by_scores = op.softmax_backward(grad @ op.transpose(value, -2, -1), weights, -1)
    gq = by_scores @ key * scale
    gk = op.transpose(by_scores, -2, -1) @ (query * scale)
    return gq, gk, op.transpose(weights, -2, -1) @ grad


@scaled_dot_product_attention.cost
def _(query, key, value, result):
    scores = numel(result.shape[:-1]) * key.shape[-2]
    return 2 * scores * (query.shape[-1] + value.shape[-1])


@scaled_dot_product_attention.decompose
def _(query, key, value, attn_mask, is_causal, scale, enable_gqa):
    check_heads(query, key, value)
    check(
        attn_mask is None or not is_causal,
        "`attn_mask` must be None where `is_causal` is True",
        "ValueError",
    )
    factor = 0.0
    if scale is not None:
        factor = scale
    elif query.shape[-1] > 0:
        factor = float(query.shape[-1]) ** -0.5
    q = query
    k = key
    v = value
    mask = attn_mask
    heads = query.shape[-3] if query.ndim > 2 else 1
    shared = heads
    if enable_gqa:
        shared = key.shape[-3] if key.ndim > 2 else 0
        check(
            query.ndim == key.ndim
            and key.ndim == value.ndim
            and shared > 0
            and value.shape[-3] == shared
            and heads % max(shared, 1) == 0,
            f"the heads of `query` must be a multiple of those of `key` and `value`; "
            f"got shapes {query.shape}, {key.shape} and {value.shape}",
        )
    if heads != shared:  # (*, shared, groups, L, E) beside (*, shared, 1, S, E)
        groups = [shared, heads // max(shared, 1)]
        q = op.reshape(query, query.shape[:-3] + groups + query.shape[-2:])
        k = op.unsqueeze(key, -3)
        v = op.unsqueeze(value, -3)
        if mask is not None and mask.ndim > 2:
            if mask.shape[-3] == heads:
                mask = op.reshape(mask, mask.shape[:-3] + groups + mask.shape[-2:])
            else:
                mask = op.unsqueeze(mask, -3)
    lead = broadcast(
        "key", broadcast("query", q.shape[:-2], "key", k.shape[:-2]), "value", v.shape[:-2]
    )
    if q.shape[:-2] != lead:
        q = op.expand(q, lead + q.shape[-2:])
    if k.shape[:-2] != lead:
        k = op.expand(k, lead + k.shape[-2:])
    if v.shape[:-2] != lead:
        v = op.expand(v, lead + v.shape[-2:])
    made, _lse = attention_forward(q, k, v, mask, is_causal, factor)
    if heads != shared:
        return op.reshape(made, query.shape[:-1] + [value.shape[-1]])
    return made
