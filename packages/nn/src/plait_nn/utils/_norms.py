"""Weight norm and spectral norm as hooks of modules."""

from __future__ import annotations

import abc
import functools
from typing import Any, ClassVar, TypeVar

import plait_core as pc
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._halves import widened
from plait_nn._module import Module
from plait_nn._parameter import Parameter
from plait_nn.utils.parametrizations import WeightNormMap

H = TypeVar("H", bound="NormHook")


class NormHook(abc.ABC):
    """A hook that computes a parameter's value before every call of its module."""

    what: ClassVar[str]  # the name in errors

    def __init__(self, name: str) -> None:
        self.name = name

    @abc.abstractmethod
    def __call__(self, module: Module, args: Any) -> None:
        """Set the parameter's value."""

    @classmethod
    def _find(cls: type[H], module: Module, name: str) -> tuple[int, H] | None:
        for number, hook in module._forward_pre_hooks.items():
            if isinstance(hook, cls) and hook.name == name:
                return number, hook
        return None

    @classmethod
    def of(cls: type[H], module: Module, name: str) -> tuple[int, H]:
        """Return the number and the hook of a parameter that must have one."""
        hook = cls._find(module, name)
        if hook is None:
            function = "remove_" + cls.what.replace(" ", "_")
            raise ValueError(f"{function}: `{name}` must have a {cls.what}; it has none")
        return hook

    @classmethod
    def parameter(cls, module: Module, name: str) -> Parameter:
        """Return a parameter that must not have such a hook yet."""
        function = cls.what.replace(" ", "_")
        if cls._find(module, name) is not None:
            raise RuntimeError(f"{function}: `{name}` must not have a {cls.what}; it has one")
        parameter = module._parameters.get(name)
        if parameter is None:
            raise ValueError(f"{function}: `{name}` must be a parameter of {type(module).__name__}")
        return parameter


M = TypeVar("M", bound=Module)


@functools.cache
def _map(dim: int) -> WeightNormMap:
    return WeightNormMap(dim)


class WeightNorm(NormHook):
    """The hook of `weight_norm`.

    Example:
        >>> import plait_nn as nn
        >>> from plait_nn.utils._norms import WeightNorm
        >>> layer = nn.utils.weight_norm(nn.Linear(20, 40))
        >>> [hook.name for hook in layer._forward_pre_hooks.values() if type(hook) is WeightNorm]
        ['weight']
    """

    what = "weight norm"

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = -1 if dim is None else dim

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace a parameter as `weight_norm` does, and return the hook."""
        weight = WeightNorm.parameter(module, name)
        hook = WeightNorm(name, dim)
        g, v = _map(hook.dim).right_inverse(weight.detach())
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(g, weight.requires_grad))
        module.register_parameter(name + "_v", Parameter(v, weight.requires_grad))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def compute_weight(self, module: Module) -> Tensor:
        """Return the weight of the present length and direction."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        weight: Tensor = _map(self.dim).forward(g, v)
        return weight

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter again; the hook itself remains."""
        value = self.compute_weight(module).detach()
        requires_grad = getattr(module, self.name + "_v").requires_grad
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        module.register_parameter(self.name, Parameter(value, requires_grad))

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    r"""Replace a parameter by a length and a direction, :math:`g \, v / \|v\|`.

    The parameters ``<name>_g`` and ``<name>_v`` replace it; a hook computes ``<name>`` before every
    call. New programs use `parametrizations.weight_norm`, which also works without a call.

    Args:
        module: The module.
        name: Its parameter.
        dim: The dimension that keeps its own lengths; None: there is one length.

    Raises:
        RuntimeError: The parameter has a weight norm already.
        ValueError: There is no such parameter.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.weight_norm(nn.Linear(20, 40))
        >>> tuple(layer.weight_g.shape), tuple(layer.weight_v.shape)
        ((40, 1), (40, 20))
    """
    warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the weight an ordinary parameter again, with its present value.

    Args:
        module: The module.
        name: The parameter's name.

    Raises:
        ValueError: The parameter has no weight norm.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(20, 40)))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    number, hook = WeightNorm.of(module, name)
    hook.remove(module)
    del module._forward_pre_hooks[number]
    return module


class SpectralNorm(NormHook):
    """The hook of `spectral_norm`.

    Example:
        >>> import plait_nn as nn
        >>> from plait_nn.utils._norms import SpectralNorm
        >>> layer = nn.Linear(20, 40)
        >>> SpectralNorm.apply(layer, "weight", 1, 0, 1e-12).compute_weight(layer, False).shape
        plait.Size([40, 20])
    """

    what = "spectral norm"

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations < 1:
            raise ValueError(
                f"spectral_norm: `n_power_iterations` must be positive; got {n_power_iterations}"
            )
        super().__init__(name)
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Replace a parameter as `spectral_norm` does, and return the hook."""
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = SpectralNorm.parameter(module, name)
        hook.dim = dim % max(weight.ndim, 1)
        sizes = hook.reshape_weight_to_matrix(weight.detach()).shape
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.detach())
        for label, size in zip(("_u", "_v"), sizes, strict=True):
            drawn = pc.randn(size, dtype=weight.dtype, device=weight.device)
            module.register_buffer(name + label, F.normalize(drawn, dim=0, eps=eps))
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix of its dimension `dim` against all others."""
        others = tuple(d for d in range(weight.ndim) if d != self.dim)
        if self.dim != 0:
            weight = weight.permute((self.dim, *others))
        return weight.reshape((weight.shape[0], -1))

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the weight over its largest singular value, with or without better vectors."""
        iterations = self.n_power_iterations if do_power_iteration else 0
        weight: Tensor = getattr(module, self.name + "_orig")
        vectors = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        # copies, as the next iteration writes to the buffers
        u, v = widened(vectors[0].clone()), widened(vectors[1].clone())
        wide = widened(weight)
        matrix = self.reshape_weight_to_matrix(wide)
        fixed = matrix.detach()
        for _ in range(iterations):
            v = F.normalize(fixed.t() @ u, dim=0, eps=self.eps)
            u = F.normalize(fixed @ v, dim=0, eps=self.eps)
        if iterations:
            vectors[0].copy_(u)
            vectors[1].copy_(v)
        return (wide / (u * (matrix @ v)).sum()).to(weight.dtype)

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter again; the hook itself remains."""
        value = self.compute_weight(module, False).detach()
        requires_grad = getattr(module, self.name + "_orig").requires_grad
        for label in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + label)
        module.register_parameter(self.name, Parameter(value, requires_grad))

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


class SpectralNormStateDictHook:
    """Notes in the metadata of a `state_dict` which form a spectral norm's entries have.

    Example:
        >>> import plait_nn as nn
        >>> state = nn.utils.spectral_norm(nn.Linear(2, 4)).state_dict()
        >>> state._metadata[""]["spectral_norm"]
        {'weight.version': 1}
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, module: Module, state_dict: dict[str, Any], prefix: str, local_metadata: Any
    ) -> None:
        local_metadata.setdefault("spectral_norm", {})[f"{self.fn.name}.version"] = 1


