"""`vmap` of every operator, at the samples of its spec, against calls for each sample."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

import plait_core as pc
from plait_abi import operator
from plait_func import vmap
from plait_ops import specs
from plait_ops.samples import draw, error_facts
from plait_ops.sampling import Sample, Sampler
from plait_ops.spec import Operator

SIZE = 3
SAMPLES = 12
MOST_DIMENSIONS = 64
# operators that read a number of a sample on the way: for the shape of a result, or to check it
READS_NUMBERS = {
    *("bincount", "histc", "nms", "one_hot", "repeat_interleave.counts"),
    *("repeat_interleave.tensor", "tensor_split.tensor", "unravel_index"),
}
OPERATORS = [spec for spec in specs.all() if not spec.unpredictable]


def leaves(values: Any) -> list[Any]:
    found = []
    for value in values:
        if pc.is_tensor(value):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += leaves(value)
    return found


def filled(values: Any, tensors: list[Any]) -> Any:
    """Return values with the tensors in the place of those that `leaves` finds."""
    made = []
    for value in values:
        if pc.is_tensor(value):
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
        return pc.stack([x * factor for factor in (1.0, 0.75, 0.5)]).to(x.dtype)
    if x.dtype is pc.bool and x.ndim:
        return pc.stack([x, x.flip(0), x])
    return pc.stack([x, x.flip(0) if x.ndim else x, x])


def call_of(spec: Operator, sample: Sample) -> Any:
    """Return the call of a sample as a function of its tensors, which it leaves as they are."""
    writes = spec.name.partition(".")[0].endswith("_")

    def call(*given: Any) -> Any:
        left = [x.clone() for x in given] if writes else list(given)
        args = filled(sample.args, left)
        kwargs = dict(zip(sample.kwargs, filled(list(sample.kwargs.values()), left), strict=True))
        return operator(spec.name)(*args, **kwargs)

    return call


def subsets(count: int) -> list[set[int]]:
    """Return which tensors are mapped: all subsets, of many tensors each and all."""
    if count > 4:
        return [*({i} for i in range(count)), set(range(count))]
    return [
        set(some) for n in range(1, count + 1) for some in itertools.combinations(range(count), n)
    ]


def compare(spec: Operator, sample: Sample, chosen: set[int], dim: int) -> None:
    tensors = leaves([*sample.args, *sample.kwargs.values()])
    batched = [samples_of(x) if i in chosen else x for i, x in enumerate(tensors)]
    call, wanted = call_of(spec, sample), []
    for i in range(SIZE):
        one = [x[i].clone() if k in chosen else x for k, x in enumerate(batched)]
        try:
            wanted.append(listed(call(*one)))
        except Exception:
            return  # these values are not allowed
    dims = tuple(dim if i in chosen else None for i in range(len(tensors)))
    given = [x.movedim(0, dim) if i in chosen else x for i, x in enumerate(batched)]
    shapes = [{tuple(each[k].shape) for each in wanted if pc.is_tensor(each[k])}
              for k in range(len(wanted[0]))]  # fmt: skip
    try:
        got = listed(vmap(call, dims)(*given))
    except NotImplementedError as error:
        assert spec.name in READS_NUMBERS and "values are required" in str(error)
        return
    except RuntimeError as error:
        running = spec.name.startswith("batch_norm") and "running" in spec.schema.text
        if running and "cannot be written in place" in str(error):
            return  # the running statistics that the samples share; nor can they in PyTorch
        if dim and any(text in str(error) for text in ("with strides", "adjacent parts")):
            return  # such a view needs samples whose elements lie side by side
        assert "must not depend on values" in str(error) and any(len(each) > 1 for each in shapes)
        return
    assert len(got) == len(wanted[0])
    for k, result in enumerate(got):
        parts = [each[k] for each in wanted]
        if not pc.is_tensor(parts[0]):
            continue
        whole = pc.stack(parts)
        assert result.dtype is whole.dtype and result.shape == whole.shape, (sample, chosen)
        assert pc.allclose(
            result.to(pc.complex128), whole.to(pc.complex128), 1e-3, 1e-4, equal_nan=True
        ), (sample, chosen, result, whole)


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_all_samples_at_once_as_each(spec: Operator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(draw(spec), SAMPLES):
            given = sample.mapped(pc.from_numpy)
            for chosen in subsets(len(leaves([*given.args, *given.kwargs.values()]))):
                for dim in (0, -1):
                    compare(spec, given, chosen, dim)


@pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)
def test_an_error_of_a_sample_is_that_of_all(spec: Operator) -> None:
    """With the same class: what a rule makes of a wrong call is no error of its own."""
    if spec.name in ("view", "view_as_complex"):
        return  # their errors are about strides, which samples side by side do not have
    for fact in error_facts(spec):
        sample = fact.call(Sampler()).mapped(pc.from_numpy)
        tensors = leaves([*sample.args, *sample.kwargs.values()])
        if any(x.ndim == MOST_DIMENSIONS for x in tensors):
            continue
        call = call_of(spec, sample)
        try:
            call(*tensors)
        except Exception as error:
            kind = type(error)
        else:
            continue
        for chosen in subsets(len(tensors)):
            batched = [pc.stack([x] * SIZE) if i in chosen else x for i, x in enumerate(tensors)]
            dims = tuple(0 if i in chosen else None for i in range(len(tensors)))
            with pytest.raises((kind, NotImplementedError)):
                vmap(call, dims, randomness="different")(*batched)
