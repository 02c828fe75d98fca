"""`TransformerEncoderLayer`, `TransformerDecoderLayer`, their stacks, and `Transformer`."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F, init
from plait_nn._attention import MultiheadAttention
from plait_nn._containers import ModuleList
from plait_nn._dropout import Dropout
from plait_nn._linear import Linear
from plait_nn._module import Module
from plait_nn._normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    functions: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
    if activation not in functions:
        raise ValueError(f"Transformer: `activation` must be relu or gelu; got {activation!r}")
    return functions[activation]


class _Layer(Module):
    """Attention blocks and a feed-forward block, each with dropout, residual and norm."""

    _blocks: int
    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        for number in range(1, self._blocks + 1):
            self.add_module(f"norm{number}", LayerNorm(d_model, layer_norm_eps, **options))
        for number in range(1, self._blocks + 1):
            self.add_module(f"dropout{number}", Dropout(dropout))
        if self._blocks == 2:  # of encoder layers only, as in PyTorch
            numbers: dict[Any, int] = {"relu": 1, "gelu": 2}
            named = getattr(activation, "__name__", activation)
            self.activation_relu_or_gelu = numbers.get(named, 0)
        self.activation = _activation(activation)

    def _residual(self, x: Tensor, number: int, block: Callable[[Tensor], Tensor]) -> Tensor:
        norm = getattr(self, f"norm{number}")
        result: Tensor = norm(x) if self.norm_first else x
        result = x + block(result)
        if not self.norm_first:
            result = norm(result)
        return result

    # Blocks have PyTorch's names and arguments: subclasses override them.

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        result: Tensor = self.self_attn(
            x, x, x, key_padding_mask, False, attn_mask, is_causal=is_causal
        )[0]
        return self.dropout1(result)  # type: ignore[no-any-return]

    def _ff_block(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.activation(self.linear1(x))
        last = getattr(self, f"dropout{self._blocks}")
        return last(self.linear2(self.dropout(hidden)))  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network (Vaswani et al. 2017).

    Args:
        d_model: Features, E.
        nhead: Heads.
        dim_feedforward: Hidden features of the feed-forward network.
        dropout: Probability of dropout.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: Of the layer norms.
        batch_first: Whether tensors are (N, L, E) instead of (L, N, E).
        norm_first: Whether norms come before the blocks instead of after their residuals.
        bias: Whether linear layers and norms have biases.
        device, dtype: Where the parameters are, and their dtype; None is float32.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        >>> tuple(layer(pc.randn(2, 5, 16)).shape)
        (2, 5, 16)
    """

    _blocks = 2
    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal)

        return self._residual(self._residual(src, 1, attend), 2, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's result, and a feed-forward network.

    Arguments are those of `TransformerEncoderLayer`.

    Args:
        d_model: Number of features E.
        nhead: Number of heads.
        dim_feedforward: Number of features between the two linear layers.
        dropout: Probability of dropout.
        activation: Function between the linear layers, or its name: "relu" or "gelu".
        layer_norm_eps: `eps` of the normalizations.
        batch_first: Whether input and output are (N, L, E) instead of (L, N, E).
        norm_first: Whether normalization comes before attention and linear layers instead of after
            them.
        bias: Whether layers have biases.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.TransformerDecoderLayer(16, 4, 32)
        >>> tuple(layer(pc.randn(3, 2, 16), pc.randn(5, 2, 16)).shape)
        (3, 2, 16)
    """

    _blocks = 3
    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def look(x: Tensor) -> Tensor:
            padding, causal = memory_key_padding_mask, memory_is_causal
            return self._mha_block(x, memory, memory_mask, padding, causal)

        x = self._residual(self._residual(tgt, 1, attend), 2, look)
        return self._residual(x, 3, self._ff_block)

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        result: Tensor = self.multihead_attn(
            x, mem, mem, key_padding_mask, False, attn_mask, is_causal=is_causal
        )[0]
        return self.dropout2(result)  # type: ignore[no-any-return]


class _Stack(Module):
    """Several copies of a layer, one after the other, and a norm of the result or None."""

    norm: Module | None

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _run(self, x: Tensor, *memory: Tensor, **options: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *memory, **options)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Several copies of an encoder layer, one after the other.

    Args:
        encoder_layer: The layer; each copy starts with its values.
        num_layers: The number of copies.
        norm: A norm of the result, or None.
        enable_nested_tensor: Unused; accepted for PyTorch's signature.
        mask_check: Unused.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32), 2)
        >>> tuple(encoder(pc.randn(5, 2, 16)).shape)
        (5, 2, 16)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        # for programs that look at them
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = False
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        return self._run(
            src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal)
        )


class TransformerDecoder(_Stack):
    """Several copies of a decoder layer, one after the other; see `TransformerEncoder`.

    Args:
        decoder_layer: The layer, which is copied.
        num_layers: Number of layers.
        norm: A layer after the last one, or None.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32), 2)
        >>> tuple(decoder(pc.randn(3, 2, 16), pc.randn(5, 2, 16)).shape)
        (3, 2, 16)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        return self._run(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=bool(tgt_is_causal),
            memory_is_causal=memory_is_causal,
        )


class Transformer(Module):
    """An encoder and a decoder (Vaswani et al. 2017).

    Args:
        d_model: Features, E.
        nhead: Heads.
        num_encoder_layers: Layers of the encoder.
        num_decoder_layers: Layers of the decoder.
        dim_feedforward: Hidden features of the feed-forward networks.
        dropout: Probability of dropout.
        activation: "relu", "gelu" or a function.
        custom_encoder: A module to use as the encoder, or None.
        custom_decoder: A module to use as the decoder, or None.
        layer_norm_eps: Of the layer norms.
        batch_first: Whether tensors are (N, L, E) instead of (L, N, E).
        norm_first: Whether norms come before the blocks instead of after their residuals.
        bias: Whether linear layers and norms have biases.
        device, dtype: Where the parameters are, and their dtype; None is float32.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> model = nn.Transformer(16, 4, 1, 1, 32)
        >>> mask = model.generate_square_subsequent_mask(3)
        >>> tuple(model(pc.randn(5, 2, 16), pc.randn(3, 2, 16), tgt_mask=mask).shape)
        (3, 2, 16)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        options = (batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(*shape, *options)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        else:
            self.encoder = custom_encoder
        if custom_decoder is None:
            other = TransformerDecoderLayer(*shape, *options)
            self.decoder = TransformerDecoder(other, num_decoder_layers, norm())
        else:
            self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask, shape (sz, sz): minus infinity above the diagonal, else 0.

        Args:
            sz: The length of the sequence.
            device: The device; None is the default one.
            dtype: The dtype; None is the default one.
        """
        return pc.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise pc.ShapeError(
                f"Transformer: `src` and `tgt` must have `d_model` {self.d_model} features; "
                f"got shapes {tuple(src.shape)} and {tuple(tgt.shape)}"
            )
        if src.ndim != tgt.ndim or (src.ndim == 3 and src.shape[batch] != tgt.shape[batch]):
            raise pc.ShapeError(
                f"Transformer: `src` and `tgt` must have the same batch; "
                f"got shapes {tuple(src.shape)} and {tuple(tgt.shape)}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
