"""Which modules inside a model `FullyShardedDataParallel` shards by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from plait_abi.components import require
from plait_distributed.fsdp._fully_shard import FSDPModule

__all__ = [
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "lambda_auto_wrap_policy",
    "shard_inside",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Shard every module by itself.

    Example:
        >>> from plait_distributed.fsdp.wrap import always_wrap_policy
        >>> always_wrap_policy()
        True
    """
    return True


def lambda_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Any], bool]
) -> bool:
    """Shard the modules for which a function is true.

    Args:
        module: The module.
        recurse: Whether it is asked about submodules; else about the module itself.
        nonwrapped_numel: Number of elements that no inner module has taken.
        lambda_fn: Says of a module whether it is wrapped.

    Example:
        >>> import plait_nn as nn
        >>> from plait_distributed.fsdp.wrap import lambda_auto_wrap_policy
        >>> lambda_auto_wrap_policy(nn.ReLU(), False, 0, lambda m: isinstance(m, nn.Linear))
        False
    """
    return recurse or bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type]
) -> bool:
    """Shard the layers of a transformer.

    Args:
        module: The module.
        recurse: Whether it is asked about submodules; else about the module itself.
        nonwrapped_numel: Number of elements that no inner module has taken.
        transformer_layer_cls: The classes to wrap.

    Example:
        >>> import plait_nn as nn
        >>> from plait_distributed.fsdp.wrap import transformer_auto_wrap_policy
        >>> transformer_auto_wrap_policy(nn.ReLU(), False, 0, {nn.TransformerEncoderLayer})
        False
    """
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Any,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: Iterable[type] | None = None,
    exclude_wrap_modules: Iterable[type] | None = None,
) -> bool:
    """Shard modules with many parameters that no module inside them has sharded.

    Args:
        module: the module in question.
        recurse: whether the question is to look inside it.
        nonwrapped_numel: its parameters' elements that are not sharded inside.
        min_num_params: how many are many.
        force_leaf_modules: classes that are not looked into; None: ``MultiheadAttention``.
        exclude_wrap_modules: classes that are not sharded; None: lists and dicts of modules.

    Example:
        >>> import plait_nn as nn
        >>> from plait_distributed.fsdp.wrap import size_based_auto_wrap_policy
        >>> size_based_auto_wrap_policy(nn.Linear(10, 10), False, 110, min_num_params=100)
        True
    """
    nn = require("nn")
    leaves = (nn.MultiheadAttention,) if force_leaf_modules is None else tuple(force_leaf_modules)
    containers = (nn.ModuleList, nn.ModuleDict)
    excluded = containers if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    many = nonwrapped_numel >= min_num_params
    if recurse:
        return many and not isinstance(module, leaves)
    return many and not isinstance(module, excluded)


class ModuleWrapPolicy:
    """Shard the modules of some classes by themselves.

    Args:
        module_classes: the classes.

    Example:
        >>> import plait_nn as nn
        >>> from plait_distributed.fsdp.wrap import ModuleWrapPolicy
        >>> ModuleWrapPolicy({nn.Linear})(nn.Linear(1, 1), recurse=False)
        True
    """

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._classes = tuple(module_classes)

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._classes)


def _numel(module: Any) -> int:
    """Return how many elements the parameters have that no module inside has sharded."""
    own = sum(int(p.numel()) for p in module._parameters.values() if p is not None)
    children = [m for m in module._modules.values() if m is not None]
    return own + sum(_numel(m) for m in children if not isinstance(m, FSDPModule))


def shard_inside(module: Any, policy: Callable[..., bool], shard: Callable[[Any], Any]) -> None:
    """Shard the modules inside another one that a policy chooses, the innermost first.

    Args:
        module: The module.
        policy: Says of a module whether it is sharded.
        shard: Called with each module to shard.

    Example:
        >>> import plait_nn as nn
        >>> from plait_distributed.fsdp.wrap import ModuleWrapPolicy, shard_inside
        >>> found = []
        >>> model = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
        >>> shard_inside(model, ModuleWrapPolicy({nn.Linear}), found.append)
        >>> [layer.in_features for layer in found]
        [1, 2]
    """
    for child in module._modules.values():
        if child is None or isinstance(child, FSDPModule):
            continue
        if policy(module=child, recurse=True, nonwrapped_numel=_numel(child)):
            shard_inside(child, policy, shard)
        if policy(module=child, recurse=False, nonwrapped_numel=_numel(child)) and _numel(child):
            shard(child)
