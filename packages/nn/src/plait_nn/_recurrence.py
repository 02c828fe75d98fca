"""The computation of recurrent layers: a step of each kind, and runs over sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plait_core as pc
from plait_core import Tensor, _core
from plait_nn import _operators as operators

State = tuple[Tensor, ...]
# A step takes the input's part of the gates, the state, the (transposed) weight of the hidden state
# and its bias, and returns the next state, whose first member is the output.
Step = Callable[[Tensor, State, Tensor, "Tensor | None"], State]


def _hidden(gates: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    total = pc.addmm(gates, hidden, weight)
    return total if bias is None else total + bias.to(total.dtype)  # short in autocast


def tanh_step(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Elman's cell: tanh of the sum."""
    return (pc.tanh(_hidden(gates, state[0], weight, bias)),)


def relu_step(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Elman's cell: relu of the sum."""
    return (pc.relu(_hidden(gates, state[0], weight, bias)),)


def lstm_step(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Long short-term memory: gates in the order input, forget, cell, output."""
    hidden, cell = state
    i, f, g, o = _hidden(gates, hidden, weight, bias).chunk(4, 1)
    cell = pc.sigmoid(f) * cell + pc.sigmoid(i) * pc.tanh(g)
    return pc.sigmoid(o) * pc.tanh(cell), cell


def gru_step(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """Gated recurrent unit: gates in the order reset, update, new."""
    (hidden,) = state
    size = hidden.shape[1]
    recurrent = hidden @ weight
    if bias is not None:
        recurrent = recurrent + bias.to(recurrent.dtype)  # short in a region of autocast
    both = pc.sigmoid(gates.narrow(1, 0, 2 * size) + recurrent.narrow(1, 0, 2 * size))
    reset, update = both.chunk(2, 1)
    new = pc.tanh(gates.narrow(1, 2 * size, size) + reset * recurrent.narrow(1, 2 * size, size))
    return (new + update * (hidden - new),)


STEPS: dict[str, Step] = {
    "RNN_TANH": tanh_step,
    "RNN_RELU": relu_step,
    "LSTM": lstm_step,
    "GRU": gru_step,
}
CHUNKS = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def run(
    step: Step,
    inputs: Sequence[Tensor],
    state: State,
    weight: Tensor,
    bias: Tensor | None,
    projection: Tensor | None,
    reverse: bool,
) -> tuple[list[Tensor], State]:
    """Run over the steps' gates; return the output of every step and the last state.

    The batch may shrink from step to step: the last state of a sequence is the one at its end, and
    a reverse run begins there with the sequence's first state.
    """
    weight = weight.t()
    first = state
    ended: list[State] = []
    outputs: list[Tensor] = []
    if reverse:
        state = tuple(s.narrow(0, 0, inputs[-1].shape[0]) for s in first)
    for gates in reversed(inputs) if reverse else inputs:
        size, before = gates.shape[0], state[0].shape[0]
        if size < before:
            ended.append(tuple(s.narrow(0, size, before - size) for s in state))
            state = tuple(s.narrow(0, 0, size) for s in state)
        elif size > before:
            joining = (f.narrow(0, before, size - before) for f in first)
            state = tuple(pc.cat([s, j]) for s, j in zip(state, joining, strict=True))
        state = step(gates, state, weight, bias)
        if projection is not None:
            state = (operators.linear(state[0], projection), *state[1:])
        outputs.append(state[0])
    if reverse:
        outputs.reverse()
    if ended:
        pieces = [state, *reversed(ended)]
        state = tuple(pc.cat([p[i] for p in pieces]) for i in range(len(state)))
    return outputs, state


def run_whole(
    gates: Tensor,
    state: State,
    weight: Tensor,
    bias: Tensor | None,
    sizes: list[int] | None,
    reverse: bool,
) -> tuple[Tensor, State]:
    """Run LSTM (two members of the state) or GRU (one) in one operator.

    The gates are (T, N, features), or packed rows with their batch sizes.
    """
    lead = tuple(gates.shape[:-1])
    rows = gates.reshape((-1, gates.shape[-1])) if sizes is None else gates
    each = [lead[1]] * lead[0] if sizes is None else sizes
    if len(state) == 2:
        output, hidden, cell = operators.lstm_sequence(rows, *state, weight, each, reverse)
        final: State = (hidden, cell)
    else:
        parts: tuple[Tensor | None, ...] = (rows, state[0], weight, bias)
        if _core.autocast_dtype(rows.device) is not None:  # the hidden state keeps its dtype
            parts = tuple(None if x is None else x.to(state[0].dtype) for x in parts)
        output, hidden = operators.gru_sequence(*parts, each, reverse)
        final = (hidden,)
    return (output.reshape((*lead, output.shape[-1])) if sizes is None else output), final
