"""Recurrent layers: RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import plait_core as pc
import plait_nn  # noqa: F401 (it has the operators)
import plait_nn.functional as F
from plait_abi import operator as operator_of
from plait_core import Tensor
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]
_lstm_sequence: Function = operator_of("lstm_sequence")
_gru_sequence: Function = operator_of("gru_sequence")

_PLAIN: dict[str, Function] = {
    "sigmoid": pc.sigmoid, "tanh": pc.tanh, "relu": F.relu, "softsign": F.softsign,
    "softplus": F.softplus,
}  # fmt: skip
# functions of x, alpha and beta, with the defaults of the two
_WITH_NUMBERS: dict[str, tuple[Function, float | None, float | None]] = {
    "affine": (lambda x, a, b: x * a + b, None, None),
    "leakyrelu": (lambda x, a, b: F.leaky_relu(x, a), 0.01, None),
    "thresholdedrelu": (lambda x, a, b: F.threshold(x, a, 0.0), 1.0, None),
    "scaledtanh": (lambda x, a, b: pc.tanh(x * b) * a, None, None),
    "hardsigmoid": (lambda x, a, b: (x * a + b).clamp(0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: F.elu(x, a), 1.0, None),
}


def _activations(node: Node, count: int, defaults: list[str]) -> list[Function]:
    """Return the functions of all directions."""
    names = [name.lower() for name in node.texts("activations", [])] or defaults * count
    if len(names) != count * len(defaults):
        raise node.error(f"must have {count * len(defaults)} activations, got {len(names)}")
    alphas, betas = node.numbers("activation_alpha", []), node.numbers("activation_beta", [])
    found: list[Function] = []
    for name in names:
        if name in _PLAIN:
            found.append(_PLAIN[name])
            continue
        if name not in _WITH_NUMBERS:
            raise node.error(f"activation {name!r} is unknown")
        function, a, b = _WITH_NUMBERS[name]
        # numbers stand in the order of the activations that have some
        a = alphas.pop(0) if alphas else a
        if name in ("affine", "scaledtanh", "hardsigmoid"):
            b = betas.pop(0) if betas else b
        found.append(lambda x, f=function, a=a, b=b: f(x, a, b))
    return found


class _Recurrent:
    """What the three layers share.

    Attributes:
        gates: How many parts the rows of a weight have.
        states: How many tensors a state has.
    """

    gates = 1
    states = 1
    defaults: ClassVar[list[str]] = ["tanh"]

    def __init__(self, node: Node) -> None:
        self.node = node
        self.direction = node.text("direction", "forward", ("forward", "reverse", "bidirectional"))
        self.directions = 2 if self.direction == "bidirectional" else 1
        self.hidden = node.integer("hidden_size", None)
        self.clip = node.number("clip", None)
        self.layout = node.integer("layout", 0)
        count = len(self.defaults)
        functions = _activations(node, self.directions, self.defaults)
        self.functions = [functions[:count], functions[count:]]
        self.plain = (
            not node.has("activations")
            or [name.lower() for name in node.texts("activations")]
            == self.defaults * self.directions
        )

    def clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else x.clamp(-self.clip, self.clip)

    def run(
        self, x: Tensor, w: Tensor, r: Tensor, b: Any, lengths: Any, *more: Any
    ) -> tuple[Tensor, ...]:
        if x.ndim != 3 or w.ndim != 3 or r.ndim != 3:
            raise ValueError("X, W and R must have 3 dimensions")
        if w.shape[0] != self.directions:
            raise ValueError(f"W has {w.shape[0]} directions, not {self.directions}")
        size = r.shape[2]
        if self.hidden not in (None, size) or r.shape[1] != self.gates * size:
            raise ValueError(f"R has shape {list(r.shape)} for hidden_size {self.hidden}")
        if self.layout:
            x = x.transpose(0, 1)
        starts = list(more[: self.states])
        starts += [None] * (self.states - len(starts))
        if self.layout:
            starts = [None if s is None else s.transpose(0, 1) for s in starts]
        peephole = more[self.states] if len(more) > self.states else None
        outputs, finals = [], []
        for i in range(self.directions):
            state = tuple(
                pc.zeros(x.shape[1], size, dtype=x.dtype, device=x.device) if s is None else s[i]
                for s in starts
            )
            reverse = self.direction == "reverse" or i == 1
            bias = None if b is None else b[i]
            p = None if peephole is None else peephole[i]
            y, final = self._direction(i, x, w[i], r[i], bias, lengths, state, p, reverse)
            outputs.append(y)
            finals.append(final)
        y = pc.stack(outputs, 1)
        last = [pc.stack([f[k] for f in finals], 0) for k in range(self.states)]
        if self.layout:
            return (y.permute(2, 0, 1, 3), *(s.transpose(0, 1) for s in last))
        return (y, *last)

    def _direction(
        self, i: int, x: Tensor, w: Tensor, r: Tensor, bias: Any, lengths: Any,
        state: tuple[Tensor, ...], peephole: Any, reverse: bool,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:  # fmt: skip
        if self.clip is None and self.plain and lengths is None and peephole is None:
            whole = self.whole(x, w, r, bias, state, reverse)
            if whole is not None:
                y, final = whole
                return y, final
        steps = x.shape[0]
        outputs: list[Any] = [None] * steps
        for t in range(steps - 1, -1, -1) if reverse else range(steps):
            new = self.step(self.functions[i], x[t], w, r, bias, state, peephole)
            y = new[0]
            if lengths is not None:
                inside = (lengths > t).reshape(-1, 1)
                new = tuple(pc.where(inside, n, s) for n, s in zip(new, state, strict=True))
                y = pc.where(inside, y, pc.zeros_like(y))
            state = new
            outputs[t] = y
        if not outputs:
            return pc.zeros(0, x.shape[1], r.shape[1], dtype=x.dtype), state
        return pc.stack(outputs), state

    def whole(
        self, x: Tensor, w: Tensor, r: Tensor, bias: Any, state: tuple[Tensor, ...], reverse: bool
    ) -> Any:
        """Return the result by an operator for whole sequences; None if there is none."""
        return None

    def step(
        self, functions: list[Function], x: Tensor, w: Tensor, r: Tensor, bias: Any,
        state: tuple[Tensor, ...], peephole: Any,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        raise NotImplementedError


class _Rnn(_Recurrent):
    def step(self, functions, x, w, r, bias, state, peephole):  # type: ignore[no-untyped-def]
        total = x @ w.t() + state[0] @ r.t()
        if bias is not None:
            total = total + bias[: r.shape[0]] + bias[r.shape[0] :]
        return (functions[0](self.clipped(total)),)


def _ordered(rows: Tensor, order: tuple[int, ...]) -> Tensor:
    """Return the gates of a weight or bias in another order."""
    parts = rows.chunk(len(order), 0)
    return pc.cat([parts[i] for i in order])


class _Gru(_Recurrent):
    gates = 3
    defaults: ClassVar[list[str]] = ["sigmoid", "tanh"]

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.before = node.flag("linear_before_reset")

    def whole(self, x, w, r, bias, state, reverse):  # type: ignore[no-untyped-def]
        if not self.before or x.dtype not in (pc.float32, pc.float64):
            return None
        order = (1, 0, 2)  # from update, reset, new
        rows = r.shape[0]
        first = None if bias is None else _ordered(bias[:rows], order)
        second = None if bias is None else _ordered(bias[rows:], order)
        gates = F.linear(x.reshape(-1, x.shape[2]), _ordered(w, order), first)
        sizes = [x.shape[1]] * x.shape[0]
        y, last = _gru_sequence(gates, state[0], _ordered(r, order), second, sizes, reverse)
        return y.reshape(x.shape[0], x.shape[1], -1), (last,)

    def step(self, functions, x, w, r, bias, state, peephole):  # type: ignore[no-untyped-def]
        f, g = functions
        (hidden,) = state
        n = r.shape[1]
        given = x @ w.t()
        if bias is not None:
            given = given + bias[: 3 * n]
        after = pc.zeros_like(given[0]) if bias is None else bias[3 * n :]
        recurrent = hidden @ r[: 2 * n].t() + after[: 2 * n]
        z = f(self.clipped(given[:, :n] + recurrent[:, :n]))
        t = f(self.clipped(given[:, n : 2 * n] + recurrent[:, n:]))
        if self.before:
            inner = t * (hidden @ r[2 * n :].t() + after[2 * n :])
        else:
            inner = (t * hidden) @ r[2 * n :].t() + after[2 * n :]
        new = g(self.clipped(given[:, 2 * n :] + inner))
        return ((1 - z) * new + z * hidden,)


class _Lstm(_Recurrent):
    gates = 4
    states = 2
    defaults: ClassVar[list[str]] = ["sigmoid", "tanh", "tanh"]

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.coupled = node.flag("input_forget")

    def whole(self, x, w, r, bias, state, reverse):  # type: ignore[no-untyped-def]
        if self.coupled or x.dtype not in (pc.float32, pc.float64):
            return None
        order = (0, 2, 3, 1)  # from input, output, forget, cell
        rows = r.shape[0]
        total = None if bias is None else _ordered(bias[:rows] + bias[rows:], order)
        gates = F.linear(x.reshape(-1, x.shape[2]), _ordered(w, order), total)
        sizes = [x.shape[1]] * x.shape[0]
        y, hidden, cell = _lstm_sequence(gates, *state, _ordered(r, order), sizes, reverse)
        return y.reshape(x.shape[0], x.shape[1], -1), (hidden, cell)

    def step(self, functions, x, w, r, bias, state, peephole):  # type: ignore[no-untyped-def]
        f, g, h = functions
        hidden, cell = state
        n = r.shape[1]
        total = x @ w.t() + hidden @ r.t()
        if bias is not None:
            total = total + bias[: 4 * n] + bias[4 * n :]
        i, o, t, c = total.chunk(4, 1)
        if peephole is not None:
            i, t = i + peephole[:n] * cell, t + peephole[2 * n :] * cell
        enter = f(self.clipped(i))
        keep = 1 - enter if self.coupled else f(self.clipped(t))
        new = keep * cell + enter * g(self.clipped(c))
        if peephole is not None:
            o = o + peephole[n : 2 * n] * new
        return f(self.clipped(o)) * h(new), new


def _entry(kind: type[_Recurrent]) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        layer = kind(node)

        def run(
            x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, *more: Any
        ) -> Any:
            return layer.run(x, w, r, b, lengths, *more)

        return run

    return build


operator("RNN")(_entry(_Rnn))
operator("GRU")(_entry(_Gru))
operator("LSTM")(_entry(_Lstm))
