"""What users read after common mistakes. Each text names operator, argument, what is required and
what came, and the remedy where there is one; a change of a text is a change of this file.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.samples import draw, error_facts
from plait_ops.sampling import Sampler
from plait_ops.spec import Operator


def x() -> pc.Tensor:
    return pc.ones(2, 3)


def trained() -> pc.Tensor:
    return pc.ones(2, 3).requires_grad_()


TEXTS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    # ---- shapes
    (
        lambda: x() @ x(),
        pc.ShapeError,
        "matmul: the last dimension of `self` (2, 3) must equal the second to last of `other` "
        "(2, 3)",
    ),
    (
        lambda: pc.mm(x(), pc.ones(4, 2)),
        pc.ShapeError,
        "mm: `self` of shape (2, 3) must have as many columns as `mat2` of shape (4, 2) has rows",
    ),
    (
        lambda: pc.cat([x(), pc.ones(2, 4)]),
        pc.ShapeError,
        "cat: `tensors` must have the same sizes except in dimension 0; got shape (2, 3) and, at "
        "1, (2, 4)",
    ),
    (
        lambda: pc.stack([x(), pc.ones(2, 4)]),
        pc.ShapeError,
        "stack: `tensors` must have one shape; got (2, 3) and, at 1, (2, 4)",
    ),
    (
        lambda: x() + pc.ones(4),
        pc.ShapeError,
        "add: shapes must broadcast; `self` has (2, 3), `other` has (4,)",
    ),
    (
        lambda: x().t().view(6),
        pc.ShapeError,
        "view: `size` (6,) cannot be a view of shape (3, 2) with strides (1, 3); use reshape(), "
        "which copies if needed",
    ),
    (
        lambda: x().reshape(-1, -1),
        pc.ShapeError,
        "reshape: `shape` must hold at most one -1; got (-1, -1)",
    ),
    (
        lambda: x().reshape(4, -1),
        pc.ShapeError,
        "reshape: `shape` (4, -1) must have as many elements as shape (2, 3), 6",
    ),
    (
        lambda: x().expand(3, 3),
        pc.ShapeError,
        "expand: shape (2, 3) of `self` must broadcast to `size` (3, 3); they differ in dimension "
        "-2",
    ),
    (
        lambda: operator("linear")(x(), pc.ones(4, 5)),
        pc.ShapeError,
        "linear: the last dimension of `input` (2, 3) must equal the last of `weight` (4, 5)",
    ),
    (
        lambda: pc.conv2d(pc.ones(1, 3, 5, 5), pc.ones(2, 4, 3, 3)),
        pc.ShapeError,
        "conv2d: with `groups` 1 and `weight` of shape (2, 4, 3, 3), expected `input` of shape "
        "(1, 3, 5, 5) to have 4 channels, but got 3 channels instead",
    ),
    (
        lambda: pc.layer_norm(x(), (4,)),
        pc.ShapeError,
        "layer_norm: `input` of shape (2, 3) must end in `normalized_shape` (4,)",
    ),
    (
        lambda: pc.zeros(-1),
        pc.ShapeError,
        "zeros: `size` must not hold negative sizes; got (-1,)",
    ),
    (
        lambda: pc.ones(0, 3).amax(0),
        pc.OutOfRangeError,
        "amax: `self` of shape (0, 3) has no elements along dimension 0, and an empty reduction "
        "has no value",
    ),
    # ---- indices and dimensions
    (
        lambda: x()[2],
        IndexError,
        "index: 2 is out of bounds for dimension 0 of shape (2, 3)",
    ),
    (
        lambda: x()[0, 0, 0],
        IndexError,
        "index: too many indices for shape (2, 3): 3 were given",
    ),
    (
        lambda: x()[pc.tensor([True, False, True])],
        IndexError,
        "index: a mask of shape (3,) does not fit dimension 0 of shape (2, 3)",
    ),
    (
        lambda: x().sum(2),
        IndexError,
        "sum: `dim` must be in [-2, 1] for shape (2, 3); got 2. Dimension out of range",
    ),
    (
        lambda: x().index_select(0, pc.tensor([5])),
        IndexError,
        "index_select: `index` must be in [-2, 2); got 5. index out of range: it is out of bounds",
    ),
    (
        lambda: operator("cross_entropy")(pc.ones(2, 3), pc.tensor([0, 3])),
        IndexError,
        "cross_entropy: `target` must hold classes in [0, 3); got 3 at row 1. "
        "Target 3 is out of bounds",
    ),
    # ---- dtypes
    (
        lambda: pc.ones(2, dtype=pc.int64).add_(0.5),
        pc.DTypeError,
        "add_: the result is float32, which can't be cast to `self` of int64",
    ),
    (
        lambda: ~x(),
        pc.DTypeError,
        "bitwise_not: `self` must be an integer dtype or bool; got float32",
    ),
    (
        lambda: pc.tensor([300], dtype=pc.uint8),
        OverflowError,
        "tensor: 300 does not fit uint8",
    ),
    # ---- values
    (
        lambda: pc.tensor([[1, 2], [3]]),
        ValueError,
        "tensor: nested sequences must have equal lengths; data[1] is of length 1, not 2",
    ),
    (
        lambda: bool(x()),
        RuntimeError,
        "bool: the truth value of a tensor of shape (2, 3) is ambiguous; use .any() or .all()",
    ),
    (
        lambda: x().item(),
        RuntimeError,
        "item: a tensor with one element is required, got shape (2, 3)",
    ),
    # ---- devices
    (
        lambda: x() + pc.ones(2, 3, device="meta"),
        ValueError,
        "add: all tensors must be on one device; `other` is on meta, an earlier one on cpu",
    ),
    (
        lambda: x().to("rocm"),
        NotImplementedError,
        "to: no component for the device rocm:0 is installed; without it, only the device cpu can "
        "be used",
    ),
    (
        lambda: x().to("meta").to("cpu"),
        NotImplementedError,
        "to: a tensor on the device meta has no data that could be copied to cpu; make a new "
        "tensor there with empty_like(x, device='cpu')",
    ),
    # ---- calls
    (
        lambda: pc.add(x()),
        TypeError,
        "add: missing argument `other`; the form is add(Tensor|Scalar self|input, "
        "Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    ),
    (lambda: x().sum(dims=1), TypeError, "sum: unexpected keyword `dims`"),
    (
        lambda: pc.from_numpy([1]),
        TypeError,
        "from_numpy: `ndarray` must be a NumPy array, got list",
    ),
    # ---- writes and gradients
    (
        lambda: pc.frombuffer(b"abcd", dtype=pc.uint8).add_(1),
        ValueError,
        "add_: `self` is read-only and would be written; copy it first with clone()",
    ),
    (
        lambda: pc.ones(2).expand(3, 2).add_(1),
        ValueError,
        "add_: `self` of shape (3, 2) would be written but is expanded: several elements share "
        "one place; clone() it first",
    ),
    (
        lambda: trained().add_(1),
        RuntimeError,
        "add_: `self` of shape (2, 3) is a leaf that requires grad and would be written in place: "
        "its gradient would belong to another value; write it within no_grad(), or use the "
        "out-of-place form",
    ),
    (
        lambda: trained().numpy(),
        RuntimeError,
        "numpy: the tensor must not require grad; call detach() first, as in x.detach().numpy()",
    ),
    (
        lambda: (trained() * 2).backward(),
        RuntimeError,
        "backward: a gradient can be made up only for a result of one element; result 0 has shape "
        "(2, 3): reduce it to a number first, or pass the gradient",
    ),
    (
        lambda: pc.ones(2, dtype=pc.int64).requires_grad_(),
        RuntimeError,
        "requires_grad: only tensors of floating point and complex dtype can require grad; got "
        "int64",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "text"), TEXTS, ids=[text.partition(":")[0] for _, _, text in TEXTS]
)
def test_text(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text


def test_out_of_memory_errors_say_the_available_memory() -> None:
    reference = pc.zeros(1 << 20)
    with pytest.raises(pc.OutOfMemoryError) as raised:
        pc.empty(1 << 60)
    text = str(raised.value)
    start = "empty: out of memory: 4.00 EiB (4611686018427387904 bytes) requested; "
    assert text.startswith(start)
    live, cached = text[len(start) :].split("; ")[-1].split(" are live in ")
    assert live.split("(")[0].strip().endswith("MiB") and reference.nbytes == 1 << 22
    assert " blocks, " in cached and " are cached, of which the largest free block has " in cached


TWICE = re.compile(r"(?:^|: )(\w+?)_?: \1_?: ")
LARGEST = 10**6


def wrong_values(value: Any) -> list[Any]:
    """Return values that an argument does not take, or takes where others do not fit."""
    if pc.is_tensor(value):
        dtypes = (pc.int64, pc.complex64, pc.bool)
        shapes = (value.new_zeros(()), value.new_zeros((7,) * (value.ndim + 1)), value[None])
        return [*(value.to(dtype) for dtype in dtypes if value.dtype is not dtype), *shapes, None]
    if isinstance(value, (tuple, list)):
        return [[], [LARGEST], ["a"]]
    return ["text"] if isinstance(value, (bool, str)) else [LARGEST, -LARGEST, None]


def wrong_calls(spec: Operator) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield calls of an operator that are wrong, and some that are not."""
    for fact in error_facts(spec):
        sample = fact.call(Sampler()).mapped(pc.from_numpy)
        yield sample.args, sample.kwargs
    for sample in itertools.islice(draw(spec), 1):
        args, kwargs = (sample := sample.mapped(pc.from_numpy)).args, sample.kwargs
        for i, value in enumerate(args):
            yield from (((*args[:i], each, *args[i + 1 :]), kwargs) for each in wrong_values(value))


