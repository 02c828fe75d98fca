"""`torch.nn.utils` beside plait's: weight and spectral norm as hooks, and older names."""

from __future__ import annotations

from typing import Any, TypeVar

import plait
import plait.nn.functional as F
from plait.nn.utils import clip_grad_norm_

__all__ = [
    "clip_grad_norm",
    "remove_spectral_norm",
    "remove_weight_norm",
    "skip_init",
    "spectral_norm",
    "weight_norm",
]

M = TypeVar("M", bound=plait.nn.Module)

clip_grad_norm = clip_grad_norm_


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a module; PyTorch's leaves its parameters without values, here they have their own."""
    return module_cls(*args, **kwargs)


class _Hook:
    """Computes a parameter from others before every ``forward``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def put_on(self, module: Any) -> None:
        for hook in module._forward_pre_hooks.values():
            if _hook_of(hook, type(self), self.name) is not None:
                raise RuntimeError(f"{type(self).__name__}: `{self.name}` has one already")
        weight = module._parameters.pop(self.name, None)
        if weight is None:
            raise ValueError(f"{type(module).__name__} has no parameter `{self.name}`")
        self.start(module, weight)
        module.__dict__.pop(self.name, None)
        self.set(module)
        module.register_forward_pre_hook(self)

    def set(self, module: Any) -> None:
        object.__setattr__(module, self.name, self.compute(module))

    def take_off(self, module: Any) -> None:
        with plait.no_grad():
            weight = self.compute(module).detach().clone()
        module.__dict__.pop(self.name, None)
        self.end(module)
        module.register_parameter(self.name, plait.nn.Parameter(weight))

    def __call__(self, module: Any, inputs: Any) -> None:
        self.set(module)

    def start(self, module: Any, weight: Any) -> None:
        raise NotImplementedError

    def compute(self, module: Any) -> Any:
        raise NotImplementedError

    def end(self, module: Any) -> None:
        raise NotImplementedError


class _WeightNorm(_Hook):
    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = dim

    def _norm(self, v: Any) -> Any:
        if self.dim is None or self.dim == -1:
            return v.norm()
        dims = tuple(d for d in range(v.dim()) if d != self.dim % v.dim())
        return (v * v).sum(dims, True).sqrt() if dims else v.abs()

    def start(self, module: Any, weight: Any) -> None:
        module.register_parameter(
            self.name + "_g", plait.nn.Parameter(self._norm(weight.detach()).clone())
        )
        module.register_parameter(self.name + "_v", plait.nn.Parameter(weight.detach()))

    def compute(self, module: Any) -> Any:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / self._norm(v))

    def end(self, module: Any) -> None:
        delattr(module, self.name + "_g")
        delattr(module, self.name + "_v")


class _SpectralNorm(_Hook):
    def __init__(self, name: str, rounds: int, dim: int, eps: float) -> None:
        super().__init__(name)
        self.rounds, self.dim, self.eps = rounds, dim, eps

    def _matrix(self, weight: Any) -> Any:
        return weight.movedim(self.dim, 0).flatten(1)

    def start(self, module: Any, weight: Any) -> None:
        matrix = self._matrix(weight.detach())
        module.register_parameter(self.name + "_orig", plait.nn.Parameter(weight.detach()))
        for end, size in zip("uv", matrix.shape, strict=True):
            drawn = plait.randn(size, dtype=weight.dtype)
            module.register_buffer(f"{self.name}_{end}", F.normalize(drawn, dim=0, eps=self.eps))

    def set(self, module: Any) -> None:
        if module.training:
            with plait.no_grad():
                self._iterate(module)
        super().set(module)

    def _iterate(self, module: Any) -> None:
        matrix = self._matrix(getattr(module, self.name + "_orig"))
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        for _ in range(self.rounds):
            v.copy_(F.normalize(matrix.t() @ u, dim=0, eps=self.eps))
            u.copy_(F.normalize(matrix @ v, dim=0, eps=self.eps))

    def compute(self, module: Any) -> Any:
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        return weight / plait.dot(u.clone(), self._matrix(weight) @ v.clone())

    def end(self, module: Any) -> None:
        for end in ("_orig", "_u", "_v"):
            delattr(module, self.name + end)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    r"""Make a parameter the product of a length and a direction, :math:`g \, v / \|v\|`.

    PyTorch's older form, with the parameters ``weight_g`` and ``weight_v``; the newer one is
    `nn.utils.parametrizations.weight_norm`.

    Example:
        >>> import plait
        >>> from plait.torch._nn_utils import weight_norm
        >>> sorted(weight_norm(plait.nn.Linear(2, 3)).state_dict())
        ['bias', 'weight_g', 'weight_v']
    """
    _WeightNorm(name, dim).put_on(module)
    return module


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a parameter by its largest singular value, found by power iteration.

    PyTorch's older form, with ``weight_orig``, ``weight_u`` and ``weight_v``; the newer one is
    `nn.utils.parametrizations.spectral_norm`.

    Example:
        >>> import plait
        >>> from plait.torch._nn_utils import spectral_norm
        >>> layer = spectral_norm(plait.nn.Linear(2, 2, bias=False), n_power_iterations=30)
        >>> bool((plait.linalg.svdvals(layer.weight)[0] - 1).abs() < 1e-3)
        True
    """
    if dim is None:
        transposed = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
        dim = int(any(isinstance(module, getattr(plait.nn, each)) for each in transposed))
    _SpectralNorm(name, n_power_iterations, dim, eps).put_on(module)
    return module


def _hook_of(hook: Any, kind: type, name: str) -> Any:
    """Return the hook of a kind for a name in a registration, or None."""
    function = getattr(hook, "function", hook)
    return function if isinstance(function, kind) and function.name == name else None


def _remove(module: Any, kind: type, name: str) -> None:
    for key, hook in list(module._forward_pre_hooks.items()):
        found = _hook_of(hook, kind, name)
        if found is not None:
            del module._forward_pre_hooks[key]
            found.take_off(module)
            return
    raise ValueError(f"{type(module).__name__} has no {kind.__name__[1:]} of `{name}`")


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the parameter what `weight_norm` computed last; raise ValueError without one."""
    _remove(module, _WeightNorm, name)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make the parameter what `spectral_norm` computes; raise ValueError without one."""
    _remove(module, _SpectralNorm, name)
    return module
