"""`vmap` of every operator, at the samples of its spec, against calls for each sample."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import plait
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample
from plait_ops.spec import Operator
from plait_torch._vmap import vmap

SIZE = 3
# results whose shape depends on values, which no batched tensor has
SHAPED_BY_VALUES = {
    *("argwhere", "bincount", "combinations", "index", "index_columns", "index_put"),
    *("masked_scatter", "masked_scatter_", "masked_select", "nms", "nms_kept", "nonzero"),
    *("nonzero_list", "nonzero_rows", "one_hot", "repeat_interleave.counts"),
    *("repeat_interleave.tensor", "tensor_split.tensor", "unravel_index", "where.condition"),
    *("lstsq_parts", "equal", "allclose", "is_nonzero", "item", "nonzero_static", "histc"),
}
OPERATORS = [
    spec
    for spec in specs.all()
    if not spec.unpredictable and spec.name not in SHAPED_BY_VALUES and not spec.name.endswith("_")
]


def leaves(values: Any) -> list[Any]:
    found = []
    for value in values:
        if plait.is_tensor(value):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += leaves(value)
    return found


def filled(values: Any, tensors: list[Any]) -> Any:
    """Return values with the tensors in the place of those that `leaves` finds."""
    made = []
    for value in values:
        if plait.is_tensor(value):
            made.append(tensors.pop(0))
        elif isinstance(value, (list, tuple)):
            made.append(type(value)(filled(value, tensors)))
        else:
            made.append(value)
    return made


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def samples_of(x: Any) -> Any:
    """Return a batch with the tensor in it, and with others where it has numbers."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return plait.stack([x * factor for factor in (1.0, 0.75, 0.5)]).to(x.dtype)
    if x.dtype is plait.bool and x.ndim:
        return plait.stack([x, x.flip(0), x])
    return plait.stack([x, x.flip(0) if x.ndim else x, x])


def compare(spec: Operator, sample: Sample, chosen: set[int]) -> bool:
    tensors = leaves([*sample.args, *sample.kwargs.values()])
    batched = [samples_of(x) if i in chosen else x for i, x in enumerate(tensors)]

    def call(*given: Any) -> Any:
        left = list(given)
        args = filled(sample.args, left)
        kwargs = dict(zip(sample.kwargs, filled(list(sample.kwargs.values()), left), strict=True))
        return operator(spec.name)(*args, **kwargs)

    wanted = []
    for i in range(SIZE):
        one = [x[i].clone() if k in chosen else x for k, x in enumerate(batched)]
        try:
            wanted.append(listed(call(*one)))
        except Exception:
            return False  # these values are not allowed
    dims = tuple(0 if i in chosen else None for i in range(len(tensors)))
    try:
        got = listed(vmap(call, dims)(*batched))
    except RuntimeError as error:
        if "cannot be written in place" in str(error):  # nor can they in PyTorch
            return False
        raise
    assert len(got) == len(wanted[0])
    for k, result in enumerate(got):
        parts = [each[k] for each in wanted]
        if not plait.is_tensor(parts[0]):
            continue
        if not parts[0].numel() or len({tuple(each.shape) for each in parts}) > 1:
            continue
        whole = plait.stack(parts)
        assert result.dtype is whole.dtype and result.shape == whole.shape, (sample, chosen)
        assert plait.allclose(
            result.to(plait.complex128), whole.to(plait.complex128), 1e-3, 1e-4, equal_nan=True
        ), (sample, chosen, result, whole)
    return True


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_all_samples_at_once_as_each(spec: Operator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in list(draw(spec))[:6]:
            given = sample.mapped(plait.from_numpy)
            count = len(leaves([*given.args, *given.kwargs.values()]))
            if not count:
                continue
            compare(spec, given, set(range(count)))
            for i in range(count if count > 1 else 0):
                compare(spec, given, {i})
