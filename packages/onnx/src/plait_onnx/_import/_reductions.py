"""Operators that combine elements along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]


def _log_sum_exp(x: Tensor, axes: list[int], keep: bool) -> Any:
    return pc.logsumexp(x, axes, keep)


def _largest(x: Tensor, axes: list[int], keep: bool) -> Any:
    if x.dtype == pc.bool:
        return _largest(x.to(pc.uint8), axes, keep) > 0
    return pc.amax(x, axes, keep) if _count(x, axes) else _empty(x, axes, keep, _least(x))


def _smallest(x: Tensor, axes: list[int], keep: bool) -> Any:
    if x.dtype == pc.bool:
        return _smallest(x.to(pc.uint8), axes, keep) != 0
    return pc.amin(x, axes, keep) if _count(x, axes) else _empty(x, axes, keep, _most(x))


def _count(x: Tensor, axes: list[int]) -> int:
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return count


def _empty(x: Tensor, axes: list[int], keep: bool, value: Any) -> Tensor:
    """Return the reduction of no elements."""
    return pc.full_like(pc.sum(x, axes, keepdim=keep), value).to(x.dtype)


def _least(x: Tensor) -> Any:
    return -float("inf") if x.is_floating_point() else pc.iinfo(x.dtype).min


def _most(x: Tensor) -> Any:
    return float("inf") if x.is_floating_point() else pc.iinfo(x.dtype).max


def _sum(x: Tensor, axes: list[int], keep: bool) -> Any:
    return pc.sum(x, axes, keepdim=keep, dtype=x.dtype)


def _product(x: Tensor, axes: list[int], keep: bool) -> Any:
    for axis in sorted(axes, reverse=True):
        x = pc.prod(x, axis, keepdim=keep, dtype=x.dtype)
    return x


def _mean(x: Tensor, axes: list[int], keep: bool) -> Any:
    if x.is_floating_point():
        return pc.mean(x, axes, keepdim=keep)
    return (_sum(x, axes, keep) // _count(x, axes)).to(x.dtype)


def _l2(x: Tensor, axes: list[int], keep: bool) -> Any:
    if not x.is_floating_point():
        return pc.sqrt(_sum((x * x).to(pc.float64), axes, keep)).to(x.dtype)
    return pc.sqrt(_sum(x * x, axes, keep))


def _as_float(function: Function) -> Function:
    def run(x: Tensor, axes: list[int], keep: bool) -> Any:
        if x.is_floating_point():
            return function(x, axes, keep)
        return function(x.to(pc.float64), axes, keep).to(x.dtype)

    return run


REDUCTIONS: dict[str, Function] = {
    "ReduceL1": lambda x, axes, keep: _sum(pc.abs(x), axes, keep),
    "ReduceL2": _l2,
    "ReduceLogSum": _as_float(lambda x, axes, keep: pc.log(_sum(x, axes, keep))),
    "ReduceLogSumExp": _as_float(_log_sum_exp),
    "ReduceMax": _largest,
    "ReduceMean": _mean,
    "ReduceMin": _smallest,
    "ReduceProd": _product,
    "ReduceSum": _sum,
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
}


def _pointwise(name: str, x: Tensor) -> Any:
    """Return the reduction over no axes: of each element by itself."""
    if name in ("ReduceL1", "ReduceL2"):
        return pc.abs(x)
    if name == "ReduceLogSum":
        return pc.log(x)
    return x * x if name == "ReduceSumSquare" else x


def _by_attribute(name: str) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        axes, keep = node.integers("axes", None), node.flag("keepdims", True)
        function = REDUCTIONS[name]
        return lambda x: function(x, axes if axes is not None else list(range(x.ndim)), keep)

    return build


def _by_input(name: str) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        keep, skip = node.flag("keepdims", True), node.flag("noop_with_empty_axes")
        function = REDUCTIONS[name]

        def run(x: Tensor, given: Any = None) -> Any:
            axes = [] if given is None else [int(n) for n in given.reshape(-1)]
            if not axes and skip:
                return _pointwise(name, x)
            return function(x, axes or list(range(x.ndim)), keep)

        return run

    return build


for _name in REDUCTIONS:
    operator(_name)(_by_attribute(_name))
    operator(_name, 13 if _name == "ReduceSum" else 18, host=(1,))(_by_input(_name))


def _index_of(function: Function) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        axis, keep = node.integer("axis", 0), node.flag("keepdims", True)
        last = node.flag("select_last_index")

        def run(x: Tensor) -> Any:
            if not last:
                return function(x, axis, keep)
            return x.shape[axis] - 1 - function(pc.flip(x, (axis,)), axis, keep)

        return run

    return build


operator("ArgMax")(_index_of(pc.argmax))
operator("ArgMin")(_index_of(pc.argmin))


def _scan(cumulate: Function, neutral: int) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        exclusive, reverse = node.flag("exclusive"), node.flag("reverse")

        def run(x: Tensor, axis: Any) -> Any:
            dim = int(axis.reshape(-1)[0])
            if reverse:
                x = pc.flip(x, (dim,))
            if exclusive:
                first = pc.full_like(x.narrow(dim, 0, min(1, x.shape[dim])), neutral)
                x = pc.cat([first, x.narrow(dim, 0, max(x.shape[dim] - 1, 0))], dim)
            result = cumulate(x, dim, dtype=x.dtype)
            return pc.flip(result, (dim,)) if reverse else result

        return run

    return build


operator("CumSum", host=(1,))(_scan(pc.cumsum, 0))
operator("CumProd", host=(1,))(_scan(pc.cumprod, 1))
