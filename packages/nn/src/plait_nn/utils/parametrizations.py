"""Ready parametrizations: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._halves import in_float32, widened
from plait_nn._module import Module
from plait_nn.utils._orthogonal import orthogonal
from plait_nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class WeightNormMap(Module):
    """``g v / |v|``, the norm over all dimensions but one; halves are computed in float32."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def _norm(self, v: Tensor) -> Tensor:
        if self.dim == -1:
            return pc.linalg.vector_norm(v)
        dims = tuple(d for d in range(v.ndim) if d != self.dim)
        return pc.linalg.vector_norm(v, 2, dims, True) if dims else v.abs()

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return self._scaled(g, v)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the norm and the weight itself."""
        return self._norm(weight.detach()), weight

    @in_float32
    def _scaled(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / self._norm(v))


class _OlderNames:
    """Renames g and v of `nn.utils.weight_norm` in a state that is loaded, as PyTorch does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, state: dict[str, Any], prefix: str, *others: Any) -> None:
        older = [f"{prefix}{self._name}_{letter}" for letter in "gv"]
        if all(key in state for key in older):
            for i, key in enumerate(older):
                state[f"{prefix}parametrizations.{self._name}.original{i}"] = state.pop(key)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    r"""Make a weight the product of a length and a direction, :math:`g \, v / \|v\|`.

    See Salimans and Kingma 2016. The originals are g (``original0``) and v (``original1``). A state
    of `nn.utils.weight_norm`, with ``<name>_g`` and ``<name>_v``, can be loaded.

    Args:
        module: The module.
        name: Its parameter.
        dim: The dimension that keeps its own lengths; None or -1: there is one length.

    Returns:
        The module.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
        >>> tuple(layer.parametrizations.weight.original0.shape)
        (40, 1)
    """
    result = register_parametrization(module, name, WeightNormMap(dim), unsafe=True)
    result._register_load_state_dict_pre_hook(_OlderNames(name))
    return result


class _SpectralNorm(Module):
    """The weight divided by its largest singular value, found by power iteration."""

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if n_power_iterations < 1:
            raise ValueError(
                f"spectral_norm: `n_power_iterations` must be positive; got {n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            matrix = self._matrix(weight.detach())
            for label, size in zip(("_u", "_v"), matrix.shape, strict=True):
                drawn = pc.randn(size, dtype=matrix.dtype, device=matrix.device)
                self.register_buffer(label, F.normalize(drawn, dim=0, eps=eps))
            self._iterate(widened(matrix), 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            others = tuple(d for d in range(weight.ndim) if d != self.dim)
            weight = weight.permute((self.dim, *others))
        return weight.flatten(1) if weight.ndim > 1 else weight

    def _iterate(self, matrix: Tensor, times: int) -> None:
        u, v = widened(self._u), widened(self._v)
        for _ in range(times):
            u = F.normalize(matrix @ v, dim=0, eps=self.eps)
            v = F.normalize(matrix.t() @ u, dim=0, eps=self.eps)
        self._u.copy_(u)
        self._v.copy_(v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        wide = widened(weight)
        matrix = self._matrix(wide)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # copies, as the next iteration writes to the buffers
        u, v = widened(self._u.clone()), widened(self._v.clone())
        return (wide / (u * (matrix @ v)).sum()).to(weight.dtype)

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value as it is."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    r"""Divide a weight by its largest singular value, :math:`W / \sigma(W)` (Miyato et al. 2018).

    Every access in training takes one more step of the power iteration that finds it.

    Args:
        module: The module.
        name: Its parameter, seen as a matrix of ``dim`` against all other dimensions.
        n_power_iterations: Steps for every access in training.
        eps: Keeps norms away from 0.
        dim: The dimension of the outputs; None is 1 for transposed convolutions, else 0.

    Returns:
        The module.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40))
        >>> abs(pc.linalg.matrix_norm(layer.weight.detach(), 2).item() - 1) < 0.1
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"spectral_norm: `{name}` must be a parameter of {type(module).__name__}")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    result = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, result)
