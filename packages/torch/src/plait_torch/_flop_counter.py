"""`torch.utils.flop_counter`: floating-point operations of products, convolutions and attention.

The profiler records the operators and their shapes. What PyTorch counts is counted, by its names:
a multiplication and an addition are two operations, sums and elementwise operators are not counted.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import plait
from plait.profiler import profile
from plait_abi.frames import warn
from plait_torch._library import ops

__all__ = [
    "FlopCounterMode",
    "addmm_flop",
    "baddbmm_flop",
    "bmm_flop",
    "conv_flop",
    "conv_flop_count",
    "flop_registry",
    "mm_flop",
    "register_flop_formula",
    "sdpa_backward_flop",
    "sdpa_backward_flop_count",
    "sdpa_flop",
    "sdpa_flop_count",
]

aten = ops.aten
Formula = Callable[..., int]
flop_registry: dict[Any, Formula] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Return a decorator that registers the formula of operators.

    The formula gets the operator's arguments, shapes in place of tensors, and ``out_shape``.

    Args:
        targets: an operator of ``torch.ops``, or a list of them.
        get_raw: must be False: shapes are recorded, tensors are not.

    Raises:
        NotImplementedError: if `get_raw` is true.

    Example:
        >>> from plait_torch._flop_counter import FlopCounterMode, flop_registry
        >>> from plait_torch._flop_counter import aten, plait, register_flop_formula
        >>> @register_flop_formula(aten.relu)
        ... def relu_flop(shape, out_shape=None):
        ...     return shape[0]
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = plait.ones(3).relu()
        >>> counter.get_total_flops()
        3
        >>> del flop_registry[aten.relu]
    """
    if get_raw:
        raise NotImplementedError(
            "register_flop_formula: `get_raw` is not available: shapes are given"
        )

    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[target] = formula
        return formula

    return register


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Sequence[int], b_shape: Sequence[int], *args: Any, **options: Any) -> int:
    """Return ``2 m k n`` of a product (m, k) x (k, n)."""
    return 2 * math.prod(a_shape) * b_shape[-1]


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **options: Any) -> int:
    """Return the operations of the product alone."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Sequence[int], b_shape: Sequence[int], **options: Any) -> int:
    """Return ``2 b m k n`` of products (b, m, k) x (b, k, n)."""
    return 2 * math.prod(a_shape) * b_shape[-1]


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **options: Any) -> int:
    """Return the operations of the products alone."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(
    x_shape: Sequence[int],
    w_shape: Sequence[int],
    out_shape: Sequence[int],
    transposed: bool = False,
) -> int:
    """Return the operations of a convolution: two for each weight at each place of each sample.

    Args:
        x_shape: the input's shape, ``(samples, channels, ...)``.
        w_shape: the weight's shape.
        out_shape: the result's shape.
        transposed: whether it is a transposed convolution, whose places are those of the input.

    Example:
        >>> from plait_torch._flop_counter import conv_flop_count
        >>> conv_flop_count((2, 3, 8, 8), (4, 3, 3, 3), (2, 4, 8, 8))
        27648
    """
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * math.prod(places) * math.prod(w_shape)


@register_flop_formula(aten.convolution)
def conv_flop(
    x_shape: Any,
    w_shape: Any,
    bias: Any = None,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    transposed: bool = False,
    *args: Any,
    out_shape: Any = None,
    **options: Any,
) -> int:
    """Return the operations of a convolution; see `conv_flop_count`."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def _whole(shape: Sequence[int]) -> tuple[int, int, int, int]:
    """The shape as (batch, heads, positions, width)."""
    *batch, heads, positions, width = (1, *shape) if len(shape) == 3 else shape
    return math.prod(batch), heads, positions, width


def sdpa_flop_count(
    query_shape: Sequence[int], key_shape: Sequence[int], value_shape: Sequence[int]
) -> int:
    """Return the operations of the two products of attention, for all keys.

    Example:
        >>> from plait_torch._flop_counter import sdpa_flop_count
        >>> sdpa_flop_count((2, 4, 5, 8), (2, 4, 5, 8), (2, 4, 5, 8))
        6400
    """
    batch, heads, queries, width = _whole(query_shape)
    return 2 * batch * heads * queries * key_shape[-2] * (width + value_shape[-1])


def sdpa_backward_flop_count(
    grad_out_shape: Sequence[int],
    query_shape: Sequence[int],
    key_shape: Sequence[int],
    value_shape: Sequence[int],
) -> int:
    """Return the operations of the five products in the derivative of attention, in which the
    first product of the forward pass is computed again.
    """
    batch, heads, queries, width = _whole(query_shape)
    return 2 * batch * heads * queries * key_shape[-2] * (3 * width + 2 * value_shape[-1])


@register_flop_formula(aten._scaled_dot_product_flash_attention)
def sdpa_flop(q_shape: Any, k_shape: Any, v_shape: Any, *args: Any, **options: Any) -> int:
    """Return the operations of attention; see `sdpa_flop_count`."""
    return sdpa_flop_count(q_shape, k_shape, v_shape)


@register_flop_formula(aten._scaled_dot_product_flash_attention_backward)
def sdpa_backward_flop(
    grad_shape: Any, q_shape: Any, k_shape: Any, v_shape: Any, *args: Any, **options: Any
) -> int:
    """Return the operations of attention's derivative; see `sdpa_backward_flop_count`."""
    return sdpa_backward_flop_count(grad_shape, q_shape, k_shape, v_shape)