PARTS = {spec.name for spec in specs.all() if spec.internal}


def recorded(spec: Operator) -> Iterator[tuple[list[Any], pc.Tensor]]:
    """Yield the arguments and a result of calls whose results require gradients."""
    for sample in itertools.islice(draw(spec), 1):
        args, kwargs = (sample := sample.mapped(pc.from_numpy)).args, sample.kwargs
        for _ in range(2):
            leaves = [
                x.clone().requires_grad_() if pc.is_tensor(x) and x.is_floating_point() else x
                for x in args
            ]
            inner = [x * 1 if pc.is_tensor(x) and x.requires_grad else x for x in leaves]
            try:
                result = operator(spec.name)(*inner, **kwargs)
            except Exception:
                continue
            results = result if isinstance(result, (tuple, list)) else [result]
            yield from ((inner, r) for r in results[:1] if pc.is_tensor(r) and r.requires_grad)


def test_errors_of_backward_name_no_part_of_another_operator() -> None:
    number = 0
    for spec in specs.all():
        for again, (inner, result) in enumerate([] if spec.internal else recorded(spec)):
            for x in inner if again else ():
                if pc.is_tensor(x) and x.requires_grad and x.numel():
                    x.detach().zero_()
            try:
                result.sum().abs().backward()
                result.sum().abs().backward()
            except Exception as error:
                number += 1
                name = str(error).partition(":")[0]
                assert name not in PARTS and not name.endswith("_backward"), (spec, str(error))
    assert number > 300


def test_no_error_says_its_operator_twice() -> None:
    number = 0
    for spec in specs.all():
        calls: list[Any] = [operator(spec.name)]
        if spec.inplace:
            calls.append(getattr(pc.Tensor, spec.schema.base + "_", None))
        for args, kwargs in wrong_calls(spec):
            if any(pc.is_tensor(x) and x.numel() > LARGEST for x in args):
                continue
            for call in filter(None, calls):
                copies = [x.clone() if pc.is_tensor(x) else x for x in args]
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        call(*copies, **kwargs)
                except Exception as error:
                    number += 1
                    assert not TWICE.search(str(error)), spec
    assert number > 3000
