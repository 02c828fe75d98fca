"""`RNN`, `LSTM`, `GRU`: recurrent layers over sequences."""

from __future__ import annotations

from typing import Any

from plait_nn._rnn_base import RNNBase

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]


class RNN(RNNBase):
    r"""Elman's recurrent layers: :math:`h_t = \tanh(W x_t + b + U h_{t-1} + c)`.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the hidden state, H.
        num_layers: Layers.
        nonlinearity: "tanh" or "relu".
        bias: Whether there are biases.
        batch_first: Whether sequences are (N, T, features) instead of (T, N, features).
        dropout: Probability of dropout after every layer but the last.
        bidirectional: Whether a second run goes from the end to the beginning.
        device: Where the parameters live.
        dtype: Their dtype; None is float32.

    Input, shape (T, N, input_size), (T, input_size) or a `PackedSequence`, and optionally the first
    state, shape (layers x directions, N, H). Output of the last layer for every step, shape
    (T, N, directions x H), and the last state.

    Raises:
        ShapeError: Input or state have other shapes.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> output, state = nn.RNN(10, 20, 2)(pc.randn(5, 3, 10))
        >>> tuple(output.shape), tuple(state.shape)
        ((5, 3, 20), (2, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: `nonlinearity` must be tanh or relu; got {nonlinearity!r}")
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    r"""Long short-term memory (Hochreiter and Schmidhuber 1997).

    .. math::
        c_t = \sigma(f) c_{t-1} + \sigma(i) \tanh(g), \quad h_t = \sigma(o) \tanh(c_t)

    where i, f, g, o are the four parts of :math:`W x_t + b + U h_{t-1} + c`.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the cell, H.
        num_layers: Layers.
        bias: Whether there are biases.
        batch_first: Whether sequences are (N, T, features) instead of (T, N, features).
        dropout: Probability of dropout after every layer but the last.
        bidirectional: Whether a second run goes from the end to the beginning.
        proj_size: Project the hidden state to so many features, P; 0 doesn't, and P is H.
        device: Where the parameters live.
        dtype: Their dtype; None is float32.

    Input as for `RNN`, with the first state (h_0, c_0) of sizes P and H. Output of the last layer
    for every step, shape (T, N, directions x P), and the last state (h, c).

    Raises:
        ShapeError: Input or state have other shapes.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> output, (h, c) = nn.LSTM(10, 20, bidirectional=True)(pc.randn(5, 3, 10))
        >>> tuple(output.shape), tuple(h.shape), tuple(c.shape)
        ((5, 3, 40), (2, 3, 20), (2, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )


class GRU(RNNBase):
    r"""Gated recurrent units (Cho et al. 2014).

    .. math::
        n = \tanh(W_n x_t + b_n + r (U_n h_{t-1} + c_n)), \quad h_t = (1 - z) n + z h_{t-1}

    with the gates r and z, sigmoids of :math:`W x_t + b + U h_{t-1} + c`. Arguments, input and
    output are those of `RNN`, without ``nonlinearity``.

    Raises:
        ShapeError: Input or state have other shapes.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> output, state = nn.GRU(10, 20, batch_first=True)(pc.randn(3, 5, 10))
        >>> tuple(output.shape), tuple(state.shape)
        ((3, 5, 20), (1, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