class _Call(NamedTuple):
    """A call of plait's operator in PyTorch's terms: shapes in place of tensors."""

    target: Any
    inputs: tuple[Any, ...]
    out_shape: Any = None
    formula: Formula | None = None  # of what is a part of PyTorch's operator


def _convolution(inputs: list[Any], out: Any, part: str, backward: bool) -> _Call:
    target = aten.convolution_backward if backward else aten.convolution
    first, second = inputs[:2]
    if part == "_backward_weight":
        return _Call(target, (first, inputs[2], first), None, conv_flop_count)
    if part == "_backward_input" and backward:
        return _Call(target, (first, second, first), None, conv_flop_count)
    if part == "_backward_input":  # the forward pass of a transposed convolution
        return _Call(target, (first, second, None, None, None, None, True), out)
    formula = conv_flop_count if backward else None
    return _Call(target, (first, second, out) if backward else (first, second), out, formula)


def _calls(name: str, inputs: list[Any], out: Any, backward: bool) -> Iterator[_Call]:
    """Yield what PyTorch counts for a call of plait's operator; nothing for most operators."""
    convolution = re.fullmatch(r"conv\dd(|_activation|_backward_weight|_backward_input)", name)
    if convolution:
        yield _convolution(inputs, out, convolution[1], backward)
    elif name in ("linear", "linear_int8"):
        x, weight = inputs[:2]
        bias = inputs[3 if name == "linear_int8" else 2]
        rows, turned = (math.prod(x[:-1]), x[-1]), weight[::-1]
        arguments = (rows, turned) if bias is None else (bias, rows, turned)
        yield _Call(aten.mm if bias is None else aten.addmm, arguments, out)
    elif name in ("lstm_forward", "gru_forward", "lstm_backward", "gru_backward"):
        gates, weight = inputs[3 if name == "lstm_backward" else 2 if "back" in name else 0], None
        weight = next(each for each in inputs if isinstance(each, tuple) and _is_gates(each, gates))
        hidden = weight[-1]
        if not backward:
            yield _Call(aten.addmm, (None, (gates[0], hidden), weight[::-1]), out)
        else:
            yield _Call(aten.mm, (gates, weight), None)
            yield _Call(aten.mm, (gates[::-1], (gates[0], hidden)), None)
    elif name == "attention_forward":
        yield _Call(aten._scaled_dot_product_flash_attention, tuple(inputs[:3]), out)
    elif name == "attention_backward":
        target = aten._scaled_dot_product_flash_attention_backward
        yield _Call(target, tuple(inputs[:4]), out)
    else:
        yield _Call(getattr(aten, name), tuple(inputs), out)


def _is_gates(shape: Any, gates: Any) -> bool:
    """Whether this is the weight that makes all gates of the hidden state."""
    return len(shape) == 2 and shape[0] == gates[-1] and shape[0] % shape[1] == 0


def _shape(value: Any) -> Any:
    """The shape of a tensor in a recording; other values as they are."""
    if isinstance(value, list):
        return [_shape(each) for each in value]
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str):
        return tuple(value[1])
    return value


