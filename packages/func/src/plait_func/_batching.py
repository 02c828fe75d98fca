"""Operators on batched tensors: one call for all samples, by a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_abi.components import require
from plait_func import _batched_tensor, _layer
from plait_func._batched_draws import serve_draw
from plait_func._batched_functions import serve_function
from plait_func._batched_tensor import (
    become_batched,
    enter,
    leave,
    level_of,
    sum_gradients,
    watch_function,
    with_own_history,
    wrapped,
)
from plait_func._batching_rules import (
    Call,
    Rule,
    by_loop,
    check_shape,
    for_no_samples,
    has_flag,
    one_of,
    public_name,
    rule_of,
    run_operator,
    selected_first,
    stacked,
    with_samples,
    written_arguments,
)

_begun = False


def within(size: int, randomness: str, func: Callable[[int], Any]) -> Any:
    """Call a function within a call of `vmap` of this thread, with the number of that call."""
    global _begun
    if not _begun:
        _layer.set_batching(serve, serve_each, sum_gradients, enter, leave)
        function = require("autograd").Function
        function._watcher, function._batcher = watch_function, serve_function
        function._backward_check = _layer.check_backward
        _begun = True
    return _batched_tensor.within(size, randomness, func)


def _find(values: Any, result: list[tuple[Any, int]]) -> None:
    for value in values:
        if isinstance(value, (list, tuple)):
            _find(value, result)
        elif (batch := level_of(value)) is not None:
            result.append(batch)


def serve(name: str, form: int, args: Any, targets: Any) -> Any:
    """Serve a call on batched tensors, or one that draws random numbers, for plait's core.

    The innermost level is taken; the rule's own calls come here again for the others.
    """
    inputs: list[tuple[Any, int]] = []
    _find(args, inputs)
    tensors = list(inputs)
    if targets:
        _find(targets, tensors)
    if has_flag(name, "random"):
        return serve_draw(name, form, list(args), targets, tensors)
    samples, level = max(tensors, key=_number)
    call = Call(name, args, level, samples.shape[0])
    if positions := written_arguments(name):
        return _write_arguments(call, positions)
    if form == 0 and name.partition(".")[0].endswith("_"):
        return _write(call)
    rule = rule_of(name)
    if rule is None:
        if form == 0:
            return Ellipsis
        return _into(call, targets, _function_of(call))
    if form != 0 and not any(
        each[1] == level for each in inputs
    ):  # only what is written is batched
        return _into(call, targets, _function_of(call))
    result = _by_rule(call, rule)
    return _wrapped(result, level) if form == 0 else _into(call, targets, _wrapped(result, level))


def serve_each(name: str, form: int, args: Any, targets: Any) -> Any:
    """Call an operator for each sample, with its history: one that is made of others, of which one
    has failed for all samples.
    """
    level, count = _innermost(args)
    if not count:
        check_shape(name)
    size = max(count, 1)  # in the place of none there is one of zeros
    if written_arguments(name):  # what has failed may have written some of them
        raise NotImplementedError(
            f"vmap: {name} writes its arguments in place, and cannot do so for each sample: a step "
            "of an optimizer belongs outside of vmap"
        )
    writes = form == 0 and name.partition(".")[0].endswith("_")
    columns = [_column(each, level, size) for each in args[1:]]
    columns.insert(0, (_targets if writes or form == 1 else _column)(args[0], level, size))
    rows = [run_operator(name, row) for row in zip(*columns, strict=True)]
    several = isinstance(rows[0], (tuple, list))
    results = list(zip(*rows, strict=True)) if several else [tuple(rows)]
    if any(_is_at(each, level) for column in results for each in column):
        raise NotImplementedError(
            f"vmap: {public_name(name)} draws random numbers for what must be computed for each "
            "sample by itself"
        )
    output = [enter(stacked(name, column)[:count], level) for column in results]
    for target, result in zip(args[:1] if writes else targets, output, strict=False):
        target.copy_(result)
    if writes or form != 0:
        return args[0] if writes else tuple(targets)
    return output if several else output[0]


def _innermost(args: Any) -> tuple[int, int]:
    """Return the largest level among arguments, and how many samples it has."""
    tensors: list[tuple[Any, int]] = []
    _find(args, tensors)
    samples, level = max(tensors, key=_number)
    return level, samples.shape[0]


def _is_at(value: Any, level: int) -> bool:
    result = level_of(value)
    return result is not None and result[1] == level


def _column(value: Any, level: int, size: int) -> list[Any]:
    """Return an argument of each sample."""
    if isinstance(value, (list, tuple)) and value:
        return [list(row) for row in zip(*(_column(x, level, size) for x in value), strict=True)]
    value = with_own_history(value, level, size)
    if not _is_at(value, level):
        return [value] * size
    samples = leave(value, level, size)
    return list((samples if len(samples) else samples.new_zeros((1, *value.shape))).unbind(0))


def _targets(value: Any, level: int, size: int) -> list[Any]:
    """Return copies of the written tensors for each sample."""
    # of all samples at once: rows of the value itself would share memory with what is written then
    value = with_own_history(value.clone(), level, size)
    if _is_at(value, level):
        return _column(value, level, size)
    return [value.clone() for _ in range(size)]


def _by_rule(call: Call, rule: Rule) -> Any:
    """Call a rule. What is an error for a sample is that sample's error, whatever the rule makes of
    it.
    """
    try:
        return (rule if call.size else for_no_samples(rule))(call)
    except MemoryError:
        raise
    except Exception:
        if rule is by_loop:
            raise
    return by_loop(call)


def _number(batch: tuple[Any, int]) -> int:
    return batch[1]


def _function_of(call: Call) -> Any:
    """Return the results of the operator's function, for forms of a composite one."""
    return call.run(call.args)


