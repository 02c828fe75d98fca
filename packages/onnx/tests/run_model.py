"""Exported functions, run by ONNX's reference implementation, beside the functions themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.reference

import plait_core as pc
import plait_onnx
from plait_autograd import no_grad


def flat(value: Any) -> list[Any]:
    if isinstance(value, pc.Tensor):
        return [value]
    return [each for part in value for each in flat(part)] if value is not None else []


def check(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    *others: tuple[Any, ...],
    run: Callable[[Any, dict[str, Any]], list[Any]] | None = None,
    digits: float = 1e-4,
    **options: Any,
) -> Any:
    """Export a function; compare its results for `args` and other arguments with the model's."""
    model = plait_onnx.export(function, args, **options).to_proto()
    onnx.checker.check_model(model, full_check=True)
    for each in (args, *others):
        given = [tensor.clone() for tensor in flat(each)]
        names = [entry.name for entry in model.graph.input]
        feed = {n: t.detach().numpy() for n, t in zip(names, given, strict=True)}
        outputs = (run or by_reference)(model, feed)
        with no_grad():
            expected = flat(function(*each))
        assert len(outputs) == len(expected)
        for output, tensor in zip(outputs, expected, strict=True):
            array = tensor.detach().numpy()
            assert (np.shape(output), output.dtype) == (array.shape, array.dtype)
            np.testing.assert_allclose(output, array, rtol=digits, atol=digits)
    return model


def by_reference(model: Any, feed: dict[str, Any]) -> list[Any]:
    result: list[Any] = onnx.reference.ReferenceEvaluator(model).run(None, feed)
    return result


def kinds(model: Any) -> Sequence[str]:
    return [node.op_type for node in model.graph.node]
