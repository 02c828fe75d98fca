"""The operators of the specs as functions that tests differentiate."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.sampling import Sample, copy_layout
from plait_ops.spec import Operator

__all__ = ["OPERATORS", "SMALL", "differentiable", "problem"]

# weights of classes are constants, as in PyTorch
CLASS_WEIGHTS = ("cross_entropy", "cross_entropy_smooth", "class_weights")
CONSTANT = {name: {"weight"} for name in CLASS_WEIGHTS}
SMALL = 80  # elements that are varied one by one


def differentiable(spec: Operator) -> bool:
    """Operators with a derivative, their own or their decomposition's."""
    if spec.unpredictable or spec.dtypes in ("integral", "integer", "bool"):
        return False
    return bool(spec.vjps) or spec.decompose_function is not None


OPERATORS = [spec for spec in specs.all() if differentiable(spec)]


def names(spec: Operator) -> set[str]:
    """The arguments that the gradients are taken of."""
    if spec.vjps:
        return set(spec.differentiable)
    every = {argument.name for argument in spec.schema.arguments if argument.is_tensor}
    return every - CONSTANT.get(spec.name, set())


def doubled(value: Any, complex_: bool) -> Any:
    """Floating arrays become float64 tensors that require grad, complex ones complex128; the
    former too where `complex_`, with imaginary parts that are drawn.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        dtype = "complex128" if complex_ or value.dtype.kind == "c" else "float64"
        if 0 in value.strides:  # what varies alone must lie alone
            value = np.array(value, order="C")
        result = copy_layout(value, dtype)
        if complex_ and value.dtype.kind == "f":
            result += 1j * np.random.default_rng(value.size).uniform(-1, 1, value.shape)
        return pc.from_numpy(result).requires_grad_()
    if isinstance(value, np.ndarray):
        return pc.from_numpy(value.copy())
    if isinstance(value, (list, tuple)):
        return type(value)(doubled(item, complex_) for item in value)
    return value


def fixed(value: Any) -> Any:
    """Return the arguments without gradients."""
    if isinstance(value, pc.Tensor):
        return value.detach()
    if isinstance(value, (list, tuple)):
        return type(value)(fixed(item) for item in value)
    return value


def inputs(value: Any) -> list[Any]:
    if isinstance(value, pc.Tensor):
        return [value] if value.requires_grad else []
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in inputs(item)]
    return []


def problem(
    spec: Operator,
    sample: Sample,
    complex_: bool,
    constants: Collection[str] = (),
    limit: int = SMALL,
) -> tuple[Callable[..., Any], list[Any]] | None:
    """A function of the tensors that are varied, and those tensors; None if there is nothing to
    vary, or more than `limit` elements. The arguments `constants` are not.
    """
    values = spec.schema.bind(sample.args, sample.kwargs)
    if values.get("dtype") not in (None, "float64", "complex128") or not sample.gradient:
        return None
    expected = names(spec).difference(constants)
    wide = {name: doubled(v, complex_) for name, v in values.items()}
    bound = {name: v if name in expected else fixed(v) for name, v in wide.items()}
    varied = [x for value in bound.values() for x in inputs(value)]
    if not 0 < sum(x.numel() for x in varied) <= limit:
        return None
    written = {argument.name for argument in spec.schema.arguments if argument.writes}

    def function(*tensors: Any) -> Any:
        rest = list(tensors)

        def fill(value: Any) -> Any:
            if isinstance(value, pc.Tensor) and value.requires_grad:
                return rest.pop(0)
            return (
                type(value)(fill(x) for x in value) if isinstance(value, (list, tuple)) else value
            )

        arguments = {name: fill(value) for name, value in bound.items()}
        for name in written:
            if arguments[name] is not None:
                arguments[name] = arguments[name].clone()
        positional = [arguments.pop(a.name) for a in spec.schema.arguments if not a.keyword_only]
        result = operator(spec.name)(*positional, **arguments)
        result = result if isinstance(result, (tuple, list)) else [result]
        selection = [x for i, x in enumerate(result) if i not in spec.auxiliary]
        return [x for x in selection if x.dtype.name in ("float64", "complex128")]

    return function, varied
