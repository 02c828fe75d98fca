"""Calls of modules: their type, and hooks around ``forward``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from plait_abi.frames import warn
from plait_nn._backward_hooks import Passage, hook_result, operator_hooks
from plait_nn._hooks import GLOBAL, is_hooked
from plait_nn._trace import note_module

__all__ = ["Forwards", "P", "R_co", "call_together", "call_with_hooks", "run_plainly"]

P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


class Forwards(Protocol[P, R_co]):
    """What has a ``forward``: for type checkers, to which a call has its arguments and result."""

    @property
    def forward(self) -> Callable[P, R_co]: ...


def call_with_hooks(
    module: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    forward: Callable[..., Any] | None = None,
) -> Any:
    """Run the module's forward, or another function instead of it, between its hooks."""
    # at the start, as in PyTorch: a hook may remove hooks, or forward add some
    passage: Passage | None = None
    of_operator: list[Callable[..., Any]] = []
    if (
        module._backward_hooks
        or module._backward_pre_hooks
        or GLOBAL._backward_hooks
        or GLOBAL._backward_pre_hooks
    ):
        passage, of_operator = Passage.of(module), operator_hooks(module)
    ran: set[int] = set()
    result: Any = None
    try:
        of_all, own = GLOBAL._forward_pre_hooks, module._forward_pre_hooks
        for number, hook in (*of_all.items(), *own.items()) if of_all or own else ():
            if number in module._forward_pre_hooks_with_kwargs:
                args, kwargs = _with_kwargs(module, hook, args, kwargs)
            else:
                changed = hook(module, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        if passage is not None:
            args = passage.enter(args)
        result = (module.forward if forward is None else forward)(*args, **kwargs)
        for number, hook in (*GLOBAL._forward_hooks.items(), *module._forward_hooks.items()):
            ran.add(number)
            result = _after(module, number, hook, args, kwargs, result)
        if passage is not None:
            result = passage.leave(result)
        if of_operator:
            hook_result(module, of_operator, result)
    except Exception:
        _always(module, ran, args, kwargs, result)
        raise
    return result


def _with_kwargs(
    module: Any, hook: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    changed = hook(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise RuntimeError(
            f"{type(module).__name__}: forward pre-hook must return None or a tuple of "
            f"(new_args, new_kwargs), but got {changed}."
        )
    return changed


def _after(
    module: Any,
    number: int,
    hook: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Any,
) -> Any:
    if number in module._forward_hooks_with_kwargs or number in GLOBAL._forward_hooks_with_kwargs:
        changed = hook(module, args, kwargs, result)
    else:
        changed = hook(module, args, result)
    return result if changed is None else changed


def _always(
    module: Any, ran: set[int], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> None:
    """Run the hooks with always_call that did not run; the error of forward is raised after it."""
    for which, owner in (("global module", GLOBAL), ("module", module)):
        for number, hook in list(owner._forward_hooks.items()):
            if number not in owner._forward_hooks_always_called or number in ran:
                continue
            try:
                result = _after(module, number, hook, args, kwargs, result)
            except Exception as error:
                warn(
                    f"{which} forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                )


def run_plainly(modules: Iterable[Any], forwards: Mapping[type, Callable[..., Any]]) -> bool:
    """Whether calls do no more than their types' forward, which stands in ``forwards``.

    Nobody can see then what one module gives the next: none has hooks or a ``forward`` of its own,
    and no hooks of all modules do more than watch.
    """
    return not GLOBAL._separate and all(
        not is_hooked(module)
        and type(module).forward is forwards[type(module)]
        and "forward" not in vars(module)
        for module in modules
    )


def call_together(modules: Sequence[Any], input: T, run: Callable[[T], T]) -> T:
    """Call modules as one: ``run`` does the work of all, and those behind the first pass it on."""
    first, *behind = modules
    try:
        if not GLOBAL._hooked:
            return run(input)
        made: T = call_with_hooks(first, (input,), {}, run)
    except Exception as error:
        note_module(error, first)
        raise
    for module in behind:
        made = call_with_hooks(module, (made,), {}, lambda x: x)
    return made
