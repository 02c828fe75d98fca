"""The base class of all optimizers."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from plait_optim import _groups
from plait_optim._arrays import load_into, mark_written, sort_of, type_name
from plait_optim._component import grad_mode
from plait_optim._groups import ParamGroup
from plait_optim._state import State

__all__ = ["Optimizer"]

StepHook = Callable[["Optimizer", tuple[Any, ...], dict[str, Any]], Any]


class Optimizer:
    """Holds parameters in groups and what it remembers of each, and takes steps.

    A subclass passes its options as ``defaults`` and implements `update`; or, as in PyTorch, it
    overrides `step` itself.

    Args:
        params: plait tensors, NumPy arrays or torch tensors, in any mixture; (name, array) pairs;
            or dicts with the key ``params`` and options of their own, which make groups.
        defaults: options of groups that don't give their own.

    Raises:
        TypeError: if ``params`` is a single array, or one of them is no array.
        ValueError: if there are none, or one is in two groups or is no leaf.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> class Halve(plait_optim.Optimizer):
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p *= 0.5
        >>> x = np.array([4.0])
        >>> Halve([x], {}).step()
        >>> x
        array([2.])
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state = State()
        self.param_groups: list[ParamGroup] = []
        self._pre_hooks: dict[int, StepHook] = {}
        self._post_hooks: dict[int, StepHook] = {}
        for group in _groups.split(params):
            self.add_param_group(group)

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Add a group, whose missing options come from the defaults."""
        self.param_groups.append(_groups.complete(param_group, self.defaults, self.param_groups))

    # ---- steps ----------------------------------------------------------------------------------

    def step(
        self, closure: Callable[[], Any] | None = None, *, grads: Sequence[Any] | None = None
    ) -> Any:
        """Update all parameters in place.

        Args:
            closure: computes the loss again, and gradients with it; called once, before the step.
            grads: gradients, one for each parameter over all groups, or None where there is
                none, for arrays that carry no ``.grad``; without it ``.grad`` is used.

        Returns:
            What ``closure`` returned, or None.

        Raises:
            ValueError: if ``grads`` has another length than the parameters.
            TypeError: if there is no ``grads`` and a parameter has no ``.grad``.
            ShapeError, DTypeError: if a gradient doesn't fit its parameter; then nothing of its
                group was updated.
        """
        loss = None
        if closure is not None:
            with grad_mode(True):
                loss = closure()
        arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), {"grads": grads})
        for hook in list(self._pre_hooks.values()):
            hook(self, *arguments)
        with grad_mode(False):
            self._step_groups(grads)
        for hook in list(self._post_hooks.values()):
            hook(self, *arguments)
        return loss

    def update(
        self,
        group: ParamGroup,
        params: list[Any],
        grads: list[Any],
        states: list[dict[str, Any]],
    ) -> None:
        """Update the parameters of one group that have a gradient; for subclasses to implement."""
        raise NotImplementedError(f"{type(self).__name__}: implement `update` or `step`")

    def _step_groups(self, grads: Sequence[Any] | None) -> None:
        total = sum(len(group["params"]) for group in self.param_groups)
        if grads is not None and len(grads) != total:
            raise ValueError(
                f"step: `grads` must hold one gradient (or None) for each of the {total} "
                f"parameters; got {len(grads)}"
            )
        start = 0
        for group in self.param_groups:
            params = group["params"]
            if grads is None:
                given = [_grad(param) for param in params]
            else:
                given = list(grads[start : start + len(params)])
                start += len(params)
            if type(None) in {*map(type, given)}:
                pairs = [pair for pair in zip(params, given, strict=True) if pair[1] is not None]
                params, given = [p for p, _ in pairs], [g for _, g in pairs]
            if params:
                self.update(group, params, given, self.state.of(params))
                mark_written(params)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or with ``set_to_none=False`` fill them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                grad = getattr(param, "grad", None)
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                else:
                    with grad_mode(False):
                        grad.detach_().zero_()

    def register_step_pre_hook(self, hook: StepHook) -> Callable[[], None]:
        """Call ``hook(optimizer, args, kwargs)`` before each step; the result undoes it."""
        return _register(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: StepHook) -> Callable[[], None]:
        """Call ``hook(optimizer, args, kwargs)`` after each step; the result undoes it."""
        return _register(self._post_hooks, hook)

    # ---- saving and loading ---------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return state and options in PyTorch's layout, parameters replaced by their numbers.

        Returns:
            ``{"state": {0: {...}}, "param_groups": [{"lr": ..., "params": [0, 1]}]}``. Arrays
            are the optimizer's own, not copies.
        """
        numbers: dict[int, int] = {}
        for param in self._all_params():
            numbers.setdefault(id(param), len(numbers))
        groups = [
            {
                **{name: value for name, value in group.items() if name != "params"},
                "params": [numbers[id(param)] for param in group["params"]],
            }
            for group in self.param_groups
        ]
        state = {numbers[id(param)]: dict(value) for param, value in self.state.items() if value}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; arrays are copied to the library of their parameter.

        Raises:
            ValueError: if the number of groups, or of parameters in one, is another.
            KeyError: if it is no state of an optimizer.
        """
        for name in ("param_groups", "state"):
            if name not in state_dict:
                raise KeyError(f"load_state_dict: {name!r} is missing; got {sorted(state_dict)}")
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, other in zip(self.param_groups, saved, strict=True):
            if len(group["params"]) != len(other["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group "
                    "that doesn't match the size of optimizer's group"
                )
        numbers = itertools.chain.from_iterable(group["params"] for group in saved)
        params = dict(zip(numbers, self._all_params(), strict=True))
        state = State()
        with grad_mode(False):
            for number, values in state_dict["state"].items():
                if number in params:
                    param = params[number]
                    state[param] = {k: _loaded(param, k, v) for k, v in values.items()}
        for group, other in zip(self.param_groups, saved, strict=True):
            other["params"] = group["params"]
            if "param_names" in group:
                other.setdefault("param_names", group["param_names"])
            for name, default in self.defaults.items():
                other.setdefault(name, default)
        self.param_groups = saved
        self.state = state

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])

    def _all_params(self) -> Iterable[Any]:
        return itertools.chain.from_iterable(group["params"] for group in self.param_groups)


def _grad(param: Any) -> Any:
    try:
        return param.grad
    except AttributeError:
        raise TypeError(
            f"step: parameters of type {type_name(param)} carry no .grad; pass step(grads=[...])"
        ) from None


def _register(hooks: dict[int, StepHook], hook: StepHook) -> Callable[[], None]:
    number = max(hooks, default=-1) + 1
    hooks[number] = hook

    def remove() -> None:
        hooks.pop(number, None)

    return remove


def _loaded(param: Any, name: str, value: Any) -> Any:
    if name == "step":
        return int(value)
    return load_into(param, value) if sort_of(type(value)) is not None else copy.deepcopy(value)
