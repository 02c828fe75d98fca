"""Random numbers within calls of `vmap`: the same for all samples, others for each, or an error.

The calls of `vmap` that a thread is in decide one after the other, the innermost first: under
"different" an operator draws for all samples at once, and what it calls for that is drawn by the
calls around it. Under "same" each sample has the numbers that it would have first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_func import _layer
from plait_func._batched_tensor import Level, become_batched, samples_of, wrapped
from plait_func._batching_rules import (
    Call,
    aligned,
    batching_of,
    by_loop,
    for_no_samples,
    has_flag,
    leading,
    one_of,
    pointwise,
    public_name,
    run_operator,
)
from plait_func._generator_states import GeneratorStates


def serve_draw(name: str, form: int, args: list[Any], targets: Any, batches: list[Any]) -> Any:
    """Serve an operator that draws random numbers, as `_batching.serve` does for others.

    `batches` are the batched tensors among the arguments: their samples and levels.
    """
    levels = _levels(batches)
    if not batches and all(each.randomness == "same" for each in levels):
        return NotImplemented
    if has_flag(name, "composite"):
        return Ellipsis  # its parts draw
    if any(each.randomness == "error" for each in levels):
        raise RuntimeError(
            f"vmap: {public_name(name)} draws random numbers; pass randomness='different' for "
            "different numbers in each sample, or randomness='same'"
        )
    if name.partition(".")[0].endswith("_"):
        _fill(name, args, levels)
        return args[0]
    results = _drawn(name, args, levels)
    if form == 0:
        return results
    several = results if isinstance(results, (tuple, list)) else (results,)
    for target, result in zip(targets, several, strict=True):
        target.copy_(result)
    return tuple(targets)


def _levels(batches: list[Any]) -> list[Level]:
    """Return the calls of this thread, and those that have ended, which draw nothing any more."""
    results = {number: Level(number, size, kind) for number, size, kind in _layer.calls()}
    for samples, number in batches:
        results.setdefault(number, Level(number, samples.shape[0], "error"))
    return [results[number] for number in sorted(results)]


class _Draw(Call):
    """A call of an operator that draws, for the samples of one call of `vmap`."""

    def __init__(self, name: str, args: Any, levels: list[Level]) -> None:
        level = levels[-1]
        super().__init__(name, args, level.number, level.size)
        self.randomness, self.outer = level.randomness, levels[:-1]

    def run(self, args: Any, name: str = "") -> Any:
        """Call an operator as the calls of `vmap` around this one do."""
        return _drawn(name or self.name, args, self.outer)

    def has_batched(self, values: Any) -> bool:
        """Return whether a value has a part for each sample."""
        return any(self.is_batched(each) for each in values)


def _drawn(name: str, args: Any, levels: list[Level]) -> Any:
    """Return the results of an operator that returns new tensors."""
    if not levels:
        return run_operator(name, args)
    call, level = _Draw(name, args, levels), levels[-1]
    if level.randomness == "different":
        rule = _rule_of(name)
    elif not call.has_batched(call.args):
        return call.run(args)
    elif name in _UNREAD:
        # only the shape and the dtype of the tensor matter
        x = call.args[0]
        return call.run([pc.empty(x.shape, dtype=x.dtype, device=x.device), *args[1:]])
    else:
        rule = _dropout if name == "native_dropout" else _again
    result = (rule if call.size else for_no_samples(rule))(call)
    if isinstance(result, (tuple, list)):
        return [wrapped(each, level.number) for each in result]
    return wrapped(result, level.number)


# ---- draws into a tensor ------------------------------------------------------------------------


def _fill(name: str, args: Any, levels: list[Level]) -> None:
    """Let an operator write random numbers into its first argument."""
    if not levels:
        run_operator(name, args)
        return
    target, *rest = args
    call, level = _Draw(name, args, levels), levels[-1]
    if level.randomness == "same" and not call.has_batched(args):
        _fill(name, args, call.outer)
        return
    samples = _samples_to_fill(call, target)
    if level.randomness == "different":
        _fill(name, [samples, *(aligned(call, each, target.ndim) for each in rest)], call.outer)
    elif call.has_batched(rest):
        first = _state(call)
        for i in range(call.size):
            first.restore()
            _fill(name, [samples[i], *(one_of(call, each, i) for each in rest)], call.outer)
    else:
        drawn = _blank(target, call.outer)
        _fill(name, [drawn, *rest], call.outer)
        samples.copy_(drawn.unsqueeze(0).expand(samples.shape))


def _samples_to_fill(call: _Draw, target: Any) -> Any:
    """Return the samples of a target; one that the function has made becomes batched."""
    if samples_of(target, call.level) is None and not become_batched(target, call.level, call.size):
        raise RuntimeError(
            f"vmap: {public_name(call.name)}: a tensor that all samples share cannot hold "
            "different random numbers for each sample; create it in the function, as in "
            "empty_like(x) or "
            "x.new_empty(size)"
        )
    return samples_of(target, call.level)


def _blank(like: Any, levels: list[Level]) -> Any:
    """Return a new tensor that is batched where the calls of `vmap` draw different numbers."""
    different = [each for each in levels if each.randomness == "different"]
    sizes = [each.size for each in different]
    result = pc.empty((*sizes, *like.shape), dtype=like.dtype, device=like.device)
    for each in different:
        result = wrapped(result, each.number)
    return result


# ---- rules --------------------------------------------------------------------------------------


def _state(call: Call) -> GeneratorStates:
    return GeneratorStates(call.at("generator"))


def _again(call: Call) -> Any:
    """Call an operator for each sample with the generator as it is for the first."""
    state = _state(call)
    return by_loop(call, state.restore)


def _normal(call: Call) -> Any:
    mean, std = call.args[:2]
    if not pc.is_tensor(std):
        return leading(call)
    call.args[0] = wrapped(call.all(mean), call.level)
    return pointwise(call)


def _multinomial(call: Call) -> Any:
    x, *rest = call.args
    if x.ndim != 2:
        return leading(call) if x.ndim == 1 else by_loop(call)
    result = call.run([call.all(x).reshape(-1, x.shape[1]), *rest])
    return result.reshape(call.size, x.shape[0], *result.shape[1:])


def _dirichlet(call: Call) -> Any:
    return leading(call) if call.args[0].ndim else by_loop(call)


def _dropout(call: _Draw) -> Any:
    x, p, generator = call.args
    if call.randomness == "different":
        return call.run([call.all(x), p, generator])
    ones = pc.ones(x.shape, dtype=x.dtype, device=x.device)
    scaled, mask = call.run([ones, p, generator])
    return call.all(x) * scaled, mask.unsqueeze(0).expand(call.size, *mask.shape)


# operators that only look at the shape and the dtype of a tensor
_UNREAD = frozenset({"bernoulli.p", "rand_like", "randn_like", "randint_like", "randint_like.high"})
# of those whose definitions say that their rule for different numbers is code
_CODE: dict[str, Callable[[Any], Any]] = {
    "dirichlet_sample": _dirichlet, "multinomial": _multinomial, "native_dropout": _dropout,
    "normal": _normal,
}  # fmt: skip


def _rule_of(name: str) -> Callable[[Any], Any]:
    """Return the rule for different numbers; without one an operator is called for each sample."""
    letters = batching_of(name)
    return _CODE.get(name, leading if letters[:1].islower() else by_loop)
