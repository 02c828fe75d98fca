"""`RNNCell`, `LSTMCell`, `GRUCell`: one step of a recurrent layer."""

from __future__ import annotations

import math
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators, init
from plait_nn._linear import check_sizes
from plait_nn._module import Module
from plait_nn._parameter import Parameter
from plait_nn._recurrence import STEPS

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """Base of the cells: their parameters.

    Example:
        >>> import plait_nn as nn
        >>> isinstance(nn.GRUCell(2, 3), nn.RNNCellBase)
        True
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_sizes(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(pc.empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(pc.empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            empty = pc.empty(rows, device=device, dtype=dtype) if bias else None
            self.register_parameter(name, None if empty is None else Parameter(empty))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters again, uniform between plus and minus 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _step(self, mode: str, input: Tensor, hx: Any, members: int) -> tuple[Tensor, ...]:
        """Take one step with a batch, or with one sample."""
        name = type(self).__name__
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise pc.ShapeError(
                f"{name}: `input` must be (N, {self.input_size}) or ({self.input_size}); "
                f"got shape {tuple(input.shape)}"
            )
        shape = (*input.shape[:-1], self.hidden_size)
        if hx is None:
            state = (pc.zeros(shape, dtype=input.dtype, device=input.device),) * members
        else:
            state = tuple(hx) if members > 1 else (hx,)
        for each in state:
            if tuple(each.shape) != shape:
                raise pc.ShapeError(
                    f"{name}: `hx` must have shape {shape}; got {tuple(each.shape)}"
                )
        single = input.ndim == 1
        rows = input.unsqueeze(0) if single else input
        if single:
            state = tuple(s.unsqueeze(0) for s in state)
        gates = operators.linear(rows, self.weight_ih, self.bias_ih)
        result = STEPS[mode](gates, state, self.weight_hh.t(), self.bias_hh)
        return tuple(s.squeeze(0) for s in result) if single else result

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    r"""One step of `RNN`: :math:`h' = \tanh(W x + b + U h + c)`.

    Shapes: input (N, input_size) or (input_size), state and result (N, hidden_size) or
    (hidden_size).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.RNNCell(10, 20)(pc.randn(3, 10)).shape)
        (3, 20)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNNCell: `nonlinearity` must be tanh or relu; got {nonlinearity!r}")
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(f"RNN_{self.nonlinearity.upper()}", input, hx, 1)[0]


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: from the input and (h, c) to the next (h, c).

    Shapes: input (N, input_size) or (input_size), h and c (N, hidden_size) or (hidden_size).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> h, c = nn.LSTMCell(10, 20)(pc.randn(3, 10))
        >>> tuple(h.shape), tuple(c.shape)
        ((3, 20), (3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        hidden, cell = self._step("LSTM", input, hx, 2)
        return hidden, cell


class GRUCell(RNNCellBase):
    """One step of `GRU`: from the input and the state to the next state; shapes as `RNNCell`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.GRUCell(10, 20)(pc.randn(3, 10), pc.zeros(3, 20)).shape)
        (3, 20)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("GRU", input, hx, 1)[0]
