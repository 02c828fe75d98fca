"""Pruning: parameters with zeros that stay zeros.

Each function replaces a parameter ``weight`` by ``weight_orig``, a parameter, and ``weight_mask``,
a buffer; ``weight`` is their product, computed again before every call of the module. A second
function prunes the remaining elements. `remove` makes it permanent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import plait_core as pc
from plait_core import Tensor
from plait_nn._module import Module
from plait_nn.utils._pruning_methods import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    pruning_of,
)

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

M = TypeVar("M", bound=Module)


def identity(module: M, name: str) -> M:
    """Give a parameter a mask of ones; return the module.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.prune.identity(nn.Linear(2, 2), "bias")
        >>> layer.bias_mask.tolist()
        [1.0, 1.0]
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: float) -> M:
    """Prune elements at random; return the module.

    Args:
        module: The module.
        name: Its parameter.
        amount: The fraction (a float in [0, 1]) or the number (an int) of elements to prune, of
            those that are left.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.prune.random_unstructured(nn.Linear(2, 3), "weight", 0.5)
        >>> int(layer.weight_mask.sum())
        3
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: M, name: str, amount: float, importance_scores: Tensor | None = None
) -> M:
    """Prune the elements of the smallest absolute values; return the module.

    Args:
        module: The module.
        name: Its parameter.
        amount: The fraction (float) or the number (int) of elements, of those that are left.
        importance_scores: Scores to use instead of the parameter, of the same shape.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Linear(2, 2)
        >>> layer.weight.data = pc.tensor([[1.0, -4.0], [3.0, 2.0]])
        >>> nn.utils.prune.l1_unstructured(layer, "weight", 2).weight.tolist()
        [[0.0, -4.0], [3.0, 0.0]]
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Prune channels of a dimension at random; return the module.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.prune.random_structured(nn.Linear(2, 4), "weight", 3, dim=0)
        >>> int(layer.weight_mask.sum())
        2
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> M:
    """Prune the channels of a dimension that have the smallest n-norms; return the module.

    Args:
        module: The module.
        name: Its parameter, of at least two dimensions.
        amount: The fraction (float) or the number (int) of channels, of those that are left.
        n: The order of the norm, as for `plait_core.norm`.
        dim: The dimension of the channels.
        importance_scores: Scores to use instead of the parameter, of the same shape.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Linear(2, 2)
        >>> layer.weight.data = pc.tensor([[1.0, -4.0], [3.0, 2.0]])
        >>> nn.utils.prune.ln_structured(layer, "weight", 1, n=2, dim=0).weight.tolist()
        [[1.0, -4.0], [0.0, 0.0]]
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prune a parameter where a mask has zeros; return the module.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(2, 2), "bias", pc.tensor([0, 1]))
        >>> layer.bias_mask.tolist()
        [0.0, 1.0]
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Callable[..., BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one tensor.

    Args:
        parameters: Pairs of a module and a name.
        pruning_method: An unstructured method, such as `L1Unstructured`.
        importance_scores: What to judge some of them by.
        kwargs: What the method is made with, such as ``amount``.

    Raises:
        TypeError: The method is none of single elements.

    Example:
        >>> import plait_nn as nn
        >>> from plait_nn.utils import prune
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
        >>> pairs = [(model[0], "weight"), (model[1], "weight")]
        >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=12)
        >>> sum(int((module.weight == 0).sum()) for module, _ in pairs)
        12
    """
    pairs = list(parameters)
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"global_unstructured: an unstructured method is required; "
            f"got {type(method).__name__}, which is {method.PRUNING_TYPE}"
        )
    given = {} if importance_scores is None else importance_scores
    scores, masks = [], []
    for module, name in pairs:
        pruned = pruning_of(module, name) is not None
        value = getattr(module, f"{name}_orig" if pruned else name).detach()
        mask = getattr(module, f"{name}_mask") if pruned else pc.ones_like(value)
        scores.append(given.get((module, name), value).detach().flatten())
        masks.append(mask.flatten())
    chain = PruningContainer()
    chain._tensor_name = method._tensor_name = "temporary"
    chain.add_pruning_method(method)
    final = chain.compute_mask(pc.cat(scores), pc.cat(masks))
    start = 0
    for (module, name), mask in zip(pairs, masks, strict=True):
        part = final[start : start + mask.numel()]
        start += mask.numel()
        custom_from_mask(module, name, part.reshape(tuple(getattr(module, name).shape)))


def remove(module: M, name: str) -> M:
    """Make a pruned parameter an ordinary one that has zeros; return the module.

    Raises:
        ValueError: The parameter is not pruned.

    Example:
        >>> import plait_nn as nn
        >>> from plait_nn.utils import prune
        >>> layer = prune.random_unstructured(nn.Linear(2, 3), "weight", 2)
        >>> sorted(prune.remove(layer, "weight").state_dict()), int((layer.weight == 0).sum())
        (['bias', 'weight'], 2)
    """
    method = pruning_of(module, name)
    if method is None:
        raise ValueError(
            f"prune.remove: `{name}` of {type(module).__name__} must be pruned; it is not"
        )
    method[1].remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of the module, or of a module below it, is pruned.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.Linear(2, 3)
        >>> before = nn.utils.prune.is_pruned(layer)
        >>> before, nn.utils.prune.is_pruned(nn.utils.prune.identity(layer, "weight"))
        (False, True)
    """
    hooks = (hook for each in module.modules() for hook in each._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)
