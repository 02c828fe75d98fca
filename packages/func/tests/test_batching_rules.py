"""`vmap` of every operator, at the samples of its spec, against calls for each sample."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc
from plait_abi import operator
from plait_autograd import forward_ad
from plait_func import jvp, vmap
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
    results = []
    for value in values:
        if pc.is_tensor(value):
            results.append(value)
        elif isinstance(value, (list, tuple)):
            results += leaves(value)
    return results


def filled(values: Any, tensors: list[Any]) -> Any:
    """Return values with the tensors in the place of those that `leaves` finds."""
    result = []
    for value in values:
        if pc.is_tensor(value):
            result.append(tensors.pop(0))
        elif isinstance(value, (list, tuple)):
            result.append(type(value)(filled(value, tensors)))
        else:
            result.append(value)
    return result


def as_list(result: Any) -> list[Any]:
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

    def call(*arguments: Any) -> Any:
        left = [x.clone() for x in arguments] if writes else list(arguments)
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


def compare(spec: Operator, sample: Sample, selection: set[int], dim: int) -> None:
    tensors = leaves([*sample.args, *sample.kwargs.values()])
    batched = [samples_of(x) if i in selection else x for i, x in enumerate(tensors)]
    call, expected = call_of(spec, sample), []
    for i in range(SIZE):
        one = [x[i].clone() if k in selection else x for k, x in enumerate(batched)]
        try:
            expected.append(as_list(call(*one)))
        except Exception:
            return  # these values are not allowed
    dims = tuple(dim if i in selection else None for i in range(len(tensors)))
    arguments = [x.movedim(0, dim) if i in selection else x for i, x in enumerate(batched)]
    shapes = [{tuple(each[k].shape) for each in expected if pc.is_tensor(each[k])}
              for k in range(len(expected[0]))]  # fmt: skip
    try:
        got = as_list(vmap(call, dims)(*arguments))
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
    assert len(got) == len(expected[0])
    for k, result in enumerate(got):
        parts = [each[k] for each in expected]
        if not pc.is_tensor(parts[0]):
            continue
        whole = pc.stack(parts)
        assert result.dtype is whole.dtype and result.shape == whole.shape, (sample, selection)
        assert pc.allclose(
            result.to(pc.complex128), whole.to(pc.complex128), 1e-3, 1e-4, equal_nan=True
        ), (sample, selection, result, whole)


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_all_samples_at_once_as_each(spec: Operator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(draw(spec), SAMPLES):
            tensor_sample = sample.mapped(pc.from_numpy)
            for choice in subsets(
                len(leaves([*tensor_sample.args, *tensor_sample.kwargs.values()]))
            ):
                for dim in (0, -1):
                    compare(spec, tensor_sample, choice, dim)


def writes(spec: Operator) -> str:
    """Return how an operator writes: "form" in place, "argument", or "copy": as a composite may."""
    if any(x.writes for x in spec.schema.arguments):
        return "argument"
    return "form" if spec.inplace else "copy" if spec.composite else ""


WRITERS = [spec for spec in OPERATORS if writes(spec) and spec.name not in READS_NUMBERS]
# which calls of vmap a tensor belongs to: none, the outer, the inner, or both
LEVELS = ((False, False), (True, False), (False, True), (True, True))


def nested_samples(x: Any, outer: bool, inner: bool) -> Any:
    """Return a tensor of each of two outer and three inner samples, or of those of one call."""
    if outer:
        return pc.stack([nested_samples(each, False, inner) for each in samples_of(x)[:2]])
    return samples_of(x) if inner else x


def writing_call(spec: Operator, sample: Sample) -> Any:
    """Return the call of a sample that writes in place into copies of its tensors."""
    if writes(spec) != "form":
        return call_of(spec, sample)

    def call(*arguments: Any) -> Any:
        target, *args = filled(sample.args, [arguments[0].clone(), *arguments[1:]])
        return getattr(target, spec.name.partition(".")[0] + "_")(*args, **sample.kwargs)

    return call


def compare_nested(call: Any, tensors: list[Any], levels: tuple[tuple[bool, bool], ...]) -> None:
    """Compare nested calls of vmap with nested loops."""
    data = [nested_samples(x, *at) for x, at in zip(tensors, levels, strict=True)]
    outer, inner = ([at[k] for at in levels] for k in (0, 1))

    def select(values: list[Any], mapped: list[bool], i: int) -> list[Any]:
        return [x[i] if at else x for x, at in zip(values, mapped, strict=True)]

    try:
        rows = [[as_list(call(*select(select(data, outer, k), inner, i))) for i in range(SIZE)]
                for k in range(2)]  # fmt: skip
        expected = [pc.stack([pc.stack([one[n] for one in row]) for row in rows])
                  for n in range(len(rows[0][0]))]  # fmt: skip
    except Exception:
        return  # these values are not allowed, or give other shapes
    dims = [tuple(0 if at else None for at in mapped) for mapped in (outer, inner)]
    got = vmap(lambda *some: vmap(call, dims[1])(*some), dims[0])(*data)
    for one, two in zip(as_list(got), expected, strict=True):
        assert one.dtype is two.dtype and one.shape == two.shape, levels
        assert pc.allclose(
            one.to(pc.complex128), two.to(pc.complex128), 1e-3, 1e-4, equal_nan=True
        ), (levels, one, two)


@pytest.mark.parametrize("spec", WRITERS, ids=lambda spec: spec.name)
def test_writes_in_nested_calls(spec: Operator) -> None:
    """The written tensor and the values may belong to any of the calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(draw(spec), 1 if writes(spec) == "form" else 2):
            tensor_sample = sample.mapped(pc.from_numpy)
            tensors, call = (
                leaves([*tensor_sample.args, *tensor_sample.kwargs.values()]),
                writing_call(spec, tensor_sample),
            )
            if len(tensors) > 3 or (
                leaves(tensor_sample.kwargs.values()) and writes(spec) == "form"
            ):
                continue
            for levels in itertools.product(LEVELS, repeat=len(tensors)):
                if all(any(at[k] for at in levels) for k in (0, 1)):
                    compare_nested(call, tensors, levels)


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
        for choice in subsets(len(tensors)):
            batched = [pc.stack([x] * SIZE) if i in choice else x for i, x in enumerate(tensors)]
            dims = tuple(0 if i in choice else None for i in range(len(tensors)))
            with pytest.raises((kind, NotImplementedError)):
                vmap(call, dims, randomness="different")(*batched)


