"""Pruning: parameters with zeros that stay zeros.

Each function replaces a parameter ``weight`` by ``weight_orig``, a parameter, and ``weight_mask``,
a buffer; ``weight`` is their product, computed again before every call of the module. A second
function prunes the remaining elements. `remove` makes it permanent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import plait_core as pc
from plait_abi import OutOfRangeError
from plait_core import Tensor
from plait_nn._module import Module

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


def _count(amount: Any, size: int) -> int:
    """Return the number of elements of ``size`` for a fraction (float) or a number (int)."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"prune: `amount` must be an int or a float; got {type(amount).__name__}")
    if isinstance(amount, float):
        if not 0.0 <= amount <= 1.0:
            raise ValueError(f"prune: a float `amount` must be in [0, 1]; got {amount}")
        return round(amount * size)
    if not 0 <= amount <= size:
        raise ValueError(f"prune: an int `amount` must be in [0, {size}]; got {amount}")
    return amount


def _zeroed(mask: Tensor, indices: Tensor) -> Tensor:
    """Return a copy of the mask with 0 at flat indices."""
    result = mask.clone().flatten()
    result[indices] = 0
    return result.reshape(tuple(mask.shape))


class BasePruningMethod:
    """The base class of pruning methods, which define `compute_mask`.

    ``PRUNING_TYPE`` says which elements a second method on the same parameter considers:
    ``"unstructured"`` those that are left, ``"structured"`` the channels that are left,
    ``"global"`` all.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> from plait_nn.utils import prune
        >>> class Negative(prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...     def compute_mask(self, t, default_mask):
        ...         return default_mask * (t >= 0)
        >>> layer = nn.Linear(3, 3)
        >>> _ = Negative.apply(layer, "bias")
        >>> bool((layer.bias >= 0).all())
        True
    """

    PRUNING_TYPE = "global"
    _tensor_name: str
    dim = -1

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for a tensor: `default_mask` with more zeros.

        Args:
            t: The tensor to prune.
        """
        raise NotImplementedError(f"{type(self).__name__}: compute_mask must be defined")

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Tensor:
        """Return the pruned value of the parameter.

        Args:
            module: The module whose tensor it is.
        """
        name = self._tensor_name
        original = getattr(module, name + "_orig")
        pruned: Tensor = getattr(module, name + "_mask").to(original.dtype) * original
        return pruned

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Return a tensor with zeros where the method prunes it.

        Args:
            t: The tensor.
            default_mask: The mask of existing pruning; None: none.
            importance_scores: Scores to use instead of the tensor.
        """
        scores = _scores(t, importance_scores)
        mask = pc.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune a parameter of a module; return the method, which is its hook from now on.

        Args:
            module: The module.
            name: Its parameter.
            importance_scores: Values by which elements are ranked; None takes the parameter.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        present = pruning_of(module, name)
        if present is None:
            original = module._parameters.get(name)
            if original is None:
                raise ValueError(f"prune: `{name}` must be a parameter of {type(module).__name__}")
            mask = pc.ones_like(original.detach())
        else:
            original = getattr(module, name + "_orig")
            mask = getattr(module, name + "_mask")
        value = original if present is None else present[1].apply_mask(module)
        scores = _scores(value, importance_scores).detach()
        if present is None:
            mask = method.compute_mask(scores, mask)
            del module._parameters[name]
            module.register_parameter(name + "_orig", original)
            module.register_buffer(name + "_mask", mask.to(original.dtype))
        else:
            number, first = present
            chain = first if isinstance(first, PruningContainer) else PruningContainer(first)
            chain.add_pruning_method(method)
            mask = chain.compute_mask(scores, mask)
            setattr(module, name + "_mask", mask.to(original.dtype))
            del module._forward_pre_hooks[number]
            method = chain
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def remove(self, module: Module) -> None:
        """Make the pruned parameter an ordinary one, with zeros where it was pruned.

        Args:
            module: The module.
        """
        name = self._tensor_name
        method = pruning_of(module, name)
        if method is None or method[1] is not self:
            raise ValueError(f"prune.remove: `{name}` must be pruned by this method; it is not")
        original = getattr(module, name + "_orig")
        value = self.apply_mask(module).detach()
        for label in ("", "_orig", "_mask"):
            delattr(module, name + label)
        original.data = value
        module.register_parameter(name, original)
        del module._forward_pre_hooks[method[0]]


