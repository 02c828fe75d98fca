"""`torch.utils.flop_counter`: the operations of matrix products, convolutions and attention that a
program makes, backward passes too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import plait
from plait import nn
from plait_torch._aten import packet
from plait_torch._torch_dispatch import TorchDispatchMode

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]

flop_registry: dict[Any, Any] = {}


def _shape(value: Any) -> Any:
    if isinstance(value, plait.Tensor):
        return value.shape
    if isinstance(value, (tuple, list)):
        return type(value)([_shape(each) for each in value])
    return value


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        shapes = {name: _shape(value) for name, value in kwargs.items()}
        return formula(*map(_shape, args), out_shape=_shape(out_val), **shapes)

    return of_tensors


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator of functions that count the operations of an operator.

    Args:
        targets: an operator, ``torch.ops.aten.mm``, or a list of them.
        get_raw: whether the function gets tensors, else their shapes; the result's is ``out_val``,
            or ``out_shape``.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        counted = formula if get_raw else _of_shapes(formula)
        for target in targets if isinstance(targets, (tuple, list)) else (targets,):
            flop_registry[target] = counted
        return formula

    return register


@register_flop_formula(packet("mm"))
def _mm(a: Any, b: Any, *args: Any, **others: Any) -> int:
    return int(2 * a[0] * a[1] * b[1])


@register_flop_formula(packet("addmm"))
def _addmm(bias: Any, a: Any, b: Any, *args: Any, **others: Any) -> int:
    return _mm(a, b)


@register_flop_formula(packet("bmm"))
def _bmm(a: Any, b: Any, *args: Any, **others: Any) -> int:
    return int(2 * a[0] * a[1] * a[2] * b[2])


@register_flop_formula(packet("baddbmm"))
def _baddbmm(bias: Any, a: Any, b: Any, *args: Any, **others: Any) -> int:
    return _bmm(a, b)


@register_flop_formula([packet("convolution"), packet("_convolution")])
def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: Any,
    *args: Any, out_shape: Any = None, **others: Any,
) -> int:  # fmt: skip
    places = (x if transposed else out_shape)[2:]
    return int(2 * x[0] * math.prod(places) * math.prod(weight))


@register_flop_formula(packet("conv2d_backward_input"))
def _conv2d_backward_input(grad: Any, weight: Any, *args: Any, **others: Any) -> int:
    return int(2 * grad[0] * math.prod(grad[2:]) * math.prod(weight))


@register_flop_formula(packet("conv2d_backward_weight"))
def _conv2d_backward_weight(grad: Any, x: Any, size: Any, *args: Any, **others: Any) -> int:
    return int(2 * grad[0] * math.prod(grad[2:]) * math.prod(size))


@register_flop_formula([packet("scaled_dot_product_attention"), packet("attention_forward")])
def _attention(query: Any, key: Any, value: Any, *args: Any, **others: Any) -> int:
    batch = math.prod(query[:-2])
    return int(2 * batch * query[-2] * key[-2] * (query[-1] + value[-1]))


@register_flop_formula(packet("attention_backward"))
def _attention_backward(grad: Any, query: Any, key: Any, value: Any, *args: Any, **o: Any) -> int:
    # the scores again, and two products for each of the two of the forward pass
    batch = math.prod(query[:-2])
    return int(2 * batch * query[-2] * key[-2] * (3 * query[-1] + 2 * value[-1]))


class FlopCounterMode(TorchDispatchMode):
    """A mode that counts operations, two for each multiplication with its addition.

    Args:
        mods: has no effect: all modules are followed.
        depth: to which depth of modules `get_table` shows counts; None: all.
        display: whether the table is printed at the end.
        custom_mapping: functions that count, by operator, beside `flop_registry`.

    Example:
        >>> import plait, plait_torch
        >>> from plait_torch._flop_counter import FlopCounterMode
        >>> with plait_torch.installed(), FlopCounterMode(display=False) as counter:
        ...     y = plait.ones(2, 3) @ plait.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(
        self, mods: Any = None, depth: int | None = 2, display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        own = {
            target: f if getattr(f, "_get_raw", False) else _of_shapes(f)
            for target, f in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **own}
        self._modules: list[str] = []
        self._hooks: list[Any] = []

    def get_total_flops(self) -> int:
        """Return the number of operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the operations of each operator, by the names of modules; those of backward passes
        count for ``"Global"`` alone.
        """
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the counts as a text, a module and operator a line."""
        depth = self.depth if depth is None else depth
        lines = []
        for name, counts in sorted(self.flop_counts.items()):
            level = 0 if name == "Global" else name.count(".") + 1
            if depth is None or level <= depth:
                lines.append(f"{name}: {sum(counts.values())}")
                lines += [f"  - {target}: {n}" for target, n in counts.items()]
        return "\n".join(lines)

    def __enter__(self) -> Any:
        self.flop_counts.clear()
        names: dict[int, str] = {}

        def begin(module: Any, inputs: Any) -> None:
            if not self._modules:
                names.clear()
                base = type(module).__name__
                names.update(
                    (id(each), f"{base}.{name}" if name else base)
                    for name, each in module.named_modules()
                )
            self._modules.append(names.get(id(module), type(module).__name__))

        def finish(module: Any, inputs: Any, output: Any) -> None:
            self._modules.pop()

        self._hooks = [
            nn.register_module_forward_pre_hook(begin),
            nn.register_module_forward_hook(finish),
        ]
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        for hook in self._hooks:
            hook.remove()
        self._modules.clear()
        if self.display:
            print(self.get_table(self.depth))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        count = self.flop_registry.get(func.overloadpacket)
        if count is not None:
            n = count(*args, **kwargs, out_val=out)
            for name in {"Global", *self._modules}:
                self.flop_counts[name][func.overloadpacket] += n
        return out
