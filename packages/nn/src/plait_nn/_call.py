"""Calls of modules: their type, and hooks around ``forward``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from plait_nn._backward_hooks import Passage, hook_result
from plait_nn._hooks import GLOBAL, Hook, all_hooks
from plait_nn._trace import note_module

__all__ = ["Call", "call_together", "call_with_hooks", "run_plainly"]

P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


class _Forwards(Protocol[P, R_co]):
    @property
    def forward(self) -> Callable[P, R_co]: ...


class Call:
    """A descriptor whose value is typed as the instance's ``forward``.

    It is for type checkers only: at run time ``Module.__call__`` is an ordinary function.
    """

    def __get__(self, module: _Forwards[P, R_co], owner: object) -> Callable[P, R_co]:
        return module.forward


def call_with_hooks(
    module: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    forward: Callable[..., Any] | None = None,
) -> Any:
    """Run the module's forward, or another function instead of it, between its hooks."""
    ran: set[int] = set()
    result: Any = None
    try:
        for _, hook in all_hooks(module, "_forward_pre_hooks"):
            args, kwargs = _before(module, hook, args, kwargs)
        passage = Passage.of(module)
        if passage is not None:
            args = passage.enter(args)
        result = (module.forward if forward is None else forward)(*args, **kwargs)
        for number, hook in all_hooks(module, "_forward_hooks"):
            ran.add(number)
            result = _after(module, hook, args, kwargs, result)
        if passage is not None:
            result = passage.leave(result)
        hook_result(module, result)
    except BaseException:
        # hooks with always_call run in any case; the first error is raised
        for number, hook in all_hooks(module, "_forward_hooks"):
            if hook.always_call and number not in ran:
                try:
                    _after(module, hook, args, kwargs, result)
                except Exception:
                    continue
        raise
    return result


def _before(
    module: Any, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not hook.with_kwargs:
        changed = hook.function(module, args)
        if changed is None:
            return args, kwargs
        return (changed if isinstance(changed, tuple) else (changed,)), kwargs
    changed = hook.function(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise RuntimeError(
            f"{type(module).__name__}: a forward pre-hook with kwargs must return None or a tuple "
            f"(args, kwargs); got {type(changed).__name__}"
        )
    return changed[0], changed[1]


def _after(
    module: Any, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Any:
    if hook.with_kwargs:
        changed = hook.function(module, args, kwargs, result)
    else:
        changed = hook.function(module, args, result)
    return result if changed is None else changed


def run_plainly(modules: Iterable[Any], forwards: Mapping[type, Callable[..., Any]]) -> bool:
    """Whether calls do no more than their types' forward, which stands in ``forwards``.

    Nobody can see then what one module gives the next: none has hooks or a ``forward`` of its own,
    and no hooks of all modules do more than watch.
    """
    return not GLOBAL._separate and all(
        not module._hooked
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
