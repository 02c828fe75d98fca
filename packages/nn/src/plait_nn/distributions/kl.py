"""`kl_divergence` between two distributions, and `register_kl` for further pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from plait_core import Tensor
from plait_nn.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_Function = Callable[[Any, Any], Tensor]
_F = TypeVar("_F", bound=_Function)

# PyTorch's names, which libraries read
_KL_REGISTRY: dict[tuple[type, type], _Function] = {}
_KL_MEMOIZE: dict[tuple[type, type], _Function | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_F], _F]:
    """Decorate the function that gives ``kl_divergence(p, q)`` for distributions of two types.

    If several functions fit, the most specific one is called, first by the type of p.

    Example:
        >>> from plait_nn.distributions import Normal, kl_divergence, register_kl
        >>> class Standard(Normal):
        ...     pass
        >>> @register_kl(Standard, Standard)
        ... def _(p, q):
        ...     return p.loc * 0
        >>> kl_divergence(Standard(0.0, 1.0), Standard(0.0, 1.0))
        tensor(0.)
    """
    for each in (type_p, type_q):
        # a base class may be one that does not derive from `Distribution`
        if not (isinstance(each, type) and hasattr(each, "log_prob")):
            raise TypeError(f"register_kl: a type of distributions is required; got {each!r}")

    def decorate(function: _F) -> _F:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorate


def _find(type_p: type, type_q: type) -> _Function | None:
    for base_p in type_p.__mro__:
        for base_q in type_q.__mro__:
            found = _KL_REGISTRY.get((base_p, base_q))
            if found is not None:
                return found
    return None


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return Kullback's and Leibler's divergence, the mean of ``log(p(x) / q(x))`` under p.

    Shapes: the broadcast shape of the batches.

    Raises:
        NotImplementedError: for a pair of types that has no closed form here; see `register_kl`.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(pc.tensor([0.0, 1.0]), 1.0), Normal(0.0, 1.0))
        tensor([0.0000, 0.5000])
    """
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _find(*key)
    function = _KL_MEMOIZE[key]
    if function is None:
        raise NotImplementedError(
            f"kl_divergence: no closed form is registered for {key[0].__name__} and "
            f"{key[1].__name__}; use register_kl, or the mean of "
            "p.log_prob(x) - q.log_prob(x) over samples of p"
        )
    return function(p, q)
