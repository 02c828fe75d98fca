"""`MultiheadAttention`."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F, init
from plait_nn._linear import Linear
from plait_nn._module import Module
from plait_nn._parameter import Parameter


class MultiheadAttention(Module):
    r"""Attend with several heads at once (Vaswani et al. 2017).

    Each head computes :math:`\mathrm{softmax}(Q K^T / \sqrt d) V` of its own projections of query,
    key and value; their results, side by side, are projected once more.

    Args:
        embed_dim: Features of query and result, E.
        num_heads: Heads; they divide E.
        dropout: Probability of dropout of the weights in training.
        bias: Whether the projections have biases, starting at 0.
        add_bias_kv: Whether there is one more key and value, learned.
        add_zero_attn: Whether there is one more key and value of zeros.
        kdim: Features of the keys; None is E.
        vdim: Features of the values; None is E.
        batch_first: Whether tensors are (N, L, E) instead of (L, N, E).
        device, dtype: Where the parameters are, and their dtype; None is float32.

    Raises:
        ValueError: ``num_heads`` doesn't divide ``embed_dim``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.randn(2, 5, 16)
        >>> output, weights = nn.MultiheadAttention(16, 4, batch_first=True)(x, x, x)
        >>> tuple(output.shape), tuple(weights.shape)
        ((2, 5, 16), (2, 5, 5))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: `embed_dim` must be positive and divisible by `num_heads`; "
                f"got {embed_dim} and {num_heads}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        same = self._qkv_same_embed_dim
        shapes: dict[str, tuple[int, ...] | None] = {
            "q_proj_weight": None if same else (embed_dim, embed_dim),
            "k_proj_weight": None if same else (embed_dim, self.kdim),
            "v_proj_weight": None if same else (embed_dim, self.vdim),
        }
        together: dict[str, tuple[int, ...] | None]
        together = {"in_proj_weight": (3 * embed_dim, embed_dim) if same else None}
        shapes = {**together, **shapes} if same else {**shapes, **together}
        shapes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        for name, shape in shapes.items():
            empty = None if shape is None else pc.empty(shape, device=device, dtype=dtype)
            self.register_parameter(name, None if empty is None else Parameter(empty))
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            one = pc.empty(1, 1, embed_dim, device=device, dtype=dtype) if add_bias_kv else None
            setattr(self, name, None if one is None else Parameter(one))
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = self._parameters[name]
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return result and weights; `functional.multi_head_attention_forward` has the shapes."""
        swap = self.batch_first and query.ndim == 3
        if swap:
            # what is one tensor stays one, as it is then projected in one product
            swapped = query.transpose(0, 1)
            of_key = swapped if query is key else key.transpose(0, 1)
            value = of_key if key is value else value.transpose(0, 1)
            query, key = swapped, of_key
        result, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (result.transpose(0, 1) if swap else result), weights