class SpectralNormLoadStateDictPreHook:
    """Leaves the computed weight out, which checkpoints of PyTorch before 1.1 have.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.spectral_norm(nn.Linear(2, 4))
        >>> old = {**layer.state_dict(), "weight": layer.weight.detach()}
        >>> layer.load_state_dict(old)
        <All keys matched successfully>
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, *arguments: Any
    ) -> None:
        notes = (local_metadata or {}).get("spectral_norm", {})
        if notes.get(f"{self.fn.name}.version") is None:
            state_dict.pop(prefix + self.fn.name, None)


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    r"""Divide a parameter by its largest singular value before every call (Miyato et al. 2018).

    The parameter ``<name>_orig`` and the buffers ``<name>_u`` and ``<name>_v`` replace it. New
    programs use `parametrizations.spectral_norm`, which also works without a call.

    Args:
        module: The module.
        name: Its parameter, seen as a matrix of ``dim`` against all other dimensions.
        n_power_iterations: Steps of the power iteration for every call in training.
        eps: Keeps norms away from 0.
        dim: The dimension of the outputs; None is 1 for transposed convolutions, else 0.

    Raises:
        RuntimeError: The parameter has a spectral norm already.
        ValueError: There is no such parameter, or ``n_power_iterations`` is not positive.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.utils.spectral_norm(nn.Linear(20, 40), n_power_iterations=50)
        >>> out = layer(pc.ones(1, 20))
        >>> abs(pc.linalg.matrix_norm(layer.weight.detach(), 2).item() - 1) < 0.1
        True
    """
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make the weight an ordinary parameter again, with its present value.

    Args:
        module: The module.
        name: The parameter's name.

    Raises:
        ValueError: The parameter has no spectral norm.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(2, 4)))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    number, hook = SpectralNorm.of(module, name)
    hook.remove(module)
    del module._forward_pre_hooks[number]
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key, each in list(hooks.items()):
            if getattr(getattr(each, "hook", each), "fn", None) is hook:
                del hooks[key]
    return module
