"""`Module`: parameters, buffers and submodules under one callable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

import plait_core as pc
from plait_core import Tensor
from plait_nn._call import Call, call_with_hooks
from plait_nn._convert import conversion, floating
from plait_nn._hooks import (
    GLOBAL,
    Hook,
    RemovableHandle,
    WithoutModule,
    add_hook,
    adopt_hooks,
    check_kind,
    forget_hooks,
)
from plait_nn._members import KINDS, check_name, displace, find_absent, refuse_value, registered
from plait_nn._parameter import Buffer, Parameter
from plait_nn._repr import module_html, module_text
from plait_nn._state_dict import (
    IncompatibleKeys,
    collect,
    load,
    load_members,
    save_members,
)
from plait_nn._trace import note_module

try:
    from plait_core.attribute_lookup import install as _look_up_in_c
    from plait_core.attribute_lookup import install_calls as _call_in_c
except ImportError:  # with another library as core Python's own lookup is used

    def _look_up_in_c(cls: type, getattr: Callable[[Any, str], Any]) -> bool:
        return False

    def _call_in_c(
        cls: type,
        call: Callable[..., Any],
        note: Callable[[Exception, Any], None],
        attributes: dict[str, Any],
    ) -> bool:
        return False


__all__ = ["Module"]

M = TypeVar("M", bound="Module")
_ABSENT: Any = object()


class Module:
    """Base of every layer and every model: members by name, and a ``forward`` that uses them.

    A subclass calls ``super().__init__()``, assigns its `Parameter` s and submodules as attributes,
    and defines ``forward``. Calling the module runs its hooks and ``forward``. An exception that
    leaves a module carries a note with the module's path (Python 3.11 and later).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> class Scale(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = nn.Parameter(pc.full((1,), 3.0))
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> layer = Scale()
        >>> layer(pc.ones(2)).tolist()
        [3.0, 3.0]
        >>> [name for name, _ in layer.named_parameters()]
        ['factor']
    """

    dump_patches: bool = False  # for old programs; it has no effect
    call_super_init: bool = False  # whether __init__ calls the one of a second base class

    _version: int = 1  # the version of this class's state

    training: bool
    _hooked: bool  # whether a call has hooks to run
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: dict[int, Hook]
    _forward_pre_hooks: dict[int, Hook]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}.__init__: Module takes no arguments; got "
                f"{', '.join([*(type(each).__name__ for each in args), *kwargs])}"
            )
        attributes = self.__dict__
        if "_hooked" in attributes:  # __init__ runs a second time
            forget_hooks(self)
        attributes["_parameters"] = {}  # the registries come first, as lookups in C expect
        attributes["_buffers"] = {}
        attributes["_modules"] = {}
        attributes["training"] = True
        attributes["_hooked"] = False
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_forward_hooks"] = {}
        attributes["_forward_pre_hooks"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _look_up_in_c(cls, _GETATTR)
        _call_in_c(cls, _CALL, note_module, GLOBAL.__dict__)

    # ---- calling -------------------------------------------------------------------------------

    if TYPE_CHECKING:
        forward: Callable[..., Any]
        __call__: Call

        # names that the register_ methods made
        def __getattr__(self, name: str) -> Any: ...

    else:

        def forward(self, *args, **kwargs):
            """Compute the module's output. Every subclass defines its own."""
            raise NotImplementedError(
                f"{type(self).__name__}: a Module must define `forward`; it has none"
            )

        def __call__(self, *args, **kwargs):
            # `_call_in_c` does the same where there are no hooks
            try:
                if self._hooked or GLOBAL._hooked:
                    return call_with_hooks(self, args, kwargs)
                return self.forward(*args, **kwargs)
            except Exception as error:
                note_module(error, self)
                raise

        def __getattr__(self, name):
            # for names that are neither in a class nor in __dict__; `_look_up_in_c` does the same
            attributes = self.__dict__
            for kind in KINDS:
                if kind in attributes:
                    members = attributes[kind]
                    if name in members:
                        return members[name]
            return find_absent(self, name)

    # ---- members -------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        if isinstance(value, Parameter):
            displace(self, "_parameters", name)
            self.register_parameter(name, value)
        elif name in attributes.get("_parameters", ()):
            if value is not None:
                refuse_value(self, name, "a Parameter", value)
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            displace(self, "_modules", name)
            self._modules[name] = registered(self, "_modules", name, value)
        elif name in attributes.get("_modules", ()):
            if value is not None:
                refuse_value(self, name, "a Module", value)
            self._modules[name] = registered(self, "_modules", name, None)
        elif isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        elif name in attributes.get("_buffers", ()):
            if not (value is None or isinstance(value, Tensor)):
                refuse_value(self, name, "a Tensor", value)
            self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        names.update(self._parameters, self._buffers, self._modules)
        return sorted(name for name in names if not name[:1].isdigit())

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make ``param`` the parameter called ``name``; None reserves the name.

        Raises:
            TypeError: ``name`` is not a str, or ``param`` neither a Parameter nor None.
            KeyError: ``name`` is empty, contains a dot, or is an attribute already.
            ValueError: ``param`` is the result of a recorded operator.
        """
        check_name(self, "parameter", "_parameters", name)
        if param is not None:
            if not isinstance(param, Parameter):
                refuse_value(self, name, "a Parameter", param)
            if not param.is_leaf:
                raise ValueError(
                    f"{type(self).__name__}: parameter `{name}` must be a leaf; got the result of "
                    f"an operator. Compute it in `forward`"
                )
            param = registered(self, "_parameters", name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make ``tensor`` a buffer: it moves with the module, but no optimizer changes it.

        Args:
            name: The attribute's name.
            tensor: The values, or None.
            persistent: Whether ``state_dict`` contains it.
        """
        check_name(self, "buffer", "_buffers", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            refuse_value(self, name, "a Tensor", tensor)
        self._buffers[name] = registered(self, "_buffers", name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Make ``module`` the submodule called ``name``; the same as `add_module`."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make ``module`` the submodule called ``name``."""
        if module is not None and not isinstance(module, Module):
            refuse_value(self, name, "a Module", module)
        check_name(self, "module", "_modules", name)
        self._modules[name] = registered(self, "_modules", name, module)

    def get_submodule(self, target: str) -> Module:
        """Return the submodule at a dotted path, such as ``"encoder.layers.0"``; ``""`` is self."""
        module: Module = self
        for name in target.split(".") if target else ():
            child = getattr(module, name, None)
            if not isinstance(child, Module):
                raise AttributeError(f"{type(module).__name__} has no submodule `{name}`")
            module = child
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the module at a dotted path, replacing the old one.

        Args:
            target: The path.
            module: The module.
            strict: Whether the path must exist; else its last name may be new.

        Example:
            >>> import plait_nn as nn
            >>> model = nn.Sequential(nn.Sequential(nn.ReLU()))
            >>> model.set_submodule("0.0", nn.Tanh())
            >>> model[0][0]
            Tanh()
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("set_submodule: `target` must name a submodule; got ''")
        if not isinstance(module, Module):
            raise ValueError(
                f"set_submodule: `module` must be a Module; got {type(module).__name__}"
            )
        parent = self.get_submodule(path)
        present = getattr(parent, name, _ABSENT)
        if not isinstance(present, Module) and (strict or present is not _ABSENT):
            raise AttributeError(f"{type(parent).__name__} has no submodule `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        parameter = getattr(module, name, None)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"{type(module).__name__} has no parameter `{name}`")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer: Tensor = getattr(module, name, _ABSENT)
        if buffer is _ABSENT or name not in module._buffers:
            raise AttributeError(f"{type(module).__name__} has no buffer `{name}`")
        return buffer

    # ---- walks ---------------------------------------------------------------------------------

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once, of this module and (``recurse``) those below."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over ``(dotted name, parameter)``; a shared one appears under its first name."""
        yield from self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over ``(dotted name, buffer)``."""
        yield from self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def _named_members(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, owner in modules:
            for name, member in getattr(owner, kind).items():
                if member is None or (remove_duplicate and id(member) in seen):
                    continue
                seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def children(self) -> Iterator[Module]:
        """Iterate over the submodules one level down, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over ``(name, submodule)`` one level down."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_modules(
        self,
        memo: set[Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over ``(dotted path, module)``, this module first with ``prefix`` as its path."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    # ---- modes -----------------------------------------------------------------------------------

    def train(self: M, mode: bool = True) -> M:
        """Set training mode (``True``) or evaluation mode here and below; return the module."""
        if not isinstance(mode, bool):
            raise ValueError(
                f"{type(self).__name__}.train: `mode` must be bool; got {type(mode).__name__}"
            )
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode, in which `Dropout` does nothing, for example; the same as
        ``train(False)``.
        """
        return self.train(False)

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call ``fn`` on every submodule and then on the module itself; return the module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set ``requires_grad`` of every parameter; return the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or with ``set_to_none=False`` fill them with zeros."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach().zero_()

    # ---- conversions -----------------------------------------------------------------------------

    @overload
    def to(self: M, device: Any = ..., dtype: Any = ..., non_blocking: bool = ...) -> M: ...

    @overload
    def to(self: M, dtype: Any, non_blocking: bool = ...) -> M: ...

    @overload
    def to(self: M, tensor: Tensor, non_blocking: bool = ...) -> M: ...

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Convert parameters and buffers in place; return the module.

        ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` and ``to(tensor)`` (its device and
        dtype). Only floating-point and complex members change their dtype, to a floating-point or
        complex one; ``memory_format=`` is for members of 4 and 5 dimensions.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> nn.Linear(2, 3).to(pc.float64).weight.dtype
            plait.float64
        """
        return self._apply(conversion(*args, **kwargs))

    def type(self: M, dst_type: Any) -> M:
        """Convert every parameter and buffer to ``dst_type``."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self: M) -> M:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(floating(pc.float32))

    def double(self: M) -> M:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(floating(pc.float64))

    def half(self: M) -> M:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(floating(pc.float16))

    def bfloat16(self: M) -> M:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(floating(pc.bfloat16))

    def cpu(self: M) -> M:
        """Move parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self: M, device: Any = None) -> M:
        """Move parameters and buffers to a CUDA device; it is an error if there is none."""
        return self.to("cuda" if device is None else pc.device("cuda", device))

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Give parameters and buffers new memory on ``device``, without copying the values.

        Example:
            >>> import plait_nn as nn
            >>> layer = nn.Linear(2, 3, device="meta")
            >>> layer.to_empty(device="cpu").weight.device
            device(type='cpu')
        """
        return self._apply(lambda tensor: pc.empty_like(tensor, device=device), recurse)

    def share_memory(self: M) -> M:
        """Move parameters, their gradients and buffers to shared memory by `share_memory_`.

        They stay the same objects, so that existing optimizers still refer to them.
        """
        for tensor in [*self.parameters(), *self.buffers()]:
            for shared in (tensor, tensor.grad):
                if shared is not None and not shared.is_shared():
                    shared.share_memory_()
        return self

    def _apply(self: M, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
        """Replace the values of the members by ``fn`` of them; parameters keep their identity."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            values = fn(parameter.detach())
            gradient = parameter.grad
            if gradient is not None:
                # the gradient must always have the parameter's shape and dtype
                parameter.grad = None
            parameter.data = values
            if gradient is not None:
                parameter.grad = fn(gradient.detach())
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: operators run one by one. It exists for programs that call it."""

    # ---- state_dict ------------------------------------------------------------------------------

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Return the parameters and persistent buffers by dotted name, detached, sharing memory.

        The result of `get_extra_state` has the name ``_extra_state``. The dict's attribute
        ``_metadata`` has the version of each module's class, ``_version``.

        Args:
            destination: A dict to fill and return.
            prefix: Put before every name.
            keep_vars: Return the parameters themselves instead of detached tensors.

        Example:
            >>> import plait_nn as nn
            >>> list(nn.Sequential(nn.Linear(2, 3), nn.ReLU()).state_dict())
            ['0.weight', '0.bias']
        """
        return collect(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Any, strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy parameters and buffers from a mapping of dotted names to tensors or arrays.

        Everything is compared before anything is written: when it raises, the module is unchanged.

        Args:
            state_dict: The values. Arrays with DLPack or NumPy's protocol are accepted.
            strict: Whether the names must be exactly those of `state_dict`.
            assign: Use the given tensors as members instead of copying their values.

        Returns:
            ``(missing_keys, unexpected_keys)``.

        Raises:
            RuntimeError: Names (if ``strict``) or shapes differ; the message lists all differences.
        """
        return load(self, state_dict, strict, assign)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Add this module's own members, without those of submodules. May be overridden."""
        save_members(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take this module's own members from ``state_dict``. May be overridden."""
        load_members(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def _defines(self, method: str) -> bool:
        """Whether a subclass has a ``get_extra_state`` or ``set_extra_state`` of its own."""
        return getattr(type(self), method) is not getattr(Module, method)

    def get_extra_state(self) -> Any:
        """Return additional state, for subclasses that define it together with `set_extra_state`.

        Example:
            >>> import plait_nn as nn
            >>> class Counts(nn.Module):
            ...     calls = 3
            ...     def get_extra_state(self):
            ...         return {"calls": self.calls}
            ...     def set_extra_state(self, state):
            ...         self.calls = state["calls"]
            >>> Counts().state_dict()["_extra_state"]
            {'calls': 3}
        """
        raise RuntimeError(f"{type(self).__name__}: get_extra_state is called, but not defined")

    def set_extra_state(self, state: Any) -> None:
        """Restore the additional state that `get_extra_state` returned."""
        raise RuntimeError(
            f"{type(self).__name__}: a state has extra state, but set_extra_state is not defined"
        )

    # ---- hooks -----------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before every ``forward``.

        It returns None or new positional arguments. With ``with_kwargs`` it is called as
        ``hook(module, args, kwargs)`` and returns None or ``(args, kwargs)``.
        """
        return add_hook(self, "_forward_pre_hooks", Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after every ``forward``.

        It returns None or a new output. With ``with_kwargs`` it is called as
        ``hook(module, args, kwargs, output)``; with ``always_call`` also when ``forward`` raised.
        """
        return add_hook(self, "_forward_hooks", Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs' gradients are complete.

        Both are tuples with one gradient for each positional argument and each result, None for
        those that are not tensors. The hook returns None or new gradients of the inputs; it must
        not write to the ones it got. If no input requires grad, it runs when the results' gradients
        are complete, with None for each input. Keyword arguments are ignored, and the module and
        its callers cannot write to inputs and results in place.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> layer = nn.Linear(2, 3)
            >>> def show(module, grad_input, grad_output):
            ...     print(tuple(grad_input[0].shape), tuple(grad_output[0].shape))
            >>> handle = layer.register_full_backward_hook(show)
            >>> layer(pc.ones(4, 2, requires_grad=True)).sum().backward()
            (4, 2) (4, 3)
        """
        check_kind(self, full=True)
        return add_hook(self, "_backward_hooks", Hook(hook), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward pass.

        It returns None or the gradients of the results to use instead.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> layer = nn.Identity()
            >>> handle = layer.register_full_backward_pre_hook(lambda m, grads: (grads[0] * 10,))
            >>> x = pc.ones(1, requires_grad=True)
            >>> layer(x).backward()
            >>> x.grad
            tensor([10.])
        """
        return add_hook(self, "_backward_pre_hooks", Hook(hook), prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` for the operator that made the result.

        It exists for old programs: the gradients are those of the module's last operator only. Use
        `register_full_backward_hook`.
        """
        check_kind(self, full=False)
        return add_hook(self, "_operator_hooks", Hook(hook))

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` takes the members."""
        return add_hook(self, "_state_dict_pre_hooks", Hook(hook))

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``.

        It may change the state in place. The state contains the members of submodules.

        Example:
            >>> import plait_nn as nn
            >>> layer = nn.Linear(1, 1)
            >>> def forget(module, state, prefix, metadata):
            ...     del state[prefix + "bias"]
            >>> handle = layer.register_state_dict_post_hook(forget)
            >>> list(layer.state_dict())
            ['weight']
        """
        return add_hook(self, "_state_dict_hooks", Hook(hook))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call a hook before ``load_state_dict`` reads the module's members.

        It is called as ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` and may change ``state_dict``, a copy of what was given.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> layer = nn.Linear(1, 1, bias=False)
            >>> def rename(module, state, prefix, *rest):
            ...     state[prefix + "weight"] = state.pop(prefix + "kernel")
            >>> handle = layer.register_load_state_dict_pre_hook(rename)
            >>> layer.load_state_dict({"kernel": pc.ones(1, 1)})
            <All keys matched successfully>
        """
        return add_hook(self, "_load_state_dict_pre_hooks", Hook(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after ``load_state_dict`` wrote the members.

        It may take names from ``incompatible_keys.missing_keys`` and ``unexpected_keys``; the
        remaining names are an error if the loading is strict. So the members of a module with such
        a hook are written before the names are compared, but after the shapes are.
        """
        return add_hook(self, "_load_state_dict_post_hooks", Hook(hook))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like `register_state_dict_post_hook`, but the hook may return another state."""
        return add_hook(self, "_state_dict_hooks", Hook(hook, True))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        """Like `register_load_state_dict_pre_hook`; ``with_module`` passes the module too."""
        called = hook if with_module else WithoutModule(hook)
        return add_hook(self, "_load_state_dict_pre_hooks", Hook(called))

    # ---- pickles and copies --------------------------------------------------------------------

    # A state is the module's `__dict__`, as PyTorch's is: a shallow copy shares the registries.
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = self.__dict__
        # before the other attributes: see __init__
        attributes.update((kind, state[kind]) for kind in KINDS if kind in state)
        attributes.update(state)
        attributes.setdefault("_non_persistent_buffers_set", set())  # old states lack it
        adopt_hooks(self)

    # ---- text ----------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the repr. Subclasses may define their own."""
        return ""

    def __repr__(self) -> str:
        return module_text(self)

    def _repr_html_(self) -> str:
        return module_html(self)


_GETATTR = Module.__getattr__
_look_up_in_c(Module, _GETATTR)
_CALL: Callable[..., Any] = Module.__dict__["__call__"]
_call_in_c(Module, _CALL, note_module, GLOBAL.__dict__)
