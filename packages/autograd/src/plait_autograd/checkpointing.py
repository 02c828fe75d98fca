"""Checkpointing: a part of the forward pass is computed again, to save memory.

``plait.utils.checkpoint`` is this module, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from plait_abi import binding
from plait_autograd import _autograd, _saved
from plait_autograd._modes import enable_grad

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn"]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class CheckpointError(RuntimeError):
    """The function of a `checkpoint` behaved differently when it was called again."""


def noop_context_fn() -> Contexts:
    """Return two context managers that do nothing: the default of ``context_fn``.

    Example:
        >>> import plait_autograd as pa
        >>> len(pa.checkpointing.noop_context_fn())
        2
    """
    return nullcontext(), nullcontext()


def _states() -> list[Any]:
    """Return the states of the default generators of all devices."""
    return [generator.get_state() for generator in binding.default_generators()]


def _set_states(states: list[Any]) -> None:
    for generator, state in zip(binding.default_generators(), states, strict=False):
        generator.set_state(state)


class _Call:
    """A call of which only the arguments are kept. It is run again when its saved values are
    needed.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], rng: bool
    ) -> None:
        self._function = function
        self._args = [_Argument(value) for value in args]
        self._kwargs = {name: _Argument(value) for name, value in kwargs.items()}
        self._states = _states() if rng else None
        self._kinds: list[str] = []  # descriptions of the saved tensors, in order
        self._values: dict[int, Any] = {}
        self._over = False  # during the first call only some tensors have been saved
        self.again: AbstractContextManager[Any] = nullcontext()
        self.checks = True

    def pack(self, tensor: Any) -> tuple[_Call, int]:
        self._kinds.append(_autograd.describe(tensor))
        return self, len(self._kinds) - 1

    @staticmethod
    def unpack(key: tuple[_Call, int]) -> Any:
        call, i = key
        if i not in call._values:
            call._compute()
        # each value is used once in a pass; a second use runs the call again
        return call._values.pop(i)

    def _compute(self) -> None:
        values: list[Any] = []

        def keep(tensor: Any) -> Any:
            values.append(tensor)
            return tensor  # used by a pass within the function

        args = [argument.value() for argument in self._args]
        kwargs = {name: argument.value() for name, argument in self._kwargs.items()}
        before = _states()
        if self._states is not None:
            _set_states(self._states)
        try:
            hooks = _saved.saved_tensors_hooks(keep, lambda tensor: tensor)
            with enable_grad(), self.again, hooks:
                self._function(*args, **kwargs)
        finally:
            if self._states is not None:
                _set_states(before)
        kinds = [_autograd.describe(value) for value in values]
        kinds = kinds[: len(self._kinds)]  # what follows is not needed
        if len(kinds) != len(self._kinds) or (self.checks and kinds != self._kinds):
            raise CheckpointError(_difference(self._kinds, kinds))
        self._values = dict(enumerate(values))

    def over(self) -> None:
        """End the first call: values that a pass within it computed are dropped."""
        self._over = True
        self._values = {}


class _Argument:
    """An argument for the second call: a tensor without history, packed if there are hooks."""

    def __init__(self, value: Any) -> None:
        self._tensor = _autograd.is_tensor(value)
        self._wants = self._tensor and _autograd.requires_grad(value)
        self._packed: Any = None
        if not self._tensor:
            self._value = value
        elif self._wants and _autograd.grad_fn(value) is None:
            self._value = value  # the graph keeps leaves, such as parameters, in any case
            self._wants = False
        elif _saved.saved_hooks_are_active():
            self._packed = _saved.pack(_autograd.alias(value))
        else:
            self._value = _autograd.alias(value)
            self._version = _autograd.version(value)

    def value(self) -> Any:
        if self._packed is not None:
            tensor = _autograd.alias(_saved.unpack(self._packed))
        elif self._tensor and hasattr(self, "_version"):
            if _autograd.version(self._value) != self._version:
                raise RuntimeError(
                    "checkpoint: an argument was overwritten by an in-place operator after the "
                    "call, which must be computed again; clone() it before it is written"
                )
            tensor = _autograd.alias(self._value)
        else:
            return self._value
        return tensor.requires_grad_() if self._wants else tensor


def _difference(first: list[str], second: list[str]) -> str:
    text = "checkpoint: the function must save the same tensors when it is computed again"
    if len(first) != len(second):
        return f"{text}; it saved {len(first)} at first and {len(second)} later"
    i = next(i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
    return f"{text}; number {i} was {first[i]} at first and {second[i]} later"


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    **kwargs: Any,
) -> Any:
    """Call ``function(*args, **kwargs)`` without keeping the values that its derivatives need.

    When a backward pass needs these values, it runs the call once more. Results and gradients are
    the same; intermediate values take memory only during this part of the pass. Calls may be
    nested, and `grad`, ``create_graph`` and hooks work with them.

    Args:
        function: must run the same operators on the same shapes when it is called again.
        *args: its arguments; tensors among them may require grad.
        use_reentrant: accepted for PyTorch's signature; both values do the same.
        preserve_rng_state: give the second call the same random numbers of the default generator.
        context_fn: returns two context managers, in which the first and the second call run.
        determinism_check: ``"none"`` skips the comparison of shapes and dtypes.
        **kwargs: its keyword arguments.

    Raises:
        RuntimeError: from the backward pass, if the tensors that the first call saved are not those
            that the second call saved first (`checkpointing.CheckpointError`), or an
            argument was overwritten in between.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.tensor([1.0, 2.0], requires_grad=True)
        >>> pa.checkpoint(lambda t: (t * t).exp(), x).sum().backward()
        >>> x.grad.tolist() == (2 * x * (x * x).exp()).tolist()
        True
    """
    if not callable(function):
        raise TypeError(f"checkpoint: `function` must be callable, got {type(function).__name__}")
    if determinism_check not in ("default", "none"):
        raise ValueError(
            'checkpoint: `determinism_check` must be "default" or "none", '
            f"got {determinism_check!r}"
        )
    if not _autograd.is_grad_enabled():
        return function(*args, **kwargs)
    call = _Call(function, args, kwargs, preserve_rng_state)
    first, call.again = context_fn()
    call.checks = determinism_check == "default"
    with first, _saved.saved_tensors_hooks(call.pack, call.unpack):
        result = function(*args, **kwargs)
    call.over()
    return result


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
) -> Any:
    """Call functions one after the other, in segments; all segments but the last are checkpoints.

    Args:
        functions: a sequence of functions of one argument, or a module of modules in order.
        segments: the number of segments, which have about the same length.
        input: the argument of the first.
        use_reentrant: see `checkpoint`.
        preserve_rng_state: see `checkpoint`.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(1, requires_grad=True)
        >>> pa.checkpoint_sequential([pc.exp, pc.sin, pc.cos], 2, x).backward()
        >>> x.grad is not None
        True
    """
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= max(len(steps), 1):
        raise ValueError(
            f"checkpoint_sequential: `segments` must be in [1, {len(steps)}]; got {segments}"
        )
    size = len(steps) // segments
    value = input
    for i in range(segments - 1):
        run = _in_turn(steps[i * size : (i + 1) * size])
        value = checkpoint(
            run, value, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state
        )
    return _in_turn(steps[(segments - 1) * size :])(value)


def _in_turn(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run
