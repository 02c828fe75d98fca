"""Hooks of a module's backward pass.

The tensors that go into the module and those that come out pass through one node each, which
changes nothing: the node before the module gets the gradients of all inputs at once, the node after
it those of all outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from plait_abi.frames import warn
from plait_core import Tensor, engine
from plait_nn._hooks import GLOBAL

Gradients = tuple[Any, ...]


@functools.cache
def _passage_function(base: type) -> Any:
    """Return a Function of the engine that returns its arguments."""

    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    def backward(ctx: Any, *gradients: Any) -> Gradients:
        return gradients

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("ModuleBoundary", (base,), methods)


def _full_hooks(module: Any) -> list[Callable[..., Any]]:
    """Return the hooks of `register_full_backward_hook`, those of every module first."""
    return _of_kind(module, True)


def operator_hooks(module: Any) -> list[Callable[..., Any]]:
    """Return the hooks of `register_backward_hook`, those of every module first."""
    return _of_kind(module, False)


def _of_kind(module: Any, full: bool) -> list[Callable[..., Any]]:
    result: list[Callable[..., Any]] = []
    for owner in (GLOBAL, module):
        if owner._is_full_backward_hook is full:
            result += owner._backward_hooks.values()
    return result


class Passage:
    """One call of a module that has backward hooks."""

    def __init__(
        self, module: object, hooks: list[Callable[..., Any]], pre_hooks: list[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.positions: list[int] | None = None  # positions of the inputs that are tensors
        self.n_inputs = 0
        self.gradients: Gradients | None = None  # gradients of the outputs after the pre-hooks

    @classmethod
    def of(cls, module: Any) -> Passage | None:
        """Return the passage for a call, or None if there are no hooks."""
        hooks = _full_hooks(module)
        pre_hooks = [*GLOBAL._backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        if not (hooks or pre_hooks):
            return None
        try:
            recorded = engine.part("is_grad_enabled")()
        except ModuleNotFoundError:  # without an engine there is no backward pass
            return None
        if not recorded:
            return None
        return cls(module, hooks, pre_hooks)

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put the node before the module, if an argument requires grad."""
        self.n_inputs = len(args)
        passed, self.positions = _through(args, self._inputs_ready)
        return passed

    def leave(self, result: Any) -> Any:
        """Put the node after the module, if a result requires grad."""
        results = result if isinstance(result, tuple) else (result,)
        if not isinstance(result, (Tensor, tuple)):
            warn(
                f"{type(self.module).__name__}: For backward hooks to be called, module output "
                f"should be a Tensor or a tuple of Tensors but received {type(result)}"
            )
            return result
        passed, positions = _through(
            results, lambda _, incoming: self._outputs_ready(incoming, positions, n)
        )
        n = len(results)
        if not isinstance(result, tuple):
            return passed[0]
        return type(result)(*passed) if hasattr(result, "_fields") else passed

    def _outputs_ready(
        self, incoming: Gradients, positions: list[int] | None, n: int
    ) -> Gradients | None:
        gradients = _spread(incoming, positions or [], n)
        for hook in self.pre_hooks:
            changed = hook(self.module, gradients)
            if changed is not None:
                gradients = self._to_tuple(changed, n, "backward pre-hook", "grad_output")
        if self.positions is None:  # no input will get a gradient, so the hooks run now
            self._without_inputs(gradients)
        else:
            self.gradients = gradients
        return tuple(gradients[i] for i in positions or [])

    def _inputs_ready(self, incoming: Gradients, _: Gradients) -> Gradients | None:
        # the gradient did not pass through the outputs, as in double backward
        if self.gradients is None:
            return None
        gradients = _spread(incoming, self.positions or [], self.n_inputs)
        for hook in self.hooks:
            changed = hook(self.module, gradients, self.gradients)
            if changed is not None:
                gradients = self._to_tuple(changed, self.n_inputs, "backward hook", "grad_input")
        self.gradients = None
        return tuple(gradients[i] for i in self.positions or [])

    def _without_inputs(self, gradients: Gradients) -> None:
        nothing = (None,) * self.n_inputs
        for hook in self.hooks:
            changed = hook(self.module, nothing, gradients)
            if changed is not None and any(each is not None for each in changed):
                raise RuntimeError(
                    f"{type(self.module).__name__}: a backward hook must return None where no "
                    f"input requires grad; got {type(changed).__name__}"
                )

    def _to_tuple(self, changed: Any, n: int, hook: str, name: str) -> Gradients:
        gradients = changed if isinstance(changed, tuple) else (changed,)
        if len(gradients) != n:
            raise RuntimeError(
                f"{type(self.module).__name__}: a {hook} must return None or as many gradients as "
                f"`{name}` has, {n}; got {len(gradients)}"
            )
        return gradients


def _through(
    values: tuple[Any, ...], hook: Callable[[Gradients, Gradients], Gradients | None]
) -> tuple[tuple[Any, ...], list[int] | None]:
    """Pass the tensors through a node with a hook; None: none of them requires grad."""
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not any(values[i].requires_grad for i in positions):
        return values, None
    passed = _passage_function(engine.part("Function")).apply(*(values[i] for i in positions))
    result = list(values)
    node: Any = None  # all have the same history
    for i, tensor in zip(positions, passed, strict=True):
        result[i] = tensor
        node = node or tensor.grad_fn
    if node is not None:
        node.register_hook(hook)
    return tuple(result), positions


def _spread(incoming: Gradients, positions: list[int], n: int) -> Gradients:
    result: list[Any] = [None] * n
    for i, gradient in zip(positions, incoming, strict=True):
        result[i] = gradient
    return tuple(result)


def hook_result(module: Any, hooks: list[Callable[..., Any]], result: Any) -> None:
    """Register the hooks of `register_backward_hook` on the operator that made the result."""
    while not isinstance(result, Tensor):
        if isinstance(result, dict):
            result = next((v for v in result.values() if isinstance(v, Tensor)), None)
        else:
            result = result[0] if isinstance(result, (tuple, list)) and result else None
        if result is None:
            return
    node: Any = result.grad_fn
    for hook in hooks if node is not None else ():
        node.register_hook(functools.partial(hook, module))