def floating_call(spec: Operator, sample: Sample) -> tuple[Any, list[Any]]:
    """Return the call of a sample as a function of its floating-point tensors, and these."""
    tensors = leaves([*sample.args, *sample.kwargs.values()])
    selection = [i for i, x in enumerate(tensors) if x.is_floating_point() or x.is_complex()]
    whole = call_of(spec, sample)

    def call(*arguments: Any) -> Any:
        replaced = list(tensors)
        for i, x in zip(selection, arguments, strict=True):
            replaced[i] = x
        return [x for x in as_list(whole(*replaced)) if pc.is_tensor(x)]

    return call, [tensors[i] for i in selection]


@pytest.mark.parametrize("part", range(4))
def test_tangents_require_grad_if_an_input_does(part: int) -> None:
    """Also where the formula of a derivative keeps its cotangent, as that of matrix_exp."""
    served = 0
    for spec in OPERATORS[part::4]:
        for sample in itertools.islice(draw(spec), 1):
            call, primals = floating_call(spec, sample.mapped(pc.from_numpy))
            if not primals:
                continue
            tangents = tuple(map(pc.ones_like, primals))
            try:
                values, result = jvp(call, tuple(primals), tangents)
                with forward_ad.dual_level():
                    duals = [
                        forward_ad.unpack_dual(each)
                        for each in call(*map(forward_ad.make_dual, primals, tangents))
                    ]
            except (RuntimeError, NotImplementedError, TypeError):
                continue  # there is no derivative
            results = [*values, *result, *(x for pair in duals for x in pair if x is not None)]
            assert not any(x.requires_grad for x in results), spec
            served += 1
    assert served > 80
    matrix = pc.rand(2, 2).requires_grad_()
    for inputs in ((matrix, pc.ones(2, 2)), (matrix.detach(), matrix)):
        assert jvp(pc.matrix_exp, inputs[:1], inputs[1:])[1].requires_grad
        with forward_ad.dual_level():
            dual = pc.matrix_exp(forward_ad.make_dual(*inputs))
            assert forward_ad.unpack_dual(dual).tangent.requires_grad


def second_gradients(function: Any, inputs: list[Any]) -> list[Any]:
    """Return gradients of a number made of recorded gradients; zeros where there are none."""
    own = [x.detach().clone().requires_grad_() for x in inputs]

    def number(tensors: list[Any]) -> Any:
        recorded = [x.abs() if x.is_complex() else x for x in tensors if x.requires_grad]
        return sum((x.double() ** 2).sum() for x in recorded) if recorded else None

    total, result = number(function(*own)), []
    if total is not None:
        result = pa.grad(total, own, create_graph=True, allow_unused=True)
        total = number([x for x in result if x is not None])
    if total is not None:
        result = pa.grad(total, own, allow_unused=True)
    return [pc.zeros_like(x) if g is None else g for x, g in zip(own, result, strict=False)]


@pytest.mark.parametrize("part", range(4))
def test_second_gradients_of_shared_arguments(part: int) -> None:
    """They are sums over the samples, also where the derivative reads the result."""
    served = 0
    for spec in OPERATORS[part::4]:
        if spec.name.partition(".")[0].endswith("_") or spec.name in READS_NUMBERS:
            continue
        for sample in itertools.islice(draw(spec), 1):
            call, inputs = floating_call(spec, sample.mapped(pc.from_numpy))
            if not 2 <= len(inputs) <= 4:
                continue
            for mapped in range(len(inputs)):
                data = [samples_of(x) if i == mapped else x for i, x in enumerate(inputs)]
                dims = tuple(0 if i == mapped else None for i in range(len(data)))

                def loop(*own: Any, mapped: int = mapped, call: Any = call) -> list[Any]:
                    rows = [
                        call(*(x[k] if i == mapped else x for i, x in enumerate(own)))
                        for k in range(SIZE)
                    ]
                    return [pc.stack(list(column)) for column in zip(*rows, strict=True)]

                try:
                    expected = second_gradients(loop, data)
                except Exception:
                    continue  # these values are not allowed, or there is no such derivative
                result = second_gradients(vmap(call, dims), data)
                for one, two in zip(result, expected, strict=False):
                    one, two = one.to(pc.complex128), two.to(pc.complex128)
                    assert pc.allclose(one, two, 1e-3, 1e-3, equal_nan=True), (spec, mapped)
                served += 1
    assert served > 40
