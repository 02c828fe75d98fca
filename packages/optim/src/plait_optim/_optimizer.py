"""The base class of all optimizers."""

from __future__ import annotations

import copy
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import plait_abi
from plait_abi.origins import module_of
from plait_optim import _complex, _groups, _sparse
from plait_optim._arithmetic import load_array
from plait_optim._arrays import exposed, mark_written, number, type_name
from plait_optim._component import grad_mode
from plait_optim._devices import by_device, norm_of, number_on
from plait_optim._groups import ParamGroup, ParamState, States, group_tensors
from plait_optim._hooks import Hooks, RemovableHandle, hooked, register
from plait_optim._options import check_arguments, document_options, not_negative
from plait_optim._state import State

StepHook = Callable[["Optimizer", tuple[Any, ...], dict[str, Any]], Any]
StateDict = dict[str, Any]


# PyTorch's names: optimizers that wrap another one put dicts there
_HOOKS = tuple(
    f"_optimizer_{event}_{when}_hooks"
    for event in ("step", "state_dict", "load_state_dict")
    for when in ("pre", "post")
)


class Optimizer:
    """The base class: it holds groups of parameters and their state, and takes steps.

    A subclass passes its options as ``defaults`` and implements `update`; or, as in PyTorch, it
    overrides `step` itself.

    Plait's optimizers take float32, float64, float16 and bfloat16. State has the dtype of its
    parameter. A step on float16 or bfloat16 computes in float32 and rounds its results, so small
    changes of a parameter may be lost; use float32 parameters to avoid this.

    Plait tensors may be on any device, and on several in one group. A step there is made of the
    ordinary operators, unless the device has a kernel for the optimizer's own. Steps do not read
    values of tensors, so that they do not wait for a device; `LBFGS` does, as its decisions depend
    on them.

    Args:
        params: plait tensors, NumPy arrays or torch tensors, in any mixture; (name, array) pairs;
            or dicts with the key ``params`` and options of their own, which make groups.
        defaults: options of groups that don't give their own.

    Raises:
        TypeError: if ``params`` is a single array, or one of them is not an array.
        ValueError: if there are no parameters, or one is in two groups or is not a leaf.

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

    scales_gradients: ClassVar[bool] = False
    """Whether `update` multiplies gradients by `gradient_factor`, so that a step can clip."""

    all_or_nothing: ClassVar[bool] = False
    """Whether `update` has changed nothing when it raises an error. Then it is called for the
    parameters of each device if one call cannot be made for all of them."""

    takes_complex: ClassVar[bool] = True
    """Whether parameters may be complex: `update` gets their real and imaginary parts then, in real
    tensors with one dimension more."""

    supports: ClassVar[tuple[str, ...]] = ()
    """Flags, such as "capturable", that other optimizers do not accept."""

    arrays: ClassVar[tuple[str, ...]] = ()
    """State that is an array of the shape of its parameter; `load_state_dict` refuses other shapes.
    """

    first_in_groups: ClassVar[tuple[str, ...]] = ()
    """Options that come first in the groups; the others follow in the order of the signature."""

    instead_of_sparse: ClassVar[str] = ""
    """The advice in the error for sparse gradients, if an optimizer does not accept them."""

    gradient_factor: Any = 1.0
    """The factor of gradients in `update`: less than 1 while ``step(max_norm=...)`` clips. A float;
    for gradients on another device than the CPU a 0-d tensor there, as nothing waits for it."""

    _grad_norm: Any = None
    _has_complex: bool | None = None  # whether a parameter is complex; None: not known
    _stepping = False
    _opt_called = False  # whether `step` was called; the name is PyTorch's

    _group_tensors_by_device_and_dtype = staticmethod(group_tensors)

    def _cuda_graph_capture_health_check(self) -> None:
        """Do nothing, as `update` checks it. Third-party optimizers call it in ``step``."""

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check

    def _patch_step_function(self) -> None:
        """Do nothing: a class's `step` calls the hooks since the class was defined.

        Optimizers that wrap another one call it instead of `__init__`, as PyTorch's would.
        """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = hooked(cls.step)  # type: ignore[method-assign]
        if "__init__" in cls.__dict__ and cls.__module__.startswith("plait_optim."):
            document_options(cls)
            cls.__init__ = check_arguments(cls, cls.__init__)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        _refuse_init_group(type(self))
        self.defaults = defaults
        self.state: Any = State()  # or a mapping that the program puts there
        self.param_groups: list[ParamGroup] = []
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = Hooks(), Hooks()
        self._optimizer_state_dict_pre_hooks = Hooks()
        self._optimizer_state_dict_post_hooks = Hooks()
        self._optimizer_load_state_dict_pre_hooks = Hooks()
        self._optimizer_load_state_dict_post_hooks = Hooks()
        for group in _groups.split(params):
            self.add_param_group(group)

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Add a group, whose missing options come from the defaults.

        Args:
            param_group: Its parameters under "params", and options that differ from the defaults.
        """
        group = _groups.complete(param_group, self.defaults, self.param_groups)
        self.check_group(group)
        if not self.takes_complex and _complex.any_complex([group]):
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
        self.param_groups.append(group)
        self._has_complex = None

    def check_group(self, group: ParamGroup) -> None:
        """Raise if this optimizer does not support a new group; subclasses may override it.

        The group has all its options and is not in ``param_groups`` yet.

        Args:
            group: The parameter group.
        """

    # ---- steps ----------------------------------------------------------------------------------

    @property
    def grad_norm(self) -> float | None:
        """The norm of the gradients in the last ``step(max_norm=...)``, a float.

        Where gradients are on another device than the CPU, the first look at it waits until the
        device has computed it; the step does not.
        """
        if self._grad_norm is not None and not isinstance(self._grad_norm, float):
            self._grad_norm = number(self._grad_norm)
        return self._grad_norm

    @hooked
    def step(
        self,
        closure: Callable[[], Any] | None = None,
        *,
        grads: Sequence[Any] | None = None,
        max_norm: float | None = None,
    ) -> Any:
        r"""Update all parameters in place.

        Args:
            closure: computes the loss again, and gradients with it; called once, before the step.
            grads: gradients, one for each parameter over all groups, or None where there is
                none, for arrays without ``.grad``; by default ``.grad`` is used.
            max_norm: clip gradients: the step uses all gradients times :math:`\min(1,
                \mathrm{max\_norm} / (\lVert g \rVert + 10^{-6}))`, with the 2-norm over all of
                them, like ``clip_grad_norm_``, but within the step: gradients are not changed. The
                norm is stored as ``grad_norm``.

        Returns:
            The result of ``closure``, or None.

        Raises:
            ValueError: if ``grads`` has another length than the parameters, or ``max_norm`` is
                below 0.
            TypeError: if there is no ``grads`` and a parameter has no ``.grad``.
            NotImplementedError: if there is a ``max_norm``, and this optimizer's `update` doesn't
                scale gradients.
            ShapeError, DTypeError: if a gradient doesn't fit its parameter; then no parameter of
            its group was updated.
        """
        loss = None
        if closure is not None:
            with grad_mode(True):
                loss = closure()
        with grad_mode(False):
            groups = self._with_gradients(grads)
            if max_norm is None:
                self._update_groups(groups)
            else:
                self._clip(groups, max_norm)
                try:
                    self._update_groups(groups)
                finally:
                    del self.gradient_factor
        return loss

    def update(
        self, group: ParamGroup, params: list[Any], grads: list[Any], states: States
    ) -> None:
        """Update the parameters of one group that have a gradient; for subclasses to implement.

        Args:
            group: the group with the options.
            params: the parameters with a gradient; torch tensors are detached.
            grads: a gradient for each.
            states: the state of each, empty at first.
        """
        raise NotImplementedError(f"{type(self).__name__}: implement `update` or `step`")

    def update_sparse(self, group: ParamGroup, param: Any, grad: Any, state: ParamState) -> None:
        """Update one parameter that has a sparse gradient; for subclasses that take them.

        Args:
            group: the group with the options.
            param: the parameter, a plait tensor.
            grad: its gradient, a `plait.SparseTensor` of the same shape.
            state: its state, empty at first.

        Raises:
            RuntimeError: unless a subclass implements it.
        """
        raise RuntimeError(
            f"{type(self).__name__} does not support sparse gradients{self.instead_of_sparse}"
        )

    def _with_gradients(
        self, grads: Sequence[Any] | None
    ) -> list[tuple[ParamGroup, list[Any], list[Any]]]:
        if grads is not None:
            total = sum(len(group["params"]) for group in self.param_groups)
            if len(grads) != total:
                raise ValueError(
                    f"step: `grads` must hold one gradient (or None) for each of the {total} "
                    f"parameters; got {len(grads)}"
                )
        start = 0
        groups = []
        for group in self.param_groups:
            params = group["params"]
            if grads is None:
                gradients = _own_gradients(params)
            else:
                gradients = list(grads[start : start + len(params)])
                start += len(params)
            kinds = {*map(type, gradients)}
            if _sparse.any_sparse(kinds):
                self._check_sparse()
            if type(None) in kinds:
                pairs = [
                    pair for pair in zip(params, gradients, strict=True) if pair[1] is not None
                ]
                params, gradients = [p for p, _ in pairs], [g for _, g in pairs]
            if params:
                groups.append((group, params, gradients))
        return groups

    def _check_sparse(self) -> None:
        """Raise before anything is written if this optimizer does not take sparse gradients."""
        if type(self).update_sparse is Optimizer.update_sparse:
            Optimizer.update_sparse(self, {}, None, None, {})

    def _split(
        self, group: ParamGroup, params: list[Any], grads: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Update the parameters with sparse gradients, and return the others."""
        dense: tuple[list[Any], list[Any]] = ([], [])
        for param, grad in zip(params, grads, strict=True):
            if not _sparse.is_sparse(grad):
                dense[0].append(param)
                dense[1].append(grad)
                continue
            if tuple(param.shape) != tuple(grad.shape):
                raise plait_abi.ShapeError(
                    f"{type(self).__name__}: a gradient must have the shape of its parameter, "
                    f"{tuple(param.shape)}; got {tuple(grad.shape)}"
                )
            state = self.state[param]
            self.update_sparse(group, param, grad, state)
        return dense

    def _update_groups(self, groups: list[tuple[ParamGroup, list[Any], list[Any]]]) -> None:
        for group, params, grads in groups:
            if _sparse.any_sparse({*map(type, grads)}):
                params, grads = self._split(group, params, grads)
                if not params:
                    continue
            arrays, gradients = exposed(params, grads)
            states = self._states(params)
            if self._takes_real_parts():
                with _complex.real_parts(arrays, gradients, states) as parts:
                    self._update_arrays(group, *parts)
            else:
                self._update_arrays(group, arrays, gradients, states)
            if arrays is not params:
                mark_written(params)

    def _takes_real_parts(self) -> bool:
        """Return whether there are complex parameters."""
        if self._has_complex is None:
            self._has_complex = _complex.any_complex(self.param_groups)
        return self._has_complex

    def _update_arrays(
        self, group: ParamGroup, arrays: list[Any], gradients: list[Any], states: States
    ) -> None:
        try:
            self.update(group, arrays, gradients, states)
        except ValueError:
            # the error of operators on several devices; looking for them first takes longer
            if not self.all_or_nothing or len(parts := by_device(arrays)) < 2:
                raise
            self._update_parts(parts, group, arrays, gradients, states)

    def _states(self, params: list[Any]) -> list[dict[str, Any]]:
        if isinstance(self.state, State):
            return self.state.of(params)
        return [self.state[param] for param in params]  # a program's own mapping

    def _update_parts(
        self,
        parts: dict[str, list[int]],
        group: ParamGroup,
        params: list[Any],
        grads: list[Any],
        states: list[dict[str, Any]],
    ) -> None:
        scale = self.gradient_factor
        for positions in parts.values():
            if not isinstance(scale, float):  # which only a step that clips sets
                self.gradient_factor = number_on(scale, params[positions[0]])
            self.update(
                group,
                [params[i] for i in positions],
                [grads[i] for i in positions],
                [states[i] for i in positions],
            )

    def _clip(self, groups: list[tuple[ParamGroup, list[Any], list[Any]]], max_norm: float) -> None:
        not_negative("max_norm", max_norm)
        if not self.scales_gradients:
            raise NotImplementedError(
                f"{type(self).__name__}: step(max_norm=...) needs an update that scales "
                "gradients; clip them before the step"
            )
        grads = [grad for _, _, gradients in groups for grad in gradients]
        if _sparse.any_sparse({*map(type, grads)}):
            raise NotImplementedError(
                f"{type(self).__name__}: step(max_norm=...) needs dense gradients; got a sparse one"
            )
        norm = norm_of(*exposed(grads))
        if not getattr(norm, "is_cpu", True):
            self._grad_norm = norm
            self.gradient_factor = (float(max_norm) / (norm + 1e-6)).clamp(max=1.0)
            return
        self._grad_norm = number(norm)
        scale = float(max_norm) / (self._grad_norm + 1e-6)
        self.gradient_factor = 1.0 if scale >= 1 else scale  # nan stays nan

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, or with ``set_to_none=False`` fill them with zeros."""
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

    # ---- hooks ----------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: StepHook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step.

        ``args`` begins with the optimizer; a pair of new ``args`` and ``kwargs`` may be returned.
        """
        return register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: StepHook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` at the beginning of `state_dict`.

        Args:
            prepend: Whether it runs before the hooks that are there.
        """
        return register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[[Optimizer, StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on the result, which it may change or replace.

        Args:
            prepend: Whether it runs before the hooks that are there.
        """
        return register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[[Optimizer, StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another one.

        Args:
            prepend: Whether it runs before the hooks that are there.
        """
        return register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state was loaded.

        Args:
            prepend: Whether it runs before the hooks that are there.
        """
        return register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- saving and loading ---------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return state and options in PyTorch's layout, parameters replaced by their numbers.

        Returns:
            ``{"state": {0: {...}}, "param_groups": [{"lr": ..., "params": [0, 1]}]}``. Arrays
            are the optimizer's own, not copies.
        """
        for before in list(self._optimizer_state_dict_pre_hooks.values()):
            before(self)
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
        state = {
            numbers.get(id(param), param): dict(value) if isinstance(value, dict) else value
            for param, value in self.state.items()
            if not (isinstance(value, dict) and not value)
        }
        result: StateDict = {"state": state, "param_groups": groups}
        for after in list(self._optimizer_state_dict_post_hooks.values()):
            changed = after(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`; arrays are copied to the library of their parameter.

        Raises:
            ValueError: if the numbers of groups, or of parameters in a group, differ.
            KeyError: if it is not a state of an optimizer.
        """
        state_dict = dict(state_dict)
        for before in list(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = before(self, state_dict)
            state_dict = state_dict if changed is None else changed
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
            for key, values in state_dict["state"].items():
                param = params.get(key)
                if param is None:  # state of the whole optimizer
                    state[key] = values
                elif isinstance(values, dict):
                    state[param] = {
                        name: self.load_value(param, name, value) for name, value in values.items()
                    }
                else:
                    state[param] = self.load_value(param, "", values)
        for group, other in zip(self.param_groups, saved, strict=True):
            other["params"] = group["params"]
            if "param_names" in group:
                other.setdefault("param_names", group["param_names"])
            for name, default in self.defaults.items():
                other.setdefault(name, default)
        self.__setstate__({"state": state, "param_groups": saved})
        for after in list(self._optimizer_load_state_dict_post_hooks.values()):
            after(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, without functions that were put in the place of methods."""
        kind = type(self)
        return {
            name: value
            for name, value in self.__dict__.items()
            if name != "_has_complex" and not callable(getattr(kind, name, None))
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes of a pickle, or a loaded ``state`` and ``param_groups``; subclasses
        may override it to add what old files lack.
        """
        own = self.__dict__
        own.update(state)
        self._has_complex = None
        if type(own.get("state")) in (dict, defaultdict):  # a pickle of PyTorch's
            self.state = State(own["state"])
        for name in _HOOKS:
            own.setdefault(name, Hooks())

    def load_value(self, param: Any, name: str, value: Any) -> Any:
        """Return the value that `load_state_dict` stores as ``state[param][name]``; subclasses may
        override it.

        Values are copied as they are, also in lists, tuples and dicts. As in PyTorch, arrays take
        the dtype of a floating-point ``param``, unless ``name`` is "step", and its device.

        Args:
            value: The value in the state that is loaded.
        """
        if isinstance(value, dict):
            clone = copy.copy(value)
            for key, each in value.items():
                clone[key] = self.load_value(param, key, each)
            return clone
        if isinstance(value, (list, tuple)):
            items = [self.load_value(param, "", each) for each in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return load_array(param, name, value, shaped=name in self.arrays)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for index, group in enumerate(self.param_groups):
            lines += [""] * bool(index) + [f"Parameter Group {index}"]
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])

    def _all_params(self) -> Iterable[Any]:
        return itertools.chain.from_iterable(group["params"] for group in self.param_groups)


def _refuse_init_group(kind: type) -> None:
    """Raise for a subclass whose `_init_group` would never be called, unless its own step does."""
    own = [base for base in kind.__mro__ if not module_of(base).startswith("plait_optim.")]
    overridden = any("_init_group" in vars(base) for base in own)
    if overridden and not any("step" in vars(base) or "update" in vars(base) for base in own):
        raise NotImplementedError(
            f"{kind.__name__}: `_init_group` would not be called: plait's optimizers have no such "
            "step; override `update` or `step`"
        )


def _own_gradients(params: list[Any]) -> list[Any]:
    try:
        return [param.grad for param in params]
    except AttributeError:
        bare = next(param for param in params if not hasattr(param, "grad"))
        raise TypeError(
            f"step: parameters of type {type_name(bare)} carry no .grad; pass step(grads=[...])"
        ) from None
