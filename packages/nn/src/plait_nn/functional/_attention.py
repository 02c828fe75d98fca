"""Scaled dot-product attention, and multi-head attention with its projections."""

from __future__ import annotations

import math

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.functional._package import F


@unbound
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    r"""Compute :math:`\mathrm{softmax}(Q K^T s + M) V` (Vaswani et al. 2017).

    Args:
        query: Shape (\*, L, E).
        key: Shape (\*, S, E).
        value: Shape (\*, S, Ev).
        attn_mask: Broadcastable to (\*, L, S): True where there is attention, or numbers added to
            the scores. A row without attended columns gives 0.
        dropout_p: Probability of dropout of the weights; also outside of training.
        is_causal: Let row i attend to the columns up to i only; without ``attn_mask``.
        scale: The factor s; None is :math:`1 / \sqrt E`.
        enable_gqa: Repeat the heads (the third dimension from the end) of key and value to as many
            as the query has.

    Returns:
        Shape (\*, L, Ev).

    The scores are computed in blocks and not stored as a whole (Dao et al. 2022), except with
    dropout: then there are L S numbers for each head.

    Raises:
        ShapeError: The shapes don't fit together.
        DTypeError: ``attn_mask`` is neither bool nor floating point.
        ValueError: Both ``attn_mask`` and ``is_causal`` are given.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> q, k, v = pc.zeros(1, 2, 4), pc.zeros(1, 2, 4), pc.tensor([[[1.0], [3.0]]])
        >>> F.scaled_dot_product_attention(q, k, v, is_causal=True).flatten()
        tensor([1., 2.])
    """
    if attn_mask is not None:
        _check_mask(attn_mask, "scaled_dot_product_attention", "attn_mask")
    if dropout_p > 0:
        return _with_dropout(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if attn_mask is not None and attn_mask.dtype not in (pc.bool, query.dtype):
        attn_mask = attn_mask.to(query.dtype)
    return operators.scaled_dot_product_attention(
        query, key, value, attn_mask, is_causal, scale, enable_gqa
    )


def _check_mask(mask: Tensor, function: str, name: str) -> None:
    """Raise for a mask of integers, which could mean truth values or numbers."""
    if mask.dtype != pc.bool and not mask.dtype.is_floating_point:
        raise pc.DTypeError(
            f"{function}: `{name}` must be bool or floating point; got {mask.dtype}"
        )


def _with_dropout(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """Compute attention with dropout, for which the weights are stored."""
    if enable_gqa:
        key, value = (_repeated(each, query) for each in (key, value))
    fits = (
        min(query.ndim, key.ndim, value.ndim) >= 2
        and query.shape[-1] == key.shape[-1]
        and key.shape[-2] == value.shape[-2]
    )
    if not fits:
        raise pc.ShapeError(
            f"scaled_dot_product_attention: `query` must be (*, L, E), `key` (*, S, E) and `value` "
            f"(*, S, Ev); got shapes {tuple(query.shape)}, {tuple(key.shape)} and "
            f"{tuple(value.shape)}"
        )
    if is_causal:
        if attn_mask is not None:
            raise ArgumentError(
                "scaled_dot_product_attention: `attn_mask` must be None with `is_causal`"
            )
        ones = pc.ones((query.shape[-2], key.shape[-2]), dtype=pc.bool, device=query.device)
        attn_mask = ones.tril()
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * factor) @ key.transpose(-2, -1)
    blind: Tensor | None = None  # rows without attended columns, whose softmax would be 0 / 0
    if attn_mask is not None:
        is_bool = attn_mask.dtype == pc.bool
        if not is_causal:
            hides = ~attn_mask if is_bool else attn_mask.detach() == -math.inf
            blind = hides.all(-1, True)
            attn_mask = attn_mask | blind if is_bool else attn_mask.masked_fill(blind, 0)
        if is_bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        else:
            scores = scores + attn_mask.to(scores.dtype)
    result = pc.dropout(pc.softmax(scores, -1), dropout_p, True) @ value
    return result if blind is None else result.masked_fill(blind, 0)


def _repeated(heads: Tensor, query: Tensor) -> Tensor:
    """Repeat the heads of key or value for the query's groups."""
    if heads.ndim < 3 or query.ndim < 3 or query.shape[-3] % heads.shape[-3]:
        raise pc.ShapeError(
            f"scaled_dot_product_attention: the heads of `query` must be a multiple of those of "
            f"`key` and `value`; got shapes {tuple(query.shape)} and {tuple(heads.shape)}"
        )
    return heads.repeat_interleave(query.shape[-3] // heads.shape[-3], -3)


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask as numbers to add: minus infinity where it is True."""
    if mask.dtype != pc.bool:
        return mask.to(like.dtype)
    zeros = pc.zeros(tuple(mask.shape), dtype=like.dtype, device=mask.device)
    return zeros.masked_fill(mask, -math.inf)


def _projections(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: Tensor | None,
    separate: tuple[Tensor | None, Tensor | None, Tensor | None],
    bias: Tensor | None,
) -> list[Tensor]:
    """Project query, key and value, in one product those of them that are one tensor."""
    if packed is not None:
        if query is key and key is value:
            return list(F.linear(query, packed, bias).chunk(3, -1))
        if key is value:
            sizes = [query.shape[-1], 2 * query.shape[-1]]
            first, others = packed.split(sizes)
            one, two = (None, None) if bias is None else bias.split(sizes)
            return [F.linear(query, first, one), *F.linear(key, others, two).chunk(2, -1)]
        separate = tuple(packed.chunk(3, 0))  # type: ignore[assignment]
    biases = [None] * 3 if bias is None else bias.chunk(3, 0)
    return [
        F.linear(x, w, b) for x, w, b in zip((query, key, value), separate, biases, strict=True)
    ]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    r"""Compute multi-head attention; see `plait.nn.MultiheadAttention`, which holds the weights.

    Args:
        query: Shape (L, N, E) or (L, E).
        key: Shape (S, N, Ek) or (S, Ek).
        value: Shape (S, N, Ev) or (S, Ev).
        embed_dim_to_check: E.
        num_heads: Heads; they divide E.
        in_proj_weight: Shape (3 E, E), the projections of query, key and value.
        in_proj_bias: Shape (3 E), or None.
        bias_k: Shape (1, 1, E): one more key, or None.
        bias_v: Shape (1, 1, E): the value of the additional key, or None.
        add_zero_attn: Whether there is one more key and value of zeros.
        dropout_p: Probability of dropout of the weights in training.
        out_proj_weight: Shape (E, E).
        out_proj_bias: Shape (E), or None.
        training: Whether there is dropout.
        key_padding_mask: Shape (N, S) or (S): True for keys that are ignored, or numbers.
        need_weights: Whether to return the weights.
        attn_mask: Shape (L, S) or (N num_heads, L, S): True where there is no attention, or
            numbers.
        use_separate_proj_weight: Use the three weights that follow.
        q_proj_weight: Shape (E, E).
        k_proj_weight: Shape (E, Ek).
        v_proj_weight: Shape (E, Ev).
        static_k: Not supported; None.
        static_v: Not supported; None.
        average_attn_weights: Whether the weights are averaged over the heads.
        is_causal: A hint that ``attn_mask`` is the causal mask; only the mask is used.

    Returns:
        The result, shape (L, N, E) or (L, E), and the weights, (N, L, S) or (N, num_heads, L, S),
        or None.

    Raises:
        ShapeError: The shapes don't fit together.
        DTypeError: A mask is neither bool nor floating point.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x, w = pc.ones(2, 1, 4), pc.eye(4)
        >>> out, weights = F.multi_head_attention_forward(
        ...     x, x, x, 4, 2, pc.cat([w, w, w]), None, None, None, False, 0.0, w, None)
        >>> out[0, 0].tolist(), weights[0].tolist()
        ([1.0, 1.0, 1.0, 1.0], [[0.5, 0.5], [0.5, 0.5]])
    """
    if static_k is not None or static_v is not None:
        raise NotImplementedError("multi_head_attention_forward: `static_k` is not supported")
    if is_causal and attn_mask is None:
        raise ArgumentError(
            "multi_head_attention_forward: `attn_mask` must be given with `is_causal`"
        )
    _check_attention(query, key, value, embed_dim_to_check, num_heads)
    padding, single = key_padding_mask, query.ndim == 2
    if single:
        one = query is key and key is value
        query = query.unsqueeze(1)
        key, value = (query, query) if one else (key.unsqueeze(1), value.unsqueeze(1))
        padding = None if padding is None else padding.unsqueeze(0)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    packed = None if use_separate_proj_weight else in_proj_weight
    q, k, v = _projections(query, key, value, packed, separate, in_proj_bias)
    length, batch, embed = q.shape
    if bias_k is not None and bias_v is not None:
        k = pc.cat([k, bias_k.expand((1, batch, embed))])
        v = pc.cat([v, bias_v.expand((1, batch, embed))])
    q, k, v = (
        x.reshape((x.shape[0], batch, num_heads, embed // num_heads)).permute((1, 2, 0, 3))
        for x in (q, k, v)
    )
    if add_zero_attn:
        zeros = k.new_zeros((batch, num_heads, 1, k.shape[3]))
        k, v = pc.cat([k, zeros], 2), pc.cat([v, zeros], 2)
    mask = _merged(attn_mask, padding, q, k, key.shape[0])
    dropout = dropout_p if training else 0.0
    weights: Tensor | None = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / q.shape[3])) @ k.transpose(2, 3)
        weights = F.softmax(scores if mask is None else scores + mask, -1)
        if dropout > 0:
            weights = F.dropout(weights, dropout)
        output = weights @ v
    else:
        output = F.scaled_dot_product_attention(q, k, v, mask, dropout)
    joined = output.permute((2, 0, 1, 3)).reshape((length, batch, embed))
    result = F.linear(joined, out_proj_weight, out_proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if single:
        result, weights = result.squeeze(1), None if weights is None else weights.squeeze(0)
    return result, weights


def _check_attention(query: Tensor, key: Tensor, value: Tensor, embed: int, heads: int) -> None:
    shapes = f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
    fits = (
        query.ndim in (2, 3)
        and query.ndim == key.ndim == value.ndim
        and query.shape[-1] == embed
        and key.shape[:-1] == value.shape[:-1]
        and query.shape[1:-1] == key.shape[1:-1]
    )
    if not fits:
        raise pc.ShapeError(
            f"multi_head_attention_forward: `query` must be (L, N, {embed}), `key` (S, N, *) and "
            f"`value` (S, N, *), or all without N; got shapes {shapes}"
        )
    if embed % heads:
        raise ArgumentError(
            f"multi_head_attention_forward: `num_heads` must divide {embed}; got {heads}"
        )


def _merged(
    mask: Tensor | None, padding: Tensor | None, q: Tensor, k: Tensor, keys: int
) -> Tensor | None:
    """Return both masks as numbers (N, heads, L, S) or smaller; added keys are never masked."""
    batch, heads, length = q.shape[:3]
    total: Tensor | None = None
    for each, name in ((mask, "attn_mask"), (padding, "key_padding_mask")):
        if each is not None:
            _check_mask(each, "multi_head_attention_forward", name)
    if mask is not None:
        allowed = ((length, keys), (batch * heads, length, keys))
        if tuple(mask.shape) not in allowed:
            raise pc.ShapeError(
                f"multi_head_attention_forward: `attn_mask` must have shape {allowed[0]} or "
                f"{allowed[1]}; got {tuple(mask.shape)}"
            )
        total = _additive(mask, q)
        if total.ndim == 3:
            total = total.reshape((batch, heads, length, keys))
    if padding is not None:
        if tuple(padding.shape) != (batch, keys):
            raise pc.ShapeError(
                f"multi_head_attention_forward: `key_padding_mask` must have shape "
                f"{(batch, keys)}; got {tuple(padding.shape)}"
            )
        numbers = _additive(padding, q).reshape((batch, 1, 1, keys))
        total = numbers if total is None else total + numbers
    more = k.shape[2] - keys
    if total is not None and more:
        total = pc.cat([total, total.new_zeros((*total.shape[:-1], more))], -1)
    return total
