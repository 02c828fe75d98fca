"""Torch's operator database as tests see it: which of its entries plait has, and its arguments."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

import plait_core as pc
import plait_nn
from plait_abi import operator

__all__ = ["DRAWS", "INPLACE", "WRAPPED", "convert", "flat", "full_name", "ours_of", "samples_of"]

DRAWS = {
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal"),
    *("normal.in_place", "normal.number_mean", "rand_like", "randint", "randint_like", "randn"),
    *("randn_like", "uniform", "nn.functional.dropout", "nn.functional.alpha_dropout"),
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"),
    *("nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.rrelu"),
    "nn.functional.feature_alpha_dropout.with_train",
    *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
}
"""Of these only shape and dtype are known."""

INPLACE = {"cauchy", "exponential", "fill", "geometric", "log_normal", "normal.in_place", "uniform"}
"""Named like a function in the database, but run as the method ``name_``."""

WRAPPED: dict[str, Callable[..., Any]] = {
    "einsum": lambda operands, equation: pc.einsum(equation, operands),
    "where": lambda self, condition, other: pc.where(condition, self, other),
    "nn.functional.embedding": lambda weight, indices, **options: plait_nn.functional.embedding(
        indices, weight, **options
    ),
    "nn.functional.embedding_bag": lambda weight, indices, **options: (
        plait_nn.functional.embedding_bag(indices, weight, **options)
    ),
    "linalg.lstsq.grad_oriented": lambda a, b, driver: pc.linalg.lstsq(a, b, driver=driver)[:2],
    "slice": operator("slice"),
    "linalg.pinv.singular": lambda a, b: pc.linalg.pinv(a @ b.mT),
}
"""What the database's own functions of these names do with their arguments."""


_TORCH_ONLY = (
    "functions",
    "native_functions",
    "view_copies",
    "layer_functions",
    "windows",
    "masked",
)
"""Modules of plait_torch with functions that only `torch` has."""


_RANDOM = {"svd_lowrank", "pca_lowrank"}
"""Torch's iterate from random vectors; the database multiplies their arguments first."""


def of_torch(name: str) -> Callable[..., Any] | None:
    """The function of a name that only `torch` has, or None."""
    package, _, short = name.rpartition(".")
    if package not in ("", "signal.windows", "masked") or short in _RANDOM:
        return None
    for module in _TORCH_ONLY:
        if (package == "masked") == (module == "masked"):
            result = importlib.import_module(f"plait_torch._{module}")
            if short in result.__all__:
                return getattr(result, short)  # type: ignore[no-any-return]
    return None


def full_name(info: Any) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)


def ours_of(info: Any) -> Callable[..., Any] | None:
    """The function of plait that an entry is about, or None."""
    name = info.name
    if full_name(info) in WRAPPED:
        return WRAPPED[full_name(info)]
    if full_name(info) in INPLACE:
        return getattr(pc.Tensor, f"{name}_", None)
    if name.startswith("nn.functional."):
        return getattr(plait_nn.functional, name.removeprefix("nn.functional."), None)
    home: Any = pc
    for part in name.split("."):
        home = getattr(home, part, None)
    if name == "native_batch_norm":  # also the name of a part of plait's, which takes other things
        return of_torch(name)
    if home is None or isinstance(home, pc.dtype):
        home = getattr(pc.Tensor, name, None)
    if isinstance(home, property) or (home is not None and not callable(home)):
        return lambda x: getattr(x, name)
    return of_torch(name) if home is None else home


def samples_of(info: Any, dtype: str, requires_grad: bool) -> Iterator[tuple[int, Any]]:
    """An entry's samples with their numbers, but those that drop weights or call torch."""
    samples = info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=requires_grad)
    for i, sample in enumerate(samples):
        dropped = sample.kwargs.get("dropout_p", 0.0)
        if info.name == "nn.functional.multi_head_attention_forward":
            dropped = sample.args[9]
        if not dropped and "distance_function" not in sample.kwargs:  # which is torch's own
            yield i, sample


def convert(value: Any) -> Any:
    """Torch's objects as plait's, on copies of their elements."""
    if isinstance(value, torch.Tensor) and value.layout == torch.sparse_csr:
        parts = (value.crow_indices(), value.col_indices(), value.values())
        return pc.sparse_csr_tensor(*map(convert, parts), tuple(value.shape))
    if isinstance(value, torch.Tensor) and value.layout == torch.sparse_coo:
        return convert(value.to_dense()).to_sparse()
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        storage = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
        whole = pc.from_dlpack(storage.clone())
        return whole.as_strided(value.shape, value.stride(), value.storage_offset())
    if isinstance(value, torch.dtype):
        return pc.dtype(str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return value.type
    if isinstance(value, torch.memory_format):
        return getattr(pc, str(value).removeprefix("torch."))
    if isinstance(value, (list, tuple, torch.Size)):
        kind = list if isinstance(value, list) else tuple
        return kind(convert(each) for each in value)
    if isinstance(value, dict):
        return {key: convert(each) for key, each in value.items() if key != "layout"}
    return value


def flat(value: Any) -> Iterator[Any]:
    """The results one by one."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from flat(each)
    else:
        yield value
