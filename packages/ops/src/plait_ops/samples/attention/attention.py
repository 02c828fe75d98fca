"""Test data of attention/attention: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.attention.attention import (
    attention_backward,
    attention_forward,
    attention_mask_backward,
    scaled_dot_product_attention,
)


# ---- references ----------------------------------------------------------------------------------
def _scores(query, key, mask, is_causal, scale):
    scores = query.astype("float64") * scale @ np.swapaxes(key, -1, -2)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return (
        np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf) if is_causal else scores
    )


def _weights(scores):
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.where(total == 0, np.inf, np.log(total) + top)
    return powers / np.where(total == 0, 1, total), lse[..., 0]


@attention_forward.reference
def _(query, key, value, mask, is_causal, scale):
    weights, lse = _weights(_scores(query, key, mask, is_causal, scale))
    wide = "float64" if query.dtype == "float64" else "float32"
    return (weights @ value).astype(query.dtype), lse.astype(wide)


@attention_backward.reference
def _(grad, query, key, value, mask, output, lse, is_causal, scale):
    weights, _ = _weights(_scores(query, key, mask, is_causal, scale))
    by_weights = grad @ np.swapaxes(value, -1, -2).astype("float64")
    by_scores = weights * (by_weights - (weights * by_weights).sum(-1, keepdims=True))
    gq = by_scores @ key * scale
    gk = np.swapaxes(by_scores, -1, -2) @ query * scale
    result = gq, gk, np.swapaxes(weights, -1, -2) @ grad
    return tuple(each.astype(grad.dtype) for each in result)


@attention_mask_backward.reference
def _(grad, query, key, value, mask, is_causal, scale):
    weights, _ = _weights(_scores(query, key, mask, is_causal, scale))
    by_weights = grad @ np.swapaxes(value, -1, -2).astype("float64")
    result = weights * (by_weights - (weights * by_weights).sum(-1, keepdims=True))
    lead = tuple(range(result.ndim - mask.ndim))
    single = tuple(i for i, n in enumerate(mask.shape) if n == 1)
    return result.sum(lead).sum(single, keepdims=True).astype(grad.dtype)


@scaled_dot_product_attention.reference
def _(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa and query.ndim > 2:
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat(groups, -3), value.repeat(groups, -3)
    factor = max(query.shape[-1], 1) ** -0.5 if scale is None else scale
    weights, _ = _weights(_scores(query, key, attn_mask, is_causal, factor))
    return (weights @ value).astype(query.dtype)


# ---- samples -------------------------------------------------------------------------------------
def _heads(s, *lead, queries=5, keys=7, width=4, values=3, dtype="float32"):
    return (
        s.array(*lead, queries, width, dtype=dtype),
        s.array(*lead, keys, width, dtype=dtype),
        s.array(*lead, keys, values, dtype=dtype),
    )


def _seen(s, *shape):
    mask = s.array(*shape) > 0
    mask[..., 1, :] = False  # a row in which no key counts
    mask[..., 2, 0] = True
    return mask


@scaled_dot_product_attention.samples
def _(s):
    yield s(*_heads(s)).loosely(4)
    yield s(*_heads(s, 2, 3), is_causal=True).loosely(4)
    yield s(*_heads(s, 2, 3), s.array(5, 7), scale=0.3).loosely(4)
    yield s(*_heads(s, 2), _seen(s, 2, 5, 7)).loosely(4)
    yield s(*_heads(s, 2, queries=9, keys=4), is_causal=True).loosely(4)
    yield s(s.array(5, 4), s.array(2, 7, 4), s.array(3, 1, 7, 3)).loosely(4)
    for mask in (None, s.array(4, 5, 7), s.array(2, 1, 5, 7)):
        yield s(
            s.array(2, 4, 5, 3), s.array(2, 2, 7, 3), s.array(2, 2, 7, 3), mask, enable_gqa=True
        ).loosely(4)
    yield (
        s(*_heads(s, 2, 1, queries=150, keys=300, width=24, values=40))
        .loosely(8)
        .without_gradient()
    )
    yield s(s.strided(3, 5, 4), s.backwards(3, 7, 4), s.expanded(3, 7, 4)).loosely(4)
    yield s(*_heads(s, dtype="float64"))
    yield s(*_heads(s, 2, keys=0))
    yield s(*_heads(s, 0))
    yield s(*_heads(s, 2, queries=2, keys=300)).loosely(8).without_gradient()


@attention_forward.samples
def _(s):
    # the layout after projections: heads side by side
    lain = [s.array(2, n, 3, 16).transpose(0, 2, 1, 3) for n in (6, 5, 5)]
    yield s(*lain, s.array(6, 5), False, 0.25).loosely(4)
    yield s(*lain, _seen(s, 2, 1, 6, 1).repeat(5, -1), False, 0.25).loosely(4)
    yield s(*_heads(s, 2), None, True, 0.5).loosely(4)
    yield s(*_heads(s, 2), s.expanded(5, 7), False, 0.5).loosely(4)
    yield s(*_heads(s, 2, queries=0), None, False, 0.5)
    yield s(*_heads(s, 2, width=0), None, False, 0.5)
    # more than one block of either kind, with a remainder
    yield (
        s(*_heads(s, 2, queries=205, keys=275, width=20), None, True, 0.2)
        .loosely(8)
        .without_gradient()
    )
    high = 10 * s.array(100, 16)  # scores that would overflow without the shift
    yield s(high, high, s.array(100, 8), None, False, 1.0).loosely(8).without_gradient()


@attention_backward.samples
def _(s):
    # lse and the output depend on the operands here, so finite differences do not apply
    for lead, options, mask, is_causal in (
        ((), {}, None, False),
        ((2, 3), {}, _seen(s, 5, 7), False),
        ((2,), {}, s.array(2, 5, 7), False),
        ((2,), {"queries": 205, "keys": 275, "width": 20}, None, True),
        ((1,), {"queries": 100, "keys": 600, "width": 16, "values": 16}, None, False),
        ((2,), {"keys": 0}, None, False),
        ((2,), {"queries": 0}, None, False),
    ):
        q, k, v = _heads(s, *lead, **options)
        result, lse = attention_forward(q, k, v, mask, is_causal, 0.5)
        yield (
            s(s.array(*result.shape), q, k, v, mask, result, lse, is_causal, 0.5)
            .loosely(16)
            .without_gradient()
        )
    q, k, v, g = (s.array(2, n, 3, 16).transpose(0, 2, 1, 3) for n in (6, 5, 5, 6))
    result, lse = attention_forward(q, k, v, None, False, 0.3)
    yield s(g, q, k, v, None, result, lse, False, 0.3).loosely(16).without_gradient()


@attention_mask_backward.samples
def _(s):
    for shape, is_causal in (
        ((5, 7), False),
        ((2, 5, 7), False),
        ((2, 1, 7), False),
        ((1, 7), True),
    ):
        q, k, v = _heads(s, 2)
        yield s(s.array(2, 5, 3), q, k, v, s.array(*shape), is_causal, 0.5).loosely(16)


# ---- errors --------------------------------------------------------------------------------------
for each, rest in ((scaled_dot_product_attention, ()), (attention_forward, (None, False, 1.0))):
    each.error(
        "ShapeError",
        lambda s, rest=rest: s(s.array(2, 3), s.array(2, 4), s.array(2, 3), *rest),
        contains=["query", "key", "value", "(2, 3)", "(2, 4)"],
    )
    each.error(
        "ShapeError",
        lambda s, rest=rest: s(s.array(2, 3), s.array(4, 3), s.array(5, 3), *rest),
        contains=["value", "(4, 3)", "(5, 3)"],
    )
    each.error(
        "ShapeError",
        lambda s, rest=rest: s(s.array(3), s.array(4, 3), s.array(4, 3), *rest),
        contains=["query", "(3,)"],
    )
    each.error(
        "DTypeError",
        lambda s, rest=rest: s(*[s.array(2, 3, dtype="int64")] * 3, *rest),
        contains=["query", "int64"],
    )
    each.error(
        "DTypeError",
        lambda s, rest=rest: s(s.array(2, 3), s.array(2, 3, dtype="float64"), s.array(2, 3), *rest),
        contains=["query", "key", "float32", "float64"],
    )
    each.error(
        "ShapeError",
        lambda s, rest=rest: s(
            s.array(2, 3), s.array(4, 3), s.array(4, 3), s.array(3, 4), *rest[1:]
        ),
        contains=["attn_mask", "(3, 4)", "(2, 4)"],
    )
    each.error(
        "DTypeError",
        lambda s, rest=rest: s(
            s.array(2, 3), s.array(4, 3), s.array(4, 3), s.array(2, 4, dtype="int64"), *rest[1:]
        ),
        contains=["attn_mask", "int64"],
    )
scaled_dot_product_attention.error(
    "ShapeError",
    lambda s: s(s.array(2, 5, 3), s.array(3, 4, 3), s.array(3, 4, 3)),
    contains=["query", "key", "(2,)", "(3,)"],
)
scaled_dot_product_attention.error(
    "ShapeError",
    lambda s: s(s.array(3, 5, 3), s.array(2, 4, 3), s.array(2, 4, 3), enable_gqa=True),
    contains=["heads", "(3, 5, 3)", "(2, 4, 3)"],
)
scaled_dot_product_attention.error(
    "ValueError",
    lambda s: s(s.array(2, 3), s.array(2, 3), s.array(2, 3), s.array(2, 2), True),
    contains=["attn_mask", "is_causal"],
)
attention_forward.error(
    "ShapeError",
    lambda s: s(s.array(2, 2, 3), s.array(3, 2, 3), s.array(3, 2, 3), None, False, 1.0),
    contains=["leading", "(2, 2, 3)", "(3, 2, 3)"],
)
attention_backward.error(
    "ShapeError",
    lambda s: s(*[s.array(2, 3)] * 4, None, s.array(2, 4), s.array(2), False, 1.0),
    contains=["grad", "output", "(2, 3)", "(2, 4)"],
)
attention_backward.error(
    "ShapeError",
    lambda s: s(*[s.array(2, 3)] * 4, None, s.array(2, 3), s.array(3), False, 1.0),
    contains=["lse", "(2,)", "(3,)"],
)
attention_mask_backward.error(
    "ShapeError",
    lambda s: s(
        s.array(2, 3), s.array(2, 4), s.array(5, 3), s.array(5, 3), s.array(2, 5), False, 1.0
    ),
    contains=["(2, 4)", "(3, 5)"],
)
