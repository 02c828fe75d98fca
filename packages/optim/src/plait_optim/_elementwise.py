"""The base of optimizers whose step is one elementwise operator."""

from __future__ import annotations

from typing import Any, ClassVar

from plait_abi import binding
from plait_optim._arithmetic import float32_number
from plait_optim._arrays import filled_like, sort_of, type_name
from plait_optim._component import operator
from plait_optim._groups import ParamGroup, States
from plait_optim._optimizer import Optimizer
from plait_optim._options import number_of, refuse_text
from plait_optim._state import whole_number


class Elementwise(Optimizer):
    """An optimizer that calls one operator for each group, with parameters, gradients, lists of
    state, step numbers and options.

    A subclass names the operator, its state and the options that the operator takes; if names are
    not enough, it overrides `state_names`, `options`, `fill`, `numbers` and `count`.

    With ``capturable``, of those that support it, the state ``step`` is a 0-d tensor on the device
    of its parameter, which `count_steps` counts there.
    """

    scales_gradients = True
    all_or_nothing = True
    operator: ClassVar[str]
    scalars: ClassVar[tuple[str, ...]] = ()
    """State that is a number for each parameter."""
    counts_steps: ClassVar[bool] = True
    """Whether a step depends on its number, which a graph of a device cannot count on."""
    operator_options: ClassVar[tuple[str, ...]] = ()
    """The options that the operator takes, except ``maximize``."""

    def state_names(self, group: ParamGroup) -> list[str]:
        """Return the names of the state's arrays in the operator's order; "" for an absent one.

        Args:
            group: The parameter group.
        """
        return list(self.arrays)

    def options(self, group: ParamGroup) -> dict[str, Any]:
        """Return the operator's options, except ``maximize`` and ``grad_scale``.

        Args:
            group: The parameter group.
        """
        state: dict[str, Any] = {}
        for name in self.operator_options:
            value = group[name]
            if name == "betas":
                refuse_text("step", name, value)
                beta1, beta2 = value
                state["beta1"], state["beta2"] = float(beta1), float(beta2)
            elif name == "decoupled_weight_decay":
                state["decoupled"] = bool(value)
            else:
                state[name] = number_of(group, name)
        return state

    def fill(self, group: ParamGroup, name: str) -> float:
        """Return the initial value of the state ``name``.

        Args:
            group: The parameter group.
        """
        return 0.0

    def numbers(self, group: ParamGroup, state: dict[str, Any], step: int) -> tuple[float, ...]:
        """Return the numbers of one parameter, which the operator takes as lists.

        Args:
            group: The parameter group.
        """
        return ()

    def count(self, group: ParamGroup, state: dict[str, Any], step: int) -> None:
        """Count a step in the state of one parameter.

        Args:
            group: The parameter group.
        """
        state["step"] = step

    def update(
        self, group: ParamGroup, params: list[Any], grads: list[Any], states: States
    ) -> None:
        """Update one group: see `Optimizer.update`."""
        if self.counts_steps and "capturable" in self.supports and group.get("capturable"):
            self._update_counted(group, params, grads, states)
            return
        if self.counts_steps:
            self._refuse_recording(params[0])
        names = self.state_names(group)
        try:
            steps, buffers = _gathered(states, names)
        except KeyError:
            for param, state in zip(params, states, strict=True):
                self.start(group, param, state)
            steps, buffers = _gathered(states, names)
        numbers: list[list[float]] = []
        if self.scalars:
            pairs = zip(states, steps, strict=True)
            rows = [self.numbers(group, state, step) for state, step in pairs]
            numbers = [list(column) for column in zip(*rows, strict=True)]
        self._call(group, params, grads, *buffers, steps, *numbers)
        # counted only after the operator has succeeded
        for state, step in zip(states, steps, strict=True):
            self.count(group, state, step)

    def _update_counted(
        self, group: ParamGroup, params: list[Any], grads: list[Any], states: States
    ) -> None:
        """Update one group whose steps are counted on the device."""
        names = self.state_names(group)
        for param, state in zip(params, states, strict=True):
            if not _is_counted(param, state, names):
                self._start_counted(group, param, state)
        steps = [state["step"] for state in states]
        buffers = [[state[name] for state in states] if name else [] for name in names]
        counts = operator("count_steps")(steps)
        try:
            self._call(group, params, grads, *buffers, [], counts=counts)
        except BaseException:  # the step was not taken
            operator("count_steps")(steps, -1)
            raise

    def _start_counted(self, group: ParamGroup, param: Any, state: dict[str, Any]) -> None:
        """Put into the state of one parameter what is missing, its number on the device."""
        if sort_of(type(param)) != "plait":
            raise TypeError(
                f"{type(self).__name__}: parameters of `capturable` steps must be plait tensors; "
                f"got {type_name(param)}"
            )
        if _is_recording(param):
            raise RuntimeError(
                f"{type(self).__name__}: a graph would make the state anew each time; call step() "
                "once before recording it"
            )
        self.start(group, param, state)
        state["step"] = float32_number(param, whole_number("step", state["step"]))

    def _call(
        self, group: ParamGroup, params: list[Any], grads: list[Any], *more: Any, **named: Any
    ) -> None:
        operator(self.operator)(
            params,
            grads,
            *more,
            **named,
            maximize=bool(group["maximize"]),
            grad_scale=self.gradient_factor,
            **self.options(group),
        )

    def _refuse_recording(self, param: Any) -> None:
        if not _is_recording(param):
            return
        otherwise = ", or make it with capturable=True" if "capturable" in self.supports else ""
        raise RuntimeError(
            f"{type(self).__name__}: its step depends on the number of steps, which a graph would "
            "repeat; record the forward and backward pass, and call step() outside of the graph"
            f"{otherwise}"
        )

    def start(self, group: ParamGroup, param: Any, state: dict[str, Any]) -> None:
        """Put into the state of one parameter what is not there yet, as it is before a step.

        Args:
            group: The parameter group.
            param: The parameter.
        """
        state.setdefault("step", 0)
        for name in self.scalars:
            state.setdefault(name, self.fill(group, name))
        for name in self.state_names(group):
            if name and name not in state:
                state[name] = filled_like(param, self.fill(group, name))


def _is_recording(param: Any) -> bool:
    device = getattr(param, "device", None)
    if not isinstance(device, binding.device) or device.type != "cuda":
        return False
    return bool(binding.is_capturing(binding.current_stream(device)))


def _is_counted(param: Any, state: dict[str, Any], names: list[str]) -> bool:
    """Whether a state is complete, with its step number on the parameter's device."""
    step: Any = state.get("step")
    return (
        sort_of(type(step)) == "plait"
        and step.device == param.device
        and step.ndim == 0
        and step.dtype.is_floating_point
        and step.itemsize == 4
        and all(name in state for name in names if name)
    )


def _gathered(states: list[dict[str, Any]], names: list[str]) -> tuple[list[int], list[list[Any]]]:
    """Return the numbers of this step and the operator's lists; a KeyError if one is missing."""
    steps = [state["step"] + 1 for state in states]
    if {*map(type, steps)} != {int}:  # loaded from a library that keeps 0-d arrays
        steps = [whole_number("step", step) for step in steps]
    return steps, [[state[name] for state in states] if name else [] for name in names]