def _wrapped(result: Any, level: int) -> Any:
    if isinstance(result, (tuple, list)):
        return [wrapped(each, level) for each in result]
    return wrapped(result, level)


def _into(call: Call, targets: Any, results: Any) -> Any:
    """Write results to the tensors of a form in place or with ``out=``."""
    several = results if isinstance(results, (tuple, list)) else (results,)
    for target, result in zip(targets, several, strict=True):
        _assign(call, target, result)
    return tuple(targets)


def _assign(call: Call, target: Any, result: Any) -> None:
    if not call.is_batched(target):
        _become_batched(call, target)
        target.copy_(result)  # it may be batched at more levels now
        return
    missing = target.ndim - result.ndim
    data = call.all(result)
    if missing > 0:
        data = data.reshape(call.size, *(1,) * missing, *data.shape[1:])
    call.some(target).copy_(data)


def _become_batched(call: Call, target: Any) -> None:
    """Let a tensor that the function has made become one of each sample."""
    if not become_batched(target, call.level, call.size):
        advice = "a sample first, as in x + zeros, or in the function"
        if level_of(target) is not None:  # one of each sample of an outer call
            advice = "a sample of the inner call of vmap first, as in x + zeros"
        raise RuntimeError(
            f"vmap: {public_name(call.name)}: a tensor that all samples share cannot be written in "
            f"place, or as `out`, with values that differ between samples; make it of {advice}"
        )


def _write(call: Call) -> Any:
    """Serve an operator that only has a form in place, such as ``copy_``."""
    target, *rest = call.args
    if call.name == "copy_":
        _assign(call, target, rest[0])
    elif call.name == "index_put_tensors_":
        _put(call)
    elif call.name in ("fill_", "zero_") and call.is_batched(target):
        call.run([call.some(target), *rest])  # each element by itself
    else:
        _write_arguments(call, (0,))
    return target


def _write_arguments(call: Call, positions: tuple[int, ...]) -> None:
    """Call an operator for each sample, as a step of an optimizer: it writes the arguments at
    these positions, or what they are lists of.
    """
    are_shared = False
    for at in positions:
        value = call.args[at]
        for target in value if isinstance(value, (list, tuple)) else [value]:
            if not call.is_batched(target):
                _become_batched(call, target)
                are_shared = True
    if are_shared:
        call.run(call.args)  # they may be batched at more levels now
        return
    for i in range(call.size):
        call.run([one_of(call, each, i) for each in call.args])


def _put(call: Call) -> None:
    target, indices, values, accumulate = call.args
    if not call.is_batched(target):
        _become_batched(call, target)
        call.run(call.args)
        return
    if pc.is_tensor(values):
        values = selected_first(call, values, indices, target.ndim)
    call.run([call.some(target), with_samples(call, indices), values, accumulate])
