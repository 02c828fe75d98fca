"""Derivatives of operators, at the points of their specs' samples, against finite differences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

import plait_abi
from plait_ops import specs
from plait_ops.samples import draw
from plait_ops.sampling import Sample, copy_layout
from plait_ops.spec import Operator

# weights of classes are constants
CLASS_WEIGHTS = {"cross_entropy", "cross_entropy_smooth", "class_weights"}
# their extra results are parts of one computation; the composites above them are checked
PARTS = {
    "native_batch_norm",
    "batch_norm_backward",
    "native_layer_norm",
    "layer_norm_backward",
    "layer_norm_backward_input",
    "cross_entropy_backward",
}
WIDE = {"f": "float64", "c": "complex128"}
STEP = 1e-6


@dataclasses.dataclass(frozen=True)
class Derivative:
    """One operator and its differentiable samples."""

    operator: Operator
    samples: tuple[Sample, ...]

    def __str__(self) -> str:
        return self.operator.name


def differentiable(operator: Operator) -> bool:
    """Return whether the operator has a derivative, its own or that of its decomposition."""
    if operator.unpredictable or operator.dtypes in ("integral", "integer", "bool"):
        return False
    return bool(operator.vjps) or operator.decompose_function is not None


def derivatives() -> Iterator[Derivative]:
    """Yield all operators with differentiable samples."""
    for operator in specs.all():
        if not differentiable(operator) or operator.name in PARTS:
            continue
        samples = tuple(sample for sample in draw(operator) if varied(operator, sample))
        if samples:
            yield Derivative(operator, samples)


def varied(operator: Operator, sample: Sample) -> set[str]:
    """Return the arguments of the call to differentiate for."""
    values = operator.schema.bind(sample.args, sample.kwargs)
    if not sample.gradient or values.get("dtype") not in (None, "float64", "complex128"):
        return set()
    if operator.vjps:
        names = set(operator.differentiable)
    else:
        names = {argument.name for argument in operator.schema.arguments if argument.is_tensor}
    if operator.name in CLASS_WEIGHTS:
        names.discard("weight")
    return {name for name in names if any(a.size for a in floating(values.get(name)))}


def floating(value: Any) -> list[Any]:
    """Collect the arrays of real and complex numbers in an argument."""
    if isinstance(value, np.ndarray):
        return [value] if value.dtype.kind in WIDE else []
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in floating(item)]
    return []


class Call:
    """A call as a function of the arrays in its varied arguments, in double precision and without
    overlap.
    """

    def __init__(self, operator: Operator, sample: Sample) -> None:
        self.operator = operator
        self.values = operator.schema.bind(sample.args, sample.kwargs)
        self.varied = varied(operator, sample)
        self.written = {a.name for a in operator.schema.arguments if a.writes}
        self.arrays = [
            widened(array)
            for name, value in self.values.items()
            if name in self.varied
            for array in floating(value)
        ]

    def __call__(self, tensors: list[Any]) -> list[Any]:
        """Call the operator; return the results that have a derivative."""
        rest = list(tensors)
        arguments = {
            name: filled(value, rest if name in self.varied else None)
            for name, value in self.values.items()
        }
        for name in self.written & arguments.keys():
            if arguments[name] is not None:
                arguments[name] = arguments[name].clone()
        positional = [
            arguments.pop(a.name) for a in self.operator.schema.arguments if not a.keyword_only
        ]
        result = plait_abi.operator(self.operator.name)(*positional, **arguments)
        results = result if isinstance(result, (tuple, list)) else [result]
        differentiable = [x for i, x in enumerate(results) if i not in self.operator.auxiliary]
        return [x for x in differentiable if x.dtype.name in WIDE.values()]


def widened(array: Any) -> Any:
    """Copy an array in double precision, in its layout, without elements that share memory."""
    if 0 in array.strides:
        array = np.array(array, order="C")
    return copy_layout(array, WIDE[array.dtype.kind])


def filled(value: Any, tensors: list[Any] | None) -> Any:
    """Return an argument with its arrays replaced by tensors: the given ones in order, or
    constants.
    """
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in WIDE:
            return tensor(value.copy())
        return tensor(widened(value)) if tensors is None else tensors.pop(0)
    if isinstance(value, (list, tuple)):
        return type(value)(filled(item, tensors) for item in value)
    return value


def tensor(array: Any) -> Any:
    """Make a tensor of the core in use, in the array's memory."""
    return plait_abi.require("core").from_numpy(array)


def inner(these: list[Any], those: list[Any]) -> float:
    """Return the real part of the inner product of all elements; None stands for zeros."""
    pairs = [(a, b) for a, b in zip(these, those, strict=True) if a is not None]
    return float(sum(np.vdot(b, a).real for a, b in pairs))


def drawn(rng: np.random.Generator, array: Any) -> Any:
    """Draw numbers like those of an array."""
    numbers = rng.uniform(-1, 1, array.shape)
    if array.dtype.kind == "c":
        numbers = numbers + 1j * rng.uniform(-1, 1, array.shape)
    return np.asarray(numbers, array.dtype)


def check_derivative(derivative: Derivative) -> int:
    r"""Compare the gradients of an operator with central differences along a random direction.

    For weights :math:`w` of the results :math:`y`, the gradients :math:`g` must satisfy
    :math:`\langle g, d\rangle = \langle w, y(x + \epsilon d) - y(x - \epsilon d)\rangle /
    2\epsilon`.

    Returns:
        The number of samples that were compared; samples with infinite results are skipped.
    """
    rng = np.random.default_rng(0)
    compared = 0
    for number, sample in enumerate(derivative.samples):
        function = Call(derivative.operator, sample)
        directions = [drawn(rng, array) for array in function.arrays]
        leaves = [tensor(array.copy("K")).requires_grad_() for array in function.arrays]
        outputs = function(leaves)
        values = [y.detach().numpy() for y in outputs]
        if not all(np.isfinite(y).all() for y in values):
            continue
        weights = [drawn(rng, y) for y in values]
        roots = [(y, tensor(w)) for y, w in zip(outputs, weights, strict=True) if y.requires_grad]
        if roots:
            plait_abi.run_backward(tuple(y for y, _ in roots), tuple(w for _, w in roots))
        gradients = [None if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]
        ends = [
            [y.numpy() for y in function([tensor(a + sign * STEP * d) for a, d in moved])]
            for sign in (1, -1)
            for moved in [list(zip(function.arrays, directions, strict=True))]
        ]
        slopes = [(a - b) / (2 * STEP) for a, b in zip(*ends, strict=True)]
        got, want = inner(gradients, directions), inner(slopes, weights)
        size = 1 + sum(float(np.abs(y).sum()) for y in values)
        where = f"{derivative}, sample {number}"
        for leaf, gradient in zip(leaves, gradients, strict=True):
            if gradient is not None:
                assert gradient.shape == tuple(leaf.shape), f"{where}: shape {gradient.shape}"
        assert abs(got - want) <= 1e-7 * size + 1e-4 * abs(want), (
            f"{where}: the gradient along a direction must be {want:.9g} by finite differences; "
            f"backward gives {got:.9g}"
        )
        compared += 1
    return compared
