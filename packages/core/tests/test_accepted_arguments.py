"""Arguments that operators accept beyond PyTorch, each kind by one rule, and refused ones.

docs/guides/pytorch.md names the rules that differ from PyTorch's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.spec import Operator


def first_sample(spec: Operator) -> Any:
    return next(iter(draw(spec)))


# ---- negative indices ----------------------------------------------------------------------------
INDICES = {"index", "indices"}

OF_PARTS = {"unravel_index": "an index is a number, not a place of a tensor"}
FOR_CLASSES = {"embedding", "nll_loss", "one_hot"}
"""Their integers are numbers of classes and rows, which do not count from the end."""


def indexed_operators() -> list[Operator]:
    return [
        spec
        for spec in specs.all()
        if not (spec.internal or spec.unpredictable)
        and spec.name not in OF_PARTS
        and spec.family.startswith("indexing/")
        and spec.schema.base not in FOR_CLASSES
        and any(each.name in INDICES and each.is_tensor for each in spec.schema.arguments)
    ]


def from_the_end(spec: Operator, values: dict[str, Any], length: int) -> dict[str, Any]:
    def moved(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return type(x)(moved(each) for each in x)
        return np.asarray(x - length) if isinstance(x, np.ndarray) and x.dtype.kind == "i" else x

    return {name: moved(x) if name in INDICES else x for name, x in values.items()}


@pytest.mark.parametrize("spec", indexed_operators(), ids=lambda spec: spec.name)
def test_negative_indices_count_from_the_end(spec: Operator) -> None:
    """As in NumPy: each operator gives the same for an index and for the index less the length."""
    tried = 0
    for sample in draw(spec):
        values = spec.schema.bind(sample.args, sample.kwargs)
        target = values[spec.schema.arguments[0].name]
        dim = values.get("dim")
        flat = spec.schema.base in ("take", "put", "put_") or (dim is None and "dim" in values)
        if not isinstance(target, np.ndarray) or target.ndim == 0:
            continue
        length = target.size if flat else target.shape[0 if dim is None else dim]
        indices = values.get("index", values.get("indices"))
        parts = indices if isinstance(indices, (tuple, list)) else [indices]
        if len(set(target.shape)) > 1 and len(parts) > 1:
            continue  # places of several dimensions
        if not all(isinstance(each, np.ndarray) and each.dtype.kind == "i" for each in parts):
            continue
        if any(each.size == 0 or each.min() < 0 for each in parts):
            continue
        results = []
        for argument in (values, from_the_end(spec, values, length)):
            call = {
                name: x.copy() if isinstance(x, np.ndarray) else x for name, x in argument.items()
            }
            tensors = {
                name: pc.from_numpy(x)
                if isinstance(x, np.ndarray)
                else type(x)(pc.from_numpy(each.copy()) for each in x)
                if name in INDICES
                else x
                for name, x in call.items()
            }
            results.append(operator(spec.name)(**tensors).numpy())
        np.testing.assert_array_equal(results[0], results[1], err_msg=str(sample))
        tried += 1
    assert tried or spec.name in ("index_put", "index_put_")


def test_an_index_before_the_first_is_refused() -> None:
    x, index = pc.arange(3.0), pc.tensor([-4])
    for call in (
        lambda: x.gather(0, index),
        lambda: x.index_select(0, index),
        lambda: x.index_add(0, index, pc.ones(1)),
        lambda: x.scatter(0, index, 1.0),
        lambda: x.take(index),
        lambda: x.index_fill(0, index, 1.0),
    ):
        with pytest.raises(IndexError, match="-4"):
            call()


# ---- out= of another dtype -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "spec", [spec for spec in specs.all() if spec.out], ids=lambda spec: spec.name
)
def test_results_are_cast_to_the_dtype_of_out(spec: Operator) -> None:
    """A wider dtype gets the same values; integers, to which floats are not cast, are refused."""
    sample = first_sample(spec)
    call = sample.copied().mapped(pc.from_numpy)
    result = operator(spec.name)(*call.args, **call.kwargs)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if spec.unpredictable or any(each.dtype != pc.float32 for each in results):
        return
    for name in ("float64", "int64"):
        call = sample.copied().mapped(pc.from_numpy)
        targets = [pc.zeros(each.shape, dtype=getattr(pc, name)) for each in results]
        out = targets[0] if len(targets) == 1 else tuple(targets)
        if name == "int64":
            with pytest.raises(pc.DTypeError, match=spec.schema.base):
                operator(spec.name)(*call.args, **call.kwargs, out=out)
            assert all((each == 0).all() for each in targets)
            continue
        operator(spec.name)(*call.args, **call.kwargs, out=out)
        for target, each in zip(targets, results, strict=True):
            np.testing.assert_array_equal(target.numpy(), each.numpy().astype("float64"))


# ---- values --------------------------------------------------------------------------------------
def test_the_value_of_masked_fill_broadcasts_as_in_where() -> None:
    x, mask = pc.zeros(2, 3), pc.tensor([[True, False, True], [False, True, True]])
    value = pc.tensor([1.0, 2.0, 3.0])
    assert x.masked_fill(mask, value).tolist() == pc.where(mask, value, x).tolist()
    with pytest.raises(pc.ShapeError, match="masked_fill"):
        x.masked_fill(mask, pc.ones(2))
    for call in (lambda: x.index_fill(0, pc.tensor([0]), value), lambda: x.fill_(value)):
        with pytest.raises(pc.ShapeError, match=r"0-d|value"):
            call()


NUMBERS = {
    "full": lambda value, dtype: pc.full((2,), value, dtype=dtype),
    "full_like": lambda value, dtype: pc.full_like(pc.zeros(2, dtype=dtype), value),
    "new_full": lambda value, dtype: pc.zeros(2, dtype=dtype).new_full((2,), value),
    "fill_": lambda value, dtype: pc.zeros(2, dtype=dtype).fill_(value),
    "masked_fill": lambda value, dtype: pc.zeros(2, dtype=dtype).masked_fill(
        pc.tensor([True, False]), value
    ),
    "index_fill": lambda value, dtype: pc.zeros(2, dtype=dtype).index_fill(
        0, pc.tensor([0]), value
    ),
    "scatter": lambda value, dtype: pc.zeros(2, dtype=dtype).scatter(0, pc.tensor([0]), value),
    "threshold": lambda value, dtype: pc.threshold(pc.zeros(2, dtype=dtype), 1, value),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *(("uint8", 256), ("uint8", -1), ("int8", 128), ("int32", 2**31), ("uint32", -5)),
        *(("int64", float("inf")), ("int16", float("nan")), ("int64", 1e30)),
    ],
)
def test_a_number_that_does_not_fit_is_refused(name: str, dtype: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"must fit in .*{dtype}"):
        NUMBERS[name](value, getattr(pc, dtype))


# ---- values that must lie in a domain ------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("wrong", [-0.5, 1.5, float("nan"), float("inf")])
@pytest.mark.parametrize("n", [1, 7, 5000, 300_000])
def test_inputs_of_binary_cross_entropy(dtype: str, wrong: float, n: int) -> None:
    """Checked wherever the element is: in small tensors, in tiles, by several threads."""
    compute = operator("binary_cross_entropy")
    target = pc.ones(n, dtype=getattr(pc, dtype))
    for at in {0, n // 2, n - 1}:
        x = pc.full((n,), 0.5, dtype=getattr(pc, dtype))
        compute(x, target)
        x[at] = wrong
        with pytest.raises(ValueError, match=r"binary_cross_entropy.*`input` must be in \[0, 1\]"):
            compute(x, target)


def test_the_ends_of_the_domain_and_strides() -> None:
    compute = operator("binary_cross_entropy")
    ends = pc.tensor([0.0, 1.0, 1.0, 0.0])
    assert compute(ends, pc.tensor([0.0, 1.0, 1.0, 0.0])).item() == 0.0
    rows = pc.full((64, 64), 0.5)
    rows[5, 7] = 2.0
    assert compute(rows[:, ::2], pc.ones(64, 32)).item() > 0  # column 7 is no part
    with pytest.raises(ValueError, match="got 2"):
        compute(rows.T, pc.ones(64, 64))
    assert compute(pc.ones(0), pc.ones(0), reduction="sum").item() == 0.0


def test_weights_of_covariances() -> None:
    x = pc.arange(6.0).reshape(2, 3)
    for name, dtype in (("fweights", pc.int64), ("aweights", pc.float32)):
        with pytest.raises(ValueError, match=r"cov: .*at least 0; got -1"):
            pc.cov(x, **{name: pc.tensor([1, -1, 1], dtype=dtype)})
        assert pc.cov(x, **{name: pc.tensor([1, 0, 1], dtype=dtype)}).shape == (2, 2)


def test_probabilities_have_no_class_to_ignore() -> None:
    compute = operator("cross_entropy")
    scores, shares = pc.zeros(2, 3), pc.full((2, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"cross_entropy.*`ignore_index`.*probabilities"):
        compute(scores, shares, ignore_index=1)
    assert compute(scores, shares, ignore_index=-100).item() == pytest.approx(1.0986, abs=1e-3)
    assert compute(scores, pc.tensor([1, 2]), ignore_index=1).item() > 0
