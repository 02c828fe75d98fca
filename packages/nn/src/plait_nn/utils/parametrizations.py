"""Ready parametrizations: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._halves import in_float32, widened
from plait_nn._module import Module
from plait_nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


_MAPS = ("matrix_exp", "cayley", "householder")


def _orthonormal(matrix: Tensor) -> Tensor:
    """The Q of the QR decomposition whose R has a non-negative diagonal."""
    q, r = pc.linalg.qr(matrix)
    phases = pc.sgn(r.diagonal(dim1=-2, dim2=-1))
    return q * pc.where(phases == 0, pc.ones_like(phases), phases).unsqueeze(-2)


def _is_orthonormal(q: Tensor) -> bool:
    k = q.shape[-1]
    eye = pc.eye(k, dtype=q.dtype, device=q.device)
    bound = 10 * k * pc.finfo(q.dtype).eps
    return bool((((q.mH @ q) - eye).abs() <= bound).all())


class _Orthogonal(Module):
    """The orthogonal matrix of a parameter by exp, Cayley or Householder, times a base."""

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = tuple(weight.shape)
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, free: Tensor) -> Tensor:
        return self._orthogonal(free)

    @in_float32
    def _orthogonal(self, free: Tensor) -> Tensor:
        wide = free.shape[-2] < free.shape[-1]
        tall = free.mT if wide else free
        q = self._reflections(tall) if self.orthogonal_map == "householder" else self._map(tall)
        if self.use_trivialization:
            q = widened(self.base) @ q
        return q.mT if wide else q

    def _map(self, tall: Tensor) -> Tensor:
        """Columns of exp(A) or of (I + A/2)(I - A/2)^-1 for the skew A of the lower triangle."""
        n, k = tall.shape[-2:]
        lower = tall.tril()
        if n != k:
            missing = pc.zeros((*tall.shape[:-2], n, n - k), dtype=tall.dtype, device=tall.device)
            lower = pc.cat([lower, missing], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            full = pc.linalg.matrix_exp(skew)
        else:
            eye = pc.eye(n, dtype=skew.dtype, device=skew.device)
            full = pc.linalg.solve(eye - skew * 0.5, eye + skew * 0.5)
        return full if n == k else full[..., :k]

    def _reflections(self, tall: Tensor) -> Tensor:
        """The product of the reflections whose vectors stand below the diagonal."""
        vectors = tall.tril(-1)
        tau = 2.0 / (1.0 + (vectors * vectors).sum(-2))
        signs = tall.detach().diagonal(dim1=-2, dim2=-1).unsqueeze(-2)
        product: Tensor = pc.linalg.householder_product(vectors, tau) * signs.trunc()
        return product

    def right_inverse(self, value: Tensor) -> Tensor:
        """Set the base to the value, made orthogonal where it is not, and return the start."""
        if tuple(value.shape) != self.shape:
            raise ValueError(
                f"orthogonal: a value of shape {self.shape} is required; got {tuple(value.shape)}"
            )
        value = value.detach()
        wide = value.shape[-2] < value.shape[-1]
        tall = value.mT if wide else value
        if not self.use_trivialization:
            return self._reflected(tall, wide)
        n, k = tall.shape[-2:]
        if n != k:  # completed to a basis of the whole space
            shape = (*tall.shape[:-2], n, n - k)
            more = pc.randn(shape, dtype=tall.dtype, device=tall.device)
            self.base = _orthonormal(pc.cat([tall, more], -1))
        else:
            self.base = tall.clone() if _is_orthonormal(tall) else _orthonormal(tall)
        start = pc.zeros_like(value)
        # start values whose product of reflections is I
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start

    def _reflected(self, tall: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                f"orthogonal: with use_trivialization=False a value can be assigned to the map "
                f"'householder' alone; got '{self.orthogonal_map}'"
            )
        vectors, tau = pc.geqrf(tall)
        diagonal = vectors.diagonal(dim1=-2, dim2=-1)
        signs = diagonal.sign()
        # the determinant is -1: one reflection is undone
        diagonal.copy_(pc.where(tau == 0, -signs, signs))
        return vectors.mT if wide else vectors


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    r"""Keep a weight orthogonal: :math:`Q^H Q = I`, or :math:`Q Q^H = I` where it is wide.

    A tensor of more than two dimensions is a batch of matrices. The maps take a free parameter X:

    - ``"matrix_exp"``: :math:`\exp(A)` of the skew matrix :math:`A = L - L^H`, L = tril(X);
    - ``"cayley"``: :math:`(I + A/2)(I - A/2)^{-1}`;
    - ``"householder"``: the product of the reflections of the columns of X below the diagonal.

    Args:
        module: The module.
        name: Its parameter, of at least two dimensions.
        orthogonal_map: One of the three; None: ``"matrix_exp"`` of square or complex matrices,
            else ``"householder"``.
        use_trivialization: Multiply by a base, the buffer ``base``, which is set by assignments
            (Lezcano-Casado 2019). The first value is that of the parameter, if it is orthogonal,
            else the Q of its QR decomposition.

    Returns:
        The module.

    Raises:
        ValueError: There is no such parameter, it has fewer than two dimensions, the map is
            unknown, or it is ``"householder"`` of complex numbers.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(20, 40))
        >>> q = layer.weight
        >>> bool(((q.T @ q - pc.eye(20)).abs() < 1e-5).all())
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"orthogonal: `{name}` must be a parameter of {type(module).__name__}")
    if weight.ndim < 2:
        raise ValueError(
            f"orthogonal: `{name}` must have at least two dimensions; "
            f"got shape {tuple(weight.shape)}"
        )
    if orthogonal_map is None:
        square = weight.shape[-1] == weight.shape[-2]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f"orthogonal: `orthogonal_map` must be one of {_MAPS}; got {orthogonal_map!r}"
        )
    if orthogonal_map == "householder" and weight.is_complex():
        raise ValueError("orthogonal: the map 'householder' must have real numbers; got complex")
    result = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, result, unsafe=True)


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
