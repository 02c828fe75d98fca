"""Recurrent layers, and their cells."""

from __future__ import annotations

import math
from typing import Any

import plait_core as pc
from plait_abi.frames import warn
from plait_abi.origins import module_of
from plait_core import Tensor
from plait_nn import _operators as operators, functional as F, init
from plait_nn._linear import check_sizes
from plait_nn._module import Module
from plait_nn._parameter import Parameter
from plait_nn._recurrence import CHUNKS, STEPS, run, run_whole
from plait_nn.functional._autocast import cast_for_products
from plait_nn.functional._checks import require_same_dtype
from plait_nn.utils.rnn import PackedSequence

_KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")


class RNNBase(Module):
    """Base of `RNN`, `LSTM` and `GRU`: their parameters, layers and directions.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size: Features of the input.
        hidden_size: Features of the hidden state.
        num_layers: Layers, each with the output of the one before as its input.
        bias: Whether there are biases.
        batch_first: Whether sequences are (N, T, features) instead of (T, N, features).
        dropout: Probability of dropout after every layer but the last.
        bidirectional: Whether a second run goes from the end to the beginning.
        proj_size: For LSTM: project the hidden state to so many features; 0 doesn't.
        device, dtype: Where the parameters are, and their dtype; None is float32.

    Example:
        >>> import plait_nn as nn
        >>> isinstance(nn.GRU(2, 3), nn.RNNBase)
        True
    """

    def __init__(
        self,
        mode: str,
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
        super().__init__()
        _refuse_steps(type(self))
        name = type(self).__name__
        if mode not in STEPS:
            raise ValueError(f"{name}: `mode` must be one of {', '.join(STEPS)}; got {mode!r}")
        for argument, value in (
            ("input_size", input_size),
            ("hidden_size", hidden_size),
            ("num_layers", num_layers),
        ):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name}: `{argument}` must be a positive int; got {value!r}")
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: `dropout` must be in [0, 1]; got {dropout}")
        if dropout > 0 and num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1: {name} has 1, and `dropout` {dropout} "
                "has no effect"
            )
        if not 0 <= proj_size < hidden_size or (proj_size and mode != "LSTM"):
            raise ValueError(
                f"{name}: `proj_size` must be 0, or for LSTM less than `hidden_size` "
                f"{hidden_size}; got {proj_size}"
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                self._add_direction(layer, suffix, device, dtype)
        names = [
            [kind + suffix for kind in _KINDS if kind + suffix in self._parameters]
            for layer in range(num_layers)
            for suffix in self._suffixes(layer)
        ]
        self._flat_weights_names = [name for each in names for name in each]
        self._all_weights = names
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 2 if self.bidirectional else 1]

    def _add_direction(self, layer: int, suffix: str, device: Any, dtype: Any) -> None:
        rows = CHUNKS[self.mode] * self.hidden_size
        out = self.proj_size or self.hidden_size
        directions = 2 if self.bidirectional else 1
        width = self.input_size if layer == 0 else out * directions
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
        if self.bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            empty = pc.empty(shape, device=device, dtype=dtype)
            self.register_parameter(name + suffix, Parameter(empty))

    def reset_parameters(self) -> None:
        """Draw all parameters again, uniform between plus and minus 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need no special layout. It exists for programs that call it."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of every layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Any]:
        """The weights of a call, by ``_flat_weights_names``; an assignment sets them."""
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if weight is not getattr(self, name, None):
                setattr(self, name, weight)

    # PyTorch's pickles hold the list of weights, which is made anew here
    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_flat_weights": self._flat_weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({k: v for k, v in state.items() if k != "_flat_weights"})

    def _widths(self) -> tuple[int, ...]:
        """Return the sizes of the members of the state: hidden, and cell for LSTM."""
        out = self.proj_size or self.hidden_size
        return (out, self.hidden_size) if self.mode == "LSTM" else (out,)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the output of every step and the last state; see the class."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        name = type(self).__name__
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise pc.ShapeError(
                f"{name}: `input` must have 2 or 3 dimensions, the last `input_size` "
                f"{self.input_size}; got shape {tuple(input.shape)}"
            )
        single = input.ndim == 2
        batch_dim = 0 if self.batch_first and not single else 1
        steps = input.unsqueeze(1) if single else input
        if batch_dim == 0:
            steps = steps.transpose(0, 1)
        if steps.shape[0] == 0:
            raise pc.ShapeError(
                f"{name}: `input` must have at least one step; got shape {tuple(input.shape)}"
            )
        self._require_dtype(steps)
        state = self._first_state(hx, steps.shape[1], steps, single)
        output, last = self._layers(steps, None, state)
        if batch_dim == 0:
            output = output.transpose(0, 1)
        if single:
            output, last = output.squeeze(1), tuple(s.squeeze(1) for s in last)
        return output, last if self.mode == "LSTM" else last[0]

    def _require_dtype(self, input: Any) -> None:
        weight = self.weight_ih_l0
        if input.dtype != weight.dtype:
            input, weight = cast_for_products(input, weight)
            require_same_dtype(type(self).__name__, "input", input, weight_ih_l0=weight)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> Any:
        data, batch_sizes, order, restore = input
        if data.ndim != 2 or data.shape[1] != self.input_size:
            raise pc.ShapeError(
                f"{type(self).__name__}: packed `input` must have data of shape "
                f"(*, {self.input_size}); got {tuple(data.shape)}"
            )
        self._require_dtype(data)
        sizes = [int(n) for n in batch_sizes.tolist()]
        state = self._first_state(hx, sizes[0], data, False)
        if order is not None and hx is not None:
            state = tuple(s.index_select(1, order) for s in state)
        output, last = self._layers(data, sizes, state)
        if restore is not None:
            last = tuple(s.index_select(1, restore) for s in last)
        packed = PackedSequence(output, batch_sizes, order, restore)
        return packed, last if self.mode == "LSTM" else last[0]

    def _first_state(self, hx: Any, batch: int, like: Tensor, single: bool) -> tuple[Tensor, ...]:
        """Return the given state after a check, or a state of zeros."""
        name = type(self).__name__
        rows = self.num_layers * (2 if self.bidirectional else 1)
        shapes = [(rows, batch, width) for width in self._widths()]
        if hx is None:
            return tuple(pc.zeros(s, dtype=like.dtype, device=like.device) for s in shapes)
        if self.mode == "LSTM":
            if not isinstance(hx, (tuple, list)) or len(hx) != 2:
                raise TypeError(f"{name}: `hx` must be (h_0, c_0); got {type(hx).__name__}")
            states = tuple(hx)
        else:
            states = (hx,)
        for each, shape in zip(states, shapes, strict=True):
            expected = (shape[0], shape[2]) if single else shape
            if tuple(each.shape) != expected:
                raise pc.ShapeError(
                    f"{name}: `hx` must have shape {expected}; got {tuple(each.shape)}"
                )
        return tuple(s.unsqueeze(1) for s in states) if single else states

    def _layers(
        self, x: Tensor, sizes: list[int] | None, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run all layers over (T, N, features), or over packed rows with their batch sizes."""
        last: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in self._suffixes(layer):
                first = tuple(s[len(last)] for s in state)
                result, final = self._direction(x, sizes, first, suffix)
                outputs.append(result)
                last.append(final)
            x = outputs[0] if len(outputs) == 1 else pc.cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        if self.mode == "GRU" and len(outputs) == 1 and x.requires_grad:
            x = x.clone()  # the derivative reads the operator's result; programs may write into x
        return x, tuple(pc.stack([s[i] for s in last]) for i in range(len(last[0])))

    def _direction(
        self, x: Tensor, sizes: list[int] | None, first: tuple[Tensor, ...], suffix: str
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        # by name: programs put computed tensors in the place of parameters
        biases = (f"bias_ih{suffix}", f"bias_hh{suffix}")
        bias, recurrent_bias = (getattr(self, n) if self.bias else None for n in biases)
        total: Tensor | None = bias
        later: Tensor | None = recurrent_bias
        if bias is not None and recurrent_bias is not None and self.mode != "GRU":
            total, later = bias + recurrent_bias, None  # the bias is added once for all steps
        weight, recurrent = (getattr(self, f"{n}{suffix}") for n in ("weight_ih", "weight_hh"))
        gates = operators.linear(x, weight, total)
        reverse = suffix.endswith("_reverse")
        projection = getattr(self, f"weight_hr{suffix}") if self.proj_size else None
        if self.mode == "GRU" or (self.mode == "LSTM" and projection is None and later is None):
            return run_whole(gates, first, recurrent, later, sizes, reverse)
        inputs = gates.unbind(0) if sizes is None else gates.split(sizes)
        outputs, final = run(STEPS[self.mode], inputs, first, recurrent, later, projection, reverse)
        return (pc.stack(outputs) if sizes is None else pc.cat(outputs)), final

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


# of PyTorch's layers: these call none of them
_STEPS = [
    "check_forward_args",
    "check_hidden_size",
    "check_input",
    "get_expected_cell_size",
    "get_expected_hidden_size",
    "permute_hidden",
]


def _refuse_steps(kind: type) -> None:
    """Raise for a subclass that overrides what would never be called, unless it calls it itself."""
    own = [base for base in kind.__mro__ if not module_of(base).startswith("plait_nn.")]
    steps = [name for name in _STEPS if any(name in vars(base) for base in own)]
    if steps and not any("forward" in vars(base) for base in own):
        raise NotImplementedError(
            f"{kind.__name__}: {', '.join(steps)} would not be called: plait's recurrent layers "
            "have no such steps; override `forward`"
        )


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
        device, dtype: Where the parameters are, and their dtype; None is float32.

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
        device, dtype: Where the parameters are, and their dtype; None is float32.

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

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the hidden state.
        num_layers: Number of layers, each on the outputs of the one before.
        bias: Whether there are biases.
        batch_first: Whether input and output are (N, L, features) instead of (L, N, features).
        dropout: Probability of dropout after each layer but the last.
        bidirectional: Whether the sequence is read from its end too.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

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


class RNNCellBase(Module):
    """Base of the cells: their parameters.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the hidden state.
        bias: Whether there are biases.
        num_chunks: Number of gates.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

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

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the hidden state.
        bias: Whether there are biases.
        nonlinearity: The activation: "tanh" or "relu".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

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

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the hidden state.
        bias: Whether there are biases.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

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

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the hidden state.
        bias: Whether there are biases.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

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