class _Names:
    """The paths of the modules that were called, from the outermost one's class."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}
        self.called: set[str] = set()

    def __call__(self, module: Any, args: Any) -> None:
        if id(module) not in self._known:
            root = type(module).__name__
            for name, each in module.named_modules():
                self._known.setdefault(id(each), (each, f"{root}.{name}" if name else root))
        self.called.add(self._known[id(module)][1])

    def around(self, path: str) -> list[str]:
        """Return the modules whose call contains that of a path."""
        return [name for name in self.called if f"{path}.".startswith(f"{name}.")]


class FlopCounterMode:
    """A context manager that counts the floating-point operations of its block.

    Products, convolutions and attention are counted, and the products of recurrent layers, in the
    forward and the backward pass, and by the modules in which they happen. What is counted for an
    operator is PyTorch's, with two differences: attention, which PyTorch does not count on the CPU,
    counts as the operator that it is on a GPU; and the derivative of a convolution in groups counts
    what is computed, where PyTorch counts the derivative by the weight without groups.

    Args:
        mods: ignored, with a warning.
        depth: how many levels of modules the table shows.
        display: print the table at the end.
        custom_mapping: formulas of operators, like those of `register_flop_formula`.

    Example:
        >>> import plait
        >>> from plait_torch._flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = plait.nn.Linear(3, 4)(plait.ones(2, 3))
        >>> counter.get_total_flops(), counter.get_flop_counts()["Linear"]
        (48, {<OpOverloadPacket(op='aten.addmm')>: 48})
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Formula] | None = None,
    ) -> None:
        if mods is not None:
            warn("FlopCounterMode: `mods` has no effect; leave it out")
        self.depth = depth
        self.display = display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.flop_registry = {**flop_registry, **(custom_mapping or {})}
        self._profile: profile | None = None
        self._names = _Names()
        self._hook: Any = None
        self._paths: dict[int, str] = {}  # the modules that recorded a node of the graph

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._names = _Names()
        self._paths = {}
        register: Any = plait.nn.register_module_forward_pre_hook
        self._hook = register(self._names, only_watches=True)
        self._profile = profile()
        self._profile.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._count(go_on=False)
        self._hook.remove()
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, go_on: bool) -> None:
        """Add what was recorded until now."""
        if self._profile is None:
            return
        self._profile.stop()
        recording, events = self._profile.recording(), self._profile.events()
        counted: set[int] = set()
        for event in events:
            if event.category != "operator" or event.failed:
                continue
            if event.sequence and event.module:
                self._paths[event.sequence] = event.module
            if event.cpu_parent is not None and event.cpu_parent.id in counted:
                counted.add(event.id)
                continue
            signature = recording.signatures[recording.rows["signature"][event.id]]
            inputs = [_shape(each) for each in signature.inputs]
            outs = [_shape(each) for each in signature.outputs]
            out = outs[0] if len(outs) == 1 else outs
            for call in _calls(event.name, inputs, out, event.backward):
                if call.target in self.flop_registry or call.formula is not None:
                    counted.add(event.id)
                    self._add(call, event.module or self._path(event))
        self._profile = profile() if go_on else None
        if self._profile is not None:
            self._profile.start()

    def _path(self, event: Any) -> str:
        """The module that recorded the node around an event, maybe in an earlier recording."""
        while event is not None:
            if event.category == "backward" and event.sequence in self._paths:
                return self._paths[event.sequence]
            event = event.cpu_parent
        return ""

    def _add(self, call: _Call, path: str) -> None:
        if call.formula is not None:
            count = call.formula(*call.inputs)
        else:
            count = self.flop_registry[call.target](*call.inputs, out_shape=call.out_shape)
        for name in {"Global", *self._names.around(path)}:
            self.flop_counts[name][call.target] += count

    def get_total_flops(self) -> int:
        """Return the operations of the block, up to now."""
        self._count(go_on=True)
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the operations of each module by operator; "Global" has those of all."""
        self._count(go_on=True)
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of the modules down to a depth, and their operators."""
        total = self.get_total_flops()
        depth = depth or self.depth or len(self.flop_counts)
        rows = [("Module", "FLOP", "% Total")]
        names = sorted(name for name in self.flop_counts if name != "Global")
        inside = any(sum(self.flop_counts[name].values()) >= total for name in names)
        for name in names if inside and total else ["Global", *names]:
            level = name.count(".") + 1
            if level > depth:
                continue
            indent = " " * (level - 1 + (not inside and name != "Global"))
            counts = self.flop_counts[name]
            rows.append((indent + name, *_number(sum(counts.values()), total)))
            rows += [(f"{indent} - {op}", *_number(n, total)) for op, n in counts.items()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [
            f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)


def _number(count: int, total: int) -> tuple[str, str]:
    """A number in the unit of the total, and its part of it."""
    unit = min(4, max(0, (len(str(total)) - 1) // 3))
    text = f"{count / 1000**unit:.3f}{'KMBT'[unit - 1]}" if unit else str(count)
    return text, f"{100 * count / total if total else 0:.2f}%"
