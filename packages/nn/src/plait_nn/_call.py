"""Calls of modules: their type, and hooks around ``forward``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from plait_abi import ArgumentError, DTypeError, ShapeError
from plait_abi.frames import warn
from plait_nn._backward_hooks import Passage, hook_result, operator_hooks
from plait_nn._hooks import GLOBAL, is_hooked

_LONGEST = 200
_OF_ARGUMENTS = ArgumentError, DTypeError, ShapeError


class _Module(Protocol):
    """The members of `Module` that these functions use."""

    @property
    def _modules(self) -> Mapping[str, Any]: ...

    @property
    def _parameters(self) -> Mapping[str, Any]: ...

    def named_modules(self) -> Iterator[tuple[str, Any]]: ...


class _Location(NamedTuple):
    """The last module that extended the note: the module, the path below it, and the note's
    position.
    """

    module: _Module
    path: str
    description: str
    number: int


def note_module(error: Any, module: _Module) -> None:
    """Extend the note on ``error``, which passed through ``module``."""
    if not hasattr(error, "add_note") or isinstance(error, RecursionError):
        return
    location: _Location | None = getattr(error, "__plait_location__", None)
    if location is None:
        path = ""
        description = _describe(module) + _unregistered(error, module) + _other_dtype(error, module)
        error.add_note("")
        index = len(error.__notes__) - 1
    elif location.module is module:  # forward called super().__call__, for example
        return
    else:
        name = _name_within(module, location.module)
        path = (
            f".{name}{location.path}"
            if name
            else f" > {type(location.module).__name__}{location.path}"
        )
        description, index = location.description, location.number
    notes = error.__notes__
    if index < len(notes):
        notes[index] = f"in module {type(module).__name__}{path}{description}"
    with contextlib.suppress(AttributeError):  # an exception class with __slots__
        error.__plait_location__ = _Location(module, path, description, index)


def _describe(module: _Module) -> str:
    """Return the module's own arguments, if they fit on a line."""
    try:
        text = "" if module._modules else repr(module)
    except Exception:  # the original error must be shown
        return ""
    return "" if "\n" in text or len(text) > _LONGEST else f": {text}"


def _unregistered(error: Any, module: _Module) -> str:
    """Return which attributes hold layers in a plain list, if such a list was called."""
    if not (isinstance(error, TypeError) and str(error).endswith("object is not callable")):
        return ""
    texts = [
        f"; `{name}` is a {type(value).__name__} of layers, which has no parameters for the "
        f"module: use nn.{container} and call each layer"
        for name, value in vars(module).items()
        for container, kinds in (("ModuleList", (list, tuple)), ("ModuleDict", (dict,)))
        if isinstance(value, kinds) and not name.startswith("_")
        if any(hasattr(each, "named_modules") for each in _items(value))
    ]
    return "".join(texts)


def _other_dtype(error: Any, module: _Module) -> str:
    """Return what to do if the input has another dtype than the module's weights."""
    if not (isinstance(error, DTypeError) and "must have the same dtype" in str(error)):
        return ""
    dtypes = {each.dtype for each in module._parameters.values() if each is not None}
    if len(dtypes) != 1:
        return ""
    [dtype] = dtypes
    return (
        f"; its parameters are {dtype.name}: cast the input with input.to(plait.{dtype.name}), "
        "or the module with module.to(...)"
    )


def _items(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _name_within(parent: _Module, child: _Module) -> str:
    try:
        return next((name for name, each in parent.named_modules() if each is child), "")
    except Exception:  # an error in a subclass's methods must not hide the original one
        return ""


P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


class Forwards(Protocol[P, R_co]):
    """An object with a ``forward``: for type checkers, to which a call has its arguments and
    result.
    """

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
                    f"silenced as another error was raised in forward: {error}"
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
    """Call modules as one: ``run`` does the work of all, and those behind the first pass it on.

    Where ``run`` does not take its arguments, the error is that of the modules called one by one:
    a user knows their operators, and not the one that does the work of all.
    """
    first, *behind = modules
    try:
        if not GLOBAL._hooked:
            return run(input)
        result: T = call_with_hooks(first, (input,), {}, run)
    except Exception as error:
        known = _error_of_each(modules, input) if isinstance(error, _OF_ARGUMENTS) else None
        if known is None:
            note_module(error, first)
            raise
        note_module(known, first)
        raise known from None
    for module in behind:
        result = call_with_hooks(module, (result,), {}, lambda x: x)
    return result


def _error_of_each(modules: Sequence[Any], input: Any) -> Exception | None:
    try:
        for module in modules:
            input = module.forward(input)
    except Exception as error:
        return error
    return None
