"""`torch._functorch.make_functional`: modules as functions of tuples of parameters and buffers.

`torch.func.functional_call` replaced it in PyTorch 2.0; libraries still import it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import plait
from plait.func import functional_call, stack_module_state

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


def _names(named: Any) -> dict[str, list[str]]:
    """Return the names of each tensor, by the first of them."""
    first: dict[int, str] = {}
    result: dict[str, list[str]] = {}
    for name, tensor in named(remove_duplicate=False):
        result.setdefault(first.setdefault(id(tensor), name), []).append(name)
    return result


def _stateless(model: Any) -> Any:
    """Return a copy of a model whose parameters and buffers have no values."""
    return copy.deepcopy(model).to("meta")


def _taken(named: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """Return copies of a module's parameters or buffers, in the order of the names."""
    tensors = dict(named())
    return tuple(copy.deepcopy(tensors[name]) for name in names)


def _given(kind: str, names: Sequence[str], tensors: Sequence[Any]) -> dict[str, Any]:
    """Return tensors by their names."""
    if len(names) != len(tensors):
        raise ValueError(
            f"make_functional: the model has {len(names)} {kind}, got {len(tensors)} tensors"
        )
    return dict(zip(names, tensors, strict=True))


class FunctionalModule(plait.nn.Module):
    """The function of a module without buffers: call it with parameters and with its arguments.

    Args:
        stateless_model: the module, whose parameters have no values.
        param_names: the names of the parameters, in their order.
        names_map: all names of each parameter, by the first of them.
    """

    def __init__(
        self, stateless_model: Any, param_names: tuple[str, ...], names_map: dict[str, list[str]]
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.names_map = names_map

    @staticmethod
    def _create_from(
        model: Any, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModule, tuple[Any, ...]]:
        names = _names(model.named_parameters)
        params = _taken(model.named_parameters, tuple(names))
        if disable_autograd_tracking:
            for param in params:
                param.requires_grad_(False)
        return FunctionalModule(_stateless(model), tuple(names), names), params

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Return the module's result with these parameters."""
        state = _given("parameters", self.param_names, params)
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModuleWithBuffers(plait.nn.Module):
    """The function of a module: call it with parameters, buffers, and its arguments.

    Args:
        stateless_model: the module, whose parameters and buffers have no values.
        param_names: the names of the parameters, in their order.
        buffer_names: the names of the buffers, in their order.
        param_names_map: all names of each parameter, by the first of them.
        buffer_names_map: all names of each buffer, by the first of them.
    """

    def __init__(
        self,
        stateless_model: Any,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
        param_names_map: dict[str, list[str]],
        buffer_names_map: dict[str, list[str]],
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    @staticmethod
    def _create_from(
        model: Any, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
        param_names, buffer_names = _names(model.named_parameters), _names(model.named_buffers)
        params = _taken(model.named_parameters, tuple(param_names))
        buffers = _taken(model.named_buffers, tuple(buffer_names))
        if disable_autograd_tracking:
            for param in params:
                param.requires_grad_(False)
        function = FunctionalModuleWithBuffers(
            _stateless(model), tuple(param_names), tuple(buffer_names), param_names, buffer_names
        )
        return function, params, buffers

    def forward(
        self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Return the module's result with these parameters and buffers."""
        state = _given("parameters", self.param_names, params)
        state.update(_given("buffers", self.buffer_names, buffers))
        return functional_call(self.stateless_model, state, args, kwargs)


def make_functional(
    model: Any, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """Return a module without buffers as a function, and copies of its parameters.

    Args:
        model: the module.
        disable_autograd_tracking: whether the copies need no gradient.

    Raises:
        RuntimeError: The module has buffers.

    Example:
        >>> import plait
        >>> from plait_torch._functional_modules import make_functional
        >>> function, parameters = make_functional(plait.nn.Linear(2, 1))
        >>> function([plait.ones(1, 2), plait.zeros(1)], plait.tensor([1.0, 2.0]))
        tensor([3.])
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Any, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return a module as a function, and copies of its parameters and of its buffers.

    Args:
        model: the module.
        disable_autograd_tracking: whether the copies of parameters need no gradient.

    Example:
        >>> import plait
        >>> from plait_torch._functional_modules import make_functional_with_buffers
        >>> layer = plait.nn.BatchNorm1d(2)
        >>> function, parameters, buffers = make_functional_with_buffers(layer)
        >>> len(parameters), function(parameters, buffers, plait.ones(3, 2)).shape
        (2, plait.Size([3, 2]))
    """
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[Any],
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return modules of one class as one function for `vmap`, and their stacked tensors.

    Args:
        models: modules of one class, all in training or all in evaluation.

    Raises:
        RuntimeError: There is no module, or the modules differ in class or in mode.

    Example:
        >>> import plait
        >>> from plait_torch._functional_modules import combine_state_for_ensemble
        >>> layers = [plait.nn.Linear(2, 1) for _ in range(3)]
        >>> function, parameters, buffers = combine_state_for_ensemble(layers)
        >>> plait.func.vmap(function, (0, 0, None))(parameters, buffers, plait.ones(2)).shape
        plait.Size([3, 1])
    """
    name = "combine_state_for_ensemble"
    if not models:
        raise RuntimeError(f"{name}: Expected at least one model, got 0.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError(f"{name}: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError(f"{name}: Expected all models to be of the same class.")
    params, buffers = stack_module_state(models)
    function = make_functional_with_buffers(models[0])[0]
    return function, tuple(x.detach() for x in params.values()), tuple(buffers.values())