def pruning_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """Find the hook that prunes a parameter, and its number."""
    for number, method in module._forward_pre_hooks.items():
        if isinstance(method, BasePruningMethod) and method._tensor_name == name:
            return number, method
    return None


def _scores(t: Tensor, scores: Tensor | None) -> Tensor:
    if scores is None:
        return t
    if tuple(scores.shape) != tuple(t.shape):
        raise ValueError(
            f"prune: `importance_scores` must have the parameter's shape {tuple(t.shape)}; "
            f"got {tuple(scores.shape)}"
        )
    return scores


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter, in the order in which they were applied.

    Example:
        >>> import plait_nn as nn
        >>> from plait_nn.utils import prune
        >>> layer = nn.Linear(4, 4)
        >>> _ = prune.random_unstructured(layer, "weight", 4)
        >>> _ = prune.l1_unstructured(layer, "weight", 4)
        >>> int((layer.weight == 0).sum())
        8
    """

    def __init__(self, *args: BasePruningMethod | Iterable[BasePruningMethod]) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        self._tensor_name = ""
        for argument in args:
            for method in [argument] if isinstance(argument, BasePruningMethod) else argument:
                self._tensor_name = self._tensor_name or method._tensor_name
                self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method for the same parameter.

        Args:
            method: The method, which acts on what the others leave.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(
                f"PruningContainer: a BasePruningMethod is required; got {type(method).__name__}"
            )
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"PruningContainer: a method for `{self._tensor_name}` is required; "
                f"got one for `{method._tensor_name}`"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask after the last method, applied to the remaining elements that it
        considers.
        """
        method = self._pruning_methods[-1]
        if method.PRUNING_TYPE == "unstructured":
            left: Any = default_mask != 0
        elif method.PRUNING_TYPE == "structured":
            others = tuple(d for d in range(t.ndim) if d != method.dim % t.ndim)
            unpruned = default_mask.sum(others) != 0 if others else default_mask != 0
            left = (*[slice(None)] * (method.dim % t.ndim), unpruned)
        else:
            left = slice(None)
        mask = default_mask.clone()
        mask[left] = method.compute_mask(t[left], default_mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing: the parameter gets a mask of ones.

    Example:
        >>> import plait_nn as nn
        >>> from plait_nn.utils import prune
        >>> _ = prune.Identity.apply(layer := nn.Linear(2, 2), "weight")
        >>> layer.weight_mask.tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask as it is."""
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random; `random_unstructured` says more.

    Args:
        amount: How much is pruned: a part in [0, 1], or a number of elements or slices.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.utils import prune
        >>> int(prune.RandomUnstructured(3).prune(pc.ones(5)).sum())
        2
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with zeros at random indices."""
        number = _count(self.amount, t.numel())
        return _zeroed(default_mask, pc.rand(t.numel(), device=t.device).topk(number)[1])


class L1Unstructured(BasePruningMethod):
    """Prunes the elements of the smallest absolute values; `l1_unstructured` says more.

    Args:
        amount: How much is pruned: a part in [0, 1], or a number of elements or slices.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.utils import prune
        >>> prune.L1Unstructured(0.5).prune(pc.tensor([4.0, -1.0, 2.0, -3.0])).abs().tolist()
        [4.0, 0.0, 0.0, 3.0]
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with zeros at the smallest elements."""
        number = _count(self.amount, t.numel())
        if number == 0:
            return default_mask.clone()
        return _zeroed(default_mask, t.abs().flatten().topk(number, largest=False)[1])


class _Structured(BasePruningMethod):
    """Prunes whole channels of one dimension: those of the smallest scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount = amount
        self.dim = dim

    def _channels(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with zeros in whole channels."""
        if t.ndim < 2:
            raise ValueError(
                f"prune: channels must be of a tensor of at least 2 dimensions; got {t.ndim}"
            )
        if not -t.ndim <= self.dim < t.ndim:
            raise OutOfRangeError(
                f"prune: `dim` must be in [{-t.ndim}, {t.ndim - 1}]; got {self.dim}"
            )
        number = _count(self.amount, t.shape[self.dim])
        if number == 0:
            return default_mask.clone()
        unpruned = pc.ones(t.shape[self.dim], dtype=default_mask.dtype, device=t.device)
        unpruned[self._channels(t).topk(number, largest=False)[1]] = 0
        shape = [1] * t.ndim
        shape[self.dim] = -1
        return default_mask * unpruned.reshape(shape)


class RandomStructured(_Structured):
    """Prunes channels at random; `random_structured` says more.

    Args:
        amount: How much is pruned: a part in [0, 1], or a number of elements or slices.
        dim: The dimension whose slices are pruned.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.utils import prune
        >>> sorted(prune.RandomStructured(1, dim=0).prune(pc.ones(2, 3)).sum(1).tolist())
        [0.0, 3.0]
    """

    def _channels(self, t: Tensor) -> Tensor:
        return pc.rand(t.shape[self.dim], device=t.device)


class LnStructured(_Structured):
    """Prunes the channels of the smallest n-norms; `ln_structured` says more.

    Args:
        amount: How much is pruned: a part in [0, 1], or a number of elements or slices.
        n: The order of the norm.
        dim: The dimension whose slices are pruned.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.utils import prune
        >>> t = pc.tensor([[3.0, 1.0], [-4.0, 1.0]])
        >>> prune.LnStructured(1, n=2, dim=1).prune(t).tolist()
        [[3.0, 0.0], [-4.0, 0.0]]
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _channels(self, t: Tensor) -> Tensor:
        dim = self.dim % t.ndim
        others = tuple(d for d in range(t.ndim) if d != dim)
        norm: Tensor = pc.norm(t, self.n, others)
        return norm


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask has zeros.

    Args:
        mask: 1 where elements stay, 0 elsewhere.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.utils import prune
        >>> prune.CustomFromMask(pc.tensor([1, 0])).prune(pc.ones(2)).tolist()
        [1.0, 0.0]
    """

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of both masks."""
        if tuple(self.mask.shape) != tuple(default_mask.shape):
            raise ValueError(
                f"prune: `mask` must have the parameter's shape {tuple(default_mask.shape)}; "
                f"got {tuple(self.mask.shape)}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: M, name: str) -> M:
    """Give a parameter a mask of ones; return the module.

    Args:
        module: The module.
        name: The parameter's name.

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

    Args:
        module: The module.
        name: The parameter's name.
        amount: How much is pruned: a part in [0, 1], or a number of elements or slices.
        dim: The dimension whose slices are pruned.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.prune.random_structured(nn.Linear(2, 4), "weight", 3, dim=0)
        >>> int(layer.weight_mask.sum())
        2
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> M:
    """Prune the channels of a dimension that have the smallest n-norms; return the module.

    Args:
        module: The module.
        name: Its parameter, of at least two dimensions.
        amount: The fraction (float) or the number (int) of channels, of those that are left.
        n: The order of the norm, as for `plait.norm`.
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

    Args:
        module: The module.
        name: The parameter's name.
        mask: 1 where elements stay, 0 elsewhere.

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
    own_scores = {} if importance_scores is None else importance_scores
    scores, masks = [], []
    for module, name in pairs:
        pruned = pruning_of(module, name) is not None
        value = getattr(module, f"{name}_orig" if pruned else name).detach()
        mask = getattr(module, f"{name}_mask") if pruned else pc.ones_like(value)
        scores.append(own_scores.get((module, name), value).detach().flatten())
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

    Args:
        module: The module.
        name: The parameter's name.

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

    Args:
        module: The module.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.Linear(2, 3)
        >>> before = nn.utils.prune.is_pruned(layer)
        >>> before, nn.utils.prune.is_pruned(nn.utils.prune.identity(layer, "weight"))
        (False, True)
    """
    hooks = (hook for each in module.modules() for hook in each._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)
