"""Recurrent layers over sequences of one length."""

from __future__ import annotations

from typing import Any

from plait_onnx._builder import Builder, Unsupported, Value
from plait_onnx._table import lowers


def _reordered(b: Builder, x: Any, order: list[int]) -> str:
    """Return a weight or bias with its parts, one for each gate, in ONNX's order."""
    count = len(order)
    parts = b.ops("Split", count, x, b.constant([x.shape[0] // count] * count), axis=0)
    return b.unsqueeze(b.op("Concat", *(parts[i] for i in order), axis=0), 0)


def _steps(sizes: tuple[Any, ...]) -> int:
    if len(set(sizes)) > 1:
        raise Unsupported("a recurrent layer over packed sequences of several lengths")
    return len(sizes)


def _run(
    b: Builder,
    kind: str,
    order: list[int],
    gates: Value,
    weight: Value,
    bias: Value | None,
    states: list[Value],
    sizes: tuple[Any, ...],
    reverse: bool,
) -> list[str]:
    steps, batch, hidden = _steps(sizes), sizes[0], weight.shape[1]
    count = len(order)
    source = b.linear_of(gates)
    if source is None:  # the layer's product with the input is there already: times 1
        eye = b.constant(
            [[float(i == j) for j in range(count * hidden)] for i in range(count * hidden)],
            gates.dtype,
        )
        known = Value(eye, gates.dtype, (count * hidden,) * 2, (count * hidden,) * 2)
        x, own, shift = gates, known, None
    else:
        x, own, shift = source
    sequence = b.reshape(x, [steps, batch, own.shape[1]])
    shifts = None
    if shift is not None or bias is not None:
        zeros = b.constant([[0.0] * count * hidden], gates.dtype)
        pair = [zeros if each is None else _reordered(b, each, order) for each in (shift, bias)]
        shifts = b.op("Concat", *pair, axis=1)
    outputs = b.ops(
        kind,
        1 + len(states),
        sequence,
        _reordered(b, own, order),
        _reordered(b, weight, order),
        shifts,
        None,
        *(b.unsqueeze(state, 0) for state in states),
        hidden_size=hidden,
        direction="reverse" if reverse else None,
        linear_before_reset=1 if kind == "GRU" else None,
    )
    rows = b.reshape(outputs[0], [-1, hidden])
    return [rows, *(b.squeeze(state, 0) for state in outputs[1:])]


def _unread(b: Builder, names: list[str]) -> tuple[str | None, ...]:
    rest = b.results[len(names) :]
    if any(result is not None for result in rest):
        raise Unsupported("the inner values of a recurrent layer")
    return (*names, *(None for _ in rest))


@lowers("lstm_sequence", "lstm_forward")
def lstm(
    b: Builder, gates: Value, hx: Value, cx: Value, weight: Value, sizes: Any, reverse: bool
) -> Any:
    order = [0, 3, 1, 2]  # input, output, forget, cell
    states = [hx, cx]
    return _unread(b, _run(b, "LSTM", order, gates, weight, None, states, sizes, reverse))


@lowers("gru_sequence", "gru_forward")
def gru(
    b: Builder,
    gates: Value,
    hx: Value,
    weight: Value,
    bias: Value | None,
    sizes: Any,
    reverse: bool,
) -> Any:
    order = [1, 0, 2]  # update, reset, hidden
    return _unread(b, _run(b, "GRU", order, gates, weight, bias, [hx], sizes, reverse))
