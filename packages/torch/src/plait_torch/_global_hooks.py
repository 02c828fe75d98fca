"""The hooks of all modules, which libraries read as dicts of `torch.nn.modules.module`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from plait_nn._hooks import GLOBAL, Hook, hooks_of, settle

__all__ = [
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
    "_global_buffer_registration_hooks",
    "_global_forward_hooks",
    "_global_forward_hooks_always_called",
    "_global_forward_hooks_with_kwargs",
    "_global_forward_pre_hooks",
    "_global_module_registration_hooks",
    "_global_parameter_registration_hooks",
]


class _Hooks(MutableMapping[int, Any]):
    """The hooks of one kind by their numbers, as they are now; writing registers or removes one."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds

    def __iter__(self) -> Iterator[int]:
        for kind in self._kinds:
            yield from hooks_of(GLOBAL, kind)

    def __len__(self) -> int:
        return sum(len(hooks_of(GLOBAL, kind)) for kind in self._kinds)

    def __getitem__(self, number: int) -> Any:
        for kind in self._kinds:
            if number in (hooks := hooks_of(GLOBAL, kind)):
                return hooks[number].function
        raise KeyError(number)

    def __setitem__(self, number: int, hook: Callable[..., Any]) -> None:
        GLOBAL.__dict__.setdefault(self._kinds[0], {})[number] = Hook(hook)
        settle(GLOBAL)

    def __delitem__(self, number: int) -> None:
        for kind in self._kinds:
            if number in (hooks := hooks_of(GLOBAL, kind)):
                del hooks[number]
                settle(GLOBAL)
                return
        raise KeyError(number)

    def __repr__(self) -> str:
        return repr(dict(self))


class _Marked(_Hooks):
    """The numbers of the forward hooks that were registered with an option, each with True."""

    def __init__(self, option: str) -> None:
        super().__init__("_forward_hooks")
        self._option = option

    def __iter__(self) -> Iterator[int]:
        for number, hook in hooks_of(GLOBAL, "_forward_hooks").items():
            if getattr(hook, self._option):
                yield number

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, number: int) -> Any:
        if number not in list(self):
            raise KeyError(number)
        return True


_global_forward_pre_hooks = _Hooks("_forward_pre_hooks")
_global_forward_hooks = _Hooks("_forward_hooks")
_global_forward_hooks_always_called = _Marked("always_call")
_global_forward_hooks_with_kwargs = _Marked("with_kwargs")
_global_backward_pre_hooks = _Hooks("_backward_pre_hooks")
_global_backward_hooks = _Hooks("_backward_hooks", "_operator_hooks")
# the hooks of registrations lie under the names of what modules register
_global_buffer_registration_hooks = _Hooks("_buffers")
_global_module_registration_hooks = _Hooks("_modules")
_global_parameter_registration_hooks = _Hooks("_parameters")
